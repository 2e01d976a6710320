"""Reproduce all papers, one paper or one figure: simulate what is missing, judge the claims, draw and report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpbandits import __version__
from dpbandits.checks import seed_of
from dpbandits.errors import InputError
from dpbandits.experiments import output
from dpbandits.experiments.added import cells_for, drawn
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import Finding
from dpbandits.experiments.engines import Engine, engine
from dpbandits.experiments.figures import Figure, check_scale, papers, select
from dpbandits.experiments.panels import Panel, Table
from dpbandits.experiments.report import Section, versions
from dpbandits.experiments.results import Results
from dpbandits.experiments.work import Watch, fill, traces
from dpbandits.policies import lookup
from dpbandits.simulation import Trace

QUICK = (
    " These are the settings of the paper's scale. This report is at the quick scale, which has fewer runs and at "
    "most as many rounds; they are listed below."
)


def reproduce(
    target: str | None = None,
    *,
    scale: str = "quick",
    seed: int | None = 0,
    add: Sequence[str | lookup.Factory] = (),
    out: str | Path = "out/reproduce",
    workers: int | None = None,
    cluster: str | None = None,
    fresh: bool = False,
    watch: Watch | None = None,
    answered: Callable[[list[Section]], None] | None = None,
) -> list[Section]:
    """Reproduce ``target`` (a paper, ``paper/figure``, or everything); write figures, data and the report to ``out``.

    ``seed`` is that of all simulations; None draws one. Verdicts should not depend on it.
    ``add`` are policies of your own, which are drawn into the figures as more lines; the claims stay the paper's.
    Runs that ``out`` already holds are not simulated again. ``watch`` is called with the progress, and ``answered``
    with the verdicts, before the figures are drawn.
    """
    figures, folder = select(target), Path(out)
    for policy in add:
        lookup.traits(policy)  # refuses what is not a policy, before anything is played
    started = time.perf_counter()
    chosen = seed_of(seed)
    settings = {"command": "reproduce", "scale": check_scale(scale), "seed": chosen, "version": __version__}
    cells = {figure.path: seeded(figure.cells(scale), chosen) for figure in figures}
    with engine(cluster, workers) as where, output.open_folder(folder, settings, fresh=fresh) as results:
        fill([cell for each in cells.values() for cell in each.values()], results, where, watch)
        played = {path: traces(each, results) for path, each in cells.items()}
        shown = {figure.path: figure.plot(played[figure.path], scale) for figure in figures}
        findings = {figure.path: figure.score(played[figure.path], scale) for figure in figures}
        of_paper = dict(shown), dict(played)
        for policy in add:
            _add(policy, of_paper, cells, shown, played, lambda more: _played(more, results, where, watch))
    sections = [
        _section(figure, scale, cells[figure.path], shown[figure.path], findings[figure.path]) for figure in figures
    ]
    if answered is not None:
        answered(sections)
    for section in sections:
        caption = f"scale {scale}, seed {chosen}, dpbandits {__version__}"
        output.write_section(folder, section, played[section.path], caption)
    facts: dict[str, Any] = {"scale": scale, "seed": chosen, **versions()}
    facts["seconds"] = round(time.perf_counter() - started, 1)
    output.write_report(folder, "Reproduction of " + (target or "four papers"), sections, facts)
    return sections


def _section(
    figure: Figure, scale: str, cells: dict[str, Cell], shown: list[Panel | Table], findings: list[Finding]
) -> Section:
    """A figure's section of the report."""
    settings = figure.settings + (QUICK if scale == "quick" else "")
    return Section(figure.path, figure.title, papers()[figure.paper], settings, cells, shown, findings)


def seeded(cells: Mapping[str, Cell], seed: int) -> dict[str, Cell]:
    """The cells with this seed."""
    return {name: replace(cell, simulation=replace(cell.simulation, seed=seed)) for name, cell in cells.items()}


def _played(cells: Mapping[str, Cell], results: Results, where: Engine, watch: Watch | None) -> dict[str, Trace]:
    fill(cells.values(), results, where, watch)
    return traces(cells, results)


def _add(
    policy: str | lookup.Factory,
    of_paper: tuple[Mapping[str, list[Panel | Table]], Mapping[str, dict[str, Trace]]],
    cells: dict[str, dict[str, Cell]],
    shown: dict[str, list[Panel | Table]],
    played: dict[str, dict[str, Trace]],
    play: Callable[[Mapping[str, Cell]], dict[str, Trace]],
) -> None:
    """Draw a policy into every figure that it can be drawn into, on the problems that the paper's own lines show."""
    panels, known = of_paper
    refused: list[InputError] = []
    for path in cells:
        runs = max(cell.runs for cell in cells[path].values()) if cells[path] else 0
        try:
            lines, more = cells_for(policy, path, panels[path], known[path], runs)
        except InputError as error:
            refused.append(error)
            continue
        cells[path], played[path] = cells[path] | more, played[path] | play(more)
        shown[path] = drawn(shown[path], lines, played[path])
    if len(refused) == len(cells):
        raise refused[0]
