"""The command for the standing benchmark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from dpbandits.cli.experiments import cluster_option, fresh_option, watching, workers_option
from dpbandits.cli.shared import OutputFolder, app, as_json, echo, print_table, whole

if TYPE_CHECKING:
    from dpbandits.benchmark import Scores


@app.command()
@click.option(
    "--add", multiple=True, metavar="POLICY", help="Let a policy of your own join, as module:function; repeatable."
)
@click.option(
    "--track",
    "tracks",
    multiple=True,
    metavar="NAME",
    help="Play only this track: central, local, levels, any-size, any-size-levels, or none (no privacy); repeatable.",
)
@click.option(
    "--scale",
    default="quick",
    show_default=True,
    metavar="quick|standing|full",
    help="quick: 10^5 rounds (10^4 for slow policies). standing: 10^5 rounds, more runs. full: 10^6 rounds (10^5 for "
    "slow policies).",
)
@click.option("--out", default="out/benchmark", show_default=True, type=OutputFolder(), help="Output folder.")
@workers_option
@cluster_option
@fresh_option
@as_json
def benchmark(as_json: bool, workers: float | None, **given: Any) -> None:
    """Play every policy on a fixed set of problems, and compare those of a class.

    The output folder holds report.html, benchmark.md and benchmark.json, which has every cell with its settings. If
    interrupted, run the same command again to continue.
    """
    from dpbandits.benchmark import benchmark as run
    from dpbandits.benchmark.run import JSON

    def answer(found: list[Scores]) -> None:
        if as_json:
            return
        for scores in [s for s in found if s.horizon == max(t.horizon for t in found if t.track == s.track)]:
            echo(f"{scores.track.title}, {scores.horizon:,} rounds")
            print_table(
                ["policy", "regret / best", "worst cell", "q99 / best", "rank", "wins"],
                [
                    [s.policy, f"{s.to_best:.3g}", f"{s.worst:.3g}", f"{s.q99:.3g}", f"{s.rank:.1f}", str(s.wins)]
                    for s in scores.scores
                ],
            )

    with watching("benchmark: runs", given["out"], answer) as watched:
        run(workers=whole("workers", workers), **watched, **given)
    if as_json:
        echo(json.dumps(json.loads((given["out"] / JSON).read_text(encoding="utf-8"))))
    echo(f"written: {given['out']}/report.html, benchmark.md, benchmark.json, figures/", err=True)
