"""What a fourth red team found: no broken policy is proved, and no right one is called violated."""

from __future__ import annotations

import math
from typing import Any

import broken_fourth
import oracle
import pytest
from test_subtle import attempt, is_proved

from dpbandits import policies
from dpbandits.audit import answers, verify, verify_curator
from dpbandits.audit.refusals import Refused
from dpbandits.errors import InputError
from dpbandits.exact import BernoulliCurator, LaplaceCurator, RandomisedResponse, responses
from dpbandits.mechanisms import truth_probability

ROUNDED = [name for name, why in broken_fourth.WHY.items() if why == broken_fourth.ROUNDS]


@pytest.mark.parametrize("name", sorted(set(broken_fourth.WHY) - set(ROUNDED)))
def test_there_is_no_proof(name: str) -> None:
    why, policy = broken_fourth.WHY[name], broken_fourth.MADE[name](2, epsilon=1.0)
    if not why:
        assert attempt(policy).epsilon > 1.0 + 1e-12
        return
    with pytest.raises((Refused, TypeError), match=why):
        attempt(policy)


@pytest.mark.parametrize("name", [*sorted(broken_fourth.PROVED_BEFORE), "SaysThatNoiseIsZero", "OneOfThree"])
def test_the_verdict_is_not_proved(name: str) -> None:
    verdict = verify(broken_fourth.MADE[name], epsilon=1.0, horizon=4)
    assert verdict.verdict in ("violated", "not refuted"), f"{verdict}"
    assert verdict.reason or verdict.violated
    assert (broken_fourth.ROUNDS in verdict.reason) == (name in ROUNDED)
    if verdict.violated:
        assert verdict.epsilon == pytest.approx(broken_fourth.TRUTH[name], rel=1e-9)


@pytest.mark.parametrize("name", broken_fourth.RIGHT)
def test_right_ones_are_proved(name: str) -> None:
    policy = broken_fourth.RIGHT[name](2, epsilon=1.0)
    is_proved(policy)
    if policy.guarantee.trust == "central" and name != "TwoHalves":  # the brute force plays one noise in each number
        assert oracle.true_epsilon(policy, rounds=3, longer=6) <= 1.0 + 1e-6


@pytest.mark.parametrize("name", ["TwiceTheNoise", "OneNoiseForTwoArms", "InTheMiddle", "Window", "RestOfTheGrid"])
def test_the_truth_of_broken_ones(name: str) -> None:
    found = oracle.true_epsilon(broken_fourth.MADE[name](2, epsilon=1.0), rounds=4, longer=6)
    assert 1.0 + 1e-6 < found <= broken_fourth.TRUTH[name] * (1.0 + 1e-6)


class Word:
    """A source with one uniform number of 53 bits."""

    def __init__(self, word: int) -> None:
        self.word = word

    def random(self) -> float:
        return self.word * 2.0**-53


@pytest.mark.parametrize("name", ROUNDED)
def test_the_truth_of_rare_answers_by_all_words_that_can_give_them(name: str) -> None:
    """The answer 2 is given to words below 2^13 alone: all of them are tried."""
    curator: Any = broken_fourth.MADE[name](2, epsilon=1.0).curator
    high, low = (sum(curator.respond(reward, 0.0, Word(word)) == 2.0 for word in range(2**13)) for reward in (0.0, 1.0))
    loss = abs(math.log(high / low)) if high and low else math.inf
    assert loss > 1.0
    assert loss == pytest.approx(broken_fourth.TRUTH[name], rel=1e-2)


@pytest.mark.parametrize("epsilon", [5.0, 12.0, 20.0, 25.0, 30.0])
def test_bits_of_the_package_leave_room_for_rounding_at_every_epsilon(epsilon: float) -> None:
    assert verify("ldp-ucb-b", epsilon=epsilon).verdict == "proved"


