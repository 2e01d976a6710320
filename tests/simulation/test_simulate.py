"""Runs and traces: seeds, workers, checkpoints, files, and a user's own log."""

import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpbandits as dp
from dpbandits.errors import InputError
from dpbandits.simulation import Interrupted, compiled

C2 = "0.75,0.625,0.5,0.375,0.25"


def test_the_numbers_depend_on_the_seed_alone() -> None:
    settings = {"arms": C2, "epsilon": 1, "horizon": 20_000, "runs": 7, "seed": 3}
    one = dp.simulate("ldp-ucb-l", workers=1, **settings)  # type: ignore[arg-type]
    three = dp.simulate("ldp-ucb-l", workers=3, checkpoints=13, **settings)  # type: ignore[arg-type]
    assert np.array_equal(one.pulls[:, -1], three.pulls[:, -1])
    other = dp.simulate("ldp-ucb-l", workers=1, **{**settings, "seed": 4})  # type: ignore[arg-type]
    assert not np.array_equal(one.pulls, other.pulls)
    longer = dp.simulate("ldp-ucb-l", workers=1, **{**settings, "runs": 9})  # type: ignore[arg-type]
    assert np.array_equal(longer.pulls[:7], one.pulls)


def test_the_python_engine_gives_the_same_numbers() -> None:
    traces = [
        dp.simulate("adap-imed", arms=C2, epsilon=1, horizon=3000, runs=3, seed=0, engine=engine)
        for engine in ("compiled", "python")
    ]
    assert np.array_equal(traces[0].pulls, traces[1].pulls)


def test_checkpoints_end_at_the_horizon_and_pulls_add_up() -> None:
    trace = dp.simulate("ucb1", arms=C2, horizon=12_345, runs=3, checkpoints=[1, 10, 500])
    assert trace.checkpoints.tolist() == [1, 10, 500, 12_345]
    assert (trace.pulls.sum(axis=2) == trace.checkpoints).all()
    assert (np.diff(trace.pulls, axis=1) >= 0).all()


def test_arms_in_the_given_order() -> None:
    """With equal arms, ties go to the first in the given order, and to any in a shuffled one."""
    given = dp.simulate("ucb1", arms="0.5,0.5", horizon=2, runs=50, arm_order="given", checkpoints=[1])
    assert (given.pulls[:, 0, 0] == 1).all()
    shuffled = dp.simulate("ucb1", arms="0.5,0.5", horizon=2, runs=50, checkpoints=[1])
    assert 0 < shuffled.pulls[:, 0, 0].sum() < 50


def test_a_trace_survives_its_file(tmp_path: Path) -> None:
    trace = dp.simulate(
        "heldp-ucb-b",
        arms="beta(4,1)+uniform(0,1)",
        levels="choice(0,1)",
        options={"epsilon_min": 1},
        horizon=500,
        runs=4,
    )
    trace.save(tmp_path / "trace.parquet")
    loaded = dp.Trace.load(tmp_path / "trace.parquet")
    assert json.dumps(loaded.to_json()) == json.dumps(trace.to_json())
    assert loaded.guarantee == trace.guarantee
    frame = trace.to_pandas()
    assert list(frame.columns) == ["policy", "epsilon", "run", "t", "regret", "pulls_0", "pulls_1"]
    assert len(frame) == 4 * trace.checkpoints.size
    assert frame[frame.t == 500].regret.to_numpy() == pytest.approx(trace.final_regret)


def test_a_trace_can_be_drawn() -> None:
    import matplotlib

    matplotlib.use("Agg")
    trace = dp.simulate("ucb1", arms=C2, horizon=1000, runs=4)
    axes = trace.plot()
    line = axes.lines[0]
    assert np.array_equal(line.get_xdata(), trace.checkpoints)
    assert np.allclose(np.asarray(line.get_ydata(), float), trace.regret.mean(axis=0))


def test_a_range_maps_rewards_and_leaves_regret_in_their_unit() -> None:
    plain = dp.simulate("ldp-ucb-b", arms=C2, epsilon=1, horizon=3000, runs=30, seed=0)
    doubled = dp.simulate(
        "ldp-ucb-b",
        arms="choice(0,0,0,2)+choice(0,0,2,2)",
        epsilon=1,
        horizon=3000,
        runs=30,
        reward_range=(0, 2),
    )
    assert doubled.means.tolist() == [0.5, 1.0]
    assert "clipped to [0, 2]" in doubled.guarantee.conditions
    assert plain.guarantee.conditions == "rewards are clipped to [0, 1] inside the curator"
    assert doubled.final_regret.max() <= 0.5 * 3000


