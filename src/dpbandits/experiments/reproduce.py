"""Reproduce all papers, one paper or one figure: simulate what is missing, judge the claims, draw and report."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpbandits import __version__
from dpbandits.experiments import output
from dpbandits.experiments.engines import engine
from dpbandits.experiments.figures import check_scale, papers, select
from dpbandits.experiments.report import Section, versions
from dpbandits.experiments.work import Watch, fill, traces

SEED = 0
QUICK = (
    " These are the settings of the paper's scale. This report is at the quick scale, which has fewer runs and at "
    "most as many rounds; they are listed below."
)


def reproduce(
    target: str | None = None,
    *,
    scale: str = "quick",
    out: str | Path = "out/reproduce",
    workers: int | None = None,
    cluster: str | None = None,
    fresh: bool = False,
    watch: Watch | None = None,
    answered: Callable[[list[Section]], None] | None = None,
) -> list[Section]:
    """Reproduce ``target`` (a paper, ``paper/figure``, or everything); write figures, data and the report to ``out``.

    Runs that ``out`` already holds are not simulated again. ``watch`` is called with the progress, and ``answered``
    with the verdicts, before the figures are drawn.
    """
    figures, folder = select(target), Path(out)
    started = time.perf_counter()
    settings = {"command": "reproduce", "scale": check_scale(scale), "seed": SEED, "version": __version__}
    cells = {figure.path: figure.cells(scale) for figure in figures}
    with engine(cluster, workers) as where, output.open_folder(folder, settings, fresh=fresh) as results:
        fill([cell for each in cells.values() for cell in each.values()], results, where, watch)
        played = {path: traces(each, results) for path, each in cells.items()}
    sections = [
        Section(
            figure.path,
            figure.title,
            papers()[figure.paper],
            figure.settings + (QUICK if scale == "quick" else ""),
            cells[figure.path],
            figure.plot(played[figure.path], scale),
            figure.score(played[figure.path], scale),
        )
        for figure in figures
    ]
    if answered is not None:
        answered(sections)
    for section in sections:
        caption = f"scale {scale}, seed {SEED}, dpbandits {__version__}"
        output.write_section(folder, section, played[section.path], caption)
    facts: dict[str, Any] = {"scale": scale, "seed": SEED, **versions()}
    facts["seconds"] = round(time.perf_counter() - started, 1)
    output.write_report(folder, "Reproduction of " + (target or "four papers"), sections, facts)
    return sections
