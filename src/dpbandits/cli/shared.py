"""What the commands have in common: the group they belong to, numbers, tables and progress bars."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from dpbandits import __version__
from dpbandits.errors import InputError

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on standard output.")


class Number(click.ParamType):  # type: ignore[type-arg]  # generic in some versions only
    """10000000, 1e7 and 10_000_000 are the same number."""

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
    """A progress bar on standard error, where somebody looks at it."""
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
            raise InputError(f"option must be name=value, got '{pair}'")
    named = [(name, value) for name, _, value in (pair.partition("=") for pair in pairs)]
    for name, value in named:
        if sum(name == other for other, _ in named) > 1:
            raise InputError(f"option {name} must be given once, got '{name}={value}' and another")
    return dict(named)