def test_unbounded_rewards_can_be_clipped_on_request() -> None:
    trace = dp.simulate("adap-ucb", arms="normal(0.9,1)+normal(0.1,1)", epsilon=1, horizon=5000, reward_range=(-1, 2))
    assert trace.final_regret.mean() < 0.5 * 0.8 * 5000


def test_a_log_is_resampled_for_each_arm(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("user,arm,reward\n" + "u,a,1\nu,b,0\nu,a,0.5\nu,b,0\n" * 5)
    trace = dp.simulate("dp-se", arms=f"replay({log})", epsilon=1, horizon=3000, runs=2)
    assert trace.means.tolist() == [0.75, 0.0]
    trace.to_pandas().assign(arm=0, reward=0.5)[["arm", "reward"]].to_parquet(tmp_path / "one.parquet")
    with pytest.raises(InputError, match="arms must be at least two, got one"):
        dp.simulate("ucb1", arms=f"replay({tmp_path / 'one.parquet'})", horizon=100)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arm,payoff\na,1\n", "line 1 of .*: no column reward, got 'arm, payoff'"),
        ("red,0.8414\na,1\n", "line 1 of .*: no column arm and no column reward, got a line with numbers: are the"),
        ("arm,reward\na,1\n,0\n", "line 3 of .*: the arm has no name"),
        ("arm,reward\na,1\nb,x\n", "line 3 of .*: the reward is not a number"),
        ("arm,reward\na,1\nb,0\nb,nan\n", "line 4 of .*: the reward is not a finite number"),
        ("arm,reward\na,1\nb,0\nb,17.25\n", r"line 4 of .*: the reward is outside the range \[0,1\]"),
    ],
)
def test_a_bad_log_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    log = tmp_path / "log.csv"
    log.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        dp.simulate("adap-ucb", arms=f"replay({log})", epsilon=1, horizon=100)
    assert "17.25" not in str(caught.value), "a reward stands in an error message"


def test_interrupted_runs_are_kept() -> None:
    def stop(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    settings = {"arms": C2, "horizon": 1000, "runs": 50, "seed": 0}
    with pytest.raises(Interrupted) as caught:
        dp.simulate("ucb1", workers=1, progress=stop, **settings)  # type: ignore[arg-type]
    partial = caught.value.trace
    assert partial is not None
    assert partial.runs >= 3, "a run that was finished is lost"
    whole = dp.simulate("ucb1", **settings)  # type: ignore[arg-type]
    assert np.array_equal(whole.pulls[: partial.runs], partial.pulls)


@pytest.fixture
def interruptible() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_while_compiling_is_not_lost() -> None:
    """LLVM's callbacks swallow what is raised in them, so it is held back, and raised at the end."""
    reached: list[bool] = []
    with pytest.raises(KeyboardInterrupt):
        _interrupted_while_compiling(reached)
    assert reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    reached.clear()
    with pytest.raises(KeyboardInterrupt):
        _interrupted_while_compiling(reached, times=2)
    assert not reached, "the second Ctrl-C is not delayed"
    with compiled.uninterrupted():  # and nothing is raised where nothing came
        pass
    with ThreadPoolExecutor(1) as pool:  # a thread that compiles is not where signals arrive
        assert pool.submit(_handler_while_compiling).result() is signal.default_int_handler


def _interrupted_while_compiling(reached: list[bool], times: int = 1) -> None:
    with compiled.uninterrupted():
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        reached.append(True)


def _handler_while_compiling() -> Any:
    with compiled.uninterrupted():
        return signal.getsignal(signal.SIGINT)


def test_numpy_numbers_are_numbers_and_other_things_are_refused_by_name() -> None:
    numbers: dict[str, Any] = {"epsilon": np.float32(1), "horizon": np.int64(100), "runs": np.int32(2)}
    trace = dp.simulate("adap-ucb", arms=C2, **numbers)
    assert trace.runs == 2
    with pytest.raises(InputError, match="arms must be means such as"):
        dp.simulate("ucb1", arms=7, horizon=100)
    with pytest.raises(InputError, match="epsilon must be a number, got 'abc'"):
        dp.simulate("adap-ucb", arms=C2, epsilon="abc", horizon=100)
    with pytest.raises(InputError, match=r"epsilon must be a number, positive and finite, got \[1\]"):
        dp.simulate("adap-ucb", arms=C2, epsilon=[1], horizon=100)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="as_printed must be True or False, got 'yes'"):
        dp.policies.dp_ucb(arms=2, epsilon=1.0, as_printed="yes")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"checkpoints must be a whole number of at least 1, got 1\.5"):
        dp.simulate("ucb1", arms=C2, horizon=100, checkpoints=[1.5, 10])  # type: ignore[list-item]
