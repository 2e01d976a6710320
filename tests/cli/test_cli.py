"""The command line: what is printed, where, and with which exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dpbandits.policies import lookup
from dpbandits.simulation import simulate
from dpbandits.simulation.settings import settings
from dpbandits.simulation.store import CodeStore

Command = Callable[..., tuple[int, str, str]]

ADAP = "simulate adap-klucb --arms 0.75,0.625,0.5,0.375,0.25 --epsilon 1"


def test_policies_lists_every_policy(dpbandits: Command) -> None:
    status, out, _ = dpbandits("policies")
    assert status == 0
    assert all(name in out for name in lookup.names())
    rows = json.loads(dpbandits("policies", "--json")[1])
    assert [row["name"] for row in rows] == lookup.names()
    assert {"summary", "paper", "trust", "guarantee", "options", "differs"} <= set(rows[0])


def test_simulate_prints_the_document_of_the_contract(dpbandits: Command) -> None:
    status, out, err = dpbandits(*f"{ADAP} --horizon 1e7 --runs 20 --seed 0 --json".split())
    assert (status, "dpbandits:" in err) == (0, False)  # there may be progress
    record = json.loads(out)
    assert record["policy"] == "adap-klucb"
    assert record["options"] == {"epsilon": 1.0, "alpha": 3.1}
    assert (record["horizon"], record["runs"], record["seed"]) == (10**7, 20, 0)
    assert record["guarantee"] == {
        "epsilon": 1.0,
        "delta": 0.0,
        "trust": "central",
        "unit": "one reward",
        "view": "actions",
        "conditions": "rewards are clipped to [0, 1] inside the curator",
    }
    assert record["checkpoints"][-1] == 10**7
    assert set(record["regret"]) == {"mean", "std", "stderr", "quantiles"}
    assert set(record["regret"]["quantiles"]) == {"0.05", "0.5", "0.95"}
    final = record["final"]
    assert set(final) >= {"regret_mean", "regret_stderr", "regret_max", "pulls_mean", "best_arm_fraction"}
    assert abs(final["regret_mean"] - 1905) < 5 * final["regret_stderr"] + 20  # the spec's table: 1905
    assert sum(final["pulls_mean"]) == pytest.approx(10**7)
    assert record["engine"] == "compiled"
    assert {"seconds", "version", "arms"} <= set(record)


def test_simulate_summarises_and_writes(dpbandits: Command, tmp_path: Path) -> None:
    status, out, err = dpbandits(*f"{ADAP} --horizon 10_000 --runs 3 --out {tmp_path / 'out'}".split())
    assert status == 0
    assert "regret" in out
    assert "guarantee   central, epsilon 1" in out
    figures = {"regret.svg", "regret.png", "regret.pdf"}
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"trace.parquet", "summary.json", *figures}
    assert "written" in err


SHORT = {
    "UCB1": "simulate ucb1 --arms 0.9,0.8 --horizon 100",
    "ADAP": "simulate adap-ucb --arms 0.9,0.8 --horizon 100",
    "ADAP1": "simulate adap-ucb --arms 0.9,0.8 --horizon 100 --epsilon 1",
    "HELDP": "simulate heldp-ucb-l --arms 0.9,0.8 --horizon 100",
    "INT": "simulate dp-ucb-int --arms 0.9,0.8 --horizon 100 --epsilon 1",
}
BAD = {  # a command: what its message must hold
    "simulate adap-klcub --arms 0.9,0.8 --horizon 100 --epsilon 1": "policy 'adap-klcub' is unknown: did you mean adap",
    "simulate ucb1 --arms 0.9,0.8;1 --horizon 100": "arms: cannot read '0.8;1' at character 5 of '0.9,0.8;1'",
    "simulate ucb1 --arms bernoulli(0.9)-beta(1,2) --horizon 100": "expected '+' at character 15",
    "simulate ucb1 --arms 2*betta(1,2) --horizon 100": "distribution 'betta' is unknown: did you mean beta",
    "simulate ucb1 --arms 2*beta(1) --horizon 100": "beta takes 2 parameters, got 1",
    "simulate ucb1 --arms 0.9,1.2 --horizon 100": "the mean of a bernoulli arm must be in [0, 1], got 1.2",
    "simulate ucb1 --arms 0.9 --horizon 100": "arms must be at least two, got one",
    "simulate ucb1 --arms @ren2020-bernouli --horizon 100": "problem 'ren2020-bernouli' is unknown: did you mean",
    "simulate ucb1 --arms replay(nowhere.csv) --horizon 100": "no file 'nowhere.csv'",
    "simulate ucb1 --arms 0.9,0.8 --horizon 1": "horizon must be a whole number of at least 2, got 1",
    "simulate ucb1 --arms 0.9,0.8 --horizon ten": "horizon must be a number, got 'ten'",
    "simulate ucb1 --arms 0.9,0.8 --horizon inf": "horizon must be a whole number of at least 2, got inf",
    "simulate ucb1 --arms 0.9,0.8": "Missing option '--horizon'",
    "UCB1 --runs 0": "runs must be a whole number of at least 1, got 0",
    "UCB1 --workers 0": "workers must be a whole number of at least 1, got 0",
    "UCB1 --epsilon 1": "epsilon is not a parameter of ucb1 (it is not private), got 1",
    "UCB1 --arm-order sorted": "arm_order 'sorted' is unknown: known are shuffled, given",
    "UCB1 --checkpoints 0": "checkpoints must be a whole number of at least 1, got 0",
    "ADAP": "epsilon is required by adap-ucb",
    "ADAP --epsilon 0": "epsilon must be positive and finite, got 0",
    "ADAP --epsilon -1": "epsilon must be positive and finite, got -1",
    "ADAP --epsilon nan": "epsilon must be positive and finite, got nan",
    "ADAP --epsilon inf": "epsilon must be positive and finite, got inf",
    "ADAP1 --option alhpa=1": "alhpa is not an option of adap-ucb: did you mean alpha?",
    "ADAP1 --option alpha": "option must be name=value, got 'alpha'",
    "ADAP1 --option alpha=x": "alpha must be a number, got 'x'",
    "ADAP1 --levels choice(1,2)": "levels is not a parameter of adap-ucb",
    "simulate dp-ucb --arms 0.9,0.8 --horizon 9 --epsilon 1 --option as_printed=2": "as_printed must be true or false",
    "INT --option delta=1": "delta must be in [0, 1), got 1",
    "INT --option schedule=w": "schedule 'w' is unknown: known are constant, x, y, exact",
    "simulate ldp-ucb-l --arms normal(0.5,1)+normal(0,1) --horizon 100 --epsilon 1": (
        "ldp-ucb-l needs rewards in [0,1]; normal(0.5,1) is unbounded: use ldp-ucb-ls"
    ),
    "simulate ucb1 --arms normal(0.5,1)+normal(0,1) --horizon 100": "is unbounded: use --option sigmoid=true",
    "simulate kl-ucb --arms normal(0.5,1)+normal(0,1) --horizon 100": "is unbounded: use --reward-range",
    "simulate ucb1 --arms uniform(0,2)+uniform(0,1) --horizon 100": "pays in [0,2]: use --reward-range 0,2",
    "UCB1 --reward-range 1,0": "reward_range must be low < high, both finite, got 1,0",
    "UCB1 --reward-range 1": "reward_range must be two numbers, low and high, got '1'",
    "HELDP --levels choice(1,2)": "epsilon_min is an option that heldp-ucb-l requires, got none",
    "HELDP --option epsilon_min=1": "levels is required by heldp-ucb-l",
    "HELDP --option epsilon_min=3 --levels choice(1,2)": (
        "epsilon_min must be a level that some users reach, where users have choice(1,2), got 3"
    ),
    "HELDP --option epsilon_min=3 --levels poisson(2)": "levels must be constant",
    "HELDP --option epsilon_min=3 --levels choice(-1,5)": "not negative, got -1",
    "HELDP --option epsilon_min=1 --levels normal(nan,1)": "levels must have a finite mean, got nan",
    "HELDP --option epsilon_min=50 --levels normal(1,1)": "some users reach, where users have normal(1,1), got 50",
    "ADAP1 --option alpha=1 --option alpha=2": "alpha must be given once, got 'alpha=1' and another",
    "INT --epsilon 1e-17": "epsilon must be larger",
    "UCB1 --out /dev/null/x": "/dev/null/x: Not a directory",
    "UCB1 --runs 1e12": "runs must be fewer",
    "simulate ucb1 --arms 0.9,0.8 --horizon 1e30": "horizon must be at most 2^53, got 1e+30",
    "UCB1 --delay poisson(3)": "delay must be constant(rounds), exponential(mean) or lognormal(median,sigma), got",
    "UCB1 --delay constant(x)": "delay must be a number, got 'x'",
    "UCB1 --loss 1": "loss must be in [0, 1), got 1.0",
    "UCB1 --window 0": "window must be positive and finite, got 0.0",
    "UCB1 --loss x": "loss must be a number, or one in percent such as 10%, got 'x'",
    "UCB1 --loss 200%": "loss must be in [0, 1), got 2.0",
    "UCB1 --seed -1": "seed must be a whole number of at least 0, got -1",
    "simulate ucb1 --arms 0.9,0.8 --horizon 1e9 --delay constant(3)": "horizon must be at most 1e+08 with a delay",
    "simulate nowhere:policy --arms 0.9,0.8 --horizon 100": "policy must be a name or module:function, got 'nowhere:",
    "simulate": "Missing argument 'POLICY'",
    "simluate": "No such command 'simluate'",
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_one_line_and_status_2(dpbandits: Command, words: str) -> None:
    first, _, rest = words.partition(" ")
    status, out, err = dpbandits(*f"{SHORT.get(first, first)} {rest}".split())
    assert status == 2
    assert out == ""
    assert err.startswith("dpbandits: ")
    assert err.count("\n") == 1
    assert BAD[words] in err


def test_every_setting_of_a_simulation_is_an_option(dpbandits: Command) -> None:
    status, out, _ = dpbandits("simulate", "--help")
    assert status == 0
    flags = {"--option" if name == "options" else f"--{name.replace('_', '-')}" for name in settings()}
    assert flags <= set(out.split())


def test_options_of_the_command_line_are_settings_of_the_library(dpbandits: Command) -> None:
    words = "simulate ldp-ucb-b --arms 0.9,0.6 --horizon 1e3 --epsilon 0.5 --seed 4 --checkpoints 7 --arm-order given"
    late = "--delay exponential(5) --loss 0.1 --window 50 --runs 3 --json"
    status, out, _ = dpbandits(*words.split(), *late.split())
    assert status == 0
    record = json.loads(out)
    given = {"epsilon": 0.5, "seed": 4, "arm_order": "given", "delay": "exponential(5)", "loss": 0.1, "window": 50.0}
    assert {name: record[name] for name in given} == given
    trace = simulate("ldp-ucb-b", arms=[0.9, 0.6], horizon=1000, checkpoints=7, runs=3, **given)  # type: ignore[arg-type]
    assert record["final"]["regret_mean"] == trace.final_regret.mean()


def test_ctrl_c_stops_with_one_line(interrupted: Command) -> None:
    """Interrupted as soon as the command has been read."""
    words = ["simulate", "thompson", "--arms", "0.9,0.8", "--horizon", "1e10", "--runs", "4"]
    first = "import dpbandits.simulation; print('ready', flush=True)"
    status, out, err = interrupted(*words, first=first, after=0.5)
    assert status == 130
    assert out == ""
    assert err.splitlines()[-1] == "dpbandits: interrupted"  # there may be progress before
    assert "Traceback" not in err


def test_cache_shows_where_compiled_code_is_and_clears_it(
    dpbandits: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DPBANDITS_CACHE", str(tmp_path))
    CodeStore(tmp_path).write("ab" * 32, b"machine code")
    record = json.loads(dpbandits("cache", "--json")[1])
    assert record["folder"] == str(tmp_path)
    assert record["entries"] == 1
    assert record["bytes"] > 12
    assert "holds       1 compiled loop, 0.0 MB" in dpbandits("cache")[1]
    assert json.loads(dpbandits("cache", "--clear", "--json")[1])["removed"] == 1
    CodeStore(tmp_path).write("ab" * 32, b"machine code")
    status, out, _ = dpbandits("cache", "--clear")
    assert status == 0
    assert "removed     1 compiled loop, 0.0 MB" in out
    assert "holds       0 compiled loops" in out


def test_a_simulation_says_that_no_run_knew_the_best_arm(dpbandits: Command) -> None:
    settings = ["--arms", "0.5,0.49", "--epsilon", "1", "--horizon", "1000", "--runs", "5", "--engine", "python"]
    assert "stopped     none of 5 runs by the horizon\n" in dpbandits("simulate", "dp-tt", *settings)[1]
