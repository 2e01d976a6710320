"""What runs leave behind: pulls at checkpoints, and what follows from them."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbandits.errors import InputError, MissingExtraError
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.protocols import Floats, Integers

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

    from dpbandits.bounds import Bound

QUANTILES = (0.05, 0.5, 0.95)
METADATA = b"dpbandits"


@dataclass(frozen=True)
class Trace:
    """Runs of one policy on one problem. Regret is pseudo-regret, in the unit of the rewards."""

    policy: str
    options: dict[str, Any]
    arms: str
    horizon: int
    seed: int
    guarantee: Guarantee
    checkpoints: Integers
    pulls: Integers  # (runs, checkpoints, arms)
    means: Floats
    levels: str | None
    reward_range: tuple[float, float] | None
    arm_order: str
    seconds: float
    version: str
    engine: str

    @property
    def runs(self) -> int:
        """How many runs."""
        return int(self.pulls.shape[0])

    @property
    def regret(self) -> Floats:
        """(runs, checkpoints): what each run had lost against always playing the best arm."""
        return self.pulls @ (self.means.max() - self.means)

    @property
    def final_regret(self) -> Floats:
        """(runs,): the regret at the horizon."""
        return self.regret[:, -1]

    @property
    def stderr(self) -> Floats:
        """(checkpoints,): standard error of the mean regret; not a number for a single run."""
        if self.runs == 1:
            return np.full(self.checkpoints.size, np.nan)
        return self.regret.std(axis=0, ddof=1) / np.sqrt(self.runs)

    @property
    def label(self) -> str:
        """The policy and the level at which it runs."""
        epsilon = self.options.get("epsilon")
        return self.policy if epsilon is None else f"{self.policy} (ε = {epsilon:g})"

    def to_json(self) -> dict[str, Any]:
        """The document that ``dpbandits simulate --json`` prints."""
        regret, best = self.regret, self.means == self.means.max()
        stderr = [None if np.isnan(x) else float(x) for x in self.stderr]
        return {
            **self._settings(),
            "checkpoints": self.checkpoints.tolist(),
            "regret": {
                "mean": regret.mean(axis=0).tolist(),
                "std": regret.std(axis=0, ddof=1).tolist() if self.runs > 1 else stderr,
                "stderr": stderr,
                "quantiles": {str(q): np.quantile(regret, q, axis=0).tolist() for q in QUANTILES},
            },
            "final": {
                "regret_mean": float(regret[:, -1].mean()),
                "regret_stderr": stderr[-1],
                "regret_max": float(regret[:, -1].max()),
                "pulls_mean": self.pulls[:, -1].mean(axis=0).tolist(),
                "best_arm_fraction": float(self.pulls[:, -1][:, best].sum(axis=1).mean() / self.horizon),
            },
        }

    def _settings(self) -> dict[str, Any]:
        return {
            "policy": self.policy,
            "options": self.options,
            "arms": self.arms,
            "horizon": self.horizon,
            "runs": self.runs,
            "seed": self.seed,
            "levels": self.levels,
            "reward_range": None if self.reward_range is None else list(self.reward_range),
            "arm_order": self.arm_order,
            "guarantee": self.guarantee.to_json(),
            "means": self.means.tolist(),
            "seconds": self.seconds,
            "version": self.version,
            "engine": self.engine,
        }

    def to_pandas(self) -> pandas.DataFrame:
        """A tidy table: one row for each run and checkpoint, with the regret and the pulls of every arm."""
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("pandas", "data") from None
        run, t = np.meshgrid(np.arange(self.runs), self.checkpoints, indexing="ij")
        columns: dict[str, Any] = {"run": run.ravel(), "t": t.ravel(), "regret": self.regret.ravel()}
        for arm in range(self.means.size):
            columns[f"pulls_{arm}"] = self.pulls[:, :, arm].ravel()
        return pandas.DataFrame(columns)

    def bounds(self) -> list[Bound]:
        """The theorems on this policy's regret here, in the unit of rewards mapped from ``reward_range`` to [0, 1]."""
        from dpbandits.bounds import for_policy
        from dpbandits.bounds.text import problem

        epsilon = self.guarantee.epsilon
        private = epsilon is not None and np.isfinite(epsilon)
        asked = problem(
            self.arms,
            self.horizon,
            epsilon=epsilon if private else None,
            levels=self.levels,
            reward_range=self.reward_range,
        )
        return for_policy(asked, self.policy, self.guarantee, self.options)

    def plot(self, ax: Axes | None = None, *, label: str | None = None, bounds: bool = False) -> Axes:
        """Mean regret over time with a band of two standard errors, on logarithmic time.

        With ``bounds``, also the theorems on the policy's regret here, on a logarithmic axis: its upper bounds dotted,
        the lower bounds dashed in grey.
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise MissingExtraError("matplotlib", "plot") from None
        if ax is None:
            ax = plt.subplots(figsize=(7, 4.5), layout="constrained")[1]
            ax.set_title(f"{self.arms}, {self.runs} runs, seed {self.seed}, dpbandits {self.version}", fontsize=9)
            ax.set_xlabel("round t")
            ax.set_ylabel("regret")
            ax.set_xscale("log")
            ax.spines[["top", "right"]].set_visible(False)
        mean, band = self.regret.mean(axis=0), 2 * np.nan_to_num(self.stderr)
        (line,) = ax.plot(self.checkpoints, mean, label=label or self.label)
        ax.fill_between(self.checkpoints, mean - band, mean + band, color=line.get_color(), alpha=0.2, linewidth=0)
        if bounds:
            self._draw_bounds(ax, line.get_color())
        ax.legend(frameon=False, fontsize="small" if bounds else None)
        return ax

    def _draw_bounds(self, ax: Axes, color: Any) -> None:
        low, high = self.reward_range or (0.0, 1.0)
        times = np.unique(np.concatenate([self.checkpoints[self.checkpoints > 1], [self.horizon]]))
        groups: list[tuple[Floats, list[Bound]]] = []  # bounds that nearly coincide share a line
        for bound in sorted(self.bounds(), key=lambda bound: -(bound.value or 0.0)):
            curve = (high - low) * bound.at(times)
            near = [g for at, g in groups if g[0].kind == bound.kind and np.allclose(at, curve, 0.02, equal_nan=True)]
            near[0].append(bound) if near else groups.append((curve, [bound]))
        greys = iter(["#222222", "#666666", "#999999", "#bbbbbb"] * 4)
        for curve, group in groups:
            names = ", ".join(bound.name + ("" if bound.checked else " (not checked)") for bound in group)
            upper, free = group[0].kind == "upper", group[0].scope == "every problem"
            ax.plot(
                times,
                curve,
                color=color if upper else next(greys),
                linestyle=(0, (5, 2)) if not upper else (0, (4, 1, 1, 1)) if free else (0, (1, 1.5)),
                linewidth=1.2,
                label=f"{'at most' if upper else 'at least, as t grows'}: {names}",
            )
        ax.set_yscale("log")

    def save(self, path: str | Path) -> None:
        """Write a Parquet file with the settings, the seed and the version inside."""
        try:
            import pyarrow
            import pyarrow.parquet as parquet
        except ImportError:
            raise MissingExtraError("pyarrow", "data") from None
        table = pyarrow.Table.from_pandas(self.to_pandas(), preserve_index=False)
        parquet.write_table(table.replace_schema_metadata({METADATA: json.dumps(self._settings())}), path)

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """The trace that ``save`` wrote."""
        try:
            import pyarrow.parquet as parquet
        except ImportError:
            raise MissingExtraError("pyarrow", "data") from None
        table = parquet.read_table(path)
        if METADATA not in (table.schema.metadata or {}):
            raise InputError(f"path must be a file that Trace.save wrote, got '{path}'")
        record = json.loads(table.schema.metadata[METADATA])
        runs, means = record.pop("runs"), np.array(record.pop("means"))
        checkpoints = table.column("t").to_numpy().reshape(runs, -1)[0]
        pulls = np.stack([table.column(f"pulls_{arm}").to_numpy() for arm in range(means.size)], axis=-1)
        guarantee = record.pop("guarantee")
        if guarantee["trust"] == "none":
            guarantee["epsilon"] = np.inf
        reward_range = record.pop("reward_range")
        return cls(
            **record,
            guarantee=Guarantee(**guarantee),
            checkpoints=checkpoints,
            pulls=pulls.reshape(runs, checkpoints.size, means.size),
            means=means,
            reward_range=None if reward_range is None else tuple(reward_range),
        )

    def only(self, runs: Integers) -> Trace:
        """These runs alone."""
        return dataclasses.replace(self, pulls=self.pulls[runs])
