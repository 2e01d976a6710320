"""Exit status: 0 done, 1 the answer is no, 2 bad input, 70 an error of ours, 130 Ctrl-C; and streams that are gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from dpbandits.cli import ISSUES, shared
from dpbandits.cli.tables import layout

Command = Callable[..., tuple[int, str, str]]

PLAN = "plan --arms 0.9,0.6 --horizon 200 --runs 2 --epsilon 1"
BOUNDS = "bounds --arms 0.9,0.8 --horizon 1000 --epsilon 1"
BAD = {  # a command: what its message must hold
    f"{PLAN} --workers 0": "workers must be a whole number of at least 1, got 0",
    f"{PLAN} --workers nan": "workers must be a whole number of at least 1, got nan",
    f"{PLAN} --refuse nan": "refuse must be at least 0% and below 100%, got nan",
    f"{PLAN} --refuse 1e400": "refuse must be at least 0% and below 100%",
    f"{PLAN} --policy ucb1": "policy must be private with trust central or local, got ucb1, which is not private",
    f"{PLAN} --policy adap-ucb --trust local": "got adap-ucb, which is central",
    f"{PLAN} --out /dev/null/x": "/dev/null/x: Not a directory",
    f"{BOUNDS} --option alpha=nan": "alpha must be positive and finite, got nan",
    f"{BOUNDS} --option delta=2": "delta must be in (0, 1), got 2",
    f"{BOUNDS} --option v=0": "v must be positive and finite, got 0",
    "compare {file} --workers 1e9": "workers must be at most 1024, got 1000000000",
    "simulate {own}:broken --arms 0.9,0.6 --horizon 10": "your own code failed: ZeroDivisionError",
    "simulate json:dumps --arms 0.9,0.6 --horizon 10": "policy must be made by a function with @published",
    "audit policy adap-ucb --epsilon 1 --trials 0": "trials must be a whole number of at least 1, got 0",
}
OWN = """
from dpbandits.policies.policy import published

@published("mine")
def broken(arms):
    return 1 / 0
"""


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_status_2_before_any_work(
    dpbandits: Command, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("faulty_policy.py").write_text(OWN)
    Path("small.toml").write_text('arms = "0.9,0.6"\nhorizon = 30\n[[policy]]\nname = "ucb1"\n')
    status, out, err = dpbandits(*words.format(own="faulty_policy", file="small.toml").split())
    assert (status, out) == (2, "")
    assert err.startswith("dpbandits: ")
    assert err.count("\n") == 1
    assert BAD[words] in err
    assert {path.name for path in Path().iterdir()} <= {"faulty_policy.py", "small.toml", "__pycache__"}, (
        "a folder is left"
    )


def test_a_plan_for_one_policy_is_made_and_drawn(dpbandits: Command, tmp_path: Path) -> None:
    """It once drew a trust model for which there was no policy."""
    words = f"{PLAN},2 --policy adap-ucb --out".split()
    status, out, err = dpbandits(*words, str(tmp_path / "x"))
    assert status == 0, err
    assert "With a trusted server" in out
    assert {path.suffix for path in (tmp_path / "x").iterdir()} == {".svg", ".png", ".pdf", ".json"}


@pytest.mark.parametrize("words", [[], ["audit"], ["--help"], ["plan", "--help"]])
def test_help_is_shown_as_help(dpbandits: Command, words: list[str]) -> None:
    status, out, err = dpbandits(*words)
    assert (status, err) == (0, "")
    assert out.startswith("Usage: dpbandits")
    assert len(out.splitlines()) > 10


def test_an_error_of_ours_is_status_70_and_says_where_to_report_it(
    dpbandits: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("a reward of 0.123")

    monkeypatch.setitem(shared.app.commands, "fail", click.Command("fail", callback=fail))
    monkeypatch.setattr("dpbandits.cli._own_code", lambda error: None)  # this file would count as a user's
    status, out, err = dpbandits("fail")
    assert (status, out) == (70, "")
    assert err.startswith("dpbandits: unexpected error, ZeroDivisionError in test_exit_status.py:")
    assert f"report it with this command line at {ISSUES}" in err
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["urls"]["Issues"] == ISSUES
    assert err.count("\n") == 1
    assert "0.123" not in err, "what an error says may hold data"
    monkeypatch.setenv("DPBANDITS_DEBUG", "1")
    assert "Traceback" in dpbandits("fail")[2]


def test_control_characters_do_not_reach_the_terminal(dpbandits: Command, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(b"arm,reward\n\x1b[31mred\x07,much\n")
    status, _, err = dpbandits("simulate", "ucb1", "--arms", f"replay({log})", "--horizon", "10")
    assert status == 2
    assert "\x1b" not in err
    assert "\x07" not in err


def shell(line: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = f"{sys.executable} -m dpbandits"
    script = f"set -o pipefail; {line.replace('DP', command)}"
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=120, env={**os.environ, **more}
    )


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("DP policies | head -1", 0),
        ("DP policies | true", 0),
        (f"DP {BOUNDS} | head -1", 0),
        ("DP policies --json | head -c 1", 0),
        ("DP policies >&-", 0),
        ("DP policies >&- 2>&-", 0),
        ("DP simulate nope --arms 0.9,0.8 --horizon 9 2>&-", 2),
        ("DP policies > /dev/full", 2),
    ],
)
def test_streams_that_are_gone_make_no_noise(line: str, status: int) -> None:
    done = shell(line)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert len(done.stderr.splitlines()) == (1 if "full" in line else 0)


def test_the_answer_no_keeps_its_status_when_nobody_reads_it() -> None:
    line = "DP audit policy dp-ucb-bound --epsilon 1 --option as_printed=true --claim 1 --exact | true"
    assert shell(line).returncode == 1


@pytest.mark.parametrize("error", ["ImportError", "KeyboardInterrupt"])
def test_ctrl_c_during_an_import_is_an_interruption(error: str, tmp_path: Path, interrupted: Command) -> None:
    """An import that is broken off raises what it likes; it once was taken for the answer no."""
    (tmp_path / "slow_import.py").write_text(
        "import time\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        f"    raise {error}('broken off') from None\n"
    )
    words = ["audit", "slow_import:policy", "--epsilon", "1"]
    status, _, err = interrupted(*words, after=0.1, cwd=tmp_path)
    assert (status, err) == (130, "dpbandits: interrupted\n")


def test_the_answer_is_printed_before_figures_are_drawn(
    dpbandits: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full when the figure is drawn does not cost the answer."""

    def full(*anything: object) -> None:
        raise OSError(28, "No space left on device", "figure.png")

    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text('arms = "0.9,0.6"\nhorizon = 30\nruns = 2\n[[policy]]\nname = "ucb1"\n')
    monkeypatch.setattr("dpbandits.simulation.trace.Trace.plot", full)
    monkeypatch.setattr("dpbandits.planning.draw.write_plan", full)
    monkeypatch.setattr("dpbandits.experiments.output.write_section", full)
    for words in (
        "simulate ucb1 --arms 0.9,0.6 --horizon 30 --runs 2 --json --out a",
        "plan --arms 0.9,0.6 --horizon 50 --runs 2 --epsilon 1,2 --policy adap-ucb --json --out b",
        "compare small.toml --json --out c",
    ):
        status, out, err = dpbandits(*words.split())
        assert status == 2
        assert err.splitlines()[-1] == "dpbandits: figure.png: No space left on device"
        assert json.loads(out)


