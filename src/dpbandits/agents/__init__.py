"""Who chooses arms, from releases alone."""

from dpbandits.agents.doubling import Doubling
from dpbandits.agents.elimination import Elimination
from dpbandits.agents.geometric import Geometric, batches
from dpbandits.agents.imed import IMED
from dpbandits.agents.kl_ucb import KLUCB
from dpbandits.agents.lazy import CoveringUCB, LazyThompson, LazyUCB
from dpbandits.agents.likelihood import LikelihoodIMED, LikelihoodUCB
from dpbandits.agents.moss import MOSS
from dpbandits.agents.propensities import propensities
from dpbandits.agents.root_ucb import RootUCB
from dpbandits.agents.skip_ahead import skip_ahead
from dpbandits.agents.standing import standing
from dpbandits.agents.thompson import Thompson
from dpbandits.agents.top_two import BitsTest, SumsTest, TopTwo
from dpbandits.agents.ucb import UCB

__all__ = [
    "IMED",
    "KLUCB",
    "MOSS",
    "UCB",
    "BitsTest",
    "CoveringUCB",
    "Doubling",
    "Elimination",
    "Geometric",
    "LazyThompson",
    "LazyUCB",
    "LikelihoodIMED",
    "LikelihoodUCB",
    "RootUCB",
    "SumsTest",
    "Thompson",
    "TopTwo",
    "batches",
    "propensities",
    "skip_ahead",
    "standing",
]
