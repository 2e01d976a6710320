"""The commands for experiments: reproduce and compare."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpbandits.checks import at_least
from dpbandits.cli.shared import Number, app, as_json, print_table

if TYPE_CHECKING:
    from dpbandits.experiments.report import Section
    from dpbandits.experiments.work import Progress

EVERY_SECONDS = 10.0  # between lines of progress, if standard error is no terminal

cluster_option = click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Where to simulate: threads (default), processes, local (a Dask cluster here), or a scheduler's tcp://host:port.",
)
workers_option = click.option(
    "--workers", type=Number(), help="Number of threads or processes.  [default: number of cores]"
)
fresh_option = click.option(
    "--fresh", is_flag=True, help="Start again: delete what an earlier run wrote to the output folder."
)


@app.command()
@click.argument("target", required=False, metavar="[PAPER[/FIGURE]]")
@click.option(
    "--scale",
    default="quick",
    show_default=True,
    metavar="quick|paper",
    help="Fewer, shorter runs, or the papers' settings.",
)
@click.option(
    "--out", default="out/reproduce", show_default=True, type=click.Path(path_type=Path), help="Output folder."
)
@workers_option
@cluster_option
@fresh_option
@as_json
def reproduce(target: str | None, as_json: bool, workers: float | None, **given: Any) -> None:
    """Reproduce the papers' figures and judge their claims.

    Without PAPER, everything is reproduced. If interrupted, run the same command again to continue. Exit status 1: a
    claim that was expected to be reproduced was not. Claims known not to reproduce do not change the exit status.
    """
    from dpbandits.experiments.reproduce import reproduce as run

    with _watched(given["out"]) as watch:
        sections = run(target, workers=_whole(workers), watch=watch, **given)
    findings = [(section.path, finding) for section in sections for finding in section.findings]
    if as_json:
        figures = [{"figure": section.path, "title": section.title} for section in sections]
        claims = [{"figure": path, **finding.to_json()} for path, finding in findings]
        click.echo(
            json.dumps({"scale": given["scale"], "out": str(given["out"]), "figures": figures, "claims": claims})
        )
    else:
        _verdicts(sections)
        click.echo(f"written: {given['out']}/report.html, figures/, data/", err=True)
    if any(finding.fails for _, finding in findings):
        raise click.exceptions.Exit(1)


@app.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--out", default="out/compare", show_default=True, type=click.Path(path_type=Path), help="Output folder.")
@workers_option
@cluster_option
@fresh_option
@as_json
def compare(file: Path, as_json: bool, workers: float | None, **given: Any) -> None:
    """Compare policies of your choice on arms of your own: FILE is TOML, as in examples/."""
    from dpbandits.experiments.comparison import compare as run

    with _watched(given["out"]) as watch:
        played = run(file, workers=_whole(workers), watch=watch, **given)
    if as_json:
        traces = {name: trace.to_json() for name, trace in played.items()}
        click.echo(json.dumps({"file": str(file), "out": str(given["out"]), "policies": traces}, allow_nan=False))
        return
    rows = []
    for name, trace in played.items():
        final = trace.to_json()["final"]
        error = "" if final["regret_stderr"] is None else f" ± {final['regret_stderr']:.3g}"
        rows.append([name, f"{final['regret_mean']:.6g}{error}", f"{100 * final['best_arm_fraction']:.2f} %"])
    print_table(["policy", "regret", "best arm"], rows)
    for void in {trace.guarantee.in_short for trace in played.values() if trace.guarantee.void}:
        click.echo(void)
    click.echo(f"written: {given['out']}/report.html, figures/, data/", err=True)


def _whole(workers: float | None) -> int | None:
    return None if workers is None else at_least("workers", workers, 1)


def _verdicts(sections: list[Section]) -> None:
    rows = [
        [section.path, finding.claim.statement, finding.verdict + (" (known)" if finding.excused else ""), finding.ours]
        for section in sections
        for finding in section.findings
    ]
    print_table(["figure", "the paper says", "verdict", "ours"], rows)


@contextmanager
def _watched(out: Path) -> Iterator[Callable[[Progress], None]]:
    """Show progress on standard error: a bar on a terminal, otherwise a line every ``EVERY_SECONDS``."""
    try:
        if sys.stderr.isatty():
            with _bar() as watch:
                yield watch
        else:
            yield _lines()
    except KeyboardInterrupt:
        click.echo(f"finished runs are kept in {out}: run the same command again to continue", err=True)
        raise


@contextmanager
def _bar() -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("runs", total=None, left="")
        yield lambda at: bar.update(task, completed=at.done, total=at.total, left=f"about {at.left:.0f} s left")


def _lines() -> Callable[[Progress], None]:
    said = time.monotonic()

    def watch(at: Progress) -> None:
        nonlocal said
        if time.monotonic() - said >= EVERY_SECONDS:
            said = time.monotonic()
            click.echo(f"runs {at.done:,} of {at.total:,}, about {at.left:.0f} s left", err=True)

    return watch
