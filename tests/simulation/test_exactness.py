"""Skip-ahead changes the law of nothing: exact distributions on tiny problems, the plain loop on larger ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from scipy.stats import chi2

from dpbandits import policies
from dpbandits.agents import skip_ahead
from dpbandits.curators import HeterogeneousBernoulli
from dpbandits.environments import Bernoulli, parse_levels
from dpbandits.environments.levels import users_of
from dpbandits.mechanisms import response_probability
from dpbandits.parts import copied
from dpbandits.policies.policy import Policy
from dpbandits.testing.case import generators, player

FAILURE = 1e-6  # probability of each of these tests to fail though all is right
RUNS = 20_000
ROUNDS = 12


def paths(policy: Policy, chances: list[float], rounds: int) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every sequence of responses of 0 and 1, as the pulls it leads to and its probability: asked in every round."""
    rng = np.random.default_rng(0)  # these policies draw nothing
    stack = [(policy.curator, (0,) * len(chances), 1.0, 0)]
    while stack:
        curator, pulls, weight, t = stack.pop()
        if t == rounds:
            yield pulls, weight
            continue
        arm = policy.agent.act(curator, t + 1, rng)[0]
        for response, chance in ((1.0, chances[arm]), (0.0, 1 - chances[arm])):
            told = copied(curator)
            told.add(arm, response, 0.0, rng)
            after = tuple(n + (a == arm) for a, n in enumerate(pulls))
            stack.append((told, after, weight * chance, t + 1))


def pulls_of_runs(make: Callable[[], Policy], means: list[float], rounds: int) -> Counter[tuple[int, ...]]:
    """The pulls of runs as simulations play them: with skipped rounds and bulk draws."""
    policy, environment, seen = make(), Bernoulli.start(means), Counter[tuple[int, ...]]()
    played = player(policy, environment)
    for run in range(RUNS):
        pulls = played(policy.fresh(), environment, np.array([rounds]), generators(run))
        seen[tuple(pulls[0].tolist())] += 1
    return seen


@pytest.mark.parametrize(
    ("make", "chance"),
    [
        (lambda: policies.ucb1(arms=2), lambda p: p),
        (lambda: policies.kl_ucb(arms=2), lambda p: p),
        (lambda: policies.imed(arms=2), lambda p: p),
        (lambda: policies.ldp_ucb_b(arms=2, epsilon=2.0), lambda p: response_probability(p, 2.0)),
    ],
    ids=["ucb1", "kl-ucb", "imed", "ldp-ucb-b"],
)
def test_pulls_have_the_exact_distribution(make: Callable[[], Policy], chance: Callable[[float], float]) -> None:
    """Chi-square of 20 000 skipping runs against the distribution enumerated over all 2^12 reward sequences."""
    means = [0.8, 0.3]
    policy = make()
    assert skip_ahead(policy.agent, policy.curator) is not policy.agent
    exact: dict[tuple[int, ...], float] = {}
    for pulls, weight in paths(make(), [chance(p) for p in means], ROUNDS):
        exact[pulls] = exact.get(pulls, 0.0) + weight
    assert math.isclose(sum(exact.values()), 1.0)
    seen = pulls_of_runs(make, means, ROUNDS)
    assert set(seen) <= set(exact)
    likely = [pulls for pulls, weight in exact.items() if weight * RUNS > 5]
    statistic = sum((seen[pulls] - RUNS * exact[pulls]) ** 2 / (RUNS * exact[pulls]) for pulls in likely)
    assert len(likely) >= 4
    assert statistic < chi2.ppf(1 - FAILURE, len(likely) - 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: policies.ucb1(arms=4),
        lambda: policies.ldp_ucb_b(arms=4, epsilon=1.0),
        lambda: policies.ldp_ucb_l(arms=4, epsilon=1.0),
        lambda: policies.heldp_ucb_b(arms=4, epsilon_min=1.0),
        lambda: policies.heldp_ucb_l(arms=4, epsilon_min=1.0),
        lambda: policies.dp_ucb_bound(arms=4, epsilon=1.0),
        lambda: policies.dp_ucb_int(arms=4, epsilon=1.0),
        lambda: policies.adap_ucb(arms=4, epsilon=1.0),
    ],
    ids=["ucb1", "ldp-ucb-b", "ldp-ucb-l", "heldp-ucb-b", "heldp-ucb-l", "dp-ucb-bound", "dp-ucb-int", "adap-ucb"],
)
def test_regret_at_a_large_horizon_is_that_of_the_plain_loop(make: Callable[[], Policy]) -> None:
    """Means of 200 runs of 50 000 rounds each way differ by less than 5 standard errors (probability 6e-7)."""
    users = users_of(parse_levels("choice(0,0.5,1,4)"))
    environment, runs, rounds = Bernoulli.start([0.7, 0.6, 0.6, 0.4], users), 200, 50_000
    gaps = environment.means.max() - environment.means
    regrets = []
    policy = make()
    for quickly in (False, True):
        regret, played = np.zeros(runs), player(policy, environment, skipping=quickly, bulk=quickly)
        for run in range(runs):
            pulls = played(policy.fresh(), environment, np.array([rounds]), generators(run, int(quickly)))
            regret[run] = pulls[0] @ gaps
        regrets.append(regret)
    error = math.sqrt(sum(regret.var(ddof=1) for regret in regrets) / runs)
    assert abs(regrets[0].mean() - regrets[1].mean()) <= 5 * error


