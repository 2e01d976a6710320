"""The command line under fire: calls that Hypothesis makes up from the real parser.

Whatever is typed: no traceback, no hang, and an exit status from the table. Policies are played in plain Python, for
few rounds, and a small figure takes the place of the papers': what is tested is the way from the words to the answer.
"""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_pdf import FigureCanvasPdf

from dpbandits import plotting
from dpbandits.cli import BAD_INPUT, DONE, NO, commands, main
from dpbandits.experiments import figures
from dpbandits.experiments.cells import Cell
from dpbandits.planning import advise
from dpbandits.policies import lookup
from dpbandits.simulation import runs
from dpbandits.simulation.settings import Simulation

CALLS = 1200  # of all commands together, at least
SLOW = {("plan",): 20, ("plan", "levels"): 60}  # calls of those that take seconds; the others make up for the rest
SECONDS = 30  # in which a call must have ended
CAN_SAY_NO = ("audit", "plan", "reproduce")

#: What people, scripts and accidents write where a value is expected.
ODD = [
    "",
    " ",
    "nan",
    "-nan",
    "inf",
    "-inf",
    "0",
    "-0",
    "-1",
    "0.5",
    "1e30",
    "1e400",
    "1e-400",
    "0x10",
    "1_0",
    "1,5",
    "٣",
]
ODD += [
    "None",
    "null",
    "true",
    "ten",
    "--",
    "-",
    "=",
    "a=b",
    "a=",
    "=1",
    "%",
    "5%",
    "101%",
    "-5%",
    "1:0",
    "0:1",
    "1:2:3",
]
ODD += ["(", ")", "()", "constant(", "choice()", "normal(1)", "@", "@nope", "replay()", "replay(x)", "bernoulli(2)"]
ODD += ["0.9,", ",", "0.9,0.9", "1e3*0.5", "-2*beta(1,1)", "beta(0,0)", "normal(0,-1)", "uniform(1,0)", "choice(1,nan)"]
ODD += [":", "a:b", "json:dumps", "os:nope", "os.path:join", "sys:exit", "dpbandits:simulate", "../x", "/dev/null", "/"]
ODD += ["\x1b[31m", "ä", "🎲", "a\nb", "x" * 300, "'", '"', "$HOME", "*", "~", "epsilon_min=auto", "alpha=nan", "v=0"]

POLICIES = [*lookup.names()[::3], "AdaP_UCB", "ucb1", "dp-ucb-int", "heldp-ucb-b"]
FILES = ["good.toml", "bad.toml", "binary.toml", "empty.toml", "folder", "nowhere.toml"]

#: Values with which a command can do its work, and quickly. A parameter that is not here gets odd values only.
GOOD: dict[str, list[str]] = {
    "arms": ["0.9,0.6", "0.5,0.4,0.3", "2*beta(4,1)+uniform(0,1)", "replay(log.csv)", "normal(0,1)+normal(1,1)", "3"],
    "horizon": ["20", "1e2", "1_00"],
    "epsilon": ["1", "0.1", "1e-9", "700", "1/3", "0.5,1"],
    "options": ["alpha=2", "delta=0.1", "epsilon_min=0.5", "as_printed=true", "schedule=x", "sigmoid=true"],
    "levels": ["constant(1)", "choice(0,1)", "normal(1,1)"],
    "seed": ["3"],
    "reward_range": ["0,1", "-5,5"],
    "arm_order": ["shuffled", "given"],
    "checkpoints": ["1", "5"],
    "delay": ["constant(2)", "exponential(3)", "lognormal(2,1)"],
    "loss": ["0.1"],
    "window": ["5"],
    "runs": ["2"],
    "workers": ["1", "2"],
    "policy": POLICIES,
    "policies": POLICIES,
    "file": FILES,
    "target": ["ren2020/fig1", "ren2020", "nope", "ren2020/fig9"],
    "scale": ["quick", "paper"],
    "best": ["0.5"],
    "gap": ["0.1"],
    "traffic": ["10"],
    "days": ["3"],
    "trust": ["central", "local", "any"],
    "budget": ["5%", "3"],
    "refuse": ["20%"],
    "kind": ["laplace", "bernoulli"],
    "claim": ["1", "0.01"],
    "delta": ["0.1"],
    "trials": ["60"],
    "alpha": ["0.01"],
    "view": ["actions", "released", "response", "bytes"],
    "cluster": ["threads"],
    "out": ["out"],
}

#: The same for the parameters of one command.
GOOD_FOR: dict[tuple[str, ...], dict[str, list[str]]] = {
    ("audit", "policy"): {"name": POLICIES, "horizon": ["2", "3"]},
    ("audit", "curator"): {"name": ["randomised-response", "laplace", "sigmoid-bernoulli", "simulated-laplace"]},
}

PLAN = "--arms 0.9,0.6 --horizon 50 --epsilon 1,2 --runs 2 --policy adap-ucb --policy ldp-ucb-b"

