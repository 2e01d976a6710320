"""The core commands: policies, simulate, bench, cache."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpbandits.checks import at_least
from dpbandits.cli import elapsed
from dpbandits.cli.progress import working
from dpbandits.cli.shared import (
    Number,
    OutputFolder,
    SimulationCommand,
    app,
    as_json,
    echo,
    print_table,
    read_simulation,
    ready_to_write,
    whole,
)
from dpbandits.display import shortened
from dpbandits.formats import amount, duration, estimate, plural

if TYPE_CHECKING:
    from dpbandits.privacy import Guarantee
    from dpbandits.simulation.trace import Trace


@app.command()
@as_json
def policies(as_json: bool) -> None:
    """List the policies with their guarantees and options."""
    from dpbandits.policies import lookup

    rows = lookup.overview()
    if as_json:
        echo(json.dumps(rows))
        return
    print_table(
        ["policy", "paper", "trust", "guarantee", "options"],
        [
            [row["name"], row["paper"], row["trust"], row["guarantee"], ", ".join(map(_option, row["options"].items()))]
            for row in rows
        ],
    )


def _option(option: tuple[str, Any]) -> str:
    """An option with its default."""
    from dpbandits.policies.lookup import REQUIRED

    name, default = option
    if default == REQUIRED:
        return f"{name} (required)"
    return f"{name}={default:g}" if isinstance(default, float) else f"{name}={default}"


@app.command(cls=SimulationCommand)
@click.argument("policy")
@click.option(
    "--runs", default=20, type=Number(), show_default=True, help="Number of runs, each with its own random numbers."
)
@click.option("--workers", type=Number(), help="Number of threads.  [default: number of cores]")
@click.option(
    "--engine",
    default="compiled",
    show_default=True,
    metavar="compiled|python",
    help="python plays what the compiler refuses, slowly; the numbers are the same.",
)
@click.option(
    "--out",
    type=OutputFolder(),
    help="Folder for the trace (Parquet), the summary and a figure (SVG, PNG, PDF).",
)
@as_json
def simulate(
    policy: str, as_json: bool, out: Path | None, runs: float, workers: float | None, engine: str, **given: Any
) -> None:
    """Play POLICY, a name or module:function, on given arms and report its regret."""
    from dpbandits.simulation import Interrupted, Simulation, simulate_all

    simulation = Simulation.of(policy, **read_simulation(given))
    count, threads = at_least("runs", runs, 1), whole("workers", workers)
    ready_to_write(out, "matplotlib", "pandas", "pyarrow", extra="plot")
    stopped = False
    try:
        with working(f"{policy}: runs") as progress:
            trace = simulate_all(simulation, runs=count, workers=threads, engine=engine, progress=progress)
    except Interrupted as error:
        if error.trace is None:
            raise
        trace, stopped = error.trace, True
        echo(f"interrupted: {plural(trace.runs, 'run')} of {count:,} finished; results follow", err=True)
    if as_json:
        echo(json.dumps(trace.to_json(), allow_nan=False))
    else:
        _summary(trace)
    if out is not None:
        _write(trace, out)
    if stopped:
        raise KeyboardInterrupt


@app.command()
@click.option("--quick", is_flag=True, help="Shorter horizons: a smoke test, not a measurement.")
@as_json
def bench(quick: bool, as_json: bool) -> None:
    """Measure speed and memory against their targets."""
    from dpbandits.bench import measure

    with working("measurements") as progress:
        rows = [row._asdict() for row in measure(quick=quick, progress=progress)]
    if as_json:
        echo(json.dumps(rows))
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
        echo(json.dumps(record | ({} if removed is None else {"removed": removed.entries})))
        return
    if removed is not None:
        echo(f"removed     {plural(removed.entries, 'compiled loop')}, {removed.bytes / 1e6:.1f} MB")
    echo(f"folder      {store.path}")
    echo(f"holds       {plural(held.entries, 'compiled loop')}, {held.bytes / 1e6:.1f} MB")


def _summary(trace: Trace) -> None:
    from dpbandits.simulation import compiling

    record = trace.to_json()
    final = record["final"]
    settings = f"{plural(trace.horizon, 'round')}, {plural(trace.runs, 'run')}, seed {trace.simulation.seed}"
    echo(f"{trace.label} on {trace.simulation.arms.text}: {settings}")
    echo(f"regret      {_regret(trace, final)}")
    if trace.runs > 1:
        echo(f"tail        {trace.tail}")
    found = f"played most in {trace.found} of {plural(trace.runs, 'run')}"
    best = f"{shortened(', '.join(trace.best_arms), 60)}, {found}; " if trace.simulation.arms.named else ""
    echo(f"best arm    {best}{100 * final['best_arm_fraction']:.2f} % of rounds")
    if trace.stops is not None:
        echo(f"stopped     {trace.stops}")
    echo(f"guarantee   {_promise(trace.guarantee)}")
    compiled = compiling.seconds()
    share = f", of which {duration(compiled)} compiling" if compiled >= 0.01 else ""
    echo(f"time        {duration(elapsed())}{share}")


def _regret(trace: Trace, final: dict[str, Any]) -> str:
    """The mean regret with its error, the worst run, and the share of what the best arm would have paid."""
    mean, error, worst = final["regret_mean"], final["regret_stderr"], final["regret_max"]
    shown = estimate(mean, error)
    if "±" in shown:
        text = f"{shown} (standard error) reward units, at most {amount(worst)}"
    else:
        text = f"{shown} reward units" + (", the same in every run" if trace.runs > 1 else "")
    best = float(trace.means.max()) * trace.horizon
    return f"{text}; {100 * mean / best:.2g} % of what the best arm pays" if best > 0 else text


def _promise(promise: Guarantee) -> str:
    if promise.void:
        return promise.in_short
    if promise.trust == "none":
        return promise.conditions
    epsilon = "each user's own epsilon" if promise.epsilon is None else f"epsilon {promise.epsilon:g}"
    delta = f", delta {promise.delta:.3g}" if promise.delta else ""
    return f"{promise.trust}, {epsilon}{delta} for {promise.unit}; {promise.conditions}"


def _write(trace: Trace, out: Path) -> None:
    import matplotlib

    from dpbandits.plotting import save_figure

    matplotlib.use("Agg")
    trace.save(out / "trace.parquet")
    (out / "summary.json").write_text(json.dumps(trace.to_json(), allow_nan=False))
    save_figure(trace.plot().figure, out / "regret")  # type: ignore[arg-type]  # never a part of a figure
    echo(f"written: {out}/trace.parquet, summary.json, regret.svg, regret.png, regret.pdf", err=True)
