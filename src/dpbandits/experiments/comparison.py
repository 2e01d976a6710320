"""A user's comparison: policies in Python, or a TOML file, which is reported in the same way as a reproduction."""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from dpbandits import __version__
from dpbandits.checks import at_least, known, nearest
from dpbandits.environments import Arms
from dpbandits.environments.arms import FILES, REPLAY
from dpbandits.errors import InputError
from dpbandits.experiments import engines, output
from dpbandits.experiments.asked import policies_of
from dpbandits.experiments.cells import CHECKPOINTS, Cell
from dpbandits.experiments.panels import Panel, Table, against, regrets
from dpbandits.experiments.report import Section, arms_text, versions
from dpbandits.experiments.work import Watch, fill, traces
from dpbandits.formats import amount, plural
from dpbandits.policies import lookup
from dpbandits.simulation import Simulation, Trace, Traces, simulate_all
from dpbandits.simulation.runs import ENGINES
from dpbandits.simulation.settings import settings
from dpbandits.simulation.traces import COLUMNS
from dpbandits.types import Floats

#: The settings that a [[policy]] table has for itself; all others are shared by all simulations.
POLICY_SETTINGS = ("epsilon", "levels", "options")
POLICY_KEYS = ("name", "label", "epsilons", *POLICY_SETTINGS)


#: Keys of a file that hold several values of a parameter.
LISTS = {"epsilon": "epsilons"}


@dataclass(frozen=True, eq=False)
class Comparison:
    """What is compared: the contents of a file, or policies."""

    title: str
    cells: dict[str, Cell]
    source: str  # the file's name


