"""Traces as Parquet files: the pulls as columns, and the settings in the file's metadata."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from dpbandits.errors import InputError, MissingExtraError
from dpbandits.simulation.settings import Simulation
from dpbandits.simulation.trace import Trace

__all__ = ["FORMAT", "load", "save_trace"]

FORMAT = 2
METADATA = b"dpbandits"


def save_trace(trace: Trace, path: str | Path) -> None:
    """Write a trace, with the settings, the seed and the version inside."""
    pyarrow, parquet = _arrow()
    if Path(path).suffix.lower() != ".parquet":
        raise InputError("path", f"must end in .parquet, got '{path}': to_pandas() can be saved as anything else")
    record = {
        "format": FORMAT,
        "simulation": trace.simulation.to_json(),
        "guarantee": trace.guarantee.to_json(),
        "runs": trace.runs,
        "seconds": trace.seconds,
        "version": trace.version,
        "engine": trace.engine,
        "named": None if trace.named is None else trace.named.tolist(),
    }
    table = pyarrow.Table.from_pandas(trace.to_pandas(), preserve_index=False)
    parquet.write_table(table.replace_schema_metadata({METADATA: json.dumps(record)}), path)


def load(path: str | Path, arms: object = None) -> Trace:
    """The trace that ``save_trace`` wrote; ``arms`` is the data frame that it was played on, if it was."""
    pyarrow, parquet = _arrow()
    try:
        table = parquet.read_table(path)
        record = json.loads((table.schema.metadata or {})[METADATA])
    except (pyarrow.ArrowInvalid, KeyError, ValueError):
        raise InputError("path", f"must be a file that Trace.save wrote, got '{path}'") from None
    if "simulation" not in record:
        what = "the data of a figure or a comparison" if "simulations" in record else "another file"
        raise InputError("path", f"must be a file that Trace.save wrote, got {what}: '{path}'")
    if record.get("format") != FORMAT:
        raise InputError("path", f"must be a trace of format {FORMAT}, got format {record.get('format')} in '{path}'")
    simulation = Simulation.from_json(record["simulation"], arms)
    columns = [table.column(f"pulls_{name}").to_numpy() for name in simulation.arms.names]
    pulls = np.stack(columns, axis=-1).reshape(record["runs"], simulation.marks.size, len(columns))
    named = record.get("named")
    return Trace(
        simulation,
        pulls,
        record["seconds"],
        record["version"],
        record["engine"],
        None if named is None else np.array(named, np.int64),
    )


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "data") from None
    return pyarrow, parquet
