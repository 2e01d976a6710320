"""``dpbandits audit``: what is printed, and with which exit status."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dpbandits import cli


def run(monkeypatch: pytest.MonkeyPatch, arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["dpbandits", "audit", *arguments.split()])
    try:
        cli.main()
    except SystemExit as exit:
        return int(exit.code or 0)
    return 0


def test_an_exact_proof(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "policy adap-ucb --epsilon 1 --exact --json") == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["verdict"], record["view"], record["horizon"]) == ("proved", "actions", 8)
    assert 0.9 < record["epsilon"] <= 1.0
    assert run(monkeypatch, "policy adap-ucb --epsilon 1 --exact") == 0
    assert capsys.readouterr().out.startswith("adap-ucb: proved\n")


def test_a_users_own_policy_that_draws_again_is_violated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(Path(__file__).parent)
    assert run(monkeypatch, "audit_mutants:redrawn --epsilon 1 --exact") == 1
    out = capsys.readouterr().out
    assert "redrawn: violated" in out
    assert "witness" in out
    assert "neighbour: " in out


def test_the_hybrid_as_printed_is_violated(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "policy dp-ucb-bound --epsilon 1 --option as_printed=true --claim 1 --exact --json") == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["epsilon"], record["view"]) == (2.0, "released values")


def test_a_game_on_a_policy_and_on_a_users_curator(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(Path(__file__).parent)
    assert run(monkeypatch, "policy adap-ucb --epsilon 1 --trials 2e4 --horizon 8 --alpha 1e-6 --json") == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["verdict"], record["confidence"], record["trials"]) == ("not refuted", 1 - 1e-6, 20_000)
    assert run(monkeypatch, "audit_mutants:float_laplace --epsilon 1 --view bytes --trials 2e4") == 1
    assert "low bits" in capsys.readouterr().out


def test_curators_by_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "curator laplace --epsilon 1/3 --exact") == 0
    assert "proved" in capsys.readouterr().out
    assert run(monkeypatch, "curator bernoulli --epsilon 1 --claim 0.5 --exact") == 1
    assert run(monkeypatch, "curator simulated-laplace --epsilon 1 --exact") == 0
    assert run(monkeypatch, "curator sigmoid-bernoulli --epsilon 1 --claim 0.3 --trials 1e4") == 1
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("policy adap-ucb --epsilon 1 --exact --horizon 40", "horizon must be at most 11"),
        ("policy adap-ucb --epsilon 1 --claim 0", "claim must be positive and finite, got 0"),
        ("policy adap-ucb --epsilon 1 --claim -2 --exact", "claim must be positive and finite, got -2"),
        ("policy adap-ucb --epsilon 1 --alpha 1", "alpha must be in (0, 1), got 1"),
        ("policy adap-ucb --epsilon 1 --trials 10", "trials must be at least 46"),
        ("policy adap-ucb --epsilon 1 --exact --trials 100", "exact and trials exclude each other"),
        ("policy adap-ucb --epsilon 1 --trials 1e3 --view response", "unknown view 'response'"),
        ("policy adap-ucb --exact", "epsilon is required by adap-ucb, got none"),
        ("policy adap-ucbs --epsilon 1", "did you mean adap-ucb"),
        ("policy ucb1 --exact", "claim is required, because ucb1 promises nothing"),
        ("curator laplace", "epsilon is required by laplace"),
        ("curator lapace --epsilon 1", "did you mean laplace"),
        ("curator laplace --epsilon 1 --horizon 8", "not parameters of a curator"),
        ("nowhere:nothing --epsilon 1", "target must be module:function, got 'nowhere:nothing'"),
        ("audit_mutants:broken_device --claim 1", "must make a policy, or something that responds"),
        ("audit_mutants:float_laplace --epsilon 1 --exact", "can only be attacked"),
    ],
)
def test_bad_input_is_one_line_and_exit_status_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: str, message: str
) -> None:
    monkeypatch.chdir(Path(__file__).parent)
    assert run(monkeypatch, arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1
