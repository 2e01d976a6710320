"""What runs leave behind: pulls at checkpoints, and what follows from them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dpbandits import __version__
from dpbandits.display import card, shortened, sparkline
from dpbandits.formats import amount, estimate, plural
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
        """The policy, as papers write it, and its epsilon."""
        policy, epsilon = self.simulation.policy, self.options.get("epsilon")
        rewards = policy.rewards_per_user
        users = "" if rewards is None else f" for a user with {plural(rewards, 'reward')}"
        return policy.title if epsilon is None else f"{policy.title} (ε = {epsilon:g}{users})"

    @property
    def tail(self) -> Tail:
        """How badly runs go: a high quantile of the final regret, the largest, and the share of disasters."""
        worst = float(self.means.max() - self.means.min()) * self.simulation.horizon
        return tail_of(self.final_regret, worst)

    def to_json(self) -> dict[str, Any]:
        """The document that ``dpbandits simulate --json`` prints."""
        from dpbandits.simulation.documents import trace_document

        return trace_document(self)

    def to_pandas(self) -> pandas.DataFrame:
        """A tidy table: one row for each run and checkpoint, with the regret and the pulls of every arm by name.

        The policy and its epsilon stand in every row, so that the tables of several traces can be put together; so
        does ``promise``, where nothing is promised of these numbers.
        """
        from dpbandits.simulation.documents import table

        return table(self)

    def summary(self) -> list[str]:
        """The outcome in a few lines: the regret, and which arm won."""
        final, names, some = self.final_regret, shortened(", ".join(self.best_arms), 60), len(self.best_arms) > 1
        mean = estimate(float(final.mean()), float(self.stderr[-1]))
        best = f"the best arms are {names}" if some else f"the best arm is {names}"
        share = f"{'they' if some else 'it'} got {100 * self.best_arm_fraction:.1f} % of the rounds"
        return [
            f"regret {mean}{' (standard error)' if '±' in mean else ''}, at most {amount(float(final.max()))}",
            *([str(self.tail)] if self.runs > 1 else []),
            f"{best}, played most in {self.found} of {plural(self.runs, 'run')}; {share}",
            *([] if self.stops is None else [f"stopped: {self.stops}"]),
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
        from dpbandits.simulation.drawing import draw_trace

        return draw_trace(self, ax, label, bounds)

    def save(self, path: str | Path) -> None:
        """Write a Parquet file (.parquet) with the settings, the seed and the version inside."""
        from dpbandits.simulation.files import save_trace

        save_trace(self, path)

    @classmethod
    def load(cls, path: str | Path, *, arms: object = None) -> Trace:
        """The trace that ``save`` wrote. If its arms were a data frame, give that again: its rewards are not saved."""
        from dpbandits.simulation.files import load

        return load(path, arms)

    def only(self, runs: Integers) -> Trace:
        """These runs alone."""
        named = None if self.named is None else self.named[runs]
        return dataclasses.replace(self, pulls=self.pulls[runs], named=named)
