"""A comparison of your own: a TOML file read with care, then the same work and the same outputs as a reproduction."""

from __future__ import annotations

import hashlib
import inspect
import re
import time
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpbandits import __version__
from dpbandits.errors import InputError, at_least, known, positive
from dpbandits.experiments import output
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.engines import engine
from dpbandits.experiments.panels import Panel, Table, against, regrets
from dpbandits.experiments.report import Section, versions
from dpbandits.experiments.work import Watch, fill, traces
from dpbandits.policies import lookup
from dpbandits.simulation import Trace

KEYS = {
    "title": str,
    "arms": str,
    "horizon": (int, float),
    "runs": int,
    "seed": int,
    "checkpoints": int,
    "levels": str,
    "reward_range": list,
    "arm_order": str,
    "epsilons": list,
    "policy": list,
}
POLICY_KEYS = {"name": str, "label": str, "epsilon": (int, float), "epsilons": list, "levels": str, "options": dict}
KINDS = {str: "text", int: "a whole number", (int, float): "a number", list: "a list", dict: "a table"}


@dataclass(frozen=True)
class Comparison:
    """What a file asks for."""

    title: str
    cells: dict[str, Cell]
    digest: str


class _File:
    """A TOML file that knows on which line each key stands."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise InputError(f"{path}: cannot be read as a text file") from None
        try:
            self.content = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{path}: not TOML: {error}") from None

    def line(self, key: str | None, policy: int | None = None) -> int:
        """The line of a key of the file, or of the ``policy``-th [[policy]] table; of the table if it is not there."""
        table, count, fallback = "", -1, 1
        for number, text in enumerate(self.text.splitlines(), start=1):
            header = re.match(r"\s*\[+\s*([\w.]+)\s*\]+", text)
            if header is not None:
                table = header[1]
                count += table == "policy"
                fallback = number if table == "policy" and count == policy else fallback
            inside = count == policy and table.startswith("policy") if policy is not None else table == ""
            if inside and key is not None and re.match(rf"\s*(options\b.*\W)?{re.escape(key)}\s*[=.]", text):
                return number
        return fallback

    def fail(self, message: str, key: str | None = None, policy: int | None = None) -> InputError:
        """The error, with the file and the line."""
        return InputError(f"{self.path}, line {self.line(key, policy)}: {message}")

    def check(self, given: Mapping[str, Any], allowed: Mapping[str, Any], policy: int | None = None) -> None:
        """Refuse keys that are not allowed, and values of another kind."""
        for key, value in given.items():
            try:
                known("key", key, allowed)
            except InputError:
                raise self.fail(f"unknown key '{key}': allowed are {', '.join(allowed)}", key, policy) from None
            if not isinstance(value, allowed[key]) or isinstance(value, bool):
                raise self.fail(f"{key} must be {KINDS[allowed[key]]}, got {value!r}", key, policy)


def read(path: str | Path) -> Comparison:
    """The comparison that a TOML file describes; every mistake is reported with its line before anything is played."""
    file = _File(Path(path))
    given = file.content
    file.check(given, KEYS)
    for key in ("arms", "horizon", "policy"):
        if key not in given:
            what = "at least one [[policy]] table is required" if key == "policy" else f"{key} is required"
            raise file.fail(what)
    common = _common(file)
    cells: dict[str, Cell] = {}
    for number, policy in enumerate(given["policy"]):
        if not isinstance(policy, dict):
            raise file.fail("policy must be [[policy]] tables", "policy")
        file.check(policy, POLICY_KEYS, number)
        for cell in _cells(file, number, policy, common):
            if cell.name in cells:
                raise file.fail(f"label must differ between policies, got '{cell.name}' twice", "label", number)
            cells[cell.name] = cell
    return Comparison(given.get("title", file.path.stem), cells, hashlib.sha256(file.text.encode()).hexdigest()[:16])


def _common(file: _File) -> dict[str, Any]:
    given = file.content
    try:
        common = {
            "horizon": at_least("horizon", given["horizon"], 2),
            "runs": at_least("runs", given.get("runs", 20), 1),
            "seed": at_least("seed", given.get("seed", 0), 0),
            "checkpoints": at_least("checkpoints", given.get("checkpoints", 60), 2),
            "arm_order": known("arm_order", given.get("arm_order", "shuffled"), ("shuffled", "given")),
            "epsilons": [positive("epsilons", epsilon) for epsilon in given.get("epsilons", [])],
        }
    except InputError as error:
        raise file.fail(str(error), _key_in(str(error), KEYS)) from None
    span = given.get("reward_range")
    if span is not None and (len(span) != 2 or not all(isinstance(x, int | float) for x in span)):
        raise file.fail(f"reward_range must be [low, high], got {span!r}", "reward_range")
    common["reward_range"] = None if span is None else (float(span[0]), float(span[1]))
    log = re.fullmatch(r"\s*replay\((.+)\)\s*", given["arms"])
    common["arms"] = f"replay({(file.path.parent / log[1].strip()).resolve()})" if log else given["arms"]
    return common


def _cells(file: _File, number: int, policy: Mapping[str, Any], common: Mapping[str, Any]) -> Iterable[Cell]:
    """The cells of one [[policy]] table: one for each epsilon, where the policy has one."""
    if "name" not in policy:
        raise file.fail(f"name is required: one of {', '.join(lookup.names())}", None, number)
    try:
        factory = lookup.find(policy["name"])
    except InputError as error:
        raise file.fail(str(error), "name", number) from None
    private = "epsilon" in inspect.signature(factory).parameters
    epsilons: list[float | None] = [None]
    if "epsilon" in policy:
        epsilons = [policy["epsilon"]]
    elif "epsilons" in policy:
        epsilons = policy["epsilons"]
    elif private:
        epsilons = list(common["epsilons"])
        if not epsilons:
            raise file.fail(f"epsilon is required by {policy['name']}, or epsilons at the top", "name", number)
    rest = {name: value for name, value in common.items() if name != "epsilons"}
    levels = policy.get("levels", file.content.get("levels") if "epsilon_min" in lookup.options(factory) else None)
    for epsilon in epsilons:
        label = policy.get("label", "")
        if label and len(epsilons) > 1:
            label = f"{label}, ε = {epsilon:g}"
        options = policy.get("options", {})
        cell = Cell(policy["name"], epsilon=epsilon, options=options, levels=levels, label=label, **rest)
        try:
            cell.setup()
        except InputError as error:
            raise _blame(file, str(error), number) from None
        yield cell


def _blame(file: _File, message: str, number: int) -> InputError:
    """A message of the library, at the line of the key that it is about."""
    policy = file.content["policy"][number]
    own = _key_in(message, {**POLICY_KEYS, **policy.get("options", {})})
    if own is not None and (own in policy or own in policy.get("options", {})):
        return file.fail(message, own, number)
    shared = _key_in(message, KEYS)
    return file.fail(message, shared) if shared in file.content else file.fail(message, None, number)


def _key_in(message: str, keys: Iterable[str]) -> str | None:
    """The key that a message names first."""
    found = [(match.start(), key) for key in keys if (match := re.search(rf"\b{re.escape(key)}\b", message))]
    return min(found)[1] if found else None


def compare(
    path: str | Path,
    *,
    out: str | Path = "out/compare",
    workers: int | None = None,
    cluster: str | None = None,
    fresh: bool = False,
    watch: Watch | None = None,
) -> dict[str, Trace]:
    """Play the comparison of a file and write figures, data and the report to ``out``."""
    asked, folder = read(path), Path(out)
    started = time.perf_counter()
    settings = {"command": "compare", "file": Path(path).name, "digest": asked.digest, "version": __version__}
    with engine(cluster, workers) as where, output.open_folder(folder, settings, fresh=fresh) as results:
        fill(asked.cells.values(), results, where, watch)
        played = traces(asked.cells, results)
    cell = next(iter(asked.cells.values()))
    words = f"{cell.arms}, {cell.horizon:,} rounds, {cell.runs} runs, seed {cell.seed}"
    section = Section(
        "comparison", asked.title, Path(path).name, words, asked.cells, [*_panels(asked, played), _table(played)]
    )
    output.write_section(folder, section, played, f"{words}, dpbandits {__version__}")
    facts = {
        "file": Path(path).name,
        "seed": cell.seed,
        **versions(),
        "seconds": round(time.perf_counter() - started, 1),
    }
    output.write_report(folder, asked.title, [section], facts)
    return played


def _panels(asked: Comparison, played: Mapping[str, Trace]) -> list[Panel]:
    """Regret against time, one panel for each epsilon; and against epsilon where there are several."""
    epsilons = sorted({cell.epsilon for cell in asked.cells.values() if cell.epsilon is not None})
    names = {name: cell for name, cell in asked.cells.items() if cell.epsilon is None}
    if len(epsilons) < 2:
        return [regrets("regret", asked.title, played)]
    panels = []
    for epsilon in epsilons:
        chosen = {name: played[name] for name, cell in asked.cells.items() if cell.epsilon == epsilon or name in names}
        panels.append(regrets(f"epsilon-{epsilon:g}", f"ε = {epsilon:g}", chosen))
    lines: dict[str, dict[float, Trace]] = {}
    for name, cell in asked.cells.items():
        if cell.epsilon is not None:
            lines.setdefault(name.split(", ε")[0], {})[cell.epsilon] = played[name]
    return [*panels, against("epsilon", "Regret at the horizon", "ε", lines)]


def _table(played: Mapping[str, Trace]) -> Table:
    rows = []
    for name, trace in played.items():
        final = trace.to_json()["final"]
        error = "" if final["regret_stderr"] is None else f" ± {final['regret_stderr']:,.3g}"
        share = f"{100 * final['best_arm_fraction']:.2f} %"
        promise = trace.guarantee.to_json()
        trust = "not private" if promise["trust"] == "none" else f"{promise['trust']}, {promise['unit']}"
        rows.append([name, f"{final['regret_mean']:,.5g}{error}", f"{final['regret_max']:,.5g}", share, trust])
    return Table("final", "At the horizon", ["policy", "mean regret", "most regret", "best arm", "privacy"], rows)
