"""Progress where there is no terminal: a line every so often, whatever is going on; and honest times."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from dpbandits.cli import progress
from dpbandits.cli.progress import working
from dpbandits.simulation import compiling

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.05)


class Shown:
    """What was printed so far."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys, self.out, self.err = capsys, "", ""

    def wait_for(self, text: str, times: int = 1) -> None:
        """Until this was printed on standard error so often."""
        deadline = time.monotonic() + 60
        while self.err.count(text) < times:
            assert time.monotonic() < deadline, self.err
            time.sleep(0.01)
            out, err = self.capsys.readouterr()
            self.out, self.err = self.out + out, self.err + err


@pytest.mark.usefixtures("often")
def test_lines_say_how_far_the_work_is(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Shown(capsys)
    began = time.monotonic()
    with working("runs") as report:
        shown.wait_for("\n", 2)
        report(1, 4)
        shown.wait_for("runs: 1 of 4, ", 2)
        report(2, 4, 61.0)
        shown.wait_for("runs: 2 of 4, ")
    spent = time.monotonic() - began
    out, err = capsys.readouterr()
    assert (shown.out, out) == ("", "")
    lines = (shown.err + err).splitlines()
    assert 5 <= len(lines) <= spent / 0.05
    assert lines[0].startswith("runs: ")
    assert lines[0].endswith(" s so far")
    assert any(line.startswith("runs: 1 of 4, ") and line.endswith(" left") for line in lines)
    assert lines[-1].startswith("runs: 2 of 4, ")
    assert lines[-1].endswith("about 1 min 1 s left")


@pytest.mark.usefixtures("often")
def test_compiling_is_mentioned_with_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    before, shown = compiling.seconds(), Shown(capsys)
    with working("runs"):
        compiling.begins()
        compiling.begins()  # what is compiled may need something else
        compiling.ends()
        began = time.monotonic()
        shown.wait_for("runs: compiling ... ")
        spent = time.monotonic() - began
        compiling.ends()
    assert re.search(r"^runs: compiling \.\.\. [\d.]+ m?s$", shown.err, re.MULTILINE), shown.err
    assert compiling.seconds() - before >= spent


def test_short_work_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with working("runs") as report:
        report(1, 1)
    assert capsys.readouterr() == ("", "")


def test_the_time_is_what_was_waited_for(dpbandits: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a command counts all of it, and what of it was compiling is said."""
    monkeypatch.setattr(compiling, "seconds", lambda: 6.0)
    monkeypatch.setattr("dpbandits.cli.core.elapsed", lambda: 6.84)
    _, out, _ = dpbandits(*["simulate", "ucb1", "--arms", "0.9,0.6", "--horizon", "100", "--runs", "1"])
    assert "time        6.8 s, of which 6.0 s compiling" in out
    assert "1 run, seed 0" in out
    assert "±" not in out


def test_an_error_of_zero_is_not_shown(dpbandits: Command) -> None:
    """All runs of DP-SE lose the same here: it once was ± 1.69e-13."""
    _, out, _ = dpbandits(
        *["simulate", "dp-se", "--arms", "0.9,0.6", "--horizon", "1000", "--epsilon", "1", "--runs", "3"]
    )
    assert "reward units, the same in every run" in out
    assert "±" not in out
    assert "e-1" not in out