class _File:
    """A TOML file that can find the line of each key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist"
            raise InputError("file", f"must be a comparison in TOML, got '{path}', which {what}")
        try:
            self.text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise InputError(str(path), ": cannot be read as a text file") from None
        try:
            self.content = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(str(path), f": not TOML: {error}") from None

    def line(self, key: str | None, policy: int | None = None) -> int:
        """The line of a top-level key, or of a key of [[policy]] table number ``policy``; else that of the table."""
        table, count, fallback = "", -1, 1
        for number, text in enumerate(self.text.splitlines(), start=1):
            header = re.match(r"\s*\[+\s*([\w.]+)\s*\]+", text)
            if header is not None:
                table = header[1]
                count += table == "policy"
                fallback = number if table == "policy" and count == policy else fallback
            inside = count == policy and table.startswith("policy") if policy is not None else table == ""
            if header is not None and policy is None and header[1] == key:
                return number
            if inside and key is not None and re.match(rf"\s*(options\b.*\W)?{re.escape(key)}\s*[=.]", text):
                return number
        return fallback

    def fail(self, message: str, key: str | None = None, policy: int | None = None) -> InputError:
        """The error, with the file and the line."""
        return InputError(str(self.path), f", line {self.line(key, policy)}: {message}")

    def check(self, given: Mapping[str, Any], allowed: tuple[str, ...], policy: int | None = None) -> None:
        """Refuse keys that are not allowed."""
        for key in given:
            if key not in allowed:
                raise self.fail(f"unknown key '{key}': {nearest(key, allowed)}", key, policy)

    def blame(self, error: InputError, policy: int | None = None) -> InputError:
        """An error of the library, with the line of the key that it is about."""
        own = {} if policy is None else self.content["policy"][policy]
        for key in (error.parameter, LISTS.get(error.parameter, error.parameter)):
            if key in own or key in own.get("options", {}):
                return self.fail(str(error), key, policy)
            if key in self.content:
                return self.fail(str(error), key)
        return self.fail(str(error), None, policy)


def read_comparison(path: str | Path) -> Comparison:
    """Read a comparison from a TOML file. Every mistake is reported with its line, before any simulation starts."""
    file = _File(Path(path))
    given = file.content
    shared = tuple(name for name in settings() if name not in POLICY_SETTINGS)
    file.check(given, ("title", "runs", "engine", "epsilons", "levels", "policy", *shared))
    for key in ("arms", "horizon", "policy"):
        if key not in given:
            what = "at least one [[policy]] table is required" if key == "policy" else f"{key} is required"
            raise file.fail(what)
    tables = given["policy"]
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise file.fail("policy must be [[policy]] tables", "policy")
    common, runs = _common(file, shared)
    cells: dict[str, Cell] = {}
    for number, table in enumerate(tables):
        file.check(table, POLICY_KEYS, number)
        for cell in _cells(file, number, common, runs):
            if cell.name in cells:
                raise file.fail(f"label must differ between policies, got '{cell.name}' twice", "label", number)
            cells[cell.name] = cell
    title = str(given.get("title", file.path.stem))
    return Comparison(title, cells, file.path.name)


def _common(file: _File, shared: tuple[str, ...]) -> tuple[dict[str, Any], int]:
    """The settings that all simulations share, and the number of runs."""
    given = {"checkpoints": CHECKPOINTS, **file.content}
    try:
        common = {name: settings()[name].read(given[name]) for name in shared if name in given and name != "arms"}
        common["arms"] = _arms(given["arms"], file.path)
        return common, at_least("runs", given.get("runs", 20), 1)
    except InputError as error:
        raise file.blame(error) from None


def _arms(given: Any, path: Path) -> Arms:
    """The arms of the file. The path of a log is relative to the file; reports show it as written."""
    log = REPLAY.fullmatch(given) if isinstance(given, str) else None
    if log is not None:
        return replace(Arms.of(path.parent / log[1].strip()), text=given)
    if isinstance(given, str) and given.strip().lower().endswith(FILES):
        return replace(Arms.of(path.parent / given.strip()), text=f"replay({given.strip()})")
    return Arms.of(given)


def _cells(file: _File, number: int, common: Mapping[str, Any], runs: int) -> Iterator[Cell]:
    """The cells of one [[policy]] table: one for each epsilon, if the policy takes one."""
    table = file.content["policy"][number]
    if "name" not in table:
        raise file.fail(f"name is required: one of {', '.join(lookup.names())}", None, number)
    try:
        factory = lookup.find(table["name"])
        has_levels = lookup.traits(factory).levels is not None
    except InputError as error:
        raise file.fail(str(error), "name", number) from None
    levels = table.get("levels", file.content.get("levels") if has_levels else None)
    epsilons = _epsilons(file, number, factory)
    for epsilon in epsilons:
        label = str(table.get("label", ""))
        if label and len(epsilons) > 1:
            label = f"{label}, ε = {epsilon:g}"
        own = {"epsilon": epsilon, "levels": levels, "options": table.get("options", {})}
        try:
            engine = known("engine", file.content.get("engine", "compiled"), ENGINES)
            yield Cell(Simulation.of(factory, **common, **own), runs, label, engine)
        except InputError as error:
            raise file.blame(error, number) from None


def _epsilons(file: _File, number: int, factory: lookup.Factory) -> list[Any]:
    table = file.content["policy"][number]
    if "epsilon" in table and "epsilons" in table:
        raise file.fail("epsilon or epsilons must be given, and not both", "epsilons", number)
    if "epsilon" in table:
        return [table["epsilon"]]
    if "epsilons" not in table and not lookup.takes(factory, "epsilon"):
        return [None]
    listed = table.get("epsilons", file.content.get("epsilons", []))
    if not isinstance(listed, list) or not listed:
        if "epsilons" in table:
            raise file.fail(f"epsilons must be a list of numbers, got {listed!r:.80}", "epsilons", number)
        raise file.fail(f"epsilon is required by {table['name']}, or epsilons, a list", "name", number)
    return listed


def compare(
    what: Any,
    *,
    out: str | Path | None = None,
    runs: int = 20,
    workers: int | None = None,
    cluster: str | None = None,
    fresh: bool = False,
    watch: Watch | None = None,
    answered: Callable[[Traces], None] | None = None,
    title: str = "Comparison",
    engine: str = "compiled",
    **given: Any,
) -> Traces:
    """Compare policies on the same arms: one table, one plot.

    ``what`` is a list of policies, each as ``simulate`` takes it, or a mapping of labels to them; a mapping such as
    ``{"policy": "adap-ucb", "alpha": 1}`` has settings of its own, and a trace is compared as it is. The keywords are
    those of ``simulate``, for all of them; an ``epsilon``, ``levels`` or an option is given to the policies that take
    it, and a list of epsilons compares each private policy at each. With ``out``, finished runs, figures, data and a
    report are kept in that folder: whatever is edited, a run that was played is not played again.

    ``what`` may also be the path of a TOML file that says all this; then ``out`` is out/compare unless given.
    ``watch`` is called with the progress, and ``answered`` with the traces, before figures are drawn.

    >>> compare(["ucb1", "adap-ucb"], arms={"red": 0.9, "green": 0.6}, horizon=1000, epsilon=1, runs=5)
    policy           mean regret  95 % quantile  largest regret  disasters  best arm                    privacy
    ucb1             20.6 ± 2.1   26.7           28.2            0 %        red, played most in 5 of 5  not private
    adap-ucb, ε = 1  76.8         76.8           76.8            –          red, played most in 5 of 5  central, ...
    """
    if isinstance(what, PathLike) or (isinstance(what, str) and "arms" not in given):
        if given:
            raise InputError(next(iter(given)), f"is not needed beside a file, which says it, got '{what}'")
        path = Path(what)
        return _reported(read_comparison(path), Path(out or "out/compare"), workers, cluster, fresh, watch, answered)
    asked, traces = policies_of([what] if isinstance(what, str) else what, at_least("runs", runs, 1), given, engine)
    if out is not None:
        if traces:
            raise InputError("out", "is for policies that are played here, got traces among them")
        made = Comparison(title, asked, "policies in Python")
        return _reported(made, Path(out), workers, cluster, fresh, watch, answered)
    played = {
        label: simulate_all(cell.simulation, runs=cell.runs, workers=workers, engine=engine)
        for label, cell in asked.items()
    }
    return Traces({label: traces[label] if label in traces else played[label] for label in [*asked, *traces]})


def _reported(
    asked: Comparison,
    folder: Path,
    workers: int | None,
    cluster: str | None,
    fresh: bool,
    watch: Watch | None,
    answered: Callable[[Traces], None] | None,
) -> Traces:
    """Simulate a comparison, and write figures, data and the report. Runs in the folder are not played again."""
    started = time.perf_counter()
    held = {"command": "compare", "file": asked.source}
    with engines.engine(cluster, workers) as where, output.open_folder(folder, held, fresh=fresh) as results:
        fill(asked.cells.values(), results, where, watch)
        played = Traces(traces(asked.cells, results))
    if answered is not None:
        answered(played)
    cell = next(iter(asked.cells.values()))
    simulation = cell.simulation
    size = f"{plural(simulation.horizon, 'round')}, {plural(cell.runs, 'run')}, seed {simulation.seed}"
    words = f"{arms_text(simulation)}, {size}"
    if simulation.arms.named:
        words += f"; the best arm is {', '.join(simulation.arms.best())}"
    void = "; ".join(played.voids())
    said = f"{words}; {void}" if void else words
    shown: list[Panel | Table] = [*_panels(asked, played), _table(played), _pulls(played)]
    section = Section("comparison", asked.title, "", said, asked.cells, shown)
    output.write_section(folder, section, played, f"{void}\n{words}, dpbandits {__version__}".lstrip())
    seconds = round(time.perf_counter() - started, 1)
    facts = {"file": asked.source, "seed": simulation.seed, **versions(), "seconds": seconds}
    if void:
        facts["privacy"] = void
    output.write_report(folder, asked.title, [section], facts)
    return played


def _panels(asked: Comparison, played: Mapping[str, Trace]) -> list[Panel]:
    """Regret against time, one panel for each epsilon; and regret against epsilon if there are several."""
    levels = {name: cell.simulation.epsilon for name, cell in asked.cells.items()}
    epsilons = sorted({epsilon for epsilon in levels.values() if epsilon is not None})
    titles = _titles(asked.cells)
    if len(epsilons) < 2:
        return [regrets("regret", "Regret over time", {titles[name]: trace for name, trace in played.items()})]
    panels = []
    for epsilon in epsilons:
        chosen = {titles[name]: played[name] for name in asked.cells if levels[name] in (None, epsilon)}
        panels.append(regrets(f"epsilon-{epsilon:g}", f"ε = {epsilon:g}", chosen))
    lines: dict[str, dict[float, Trace]] = {}
    for name, level in levels.items():
        if level is not None:
            lines.setdefault(titles[name], {})[level] = played[name]
    return [*panels, against("epsilon", "Regret at the horizon", "ε", lines)]


def _titles(cells: Mapping[str, Cell]) -> dict[str, str]:
    """What a figure calls each cell: its label, or its policy as papers write it, without epsilon.

    A policy at several epsilons has one title, and so one colour in every panel. Other cells have different ones.
    """
    titles = {name: cell.label.split(", ε")[0] or cell.simulation.policy.title for name, cell in cells.items()}
    seen: set[tuple[str, float | None]] = set()
    for name, cell in cells.items():
        drawn = (titles[name], cell.simulation.epsilon)
        if drawn in seen:
            titles[name] = name
        seen.add(drawn)
    return titles


def _table(played: Traces) -> Table:
    return Table("final", "At the horizon", list(COLUMNS), played.rows())


def _pulls(played: Traces) -> Table:
    """How often each arm was played, by name. An arm that a simulation does not have is left empty."""
    names = list(dict.fromkeys(name for trace in played.values() for name in trace.names))
    rows = [_by_name(label, trace, trace.pulls[:, -1].mean(axis=0), names, amount) for label, trace in played.items()]
    means = {tuple(_by_name("mean reward", trace, trace.means, names, "{:.4g}".format)) for trace in played.values()}
    shared = [list(row) for row in means] if len(means) == 1 else []
    return Table("pulls", "Pulls of each arm, mean over all runs", ["policy", *names], [*shared, *rows])


def _by_name(
    head: str, trace: Trace, values: Floats, names: Sequence[str], written: Callable[[float], str]
) -> list[str]:
    """A row of a table: the values of the arms, in the order of the names."""
    found = dict(zip(trace.names, values.tolist(), strict=True))
    return [head, *(written(found[name]) if name in found else "" for name in names)]
