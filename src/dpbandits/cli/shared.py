"""Shared by the commands: the group they belong to, numbers, tables and progress bars."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from dpbandits import __version__
from dpbandits.errors import InputError

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on standard output.")


class Number(click.ParamType):  # type: ignore[type-arg]  # generic only in some versions of click
    """A number: 10000000, 1e7 and 10_000_000 are the same."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from dpbandits.environments.numbers import number

        return number(param.name if param is not None and param.name else "value", str(value))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpbandits")
def app() -> None:
    """Differentially private multi-armed bandits."""


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def print_table(columns: list[str], rows: list[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def named_options(pairs: tuple[str, ...]) -> dict[str, str]:
    """The options of ``--option name=value``, each given once."""
    for pair in pairs:
        if "=" not in pair:
            raise InputError("option", f"must be name=value, got '{pair}'")
    named = [(name, value) for name, _, value in (pair.partition("=") for pair in pairs)]
    for name, value in named:
        if sum(name == other for other, _ in named) > 1:
            raise InputError(name, f"must be given once, got '{name}={value}' and another")
    return dict(named)


class SimulationCommand(click.Command):
    """A command with an option for each setting of a simulation. They are looked up late: ``--help`` stays quick."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        from dpbandits.simulation.settings import Simulation, settings

        own = super().get_params(ctx)
        made: list[click.Parameter] = []
        for name, setting in settings().items():
            default = getattr(Simulation, name, None)
            shown = (
                f"{setting.help}  [default: {default}]"
                if default not in (None, 0.0) or name == "seed"
                else setting.help
            )
            if name == "options":
                made.append(click.Option(["--option", name], multiple=True, metavar="NAME=VALUE", help=setting.help))
            else:
                flag = f"--{name.replace('_', '-')}"
                made.append(click.Option([flag, name], required=setting.required, help=shown))
        return [*own[:1], *made, *own[1:]]


def read_simulation(given: dict[str, Any]) -> dict[str, Any]:
    """The settings that were given, as text for ``Simulation.of``."""
    read = {name: value for name, value in given.items() if value is not None}
    return {**read, "options": named_options(given["options"])}
