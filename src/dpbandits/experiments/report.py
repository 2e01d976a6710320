"""The report, one page: charts with their numbers, claims, settings, seed and versions. It needs no network.

The page links to the figures and data beside it. It holds no path of the machine on which it was made.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from dpbandits import __version__
from dpbandits.environments.arms import REPLAY
from dpbandits.errors import MissingExtraError
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import NOT_REPRODUCED, REPRODUCED, UNDECIDED, Finding
from dpbandits.experiments.panels import Picture, Table, panel_json, panel_table
from dpbandits.formats import duration
from dpbandits.plotting import KINDS, Panel, looks
from dpbandits.simulation import Simulation

LAST = "time of the last call"  # a call goes on where an earlier one stopped
CLASSES = {REPRODUCED: "yes", NOT_REPRODUCED: "no", UNDECIDED: "open"}


@dataclass(frozen=True, eq=False)
class Section:
    """The section of the report on one figure or comparison."""

    path: str
    title: str
    source: str
    settings: str
    cells: dict[str, Cell]
    shown: Sequence[Panel | Picture | Table]
    findings: list[Finding] = field(default_factory=list)

    @property
    def panels(self) -> list[Panel]:
        """What is drawn."""
        return [thing for thing in self.shown if isinstance(thing, Panel)]

    @property
    def tables(self) -> list[Table]:
        """What is shown as a table."""
        return [thing for thing in self.shown if isinstance(thing, Table)]

    @property
    def pictures(self) -> list[Picture]:
        """What is shown from a file."""
        return [thing for thing in self.shown if isinstance(thing, Picture)]

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
    panels = [panel for section in sections for panel in section.panels]
    charts = [panel_json(panel, looks(section.panels)) for section in sections for panel in section.panels]
    engine = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return engine.from_string(_asset("report.html.j2")).render(
        title=title,
        facts={
            (LAST if name == "seconds" else name): duration(value) if name == "seconds" else value
            for name, value in facts.items()
        },
        sections=sections,
        findings=findings,
        counts={verdict: sum(finding.verdict == verdict for _, finding in findings) for verdict in CLASSES},
        classes=CLASSES,
        numbers={panel: number for number, panel in enumerate(panels)},
        tables={panel: panel_table(panel) for panel in panels},
        kinds=KINDS,
        arms_text=arms_text,
        data=jinja2.utils.htmlsafe_json_dumps({"panels": charts}, allow_nan=False),
        css=Markup(_asset("report.css")),
        script=Markup(_asset("chart.js")),
    )


def arms_text(simulation: Simulation) -> str:
    """The arms as text; of a log's path only the name is shown."""
    log = REPLAY.fullmatch(simulation.arms.text)
    return simulation.arms.text if log is None else f"replay({Path(log[1].strip()).name})"


def _asset(name: str) -> str:
    return resources.files("dpbandits.experiments").joinpath("assets", name).read_text(encoding="utf-8")
