"""The output folder: results, figures, data and the report; its settings, so that they are not mixed with others."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpbandits.errors import InputError, MissingExtraError
from dpbandits.experiments.drawing import draw
from dpbandits.experiments.panels import Panel, Table
from dpbandits.experiments.report import Section, page, versions
from dpbandits.experiments.results import Results
from dpbandits.simulation import Trace

SETTINGS, RESULTS, REPORT, CLAIMS = "settings.json", "results.sqlite", "report.html", "claims.json"
OURS = (SETTINGS, RESULTS, REPORT, CLAIMS, "figures", "data")


def open_folder(out: Path, settings: Mapping[str, Any], *, fresh: bool = False) -> Results:
    """The results table of a folder that holds these settings, or nothing yet; ``fresh`` removes what we wrote."""
    if out.exists() and not out.is_dir():
        raise InputError(f"out must be a folder, got '{out}'")
    ours = _ours(out)
    if fresh and ours:
        for name in OURS:
            shutil.rmtree(out / name) if (out / name).is_dir() else (out / name).unlink(missing_ok=True)
    file = out / SETTINGS
    if file.exists():
        there = _settings(file)
        differs = [name for name in {**there, **settings} if there.get(name) != settings.get(name)]
        if differs:
            what = ", ".join(f"{name} {there.get(name)!r} instead of {settings.get(name)!r}" for name in differs)
            raise InputError(
                f"out: '{out}' holds other settings ({what}): use --out elsewhere, or --fresh to replace them"
            )
    elif not ours and out.exists() and any(out.iterdir()):  # whatever is there is somebody's own, and stays
        raise InputError(f"out: '{out}' is not empty and was not written by this command: use --out elsewhere")
    try:
        out.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(dict(settings), indent=1), encoding="utf-8")
        return Results(out / RESULTS)
    except OSError as error:
        raise InputError(f"out: cannot write in '{out}': {error.strerror}") from None


def _settings(file: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except ValueError:
        return {}


def _ours(out: Path) -> bool:
    """Whether a folder was written by one of our commands."""
    return (out / SETTINGS).is_file() and "command" in _settings(out / SETTINGS)


def write_section(out: Path, section: Section, traces: Mapping[str, Trace], caption: str) -> None:
    """The figure (SVG and PNG) and the data (Parquet) of one section."""
    panels = [panel for panel in section.shown if isinstance(panel, Panel)]
    if panels:
        draw(panels, out / "figures" / section.path, caption)
    target = out / "data" / f"{section.path}.parquet"
    tables = [table for table in section.shown if isinstance(table, Table)]
    if traces:
        write_data(target, section, traces)
    elif tables:
        write_table(target, tables[0])


def write_data(path: Path, section: Section, traces: Mapping[str, Trace]) -> None:
    """One row for each simulation, run and checkpoint; the settings of all simulations are in the file's metadata."""
    parts: dict[str, list[Any]] = {"simulation": [], "run": [], "t": [], "regret": []}
    for name, trace in traces.items():
        run, t = np.meshgrid(np.arange(trace.runs), trace.checkpoints, indexing="ij")
        parts["simulation"].append(np.full(run.size, name))
        parts["run"].append(run.ravel())
        parts["t"].append(t.ravel())
        parts["regret"].append(trace.regret.ravel())
    cells = {name: {**cell.settings(), "runs": cell.runs} for name, cell in section.cells.items()}
    _parquet(path, {name: np.concatenate(values) for name, values in parts.items()}, cells)


def write_table(path: Path, table: Table) -> None:
    """A computed table, as text."""
    _parquet(
        path,
        {name: list(column) for name, column in zip(table.columns, zip(*table.rows, strict=True), strict=True)},
        {},
    )


def _parquet(path: Path, columns: Mapping[str, Any], cells: Mapping[str, Any]) -> None:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "reproduce") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    note = json.dumps({"simulations": cells, "versions": versions()})
    parquet.write_table(pyarrow.table(dict(columns)).replace_schema_metadata({"dpbandits": note}), path)


def write_report(out: Path, title: str, sections: Sequence[Section], facts: Mapping[str, Any]) -> None:
    """The page, and the findings as JSON."""
    (out / REPORT).write_text(page(title, sections, dict(facts)), encoding="utf-8")
    findings = [{"figure": section.path, **finding.to_json()} for section in sections for finding in section.findings]
    (out / CLAIMS).write_text(json.dumps({**facts, "claims": findings}, indent=1, ensure_ascii=False), encoding="utf-8")
