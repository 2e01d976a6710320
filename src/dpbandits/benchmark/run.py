"""Play the benchmark: what an output folder already holds is not simulated again."""

from __future__ import annotations

import json
import math
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpbandits import __version__
from dpbandits.benchmark.pages import markdown, section
from dpbandits.benchmark.pictures import draw_benchmark
from dpbandits.benchmark.problems import (
    CHECKPOINTS,
    PROBLEMS,
    SCALES,
    SEED,
    SET_VERSION,
    TAIL_HORIZON,
    TRACKS,
    UNBOUNDED,
    VARIANTS,
    Challenge,
    PrivacySetting,
    Scale,
    Track,
)
from dpbandits.benchmark.scores import Scores, in_words, scored
from dpbandits.checks import known
from dpbandits.errors import InputError
from dpbandits.experiments import output
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.engines import Engine, engine
from dpbandits.experiments.report import Section, versions
from dpbandits.experiments.results import Results
from dpbandits.experiments.work import Watch, fill, traces
from dpbandits.policies import lookup
from dpbandits.simulation import Trace

__all__ = ["benchmark", "benchmark_document"]

JSON, PAGE = "benchmark.json", "benchmark.md"

#: Facts that the report does not begin with: the command names what was added, and the page how long it took.
NOT_IN_HEAD = ("added", "in_one_call", "workers", "processor_seconds")

Key = tuple[str, str, PrivacySetting]


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
    chosen, size, joined = _chosen(tracks), SCALES[known("scale", scale, SCALES)], _joined(add)
    settings = {"command": "benchmark", "set": SET_VERSION, "scale": scale, "seed": SEED, "version": __version__}
    cells = {track.name: dict(_cells(track, size, joined)) for track in chosen}
    rare = {track.name: dict(_tail_cells(track, size, joined)) for track in chosen}
    _refuse_unplayed(joined, cells)
    folder, started = Path(out), (time.perf_counter(), time.process_time())
    with engine(cluster, workers) as where, output.open_folder(folder, settings, fresh=fresh) as results:
        asked = [cell for both in (cells, rare) for each in both.values() for cell in each.values()]
        in_one_call = not any(results.done(cell.key) for cell in asked)
        fill(asked, results, where, watch)
        played = {name: _played(each, results) for name, each in cells.items()}
        often = {name: _played(each, results) for name, each in rare.items()}
    found = [
        scored(track, played[track.name], track.problems, horizon)
        for track in chosen
        for horizon in CHECKPOINTS
        if horizon <= size.horizon
    ]
    tails = [scored(track, often[track.name], track.problems, TAIL_HORIZON) for track in chosen]
    if answered is not None:
        answered(found)
    sections = _drawn(folder, found, tails, scale)
    facts = {
        "command": _command(scale, tracks, joined),
        "added": [lookup.written(factory) for factory in joined],
        "scale": scale,
        "seed": SEED,
        "set": SET_VERSION,
        **versions(),
        "in_one_call": in_one_call,
        **_spent(started, where),
    }
    _write(folder, found, tails, sections, facts)
    return found


def _command(scale: str, tracks: Sequence[str], joined: Sequence[lookup.Factory]) -> str:
    """The command that plays the same."""
    asked = [["--track", track] for track in tracks] + [["--add", lookup.written(factory)] for factory in joined]
    return shlex.join(["dpbandits", "benchmark", "--scale", scale, *(word for words in asked for word in words)])


def _spent(started: tuple[float, float], where: Engine) -> dict[str, Any]:
    """The time until now; that of processors only where all work is done in this process."""
    seconds, busy = time.perf_counter() - started[0], time.process_time() - started[1]
    return {
        "seconds": round(seconds, 1),
        "workers": where.workers,
        "processor_seconds": round(busy, 1) if where.backend == "threading" else None,
    }


def _drawn(folder: Path, found: list[Scores], tails: list[Scores], scale: str) -> list[Section]:
    """The sections of the report, with their figures and pictures in the folder."""
    sections = [section([s for s in found if s.track is tail.track], tail, SCALES[scale]) for tail in tails]
    caption = f"benchmark set {SET_VERSION}, scale {scale}, seed {SEED}"
    for each, tail in zip(sections, tails, strict=True):
        output.write_section(folder, each, {}, caption)
        last = [scores for scores in found if scores.track is tail.track][-1]
        drawn = draw_benchmark(last, tail, each.panels, folder / "figures" / "benchmark", caption)
        output.remember(folder, drawn)
    return sections


def _write(
    folder: Path, found: list[Scores], tails: list[Scores], sections: list[Section], facts: dict[str, Any]
) -> None:
    """The report, the page and the JSON document."""
    document = benchmark_document(found, tails, facts)
    (folder / JSON).write_text(json.dumps(document, indent=1, allow_nan=False), encoding="utf-8")
    text = markdown(found, tails, facts, SCALES[facts["scale"]], "figures/benchmark")
    (folder / PAGE).write_text(text, encoding="utf-8")
    head = {name: value for name, value in facts.items() if name not in NOT_IN_HEAD}
    output.write_report(folder, "Benchmark of private bandit policies", sections, head)