#: The values with which a command answers quickly, put before what Hypothesis adds; of commands that are not here,
#: only what the parser refuses is called: they run long, or serve.
START: dict[tuple[str, ...], list[str]] = {
    ("policies",): [],
    ("cache",): [],
    ("simulate",): ["--horizon", "30", "--runs", "2", "--arms", "0.9,0.6", "--epsilon", "1"],
    ("bounds",): ["--arms", "0.9,0.6", "--horizon", "100", "--epsilon", "1"],
    ("plan",): PLAN.split(),
    ("plan", "levels"): ["--levels", "choice(0,1)"],
    ("audit", "policy"): ["--horizon", "3", "--epsilon", "1", "--trials", "60"],
    ("audit", "curator"): ["--epsilon", "1", "--trials", "60"],
    ("compare",): [],
    ("reproduce",): [],
}
TOML = (
    'arms = "0.9,0.6"\nhorizon = 30\nruns = 2\n[[policy]]\nname = "adap-ucb"\nepsilon = 1\n[[policy]]\nname = "ucb1"\n'
)


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command of the parser with its path; a group that does something on its own is one, too."""
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
            if not command.invoke_without_command:
                continue
        yield (*path, name), command


LEAVES = dict(leaves(commands()))


def text() -> st.SearchStrategy[str]:
    """Anything that can be typed, but no digits: a number of rounds that is huge and legal is not odd, but slow."""
    return st.text(st.characters(exclude_categories=["Cs", "N"], exclude_characters="\0"), max_size=6)


def rarely() -> st.SearchStrategy[bool]:
    """True in one of ten draws."""
    return st.integers(0, 9).map(lambda dice: dice == 9)


def value(path: tuple[str, ...], name: str | None) -> st.SearchStrategy[str]:
    """Mostly a good value, so that one odd value is met by a call that would work without it."""
    odd = st.one_of(st.sampled_from(ODD), text())
    good = (GOOD | GOOD_FOR.get(path, {})).get(name or "")
    return odd if good is None else rarely().flatmap(lambda rare: odd if rare else st.sampled_from(good))


@st.composite
def words(draw: st.DrawFn, path: tuple[str, ...]) -> list[str]:
    """A call of this command."""
    command = LEAVES[path]
    parameters = [p for p in command.get_params(click.Context(command)) if "--help" not in p.opts]
    line = [*path]
    if path not in START:
        return [*line, draw(st.sampled_from(["--nope", "--", "a b c", "-h", "--json=1", "--help"])), "--no-such-option"]
    for argument in (p for p in parameters if isinstance(p, click.Argument)):
        if not draw(rarely()):
            line.append(draw(value(path, argument.name)))
    if not draw(rarely()):
        line += START[path]
    options = [p for p in parameters if isinstance(p, click.Option)]
    for option in draw(st.lists(st.sampled_from(options), max_size=4)):
        line.append(option.opts[0][:-1] if draw(rarely()) else option.opts[0])
        if not option.is_flag:
            line.append(draw(value(path, option.name)))
    return [*line, draw(text())] if draw(rarely()) else line


SMALL = ModuleType("small")  # a figure of a paper, as small as it can be
vars(SMALL).update(
    TITLE="Small",
    SETTINGS="",
    cells=lambda scale: {"UCB1": Cell.of("ucb1", [0.9, 0.6], 30, runs=2)},
    score=lambda traces, scale: [],
    plot=lambda traces, scale: [],
)


class Hung(BaseException):
    """A call has not ended in time."""


def call(line: list[str]) -> tuple[int, str, str]:
    """The command in this process: status, standard output, standard error."""

    def too_late(number: int, frame: Any) -> None:
        raise Hung(line)

    out, err = io.StringIO(), io.StringIO()
    before, signal_before = sys.argv, signal.signal(signal.SIGALRM, too_late)
    sys.argv = ["dpbandits", *line]
    signal.alarm(SECONDS)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
        status = DONE
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else -1
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, signal_before)
        sys.argv = before
    return status, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with files to read, in which policies are played in plain Python."""
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "folder").mkdir()
    (folder / "good.toml").write_text(TOML)
    (folder / "bad.toml").write_text("arms = [1,\n")
    (folder / "binary.toml").write_bytes(bytes(range(256)))
    (folder / "empty.toml").write_text("")
    (folder / "log.csv").write_text("arm,reward\nred,1\nblue,0\nred,0\n")
    compiled = runs.Player.of

    def plain(simulation: Simulation, engine: str = "compiled") -> runs.Player:
        return compiled(simulation, "python" if engine == "compiled" else engine)

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("DPBANDITS_CACHE", str(folder / "cache"))
        patch.setattr(runs.Player, "of", plain)
        patch.setattr(figures, "figures", lambda: (figures.Figure("ren2020", "fig1", SMALL),))
        patch.setattr(plotting, "RESOLUTION", 20)
        patch.setattr(FigureCanvasPdf, "print_pdf", lambda *given, **more: None)  # it takes longer than the other files
        patch.setattr(advise, "know", lambda *asked: None)  # it plays many rounds, which plain Python takes minutes for
        yield folder


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_whatever_is_typed_the_command_answers(path: tuple[str, ...], workshop: Path) -> None:
    few = path not in START
    share = SLOW.get(path) or (CALLS - sum(SLOW.values())) // (len(START) - len(SLOW)) + 1

    @settings(
        max_examples=20 if few else share,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(words(path))
    def holds(line: list[str]) -> None:
        status, out, err = call(line)
        shown = f"dpbandits {line}: status {status}\n{out[-500:]}\n{err[-2000:]}"
        assert status in (DONE, BAD_INPUT) or (status == NO and path[0] in CAN_SAY_NO), shown
        assert "Traceback" not in out + err, shown
        if status == BAD_INPUT:
            assert err.splitlines()[-1].startswith("dpbandits: "), shown
            assert err.endswith("\n"), shown
            assert out == "" or path[0] in ("compare", "reproduce", "simulate", "plan"), shown

    holds()
