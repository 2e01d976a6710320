"""The output folder: results, figures, data and the report. Its settings are recorded, and other settings refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpbandits.errors import InputError, require
from dpbandits.experiments.panels import Table
from dpbandits.experiments.report import Section, page, versions
from dpbandits.experiments.results import Results
from dpbandits.plotting import draw_panels
from dpbandits.simulation import Trace

SETTINGS, RESULTS, REPORT, CLAIMS = "settings.json", "results.sqlite", "report.html", "claims.json"
OUTPUTS = (RESULTS, REPORT, CLAIMS, SETTINGS)  # beside the figures and data, which the settings list
FILES = "files"
DATA_FORMAT = 1  # of the Parquet files: it grows when their columns or their metadata change their meaning


def open_folder(out: Path, settings: Mapping[str, Any], *, fresh: bool = False) -> Results:
    """The results table of a folder that is new or holds these settings; ``fresh`` removes earlier outputs first.

    Files that we did not write stay.
    """
    require("reproduce", "joblib", "jinja2", "matplotlib", "pyarrow")
    if out.exists() and not out.is_dir():
        raise InputError("out", f"must be a folder, got '{out}'")
    ours = _ours(out)
    if fresh and ours:
        _remove(out)
    file = out / SETTINGS
    if file.exists():
        there = {name: value for name, value in _settings(file).items() if name != FILES}
        differs = [name for name in {**there, **settings} if there.get(name) != settings.get(name)]
        if differs:
            what = ", ".join(f"{name} {there.get(name)!r} instead of {settings.get(name)!r}" for name in differs)
            raise InputError(
                "out", f": '{out}' holds other settings ({what}): use --out elsewhere, or --fresh to replace them"
            )
    elif not ours and out.exists() and any(out.iterdir()):  # the files there are not ours, and stay
        raise InputError("out", f": '{out}' is not empty and was not written by this command: use --out elsewhere")
    try:
        out.mkdir(parents=True, exist_ok=True)
        written = _settings(file).get(FILES, []) if file.exists() else []
        file.write_text(json.dumps({**settings, FILES: written}, indent=1), encoding="utf-8")
        return Results(out / RESULTS)
    except OSError as error:
        raise InputError("out", f": cannot write in '{out}': {error.strerror}") from None


def _settings(file: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except ValueError:
        return {}


def _remove(out: Path) -> None:
    """Remove what we wrote to a folder, and what is then empty."""
    listed = _settings(out / SETTINGS).get(FILES, [])
    for name in [*(str(name) for name in listed if ".." not in Path(str(name)).parts), *OUTPUTS]:
        path = out / name
        if path.is_dir() and not path.is_symlink():
            if name == RESULTS:  # a folder in place of our file
                shutil.rmtree(path)
            continue
        path.unlink(missing_ok=True)
    for folder in sorted((path for path in out.rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


def remember(out: Path, written: Sequence[Path]) -> None:
    """Note which files are ours, so that ``fresh`` removes them."""
    file = out / SETTINGS
    if not file.exists():
        return
    record = _settings(file)
    names = {*record.get(FILES, []), *(path.relative_to(out).as_posix() for path in written)}
    file.write_text(json.dumps({**record, FILES: sorted(names)}, indent=1), encoding="utf-8")


def _ours(out: Path) -> bool:
    """Whether a folder was written by one of our commands."""
    return (out / SETTINGS).is_file() and "command" in _settings(out / SETTINGS)


def write_section(out: Path, section: Section, traces: Mapping[str, Trace], caption: str) -> None:
    """Write the figure (SVG, PNG and PDF) and the data (Parquet) of one section."""
    written = draw_panels(section.panels, out / "figures" / section.path, caption) if section.panels else []
    target = out / "data" / f"{section.path}.parquet"
    if traces:
        write_data(target, section, traces)
    elif section.tables:
        write_table(target, section.tables[0])
    remember(out, [*written, *([target] if traces or section.tables else [])])


def write_data(path: Path, section: Section, traces: Mapping[str, Trace]) -> None:
    """Write a row for each simulation, run and checkpoint, with the regret and the pulls of each arm by name.

    The pulls of an arm that a simulation does not have are null. The settings of all simulations are in the metadata.
    ``promise`` is there if nothing is promised of some of the numbers, and null where a policy's promise stands.
    """
    arms = list(dict.fromkeys(name for trace in traces.values() for name in trace.names))
    void = ["promise"] if any(trace.guarantee.void for trace in traces.values()) else []
    parts: dict[str, list[Any]] = {name: [] for name in ("simulation", *void, "run", "t", "regret", *_columns(arms))}
    for name, trace in traces.items():
        run, t = np.meshgrid(np.arange(trace.runs), trace.checkpoints, indexing="ij")
        parts["simulation"].append(np.full(run.size, name))
        for column in void:
            parts[column].append(np.full(run.size, trace.guarantee.promise or None, object))
        parts["run"].append(run.ravel())
        parts["t"].append(t.ravel())
        parts["regret"].append(trace.regret.ravel())
        for arm, column in zip(arms, _columns(arms), strict=True):
            if arm in trace.names:
                pulls = np.ma.masked_array(trace.pulls[:, :, trace.names.index(arm)].ravel(), False)
            else:
                pulls = np.ma.masked_array(np.zeros(run.size, np.int64), True)
            parts[column].append(pulls)
    cells = {name: cell.to_json() for name, cell in section.cells.items()}
    joined = {name: (np.ma if name.startswith("pulls_") else np).concatenate(values) for name, values in parts.items()}
    _parquet(path, joined, cells)


def _columns(arms: Sequence[str]) -> list[str]:
    return [f"pulls_{arm}" for arm in arms]


def write_table(path: Path, table: Table) -> None:
    """Write a computed table, as text."""
    _parquet(
        path,
        {name: list(column) for name, column in zip(table.columns, zip(*table.rows, strict=True), strict=True)},
        {},
    )


def _parquet(path: Path, columns: Mapping[str, Any], cells: Mapping[str, Any]) -> None:
    import pyarrow
    import pyarrow.parquet as parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    note = json.dumps({"format": DATA_FORMAT, "simulations": cells, "versions": versions()})
    parquet.write_table(pyarrow.table(dict(columns)).replace_schema_metadata({"dpbandits": note}), path)


def write_report(out: Path, title: str, sections: Sequence[Section], facts: Mapping[str, Any]) -> None:
    """Write the report, and the findings as JSON."""
    (out / REPORT).write_text(page(title, sections, dict(facts)), encoding="utf-8")
    findings = [{"figure": section.path, **finding.to_json()} for section in sections for finding in section.findings]
    (out / CLAIMS).write_text(json.dumps({**facts, "claims": findings}, indent=1, ensure_ascii=False), encoding="utf-8")
