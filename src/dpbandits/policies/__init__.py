"""Published algorithms: an agent paired with a curator, one function each. The command line's names have dashes."""

from dpbandits.policies.adac_ucb import adac_ucb
from dpbandits.policies.adap import adap_imed, adap_klucb, adap_moss, adap_ucb
from dpbandits.policies.baselines import imed, kl_ucb, thompson, ucb1
from dpbandits.policies.best_arm import adap_tt, ctb_tt, dp_tt
from dpbandits.policies.dp_likelihood import dp_glr_imed, dp_imed, dp_klucb
from dpbandits.policies.dp_se import dp_se
from dpbandits.policies.dp_ucb import dp_ucb, dp_ucb_bound
from dpbandits.policies.dp_ucb_int import dp_ucb_int
from dpbandits.policies.heldp_all import heldp_glr_b, heldp_weighted_b, heldp_weighted_l
from dpbandits.policies.heldp_ucb import heldp_ucb_b, heldp_ucb_bs, heldp_ucb_l, heldp_ucb_ls
from dpbandits.policies.lazy import anytime_lazy_ucb, lazy_dp_ts
from dpbandits.policies.ldp_bits import ldp_imed_b, ldp_imed_bs, ldp_klucb_b, ldp_klucb_bs, ldp_ts_b, ldp_ts_bs
from dpbandits.policies.ldp_piecewise import ldp_imed_p
from dpbandits.policies.ldp_ucb import ldp_ucb_b, ldp_ucb_bs, ldp_ucb_l, ldp_ucb_ls
from dpbandits.policies.private_ucb import private_ucb

__all__ = [
    "adac_ucb",
    "adap_imed",
    "adap_klucb",
    "adap_moss",
    "adap_tt",
    "adap_ucb",
    "anytime_lazy_ucb",
    "ctb_tt",
    "dp_glr_imed",
    "dp_imed",
    "dp_klucb",
    "dp_se",
    "dp_tt",
    "dp_ucb",
    "dp_ucb_bound",
    "dp_ucb_int",
    "heldp_glr_b",
    "heldp_ucb_b",
    "heldp_ucb_bs",
    "heldp_ucb_l",
    "heldp_ucb_ls",
    "heldp_weighted_b",
    "heldp_weighted_l",
    "imed",
    "kl_ucb",
    "lazy_dp_ts",
    "ldp_imed_b",
    "ldp_imed_bs",
    "ldp_imed_p",
    "ldp_klucb_b",
    "ldp_klucb_bs",
    "ldp_ts_b",
    "ldp_ts_bs",
    "ldp_ucb_b",
    "ldp_ucb_bs",
    "ldp_ucb_l",
    "ldp_ucb_ls",
    "private_ucb",
    "thompson",
    "ucb1",
]
