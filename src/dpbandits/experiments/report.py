"""One self-contained page: claims, interactive charts, tables, settings, seed and versions. It needs no network."""

from __future__ import annotations

import html
import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata, resources
from typing import Any

from dpbandits import __version__
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import NOT_REPRODUCED, REPRODUCED, UNDECIDED, Finding
from dpbandits.experiments.drawing import COLOURS
from dpbandits.experiments.panels import Panel, Table, panel_json

CLASSES = {REPRODUCED: "yes", NOT_REPRODUCED: "no", UNDECIDED: "open"}


@dataclass(frozen=True)
class Section:
    """What the page says about one figure or comparison."""

    path: str
    title: str
    source: str
    settings: str
    cells: dict[str, Cell]
    shown: Sequence[Panel | Table]
    findings: list[Finding] = field(default_factory=list)


def versions() -> dict[str, str]:
    """What the numbers were computed with."""
    parts = {"dpbandits": __version__, "python": platform.python_version()}
    return parts | {name: metadata.version(name) for name in ("numpy", "numba", "scipy")}


def page(title: str, sections: Sequence[Section], facts: dict[str, Any]) -> str:
    """The whole page as HTML."""
    findings = [(section, finding) for section in sections for finding in section.findings]
    panels = [panel for section in sections for panel in section.shown if isinstance(panel, Panel)]
    data = json.dumps({"colours": COLOURS, "panels": [panel_json(panel) for panel in panels]}, allow_nan=False).replace(
        "</", "<\\/"
    )
    numbers = iter(range(len(panels)))
    parts = [
        f"<h1>{_e(title)}</h1>",
        f'<dl class="facts">{"".join(f"<div><dt>{_e(k)}</dt><dd>{_e(v)}</dd></div>" for k, v in facts.items())}</dl>',
        _contents(sections),
    ]
    if findings:
        parts.append(_claims(findings))
    parts += [_section(section, numbers) for section in sections]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_e(title)}</title><style>{_asset('report.css')}</style></head><body><main>{''.join(parts)}</main>"
        f'<script type="application/json" id="data">{data}</script>'
        f"<script>{_asset('chart.js')}</script></body></html>\n"
    )


def _asset(name: str) -> str:
    return resources.files("dpbandits.experiments").joinpath("assets", name).read_text(encoding="utf-8")


def _e(value: Any) -> str:
    return html.escape(str(value))


def _id(section: Section) -> str:
    return section.path.replace("/", "-")


def _contents(sections: Sequence[Section]) -> str:
    if len(sections) < 2:
        return ""
    links = "".join(f'<li><a href="#{_id(s)}">{_e(s.path)}</a> {_e(s.title)}</li>' for s in sections)
    return f"<nav><h2>Contents</h2><ul>{links}</ul></nav>"


def _claims(findings: Sequence[tuple[Section, Finding]]) -> str:
    counts = {verdict: sum(f.verdict == verdict for _, f in findings) for verdict in CLASSES}
    summary = "".join(f'<span class="{CLASSES[v]}">{n} {_e(v)}</span>' for v, n in counts.items())
    rows = "".join(_claim(section, finding) for section, finding in findings)
    return (
        f'<h2 id="claims">Claims</h2><p class="counts">{summary}</p>'
        "<p>A claim that was known not to come out before this run is marked; it does not fail the reproduction. "
        "Numbers after ± are standard errors.</p>"
        '<div class="wide"><table class="claims"><thead><tr><th>figure</th><th>the paper says</th><th>verdict</th>'
        f"<th>ours</th><th>how measured, and tolerance</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _claim(section: Section, finding: Finding) -> str:
    claim = finding.claim
    known = ' <span class="known">known</span>' if claim.known and finding.verdict == NOT_REPRODUCED else ""
    why = f'<p class="why">{_e(finding.explanation)}</p>' if finding.explanation else ""
    return (
        f'<tr><td><a href="#{_id(section)}">{_e(section.path)}</a></td>'
        f'<td>{_e(claim.statement)}<p class="why">{_e(claim.where)}</p></td>'
        f'<td><span class="{CLASSES[finding.verdict]}">{_e(finding.verdict)}</span>{known}</td>'
        f"<td>{_e(finding.ours)}{why}</td>"
        f'<td>{_e(claim.measured)}<p class="why">{_e(claim.tolerance)}</p></td></tr>'
    )


def _section(section: Section, numbers: Any) -> str:
    shown = []
    for thing in section.shown:
        if isinstance(thing, Panel):
            shown.append(f'<figure class="chart" data-panel="{next(numbers)}"></figure>')
        else:
            shown.append(_table(thing))
    return (
        f'<section id="{_id(section)}"><h2>{_e(section.title)}</h2><p class="source">{_e(section.source)}</p>'
        f'<p>{_e(section.settings)}</p><div class="charts">{"".join(shown)}</div>{_cells(section)}</section>'
    )


def _table(table: Table) -> str:
    head = "".join(f"<th>{_e(column)}</th>" for column in table.columns)
    rows = "".join("<tr>" + "".join(f"<td>{_e(value)}</td>" for value in row) + "</tr>" for row in table.rows)
    notes = f'<p class="why">{_e(table.notes)}</p>' if table.notes else ""
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{notes}</div>'


def _cells(section: Section) -> str:
    if not section.cells:
        return ""
    rows = "".join(
        f"<tr><td>{_e(c.policy)}</td><td>{_e(c.arms)}</td><td>{'' if c.epsilon is None else f'{c.epsilon:g}'}</td>"
        f"<td>{_e(', '.join(f'{k}={v}' for k, v in c.options.items()))}</td><td>{_e(c.levels or '')}</td>"
        f"<td>{c.horizon:,}</td><td>{c.runs}</td><td>{c.seed}</td></tr>"
        for c in section.cells.values()
    )
    head = "".join(f"<th>{h}</th>" for h in ("policy", "arms", "ε", "options", "levels", "rounds", "runs", "seed"))
    return (
        f'<details><summary>Settings of the {len(section.cells)} simulations</summary><div class="wide"><table><thead>'
        f"<tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></details>"
    )
