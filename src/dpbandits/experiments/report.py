"""The report, one self-contained page: claims, charts, tables, settings, seed and versions. It needs no network."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata, resources
from typing import Any

from dpbandits import __version__
from dpbandits.errors import MissingExtraError
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import NOT_REPRODUCED, REPRODUCED, UNDECIDED, Finding
from dpbandits.experiments.panels import Table, panel_json
from dpbandits.plotting import COLOURS, Panel

CLASSES = {REPRODUCED: "yes", NOT_REPRODUCED: "no", UNDECIDED: "open"}


@dataclass(frozen=True, eq=False)
class Section:
    """The section of the report on one figure or comparison."""

    path: str
    title: str
    source: str
    settings: str
    cells: dict[str, Cell]
    shown: Sequence[Panel | Table]
    findings: list[Finding] = field(default_factory=list)

    @property
    def id(self) -> str:
        """Its anchor on the page."""
        return self.path.replace("/", "-")


def versions() -> dict[str, str]:
    """The versions of the software that computed the numbers."""
    parts = {"dpbandits": __version__, "python": platform.python_version()}
    return parts | {name: metadata.version(name) for name in ("numpy", "numba", "scipy")}


def page(title: str, sections: Sequence[Section], facts: dict[str, Any]) -> str:
    """The whole page as HTML."""
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError:
        raise MissingExtraError("jinja2", "reproduce") from None
    findings = [(section, finding) for section in sections for finding in section.findings]
    panels = [panel for section in sections for panel in section.shown if isinstance(panel, Panel)]
    engine = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    data = {"colours": COLOURS, "panels": [panel_json(panel) for panel in panels]}
    return engine.from_string(_asset("report.html.j2")).render(
        title=title,
        facts=facts,
        sections=sections,
        findings=findings,
        counts={verdict: sum(finding.verdict == verdict for _, finding in findings) for verdict in CLASSES},
        classes=CLASSES,
        numbers={panel: number for number, panel in enumerate(panels)},
        data=jinja2.utils.htmlsafe_json_dumps(data, allow_nan=False),
        css=Markup(_asset("report.css")),
        script=Markup(_asset("chart.js")),
    )


def _asset(name: str) -> str:
    return resources.files("dpbandits.experiments").joinpath("assets", name).read_text(encoding="utf-8")