def test_bits_without_room_for_rounding_are_not_proved_at_large_epsilons() -> None:
    """At epsilon 30 the threshold of 53 bits that is nearest to the truth loses 30.001."""
    policy = broken_fourth.MADE["Nearest"]
    assert verify(policy, epsilon=1.0).verdict == "proved"
    verdict = verify(policy, epsilon=30.0)
    assert (verdict.verdict, broken_fourth.ROUNDS in verdict.reason) == ("not refuted", True)
    nearest = 1.0 / (1.0 + math.exp(-30.0))
    assert math.log(nearest) - math.log(1.0 - nearest) > 30.001


@pytest.mark.parametrize("policy", [policies.ldp_ucb_b, policies.ldp_ucb_l])
def test_a_local_claim_with_a_delta_is_held_against_its_delta(policy: Any) -> None:
    """Bits need delta = (e - e^0.95) / (1 + e) at epsilon 0.95, and Laplace noise 1 - e^-0.025."""
    bits = policy is policies.ldp_ucb_b
    needed = (math.e - math.exp(0.95)) / (1.0 + math.e) if bits else -math.expm1(-0.025)
    enough = verify(policy, epsilon=1.0, claim=0.95, delta=needed * (1.0 + 1e-6))
    assert enough.verdict == "proved"
    assert enough.epsilon == pytest.approx(0.95, rel=1e-6)
    less = verify(policy, epsilon=1.0, claim=0.95, delta=needed * 0.99)
    assert less.violated
    assert less.epsilon is not None
    assert 0.95 < less.epsilon < 1.0


def test_an_answer_is_held_against_a_delta_where_it_cannot_be_followed() -> None:
    curator = broken_fourth.MADE["OneOfThree"](2, epsilon=1.0).curator
    found = answers.refuted(curator, 1.0, 1.0)
    assert found is not None
    needs = truth_probability(1.0) * 0.5  # e times half of the rest is half of the truth
    assert answers.refuted(curator, 1.0, 1.0, delta=needs + 0.01) is None
    assert answers.refuted(curator, 1.0, 1.0, delta=needs - 0.05) is not None


def test_several_responses_of_a_user_are_violated_only_where_their_loss_is_known() -> None:
    """Of flipped bits it is known what they compose to. Laplace noise composes to less: here to 0.9971."""
    made = {"rewards_per_user": 3, "user_delta": 1e-3}
    assert verify(policies.ldp_ucb_b(2, epsilon=1.0, **made), claim=0.998).violated
    unknown = verify(policies.ldp_ucb_l(2, epsilon=1.0, **made), claim=0.998)
    assert (unknown.verdict, unknown.epsilon, unknown.delta) == ("not refuted", None, 1e-3)
    assert verify(policies.ldp_ucb_l(2, epsilon=1.0, **made)).verdict == "proved"


def test_a_device_with_an_object_of_another_kind_in_it_is_not_proved() -> None:
    curator = RandomisedResponse("1")
    probability = curator._flip.probability  # type: ignore[attr-defined]

    class Like:
        def __getattr__(self, name: str) -> Any:
            return getattr(probability, name)

    curator._flip.probability = Like()  # type: ignore[attr-defined]
    verdict = verify_curator(curator, "1")
    assert (verdict.verdict, "not read" in verdict.reason) == ("not refuted", True)


def test_a_device_is_not_proved_if_code_of_the_package_was_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = responses.grid_steps
    monkeypatch.setattr(responses, "grid_steps", lambda reward, bits: 1 if reward == 0.3 else steps(reward, bits))
    assert verify_curator(BernoulliCurator("1"), "1").verdict == "not refuted"
    monkeypatch.undo()
    monkeypatch.setattr(responses, "max", lambda low, reward: low, raising=False)  # every reward becomes 0
    ignores = verify_curator(LaplaceCurator("1"), "1")
    assert (ignores.verdict, "does not depend" in ignores.reason) == ("not refuted", True)
    monkeypatch.undo()
    assert verify_curator(LaplaceCurator("1"), "1").verdict == "proved"


@pytest.mark.parametrize("name", ["laplace", "simulated-laplace"])
def test_an_epsilon_that_no_float_holds_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(InputError, match="epsilon must be at most 1e"):
        verify_curator(name, 10**400)
