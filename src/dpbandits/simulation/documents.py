"""A trace as a JSON document, and as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpbandits.errors import MissingExtraError
from dpbandits.simulation.tails import QUANTILES
from dpbandits.simulation.trace import Trace

if TYPE_CHECKING:
    import pandas

__all__ = ["table", "trace_document"]


def trace_document(trace: Trace) -> dict[str, Any]:
    """See ``Trace.to_json``."""
    regret = trace.regret
    stderr = [None if np.isnan(x) else float(x) for x in trace.stderr]
    settings, pulls, stops = trace.simulation.to_json(), trace.pulls[:, -1].mean(axis=0), trace.stops
    return {
        **settings,
        "policy": trace.policy,
        "arms": trace.simulation.arms.text,
        "options": trace.options,
        "runs": trace.runs,
        "guarantee": trace.guarantee.to_json(),
        "names": list(trace.names),
        "means": trace.means.tolist(),
        "seconds": trace.seconds,
        "version": trace.version,
        "engine": trace.engine,
        "checkpoints": trace.checkpoints.tolist(),
        "regret": {
            "mean": regret.mean(axis=0).tolist(),
            "std": regret.std(axis=0, ddof=1).tolist() if trace.runs > 1 else stderr,
            "stderr": stderr,
            "quantiles": {str(q): np.quantile(regret, q, axis=0).tolist() for q in QUANTILES},
        },
        "final": {
            "regret_mean": float(regret[:, -1].mean()),
            "regret_stderr": stderr[-1],
            "regret_max": float(regret[:, -1].max()),
            "regret_quantiles": {str(q): float(np.quantile(regret[:, -1], q)) for q in QUANTILES},
            "disasters": trace.tail.disasters,
            "tail": trace.tail.to_json(),
            "pulls_mean": pulls.tolist(),
            "pulls": dict(zip(trace.names, pulls.tolist(), strict=True)),
            "best_arm": list(trace.best_arms) if len(trace.best_arms) > 1 else trace.best_arms[0],
            "best_arm_found": trace.found,
            "best_arm_fraction": trace.best_arm_fraction,
        },
        **({} if stops is None else {"stops": stops.to_json(trace.names)}),
    }


def table(trace: Trace) -> pandas.DataFrame:
    """See ``Trace.to_pandas``."""
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("pandas", "data") from None
    run, t = np.meshgrid(np.arange(trace.runs), trace.checkpoints, indexing="ij")
    epsilon = trace.guarantee.epsilon
    columns: dict[str, Any] = {
        "policy": np.full(run.size, trace.policy),
        "epsilon": np.full(run.size, np.nan if epsilon is None else epsilon),
        **({"promise": np.full(run.size, trace.guarantee.promise)} if trace.guarantee.void else {}),
        "run": run.ravel(),
        "t": t.ravel(),
        "regret": trace.regret.ravel(),
    }
    for arm, name in enumerate(trace.names):
        columns[f"pulls_{name}"] = trace.pulls[:, :, arm].ravel()
    if trace.named is not None:
        stopped = trace.named.max(axis=1)
        names = np.where(stopped > 0, np.array(trace.names, object)[trace.named.argmax(axis=1)], None)
        columns["stopped"] = np.repeat(np.where(stopped > 0, stopped, np.nan), trace.checkpoints.size)
        columns["named"] = np.repeat(names, trace.checkpoints.size)
    return pandas.DataFrame(columns)
