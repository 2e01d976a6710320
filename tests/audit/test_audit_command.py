"""``dpbandits audit``: what is printed, and with which exit status."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, str, str]]
Audit = Callable[[str], tuple[int, str, str]]
HERE = Path(__file__).parent


@pytest.fixture
def audit(dpbandits: Command) -> Audit:
    """The command ``dpbandits audit``, with words as they are typed."""
    return lambda words: dpbandits("audit", *words.split())


def test_an_exact_proof(audit: Audit) -> None:
    status, out, _ = audit("policy adap-ucb --epsilon 1 --exact --json")
    record = json.loads(out)
    assert status == 0
    assert (record["verdict"], record["view"], record["horizon"]) == ("proved", "actions", 8)
    assert 0.9 < record["epsilon"] <= 1.0
    status, out, _ = audit("policy adap-ucb --epsilon 1 --exact")
    assert status == 0
    assert out.startswith("adap-ucb: proved for any number of stints (batches) of up to 64 rounds (24 with 5 arms)\n")


def test_responses_of_a_user_are_proved_at_their_delta(audit: Audit) -> None:
    status, out, _ = audit("policy ldp-ucb-b --epsilon 1 --rewards-per-user 100 --user-delta 1e-6 --exact --json")
    record = json.loads(out)
    assert (status, record["verdict"], record["delta"]) == (0, "proved", 1e-6)
    assert (record["settings"]["rewards_per_user"], record["settings"]["user_delta"]) == (100, 1e-6)
    status, _, said = audit("curator bernoulli --epsilon 1 --user-delta 1e-6")
    assert (status, "user_delta is for policies: leave it out for the curator bernoulli" in said) == (2, True)


def test_released_is_what_a_central_proof_is_about(audit: Audit) -> None:
    for policy, released in (("adap-ucb", 1.0), ("dp-ucb", 1.0), ("private-ucb", 0.5)):
        record = json.loads(audit(f"policy {policy} --epsilon 1 --exact --horizon 8 --json")[1])
        assert (record["verdict"], record["released"]) == ("proved", released), policy
        assert record["epsilon"] == released or record["view"] == "actions"
    refuted = json.loads(audit("policy dp-ucb --epsilon 1 --option as_printed=true --claim 1 --exact --json")[1])
    assert refuted["released"] is None


def test_the_claim_of_users_with_levels_is_each_ones_own(audit: Audit) -> None:
    status, out, _ = audit("policy heldp-glr-b --claim 0.5 --exact")
    assert status == 0
    assert "claim       each user's own epsilon, tried at 0.05, 0.5, 2.5\n" in out
    assert "worst case  epsilon 0.5 for a user at 0.5 (exact, response)\n" in out
    assert json.loads(audit("policy heldp-glr-b --claim 0.5 --exact --json")[1])["levels"] == [0.5, 0.05, 2.5]
    assert json.loads(audit("policy ldp-ucb-b --epsilon 0.5 --exact --json")[1])["levels"] == []


def test_a_policy_named_in_the_place_of_a_command(audit: Audit) -> None:
    assert audit("AdaP-UCB --epsilon 1")[::2] == (2, "dpbandits: AdaP-UCB is a policy: say audit policy AdaP-UCB\n")
    assert "No such command 'adap-ucv'" in audit("adap-ucv --epsilon 1")[2]


def test_help_needs_no_scipy() -> None:
    """It takes a second to import."""
    code = "import sys; from dpbandits.cli import main; sys.argv = ['dpbandits', 'audit', 'policy', '--help']\n"
    code += "try: main()\nexcept SystemExit: pass\nprint('scipy' in sys.modules, file=sys.stderr)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage: " in shown.stdout
    assert shown.stderr == "False\n"


def test_a_users_own_policy_that_draws_again_is_violated(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    status, out, _ = audit("audit_mutants:redrawn --epsilon 1 --exact")
    assert status == 1
    assert "redrawn: violated" in out
    assert "witness" in out
    assert "changed: reward " in out


def test_what_a_function_makes_decides_and_not_its_parameters(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    status, out, _ = audit("audit_mutants:laplace_for_arms --epsilon 1 --view bytes --trials 2e4")
    assert (status, "low bits" in out) == (1, True)
    status, out, _ = audit("audit_mutants:redrawn_for_two --epsilon 1 --option times=1 --exact")
    assert (status, "redrawn: violated" in out) == (1, True)


def test_the_hybrid_as_printed_is_violated(audit: Audit) -> None:
    words = "policy dp-ucb-bound --epsilon 1 --option as_printed=true --claim 1 --exact --json"
    status, out, _ = audit(words)
    record = json.loads(out)
    assert status == 1
    assert (record["epsilon"], record["view"]) == (2.0, "released values")


def test_every_verdict_has_its_exit_status(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    for words, verdict, expected in (
        ("policy dp-ucb-int --epsilon 1 --exact --horizon 8", "vacuous", 0),
        ("right_subjects:by_numpy --epsilon 1 --exact --horizon 8", "not refuted", 0),
        ("broken_central:through_a_generator --epsilon 1 --exact", "refused", 2),
        ("broken_central:peeks --epsilon 1 --exact", "violated", 1),
        ("policy right_subjects:exact_noise --epsilon 1 --exact", "proved", 0),
    ):
        status, out, _ = audit(f"{words} --json")
        record = json.loads(out)
        assert (status, record["verdict"]) == (expected, verdict)
        assert bool(record["reason"]) == (verdict not in ("proved", "violated"))
        status, out, _ = audit(words)
        assert status == expected
        assert re.search(rf": {verdict}( for .*)?\n", out)


def test_a_game_on_a_policy_and_on_a_users_curator(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    """The correct policy is refuted with probability 1e-6; the seed is fixed."""
    monkeypatch.chdir(HERE)
    words = "policy adap-ucb --epsilon 1 --trials 2e4 --horizon 8 --alpha 1e-6 --json"
    status, out, _ = audit(words)
    record = json.loads(out)
    assert status == 0
    assert (record["verdict"], record["confidence"], record["trials"]) == ("not refuted", 1 - 1e-6, 20_000)
    assert "plain Python" not in record["domain"]
    status, out, _ = audit("audit_mutants:float_laplace --epsilon 1 --view bytes --trials 2e4")
    assert status == 1
    assert "low bits" in out


def test_curators_by_name(audit: Audit) -> None:
    status, out, _ = audit("curator laplace --epsilon 1/3 --exact")
    assert status == 0
    assert "proved" in out
    assert audit("curator bernoulli --epsilon 1 --claim 0.5 --exact")[0] == 1
    assert audit("curator simulated-laplace --epsilon 1 --exact")[0] == 0
    assert audit("curator sigmoid-bernoulli --epsilon 1 --claim 0.3 --trials 1e4")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("policy adap-ucb --epsilon 1 --exact --horizon 40 --view actions", "view must be released for this policy"),
        ("policy adap-ucb --epsilon 1 --exact --horizon 1", "horizon must be a whole number of at least 2, got 1"),
        ("policy adap-ucb --epsilon 1 --claim 0", "claim must be positive and finite, got 0"),
        ("policy adap-ucb --epsilon 1 --claim -2 --exact", "claim must be positive and finite, got -2"),
        ("policy adap-ucb --epsilon 1 --alpha 1", "alpha must be in (0, 1), got 1"),
        ("policy adap-ucb --epsilon 1 --trials 10", "trials must be at least 46"),
        (
            "policy adap-ucb --epsilon 1 --exact --trials 100",
            "trials must not be given together with --exact: leave out one of them, got 100",
        ),
        ("policy adap-ucb --epsilon 1 --trials 1e3 --view response", "view 'response' is unknown"),
        ("policy adap-ucb --exact", "epsilon is required by adap-ucb, got none"),
        ("policy adap-ucbs --epsilon 1", "policy 'adap-ucbs' is unknown: did you mean adap-ucb"),
        ("policy ucb1 --exact", "claim is required, because ucb1 promises nothing"),
        ("curator laplace", "epsilon is required by laplace"),
        ("curator lapace --epsilon 1", "curator 'lapace' is unknown: did you mean laplace"),
        (
            "curator laplace --epsilon 1 --horizon 8",
            "horizon is for policies: leave it out for the curator laplace, got 8",
        ),
        ("curator laplace --epsilon 1 --option a=1 --option b=2", "option is for policies: leave it out"),
        (
            "faulty:fails_in_act --epsilon 1 --exact",
            "fails when it is played: ZeroDivisionError: float division",
        ),
        ("faulty:leaves --epsilon 1 --exact", "policy fails when it is played: SystemExit: 1"),
        ("faulty:no_such_arm --epsilon 1 --exact", "act must return an arm that exists and a stint of at least 1"),
        ("faulty:no_such_arm --epsilon 1 --trials 1e3", "act must return an arm that exists and a stint of at least 1"),
        ("faulty:no_rounds --epsilon 1 --trials 1e3", "act must return an arm that exists and a stint of at least 1"),
        ("faulty:cannot_be_made --epsilon 1 --exact", "policy cannot be made: TypeError"),
        ("faulty:no_policy --epsilon 1 --exact", "must make a policy, or something that responds to a reward, got str"),
        ("faulty:not_published --epsilon 1 --exact", "must be made by a function with @published"),
        (
            "faulty_import:anything --epsilon 1 --exact",
            "'faulty_import:anything' cannot be imported: NameError: name 'undefined' is not defined",
        ),
        ("nowhere:nothing --epsilon 1", "policy must be a name or module:function, got 'nowhere:nothing'"),
        ("audit_mutants:broken_curator --claim 1", "must make a policy, or something that responds"),
        ("audit_mutants:float_laplace --epsilon 1 --exact", "exact needs a policy; audit_mutants:float_laplace makes"),
    ],
)
def test_bad_input_is_one_line_and_exit_status_2(
    audit: Audit, monkeypatch: pytest.MonkeyPatch, arguments: str, message: str
) -> None:
    monkeypatch.chdir(HERE)
    status, out, err = audit(arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
