"""The core commands: policies, simulate, bench, cache."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpbandits.cli.shared import (
    Number,
    SimulationCommand,
    app,
    as_json,
    print_table,
    progress_bar,
    read_simulation,
)
from dpbandits.errors import MissingExtraError

if TYPE_CHECKING:
    from dpbandits.simulation.trace import Trace


@app.command()
@as_json
def policies(as_json: bool) -> None:
    """List the policies with their guarantees and options."""
    from dpbandits.policies import lookup

    rows = lookup.overview()
    if as_json:
        click.echo(json.dumps(rows))
        return
    print_table(
        ["policy", "paper", "trust", "guarantee", "options"],
        [
            [row["name"], row["paper"], row["trust"], row["guarantee"], ", ".join(row["options"].values())]
            for row in rows
        ],
    )


@app.command(cls=SimulationCommand)
@click.argument("policy")
@click.option("--runs", default=20, type=Number(), show_default=True)
@click.option("--workers", type=Number(), help="Number of threads.  [default: number of cores]")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for the trace (Parquet), the summary and a figure."
)
@as_json
def simulate(policy: str, as_json: bool, out: Path | None, runs: float, workers: float | None, **given: Any) -> None:
    """Play POLICY, a name or module:function, on given arms and report its regret."""
    from dpbandits.simulation import Interrupted, Simulation, simulate_all

    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for module in ("matplotlib", "pandas", "pyarrow"):  # fail before the simulation, not after it
            if importlib.util.find_spec(module) is None:
                raise MissingExtraError(module, "plot")
    simulation = Simulation.of(policy, **read_simulation(given))
    stopped = False
    try:
        with progress_bar(f"{policy}: runs") as progress:
            trace = simulate_all(simulation, runs=runs, workers=workers, progress=progress)  # type: ignore[arg-type]
    except Interrupted as error:
        if error.trace is None:
            raise
        trace, stopped = error.trace, True
        click.echo(f"interrupted: the {trace.runs} finished runs follow", err=True)
    if out is not None:
        _write(trace, out)
    if as_json:
        click.echo(json.dumps(trace.to_json(), allow_nan=False))
    else:
        _summary(trace)
    if stopped:
        raise KeyboardInterrupt


@app.command()
@click.option("--quick", is_flag=True, help="Shorter horizons: a smoke test, not a measurement.")
@as_json
def bench(quick: bool, as_json: bool) -> None:
    """Measure speed and memory against their targets."""
    from dpbandits.bench import measure

    with progress_bar("measurements") as progress:
        rows = [row._asdict() for row in measure(quick=quick, progress=progress)]
    if as_json:
        click.echo(json.dumps(rows))
        return
    verdicts = {True: "holds", False: "MISSED", None: "not measured"}
    print_table(
        ["case", "measured", "target", "verdict"],
        [[row["case"], row["measured"], row["target"], verdicts[row["holds"]]] for row in rows],
    )


@app.command()
@click.option("--clear", is_flag=True, help="Delete the compiled code; it is compiled again when needed.")
@as_json
def cache(clear: bool, as_json: bool) -> None:
    """Show where compiled code is stored, and how much of it there is.

    The folder is dpbandits in the user's cache folder, unless DPBANDITS_CACHE names another.
    """
    from dpbandits.simulation.store import CodeStore, folder

    store = CodeStore(folder())
    removed = store.clear() if clear else None
    held = store.contents()
    if as_json:
        record = {"folder": str(store.path), "entries": held.entries, "bytes": held.bytes}
        click.echo(json.dumps(record | ({} if removed is None else {"removed": removed.entries})))
        return
    if removed is not None:
        click.echo(f"removed     {removed.entries} entries, {removed.bytes / 1e6:.1f} MB")
    click.echo(f"folder      {store.path}")
    click.echo(f"holds       {held.entries} compiled loops, {held.bytes / 1e6:.1f} MB")


def _summary(trace: Trace) -> None:
    record = trace.to_json()
    final, promise = record["final"], record["guarantee"]
    error = "" if final["regret_stderr"] is None else f" ± {final['regret_stderr']:.3g} (standard error)"
    arms, seed = trace.simulation.arms.text, trace.simulation.seed
    click.echo(f"{trace.label} on {arms}: {trace.horizon:,} rounds, {trace.runs} runs, seed {seed}")
    click.echo(f"regret      {final['regret_mean']:.6g}{error}, at most {final['regret_max']:.6g}")
    click.echo(f"best arm    {100 * final['best_arm_fraction']:.2f} % of rounds")
    click.echo(f"guarantee   {_promise(promise)}")
    click.echo(f"time        {trace.seconds:.2f} s")


def _promise(promise: dict[str, Any]) -> str:
    if promise["trust"] == "none":
        return promise["conditions"]
    epsilon = "each user's own epsilon" if promise["epsilon"] is None else f"epsilon {promise['epsilon']:g}"
    delta = f", delta {promise['delta']:.3g}" if promise["delta"] else ""
    return f"{promise['trust']}, {epsilon}{delta} for {promise['unit']}; {promise['conditions']}"


def _write(trace: Trace, out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    trace.save(out / "trace.parquet")
    (out / "summary.json").write_text(json.dumps(trace.to_json(), allow_nan=False))
    trace.plot().figure.savefig(out / "regret.png", dpi=150)  # type: ignore[union-attr]
    click.echo(f"written: {out}/trace.parquet, summary.json, regret.png", err=True)
