"""The commands for experiments: reproduce and compare."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpbandits.checks import seed_of
from dpbandits.cli import NO
from dpbandits.cli.progress import working
from dpbandits.cli.shared import Number, OutputFolder, app, as_json, echo, print_table, whole

if TYPE_CHECKING:
    from dpbandits.experiments.report import Section
    from dpbandits.simulation import Traces

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
@click.option("--seed", default=0, type=Number(), show_default=True, help="Seed of all random numbers.")
@click.option(
    "--add", multiple=True, metavar="POLICY", help="Draw a policy, a name or module:function, into it; repeatable."
)
@click.option("--out", default="out/reproduce", show_default=True, type=OutputFolder(), help="Output folder.")
@workers_option
@cluster_option
@fresh_option
@as_json
def reproduce(target: str | None, as_json: bool, workers: float | None, seed: float, **given: Any) -> None:
    """Reproduce the papers' figures and judge their claims.

    Without PAPER, everything is reproduced. If interrupted, run the same command again to continue. Exit status 1: a
    claim that was expected to be reproduced was not. Claims known not to reproduce do not change the exit status.
    """
    from dpbandits.experiments.reproduce import reproduce as run

    def answer(sections: list[Section]) -> None:
        if not as_json:
            _verdicts(sections)
            return
        figures = [{"figure": section.path, "title": section.title} for section in sections]
        claims = [{"figure": section.path, **found.to_json()} for section in sections for found in section.findings]
        about = {"scale": given["scale"], "seed": chosen, "out": str(given["out"])}
        echo(json.dumps({**about, "figures": figures, "claims": claims}))

    threads, chosen = whole("workers", workers), seed_of(seed)
    with watching("reproduce: runs", given["out"], answer) as watched:
        sections = run(target, workers=threads, seed=chosen, **watched, **given)
    echo(f"written: {given['out']}/report.html, figures/, data/", err=True)
    if any(finding.fails for section in sections for finding in section.findings):
        raise click.exceptions.Exit(NO)


@app.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--out", default="out/compare", show_default=True, type=OutputFolder(), help="Output folder.")
@workers_option
@cluster_option
@fresh_option
@as_json
def compare(file: Path, as_json: bool, workers: float | None, **given: Any) -> None:
    """Compare policies of your choice on arms of your own: FILE is TOML, as in examples/."""
    from dpbandits.experiments.comparison import compare as run

    def answer(played: Traces) -> None:
        if as_json:
            traces = {name: trace.to_json() for name, trace in played.items()}
            echo(json.dumps({"file": str(file), "out": str(given["out"]), "policies": traces}, allow_nan=False))
            return
        print_table(list(played.columns), played.rows())
        for void in played.voids():
            echo(void)

    threads = whole("workers", workers)
    with watching("compare: runs", given["out"], answer) as watched:
        run(file, workers=threads, **watched, **given)
    echo(f"written: {given['out']}/report.html, figures/, data/", err=True)


def _verdicts(sections: list[Section]) -> None:
    rows = [
        [section.path, finding.claim.statement, finding.verdict + (" (known)" if finding.excused else ""), finding.ours]
        for section in sections
        for finding in section.findings
    ]
    print_table(["figure", "the paper says", "verdict", "ours"], rows)


@contextmanager
def watching(what: str, out: Path, answer: Callable[[Any], None]) -> Iterator[dict[str, Any]]:
    """Show progress, print the answer before the figures are drawn, and after Ctrl-C say that nothing is lost.

    What is yielded are the arguments ``watch`` and ``answered`` of the library's function.
    """
    with ExitStack() as shown:
        report = shown.enter_context(working(what))

        def answered(found: Any) -> None:
            shown.close()  # no bar while the answer is printed
            answer(found)
            shown.enter_context(working("drawing figures"))

        try:
            yield {"watch": lambda at: report(at.done, at.total, at.left), "answered": answered}
        except KeyboardInterrupt:
            shown.close()
            echo(f"finished runs are kept in {out}: run the same command again to continue", err=True)
            raise