@pytest.mark.parametrize(("before", "line"), [("1011", 0.55), ("1111", 1.15), ("1011", -math.inf)])
def test_rounds_at_mixed_levels_drawn_at_once_have_the_exact_law(before: str, line: float) -> None:
    """Chi-square of the round in which it stops, the count and the sum, against their law enumerated round by round.

    At the second line a 1 at level 3 lowers the mean, too.
    """
    environment, most = Bernoulli.start([0.6], users_of(parse_levels("choice(0.5,1,1,3)"))), 6
    start = HeterogeneousBernoulli.start(1, epsilon_min=1.0)
    for bit in before:
        start.add(0, float(bit), 2.0, np.random.default_rng(0))

    outcomes = [(0.25, 0.5, 0.0)]
    for level, share in ((1.0, 0.5), (3.0, 0.25)):
        p = response_probability(0.6, level)
        outcomes += [(share * chance, level, response) for response, chance in ((1.0, p), (0.0, 1 - p))]
    alive, exact = [(start, 1.0)], dict[tuple[int, int, float], float]()
    for played in range(1, most + 1):
        following = []
        for curator, weight in alive:
            for chance, level, response in outcomes:
                after = copied(curator)
                after.add(0, response, level, np.random.default_rng(0))
                if after.mean(0) <= line or played == most:
                    key = (played, int(after.counts[0]), round(float(after.sums[0]), 9))
                    exact[key] = exact.get(key, 0.0) + weight * chance
                else:
                    following.append((after, weight * chance))
        alive = following
    assert math.isclose(sum(exact.values()), 1.0)
    assert (len({key[0] for key in exact}) > 1) is (line > -math.inf)

    rng, seen = np.random.default_rng(1), Counter[tuple[int, int, float]]()
    for _ in range(RUNS):
        curator = copied(start)
        played = curator.add_many(environment, 0, most, line, rng)
        seen[(played, int(curator.counts[0]), round(float(curator.sums[0]), 9))] += 1
    assert set(seen) <= set(exact)
    likely = [key for key, weight in exact.items() if weight * RUNS > 5]
    statistic = sum((seen[key] - RUNS * exact[key]) ** 2 / (RUNS * exact[key]) for key in likely)
    assert len(likely) >= 10
    assert statistic < chi2.ppf(1 - FAILURE, len(likely) - 1)
