"""What several tests share: the command line, and a test of fit."""

from __future__ import annotations

import gc
import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from scipy import stats

from dpbandits.cli import main

#: The probability that a correct sampler fails one chi-square test here (by the chi-square approximation).
FAILURE = 1e-9

#: Seconds that all tests marked slow may take together, on two cores with nothing else to do.
SLOW_BUDGET = 360

# Seeds are fixed: Hypothesis tries the same examples in every run. HYPOTHESIS_PROFILE=explore tries others. That an
# example takes more than Hypothesis's 0.2 s says that the machine is busy, and nothing about the code.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fixed", UNTIMED, derandomize=True)
settings.register_profile("explore", UNTIMED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

Command = Callable[..., tuple[int, str, str]]
Interrupted = Callable[..., tuple[int, str, str]]
Fit = Callable[[Iterable[int], Callable[[int], float]], bool]

collect_ignore = ["audit/faulty_import.py"]  # it fails when it is imported, as it should


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fuzz-cases", default="300", help="How many policies with random faults are made and verified.")


def pytest_collection_finish() -> None:
    """Keep the thousands of tests out of garbage collections, of which Numba's compiler causes hundreds."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


@pytest.fixture
def dpbandits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command, called in this process: exit status, standard output, standard error."""

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dpbandits", *words])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def interrupted() -> Interrupted:
    """The command, in a process of its own that gets a Ctrl-C: exit status, standard output, standard error.

    It comes as a terminal would send it, ``after`` seconds after the first line of output, ``ready``. ``first`` is done
    before the command.
    """
    # Where the tests run in the background, a shell may have told all of us to ignore it.
    heeded = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); import dpbandits.cli; "

    def call(*words: str, after: float, first: str = "pass", **how: Any) -> tuple[int, str, str]:
        line = [sys.executable, "-c", f"{heeded}{first}; dpbandits.cli.main()", *words]
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(after)
            process.send_signal(signal.SIGINT)
            try:
                out, err = process.communicate(timeout=60)
            finally:
                process.kill()
        return process.returncode, out, err

    return call


def fits(draws: Iterable[int], pmf: Callable[[int], float]) -> bool:
    """Whether ``draws`` pass Pearson's test at ``FAILURE``; values that are expected fewer than 20 times are pooled."""
    counts = Counter(draws)
    n = sum(counts.values())
    expected = {k: n * pmf(k) for k in range(-4000, 4001) if n * pmf(k) >= 20}
    statistic = sum((counts[k] - mean) ** 2 / mean for k, mean in expected.items())
    rest = n - sum(expected.values())
    if rest >= 20:
        statistic += (n - sum(counts[k] for k in expected) - rest) ** 2 / rest
    freedom = len(expected) - 1 + (rest >= 20)
    return bool(stats.chi2.sf(statistic, freedom) >= FAILURE)


@pytest.fixture
def fit() -> Fit:
    """See ``fits``."""
    return fits


@pytest.fixture
def two_sided() -> Callable[[float], Callable[[int], float]]:
    """The law of the discrete Laplace at a rate: tanh(rate/2) e^(-rate |k|)."""
    return lambda rate: lambda k: math.tanh(rate / 2) * math.exp(-rate * abs(k))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much of the budget the slow tests took: seconds of waiting, where several workers share them."""
    reports = [report for found in terminalreporter.stats.values() for report in found if hasattr(report, "duration")]
    slow = [report for report in reports if "slow" in report.keywords]
    workers = len({getattr(report, "worker_id", "") for report in slow}) or 1
    spent = sum(report.duration for report in slow) / workers
    if spent:
        over = " (over budget: make them quicker, or say why the machine was not idle)" if spent > SLOW_BUDGET else ""
        took = f"slow tests: {spent:.0f} s on {workers} workers"
        terminalreporter.write_line(f"{took}, of a budget of {SLOW_BUDGET} s{over}")
