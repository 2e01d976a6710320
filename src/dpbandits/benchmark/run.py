"""Play the benchmark: what an output folder already holds is not simulated again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dpbandits import __version__
from dpbandits.benchmark.pages import markdown, section
from dpbandits.benchmark.problems import (
    CHECKPOINTS,
    PROBLEMS,
    SCALES,
    SEED,
    SET_VERSION,
    TRACKS,
    Challenge,
    Scale,
    Track,
)
from dpbandits.benchmark.scores import Scores, scored
from dpbandits.checks import known
from dpbandits.errors import InputError
from dpbandits.experiments import output
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.engines import engine
from dpbandits.experiments.report import versions
from dpbandits.experiments.work import Watch, fill, traces
from dpbandits.policies import lookup

__all__ = ["benchmark", "document"]

JSON, PAGE = "benchmark.json", "benchmark.md"

Key = tuple[str, str, float | str]


def benchmark(
    *,
    add: Sequence[str | lookup.Factory] = (),
    tracks: Sequence[str] = (),
    scale: str = "quick",
    out: str | Path = "out/benchmark",
    workers: int | None = None,
    cluster: str | None = None,
    fresh: bool = False,
    watch: Watch | None = None,
    answered: Callable[[list[Scores]], None] | None = None,
) -> list[Scores]:
    """Play every policy of the tracks, and those of ``add``; write the report, a page and a JSON document to ``out``.

    ``add`` are policies of your own, a name or ``module:function``; each joins the track of its promise. Runs that
    ``out`` already holds are not simulated again.
    """
    chosen = [track for track in TRACKS if not tracks or track.name in tracks]
    for name in tracks:
        known("track", name, [track.name for track in TRACKS])
    size = SCALES[known("scale", scale, SCALES)]
    joined = [lookup.find(policy) for policy in add]
    for factory in joined:
        lookup.traits(factory)  # refuses what is none, before anything is played
    settings = {"command": "benchmark", "set": SET_VERSION, "scale": scale, "seed": SEED, "version": __version__}
    cells = {track.name: dict(_cells(track, size, joined)) for track in chosen}
    if joined and not any(key[0] == lookup.written(factory) for factory in joined for c in cells.values() for key in c):
        raise InputError("add", f": {lookup.written(joined[0])} fits none of the tracks that are played")
    folder, started = Path(out), time.perf_counter()
    with engine(cluster, workers) as where, output.open_folder(folder, settings, fresh=fresh) as results:
        fill([cell for each in cells.values() for cell in each.values()], results, where, watch)
        played = {name: traces(each, results) for name, each in cells.items()}  # type: ignore[arg-type]
    found = [
        scored(track, played[track.name], PROBLEMS, horizon)  # type: ignore[arg-type]
        for track in chosen
        for horizon in CHECKPOINTS
        if horizon <= size.horizon
    ]
    if answered is not None:
        answered(found)
    facts: dict[str, Any] = {"scale": scale, "seed": SEED, "set": SET_VERSION, **versions()}
    sections = [section(track, [s for s in found if s.track is track], size) for track in chosen]
    for each in sections:
        output.write_section(folder, each, {}, f"benchmark set {SET_VERSION}, scale {scale}, seed {SEED}")
    record = document(found, facts)
    facts["seconds"] = round(time.perf_counter() - started, 1)
    (folder / JSON).write_text(json.dumps(record, indent=1, allow_nan=False), encoding="utf-8")
    (folder / PAGE).write_text(markdown(found, facts, size, "figures/benchmark"), encoding="utf-8")
    output.write_report(folder, "Benchmark of private bandit policies", sections, facts)
    return found


def document(found: Sequence[Scores], facts: dict[str, Any]) -> dict[str, Any]:
    """What a paper can cite: the problems, every cell, and the scores, with settings, seed and versions."""
    return {
        "benchmark": "dpbandits",
        **facts,
        "problems": [
            {"name": p.name, "arms": p.text, "reward_range": p.reward_range, "means": list(p.arms.means), "why": p.why}
            for p in PROBLEMS
        ],
        "tracks": [
            {
                "track": scores.track.name,
                "horizon": scores.horizon,
                "settings": list(scores.track.settings),
                "scores": [_finite(score._asdict()) for score in scores.scores],
                "cells": [_finite(entry.to_json()) for entry in scores.entries],
            }
            for scores in found
        ],
    }


def _finite(record: dict[str, Any]) -> dict[str, Any]:
    """Null in the place of NaN, as JSON asks."""
    return {name: None if isinstance(value, float) and value != value else value for name, value in record.items()}


def _cells(track: Track, size: Scale, joined: Sequence[lookup.Factory]) -> Iterator[tuple[Key, Cell]]:
    """Every policy of the track on every problem at every setting, where it can be played."""
    ours = [lookup.find(name) for name in lookup.names()]
    for factory in dict.fromkeys([*ours, *joined]):
        if not _belongs(factory, track):
            continue
        traits = lookup.traits(factory)
        horizon = size.slow_horizon if traits.slow else size.horizon
        marks = [mark for mark in CHECKPOINTS if mark <= horizon]
        for problem in PROBLEMS:
            for setting in track.settings:
                cell = _cell(factory, problem, setting, horizon, size.runs[traits.cost], marks)
                if cell is not None:
                    yield (lookup.written(factory), problem.name, setting), cell


def _belongs(factory: lookup.Factory, track: Track) -> bool:
    """Whether a policy keeps the promise of this track, on rewards in [0, 1]."""
    traits = lookup.traits(factory)
    if traits.any_reward or (traits.levels is not None) != bool(track.levels):
        return False
    return lookup.sample(factory).guarantee.trust == track.trust


def _cell(
    factory: lookup.Factory, problem: Challenge, setting: float | str, horizon: int, runs: int, marks: list[int]
) -> Cell | None:
    traits = lookup.traits(factory)
    options = {} if traits.advised is None else dict(traits.advised(horizon))
    given: dict[str, Any] = {"checkpoints": marks, "seed": SEED, "reward_range": problem.reward_range}
    if isinstance(setting, str):
        given["levels"] = setting
    try:
        epsilon = setting if isinstance(setting, float) else None
        return Cell.of(factory, problem.arms, horizon, runs, epsilon, options, **given)
    except InputError:  # a policy that cannot be played here, such as one whose first release needs more rounds
        return None