def benchmark_document(found: Sequence[Scores], tails: Sequence[Scores], facts: dict[str, Any]) -> dict[str, Any]:
    """What a paper can cite: the problems, every cell, and the scores, with settings, seed and versions."""
    return {
        "benchmark": "dpbandits",
        **facts,
        "problems": [
            {"name": p.name, "arms": p.text, "reward_range": p.reward_range, "means": list(p.arms.means), "why": p.why}
            for p in (*PROBLEMS, *UNBOUNDED)
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
        "tails": [
            {
                "track": scores.track.name,
                "horizon": scores.horizon,
                "cells": [_finite(e.to_json()) for e in scores.entries],
            }
            for scores in tails
        ],
    }


def _finite(record: dict[str, Any]) -> dict[str, Any]:
    """Null in place of NaN, as JSON asks."""
    return {name: None if isinstance(value, float) and value != value else value for name, value in record.items()}


def _played(cells: Mapping[Key, Cell], results: Results) -> dict[Key, Trace]:
    """The traces of cells whose runs are all there."""
    return dict(zip(cells, traces({str(key): cell for key, cell in cells.items()}, results).values(), strict=True))


def _chosen(names: Sequence[str]) -> list[Track]:
    """The tracks of these names; all of them where none is named."""
    for name in names:
        known("track", name, [track.name for track in TRACKS])
    return [track for track in TRACKS if not names or track.name in names]


def _joined(add: Sequence[str | lookup.Factory]) -> list[lookup.Factory]:
    """A user's own policies. What is not a policy is refused here, before anything is played."""
    joined = [lookup.find(policy) for policy in add]
    for factory in joined:
        lookup.traits(factory)
    return joined


def _refuse_unplayed(joined: Sequence[lookup.Factory], cells: Mapping[str, Mapping[Key, Cell]]) -> None:
    """Refuse a user's own policies where no track plays any of them."""
    if joined and not any(key[0] == lookup.written(factory) for factory in joined for c in cells.values() for key in c):
        raise InputError("add", f": {lookup.written(joined[0])} fits none of the tracks that are played")


def _cells(track: Track, size: Scale, joined: Sequence[lookup.Factory]) -> Iterator[tuple[Key, Cell]]:
    """Every policy of the track on every problem at every setting, where it can be played."""
    for name, factory, options in _contestants(track, joined):
        traits = lookup.traits(factory)
        horizon = size.slow_horizon if traits.slow else size.horizon
        marks = [mark for mark in CHECKPOINTS if mark <= horizon]
        for problem in track.problems:
            for setting in track.settings:
                cell = _cell(factory, options, problem, setting, size.runs[traits.cost], marks)
                if cell is not None:
                    yield (name, problem.name, setting), cell


def _tail_cells(track: Track, size: Scale, joined: Sequence[lookup.Factory]) -> Iterator[tuple[Key, Cell]]:
    """Every policy of the track in its cells for tails: many runs of few rounds."""
    named = {problem.name: problem for problem in track.problems}
    for name, factory, options in _contestants(track, joined):
        runs = math.ceil(size.tail_runs * (track.slow_share if lookup.traits(factory).slow else 1.0))
        for problem, setting in track.tails:
            cell = _cell(factory, options, named[problem], setting, runs, [TAIL_HORIZON])
            if cell is not None:
                yield (name, problem, setting), cell


def _contestants(
    track: Track, joined: Sequence[lookup.Factory]
) -> Iterator[tuple[str, lookup.Factory, dict[str, Any]]]:
    """The policies of a track, with their options: as they are, and once more with options that are worth a look."""
    ours = [lookup.find(name) for name in lookup.names()]
    for factory in dict.fromkeys([*ours, *joined]):
        if _belongs(factory, track):
            name = lookup.written(factory)
            more = [dict(lookup.traits(factory).practical), *(options for other, options in VARIANTS if other == name)]
            for options in [{}, *filter(None, more)]:
                yield f"{name} ({in_words(options)})" if options else name, factory, options


def _belongs(factory: lookup.Factory, track: Track) -> bool:
    """Whether a policy keeps the promise of this track, on its kind of rewards."""
    traits = lookup.traits(factory)
    if lookup.sample(factory).guarantee.trust != track.trust or (traits.any_reward and not track.any_size):
        return False
    return bool(track.levels if traits.levels is not None else track.epsilons or not track.levels)


def _cell(
    factory: lookup.Factory,
    chosen: Mapping[str, Any],
    problem: Challenge,
    setting: PrivacySetting,
    runs: int,
    marks: list[int],
) -> Cell | None:
    """A policy on a problem; None where it cannot be played at this setting."""
    traits = lookup.traits(factory)
    if (traits.levels is not None) != isinstance(setting, str):
        return None
    options = {**({} if traits.advised is None else traits.advised(marks[-1])), **chosen}
    given: dict[str, Any] = {"checkpoints": marks, "seed": SEED}
    if not traits.any_reward:
        given["reward_range"] = problem.reward_range
    if isinstance(setting, str):
        given["levels"] = setting
    try:
        epsilon = setting if isinstance(setting, float) else None
        return Cell.of(factory, problem.arms, marks[-1], runs, epsilon, options, **given)
    except InputError:  # a policy that cannot be played here, such as one whose first release needs more rounds
        return None
