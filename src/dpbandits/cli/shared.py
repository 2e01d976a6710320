"""Shared by the commands: the group they belong to, numbers, tables, and checks before the work."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from dpbandits import __version__
from dpbandits.checks import at_least
from dpbandits.cli import discard
from dpbandits.cli.tables import layout, width
from dpbandits.errors import InputError, require

FILES = (".csv", ".html", ".json", ".md", ".parquet", ".pdf", ".png", ".sqlite", ".svg", ".toml")

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on standard output.")


class Number(click.ParamType):  # type: ignore[type-arg]  # generic only in some versions of click
    """A number: 10000000, 1e7 and 10_000_000 are the same."""

    name = "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from dpbandits.environments.numbers import number

        return number(param.name if param is not None and param.name else "value", str(value))


class OutputFolder(click.Path):
    """A folder that is written to. What looks like the name of a file is refused before anything is computed."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(value)
        if path.suffix.lower() in FILES and not path.is_dir():
            raise InputError("out", f"must be a folder, got '{value}', the name of a file")
        return super().convert(value, param, ctx)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpbandits")
def app() -> None:
    """Differentially private multi-armed bandits, from the paper to production.

    \b
    dpbandits policies                      what there is
    dpbandits simulate POLICY --help        play one policy
    dpbandits plan --help                   which policy, which epsilon, at what cost

    Exit status: 0 done; 1 the answer is no; 2 bad input; 70 an error of ours; 130 Ctrl-C.
    """


def echo(text: str = "", *, err: bool = False) -> None:
    """Print a line. If the program that reads it has ended, such as ``head``, the command goes on in silence."""
    stream = sys.stderr if err else sys.stdout
    try:
        click.echo(text, file=stream)
    except BrokenPipeError:
        discard(stream)


def print_table(columns: list[str], rows: list[list[str]]) -> None:
    """Print a table that fits the terminal."""
    for line in layout(columns, rows, width()):
        echo(line)


def whole(name: str, value: float | None, least: int = 1) -> int | None:
    """A whole number that was given on the command line, or None."""
    return None if value is None else at_least(name, value, least)


def ready_to_write(out: Path | None, *modules: str, extra: str) -> None:
    """Refuse, before any work, a folder that cannot be written, and a package that is missing."""
    if out is None:
        return
    require(extra, *modules)
    if out.exists() and not out.is_dir():
        raise InputError("out", f"must be a folder, got '{out}'")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=out):
        pass


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
            shown = default not in (None, 0.0) or name == "seed"
            text = f"{setting.help}  [default: {default}]" if shown else setting.help
            if name == "options":
                made.append(click.Option(["--option", name], multiple=True, metavar=setting.form, help=text))
            else:
                flag = f"--{name.replace('_', '-')}"
                made.append(click.Option([flag, name], required=setting.required, metavar=setting.form, help=text))
        return [*own[:1], *made, *own[1:]]


def read_simulation(given: dict[str, Any]) -> dict[str, Any]:
    """The settings that were given, as text for ``Simulation.of``."""
    read = {name: value for name, value in given.items() if value is not None}
    return {**read, "options": named_options(given["options"])}
