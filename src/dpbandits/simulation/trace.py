"""What runs leave behind: pulls at checkpoints, and what follows from them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dpbandits import __version__
from dpbandits.display import card, shortened, sparkline
from dpbandits.errors import MissingExtraError
from dpbandits.formats import amount, estimate, plural
from dpbandits.plotting import (
    COLOURS,
    DASHES,
    MARKERS,
    Line,
    draw_lines,
    look,
    new_axes,
    nth_look,
    show_legend,
    show_notes,
)
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.protocols import Stopping
from dpbandits.simulation.settings import Simulation
from dpbandits.simulation.stops import Stops
from dpbandits.simulation.tails import Tail, tail_of
from dpbandits.types import Floats, Integers

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

    from dpbandits.bounds import Bound

QUANTILES = (0.05, 0.5, 0.95)
TRACE = "dpbandits-trace"  # marks a trace's line among those of its axes


@dataclass(frozen=True, eq=False)
class Trace:
    """Runs of one simulation. Regret is pseudo-regret, in the unit of the rewards. Arms have the names given them."""

    simulation: Simulation
    pulls: Integers  # (runs, checkpoints, arms)
    seconds: float
    version: str = __version__
    engine: str = "compiled"
    named: Integers | None = None  # (runs, arms), where the policy stops: when it named which arm

    @classmethod
    def of(cls, simulation: Simulation, left: Integers, seconds: float, engine: str = "compiled") -> Trace:
        """The trace of what runs have left, each with the shape ``simulation.shape``."""
        marks = simulation.marks.size
        named = left[:, marks] if simulation.shape[0] > marks else None
        return cls(simulation, left[:, :marks], seconds, engine=engine, named=named)

    @property
    def stops(self) -> Stops | None:
        """When runs stopped and what they named, for a policy that stops when it knows the best arm; otherwise None."""
        if self.named is None:
            return None
        agent = cast(Stopping, self.simulation.policy.agent)
        return Stops(self.named, self.means, agent.beta, self.horizon)

    @property
    def policy(self) -> str:
        """The policy's name."""
        return self.simulation.policy.name

    @property
    def options(self) -> dict[str, Any]:
        """The policy's settings, epsilon among them."""
        return self.simulation.policy.options

    @property
    def horizon(self) -> int:
        """How many rounds a run has."""
        return self.simulation.horizon

    @property
    def runs(self) -> int:
        """How many runs."""
        return int(self.pulls.shape[0])

    @property
    def guarantee(self) -> Guarantee:
        """What the policy promises here."""
        return self.simulation.guarantee

    @property
    def checkpoints(self) -> Integers:
        """The rounds at which pulls are known; the last is the horizon."""
        return self.simulation.marks

    @property
    def means(self) -> Floats:
        """The mean reward of each arm."""
        return self.simulation.environment.means

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arms; their numbers where they have none."""
        return self.simulation.arms.names

    @property
    def best_arms(self) -> tuple[str, ...]:
        """The names of the arms with the largest mean: usually one."""
        return self.simulation.arms.best()

    @property
    def found(self) -> int:
        """In how many runs the arm that was played most often is a best one."""
        best = self.means == self.means.max()
        return int(best[self.pulls[:, -1].argmax(axis=1)].sum())

    @property
    def best_arm_fraction(self) -> float:
        """The share of the rounds in which a best arm was played."""
        best = self.means == self.means.max()
        return float(self.pulls[:, -1][:, best].sum(axis=1).mean() / self.horizon)

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
        """(checkpoints,): standard error of the mean regret; NaN for a single run."""
        if self.runs == 1:
            return np.full(self.checkpoints.size, np.nan)
        return self.regret.std(axis=0, ddof=1) / np.sqrt(self.runs)

    @property
    def label(self) -> str:
        """The policy, as papers write it, and the level at which it runs."""
        policy, epsilon = self.simulation.policy, self.options.get("epsilon")
        rewards = policy.rewards_per_user
        users = "" if rewards is None else f" for a user with {plural(rewards, 'reward')}"
        return policy.title if epsilon is None else f"{policy.title} (ε = {epsilon:g}{users})"

    @property
    def tail(self) -> Tail:
        """How badly runs go: a high quantile of the final regret, the largest, and the share of disasters."""
        return tail_of(self.final_regret)

    def to_json(self) -> dict[str, Any]:
        """The document that ``dpbandits simulate --json`` prints."""
        regret = self.regret
        stderr = [None if np.isnan(x) else float(x) for x in self.stderr]
        settings, pulls, stops = self.simulation.to_json(), self.pulls[:, -1].mean(axis=0), self.stops
        return {
            **settings,
            "policy": self.policy,
            "arms": self.simulation.arms.text,
            "options": self.options,
            "runs": self.runs,
            "guarantee": self.guarantee.to_json(),
            "names": list(self.names),
            "means": self.means.tolist(),
            "seconds": self.seconds,
            "version": self.version,
            "engine": self.engine,
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
                "regret_quantiles": {str(q): float(np.quantile(regret[:, -1], q)) for q in QUANTILES},
                "disasters": self.tail.disasters,
                "tail": self.tail.to_json(),
                "pulls_mean": pulls.tolist(),
                "pulls": dict(zip(self.names, pulls.tolist(), strict=True)),
                "best_arm": list(self.best_arms) if len(self.best_arms) > 1 else self.best_arms[0],
                "best_arm_found": self.found,
                "best_arm_fraction": self.best_arm_fraction,
            },
            **({} if stops is None else {"stops": stops.to_json(self.names)}),
        }

    def to_pandas(self) -> pandas.DataFrame:
        """A tidy table: one row for each run and checkpoint, with the regret and the pulls of every arm by name.

        The policy and its epsilon stand in every row, so that the tables of several traces can be put together; so
        does ``promise``, where nothing is promised of these numbers.
        """
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("pandas", "data") from None
        run, t = np.meshgrid(np.arange(self.runs), self.checkpoints, indexing="ij")
        epsilon = self.guarantee.epsilon
        columns: dict[str, Any] = {
            "policy": np.full(run.size, self.policy),
            "epsilon": np.full(run.size, np.nan if epsilon is None else epsilon),
            **({"promise": np.full(run.size, self.guarantee.promise)} if self.guarantee.void else {}),
            "run": run.ravel(),
            "t": t.ravel(),
            "regret": self.regret.ravel(),
        }
        for arm, name in enumerate(self.names):
            columns[f"pulls_{name}"] = self.pulls[:, :, arm].ravel()
        if self.named is not None:
            stopped = self.named.max(axis=1)
            names = np.where(stopped > 0, np.array(self.names, object)[self.named.argmax(axis=1)], None)
            columns["stopped"] = np.repeat(np.where(stopped > 0, stopped, np.nan), self.checkpoints.size)
            columns["named"] = np.repeat(names, self.checkpoints.size)
        return pandas.DataFrame(columns)

    def summary(self) -> list[str]:
        """The outcome in a few lines: the regret, and which arm won."""
        final, names, some = self.final_regret, shortened(", ".join(self.best_arms), 60), len(self.best_arms) > 1
        mean = estimate(float(final.mean()), float(self.stderr[-1]))
        best = f"the best arms are {names}" if some else f"the best arm is {names}"
        share = f"{'they' if some else 'it'} got {100 * self.best_arm_fraction:.1f} % of the rounds"
        return [
            f"regret {mean}{' (standard error)' if '±' in mean else ''}, at most {amount(float(final.max()))}",
            *([str(self.tail)] if self.runs > 1 else []),
            f"{best}, found in {self.found} of {plural(self.runs, 'run')}; {share}",
            *([] if self.stops is None else [f"the best arm is known to {self.stops}"]),
        ]

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        return card(
            self._lines(),
            sparkline(self.regret.mean(axis=0).tolist(), np.log(self.checkpoints).tolist()),
            "mean regret over log t",
        )

    def _lines(self) -> list[str]:
        about = f"{self.label} on {shortened(self.simulation.arms.text, 48)}"
        runs = plural(self.runs, "run")
        head = f"Trace: {about}, {self.horizon:,} rounds, {runs}, seed {self.simulation.seed}"
        return [head, *(f"  {line}" for line in (*self.summary(), self.guarantee.in_short))]

    def bounds(self) -> list[Bound]:
        """The theorems on this policy's regret here, in the unit of rewards mapped from ``reward_range`` to [0, 1]."""
        from dpbandits.bounds import Problem, for_policy

        simulation, reward = self.simulation, self.simulation.policy.curator.guarantee()
        epsilon = reward.epsilon  # theorems are about one reward
        private = epsilon is not None and np.isfinite(epsilon)
        problem = Problem.on(
            simulation.arms,
            self.horizon,
            epsilon=epsilon if private else None,
            levels=simulation.levels_of_rewards,
            reward_range=simulation.reward_range,
        )
        found = for_policy(problem, self.policy, reward, simulation.policy.of_reward)
        if self.stops is not None and self.stops.beta > 1.0 / self.horizon:  # then it is not consistent
            found = [bound for bound in found if bound.rate is None]
        return found

    def plot(self, ax: Axes | None = None, *, label: str | None = None, bounds: bool = False) -> Axes:
        """Mean regret over time with a band of two standard errors, on logarithmic time.

        On axes of one's own the title is left as it is, and so are labels and scales that were set before. With
        ``bounds``, also the theorems on the policy's regret here, on a logarithmic axis: its upper bounds dotted, the
        lower bounds dashed in grey.
        """
        if ax is None:
            ax = self._axes()
        self._label(ax)
        number = sum(line.get_gid() == TRACE for line in ax.get_lines())  # traces that are drawn already
        drawn = nth_look(number)
        mean, band = self.regret.mean(axis=0), 2 * np.nan_to_num(self.stderr)
        (line,) = ax.plot(
            self.checkpoints,
            mean,
            label=label or self.label,
            color=COLOURS[drawn.colour],
            linestyle=DASHES[drawn.dashes],
            marker=MARKERS[drawn.marker] or None,
            markevery=max(mean.size // 8, 1),
            gid=TRACE,
        )
        ax.fill_between(self.checkpoints, mean - band, mean + band, color=line.get_color(), alpha=0.2, linewidth=0)
        if bounds:
            draw_lines(ax, self._bound_lines(COLOURS[drawn.colour]))
            ax.set_yscale("log")
        show_legend(ax, 8)
        show_notes(ax, [self.guarantee.in_short] if self.guarantee.void else [])
        return ax

    def _axes(self) -> Axes:
        ax = new_axes()
        simulation = self.simulation
        named = f" (best: {shortened(', '.join(self.best_arms), 30)})" if simulation.arms.named else ""
        facts = f"{plural(self.runs, 'run')}, seed {simulation.seed}, dpbandits {self.version}"
        void = f"\n{self.guarantee.in_short}" if self.guarantee.void else ""
        ax.set_title(f"{shortened(simulation.arms.text, 60)}{named}, {facts}{void}", fontsize=9)
        look(ax)
        return ax

    def _label(self, ax: Axes) -> None:
        """Name both axes and take the logarithm of time, unless the axes' owner has drawn or named something."""
        if not ax.get_lines() and not ax.get_xlabel() and ax.get_xscale() == "linear":
            ax.set_xscale("log")
        if not ax.get_xlabel():
            ax.set_xlabel("round t")
        if not ax.get_ylabel():
            ax.set_ylabel("regret (reward units)")

    def _bound_lines(self, colour: str) -> list[Line]:
        """The bounds over time; those that nearly coincide share a line."""
        low, high = self.simulation.reward_range or (0.0, 1.0)
        times = np.unique(np.concatenate([self.checkpoints[self.checkpoints > 1], [self.horizon]])).astype(np.float64)
        groups: list[tuple[Floats, list[Bound]]] = []
        for bound in sorted(self.bounds(), key=lambda bound: -(bound.value or 0.0)):
            curve = (high - low) * bound.at(times)
            near = [g for at, g in groups if g[0].kind == bound.kind and np.allclose(at, curve, 0.02, equal_nan=True)]
            near[0].append(bound) if near else groups.append((curve, [bound]))
        greys = iter(["#222222", "#666666", "#999999", "#bbbbbb"] * 4)
        lines = []
        for curve, group in groups:
            names = ", ".join(bound.name + ("" if bound.checked else " (not checked)") for bound in group)
            if group[0].kind == "upper":
                dashes = (0, (4, 1, 1, 1)) if group[0].scope == "every problem" else (0, (1, 1.5))
                lines.append(Line(f"at most: {names}", times, curve, colour=colour, dashes=dashes))
            else:
                label = f"at least, as t grows: {names}"
                lines.append(Line(label, times, curve, style="dashed", colour=next(greys)))
        return lines

    def save(self, path: str | Path) -> None:
        """Write a Parquet file (.parquet) with the settings, the seed and the version inside."""
        from dpbandits.simulation.files import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path, *, arms: object = None) -> Trace:
        """The trace that ``save`` wrote. If its arms were a data frame, give that again: its rewards are not saved."""
        from dpbandits.simulation.files import load

        return load(path, arms)

    def only(self, runs: Integers) -> Trace:
        """These runs alone."""
        named = None if self.named is None else self.named[runs]
        return dataclasses.replace(self, pulls=self.pulls[runs], named=named)
