"""The figures and tables of the papers. Each is a module of this package, and is found automatically."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

import dpbandits.experiments as package
from dpbandits.checks import known
from dpbandits.errors import InputError
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import Finding
from dpbandits.experiments.established import changes
from dpbandits.experiments.panels import Panel, Table
from dpbandits.simulation import Trace

SCALES = ("quick", "paper")


@dataclass(frozen=True)
class Figure:
    """A module with TITLE, SETTINGS as text, ``cells(scale)``, ``score(traces, scale)``, ``plot(traces, scale)``."""

    paper: str
    name: str
    module: ModuleType

    @property
    def path(self) -> str:
        """``paper/name``, as on the command line."""
        return f"{self.paper}/{self.name}"

    @property
    def title(self) -> str:
        """What it shows."""
        return self.module.TITLE

    @property
    def settings(self) -> str:
        """The settings that the paper does not print, and the deviations from it."""
        return self.module.SETTINGS

    def cells(self, scale: str) -> dict[str, Cell]:
        """The simulations that it needs."""
        return self.module.cells(scale)

    def score(self, traces: Mapping[str, Trace], scale: str) -> list[Finding]:
        """The verdict on each claim about it, and what has changed since it was established."""
        return [*self.module.score(traces, scale), *changes(self.path, traces, scale)]

    def plot(self, traces: Mapping[str, Trace], scale: str) -> list[Panel | Table]:
        """Its panels and tables, ready to be drawn."""
        return self.module.plot(traces, scale)


@functools.cache
def figures() -> tuple[Figure, ...]:
    """Every figure and table of every paper.

    >>> "ren2020/fig1" in [figure.path for figure in figures()]
    True
    """
    found = []
    for paper in pkgutil.iter_modules(package.__path__):
        if paper.ispkg:
            folder = importlib.import_module(f"{package.__name__}.{paper.name}")
            for module in pkgutil.iter_modules(folder.__path__):
                content = importlib.import_module(f"{folder.__name__}.{module.name}")
                if hasattr(content, "score"):
                    found.append(Figure(paper.name, module.name, content))
    return tuple(found)


def papers() -> dict[str, str]:
    """The papers' names and citations."""
    names = dict.fromkeys(figure.paper for figure in figures())
    return {name: importlib.import_module(f"{package.__name__}.{name}").PAPER for name in names}


def select(target: str | None) -> list[Figure]:
    """The figures that ``PAPER`` or ``PAPER/FIGURE`` names; all of them for None.

    >>> [figure.name for figure in select("ren2020")]
    ['fig1', 'fig2']
    """
    if target is None:
        return list(figures())
    paper, _, name = target.strip("/").partition("/")
    if paper not in papers():
        raise InputError("paper", f"'{paper}' is unknown: known are {', '.join(papers())}")
    chosen = [figure for figure in figures() if figure.paper == paper]
    if name and name not in [figure.name for figure in chosen]:
        raise InputError("figure", f"'{target}' is unknown: known are {', '.join(figure.path for figure in chosen)}")
    return [figure for figure in chosen if name in ("", figure.name)]


def check_scale(scale: str) -> str:
    """Return ``scale`` if it is known."""
    return known("scale", scale, SCALES)