def test_extras_are_checked_before_work(dpbandits: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import util

    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text('arms = "0.9,0.6"\nhorizon = 30\nruns = 2\n[[policy]]\nname = "ucb1"\n')
    find = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name, *rest: None if name == "matplotlib" else find(name, *rest))
    for words, extra in {
        "simulate ucb1 --arms 0.9,0.6 --horizon 30 --out a": "plot",
        f"{PLAN} --out b": "plot",
        "compare small.toml --out c": "reproduce",
        "reproduce ren2020/fig1 --out d": "reproduce",
    }.items():
        status, out, err = dpbandits(*words.split())
        assert (status, out) == (2, "")
        assert err.startswith("dpbandits: matplotlib is not installed: pip install ")
        assert f"[{extra}]" in err
    assert {path.name for path in Path().iterdir()} == {"small.toml"}, "a folder was left"


LONG = ["dp-ucb-bound", "Heterogeneous local differential privacy", "1,234,567 ± 123,456", "split_over_arms=True"]


@pytest.mark.parametrize("wide", [200, 80, 60, 40, 24])
def test_tables_fit_and_break_no_name(wide: int) -> None:
    lines = layout(["policy", "paper", "regret", "options"], [LONG], wide)
    assert max(map(len, lines)) <= wide
    text = " ".join(" ".join(lines).split())
    for name in ("dp-ucb-bound", "Heterogeneous", "1,234,567", "split_over_arms=True"):
        assert name in text


@pytest.mark.parametrize("words", ["policies", BOUNDS, f"{PLAN},2 --policy adap-ucb --policy ldp-ucb-b"])
def test_no_table_is_wider_than_the_terminal(dpbandits: Command, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    tables: list[str] = []

    def remembered(*table: Any) -> list[str]:
        tables.extend(layout(*table))
        return layout(*table)

    monkeypatch.setattr(shared, "layout", remembered)
    status, out, _ = dpbandits(*words.split())
    assert status == 0
    assert max(map(len, tables)) <= 80
    assert set(tables) <= set(out.splitlines())
