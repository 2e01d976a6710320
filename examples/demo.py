"""Five private policies and UCB1 on one problem: a figure and a table. Run by ``make demo``."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

import dpbandits as dp

matplotlib.use("Agg")

ARMS, EPSILON, HORIZON, RUNS = "@azize2022-c2", 1.0, 10**6, 20
POLICIES = ("ucb1", "adap-klucb", "adap-ucb", "dp-se", "dp-ucb-bound", "ldp-ucb-b", "ldp-ucb-l")


def main(out: Path) -> None:
    """Simulate, draw, tabulate, and say where the results are."""
    out.mkdir(parents=True, exist_ok=True)
    rows = ["| policy | trust | epsilon | regret | standard error | best arm |", "|---|---|---|---|---|---|"]
    axes = None
    for name in POLICIES:
        epsilon = None if name == "ucb1" else EPSILON
        trace = dp.simulate(name, arms=ARMS, epsilon=epsilon, horizon=HORIZON, runs=RUNS, seed=0)
        axes = trace.plot(axes)
        final = trace.to_json()["final"]
        promise = "none" if epsilon is None else f"{trace.guarantee.epsilon:g}"
        share = f"{100 * final['best_arm_fraction']:.1f} %"
        rows.append(
            f"| {name} | {trace.guarantee.trust} | {promise} "
            f"| {final['regret_mean']:.0f} | {final['regret_stderr']:.0f} | {share} |"
        )
        print(f"{name:13s} regret {final['regret_mean']:8.0f} ± {final['regret_stderr']:<5.0f} ({trace.seconds:.2f} s)")
    assert axes is not None
    axes.set_yscale("log")
    axes.figure.savefig(out / "regret.png", dpi=150)  # type: ignore[union-attr]
    settings = f"{ARMS}, {HORIZON:,} rounds, {RUNS} runs, seed 0, dpbandits {dp.__version__}"
    (out / "regret.md").write_text(f"{settings}\n\n" + "\n".join(rows) + "\n")
    print(f"written: {out / 'regret.png'} and {out / 'regret.md'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/demo"))
