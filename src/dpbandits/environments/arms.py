"""The arms of a problem: what each pays and what it is called, read once from text, numbers, or a user's log."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dpbandits.checks import known
from dpbandits.display import shortened
from dpbandits.environments.bernoulli import Bernoulli
from dpbandits.environments.distributions import DISTRIBUTIONS, Choice, Coin, Distribution, shortest
from dpbandits.environments.levels import AnyLevels, users_of
from dpbandits.environments.mixed import Mixed
from dpbandits.environments.problems import PROBLEMS
from dpbandits.environments.replay import Log, is_frame, read_log
from dpbandits.environments.scipy_arms import from_scipy, is_scipy
from dpbandits.errors import InputError

__all__ = ["Arms", "parse_arms"]

FILES = (".csv", ".parquet")
OTHER_NAMES = {"gaussian": "normal", "gauss": "normal", "binomial": "bernoulli", "discrete": "choice"}
MOST_ARMS = 100_000

TERM = re.compile(r"\s*(?:(?P<count>\d+)\s*\*\s*)?(?P<name>[A-Za-z]\w*)\s*\((?P<inside>[^()]*)\)\s*")
REPLAY = re.compile(r"\s*replay\((.+)\)\s*")
UNSAVED = re.compile(r"replay\((a (data frame|log) of [^()]*)\)")  # how arms are written whose rewards are not


@dataclass(frozen=True)
class Arms:
    """At least two arms. ``text`` is how they were written; a log's arms have the names that the log gives them.

    >>> arms = Arms.of([0.9, 0.8])
    >>> len(arms), arms.text, arms.means, arms.names
    (2, '0.9,0.8', (0.9, 0.8), ('0', '1'))
    """

    distributions: tuple[Distribution, ...]
    names: tuple[str, ...]
    text: str = field(compare=False)
    log: Log | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.distributions) > MOST_ARMS:
            raise _too_many(len(self.distributions))
        if len(self.distributions) < 2:
            got = f"one: '{self.text}'" if self.distributions else "none"
            raise InputError("arms", f"must be at least two, got {got}")
        if len(set(self.names)) < len(self.distributions):
            raise InputError("arms", f"must have different names, got {', '.join(self.names)}")

    @classmethod
    def of(cls, arms: object) -> Arms:
        """Arms as people have them.

        A list or array of means; distributions of ``dpbandits.arms`` or frozen ones of SciPy; a mapping, or a series of
        pandas, of names to either; a data frame, or a CSV or Parquet file, with columns ``arm`` and ``reward``; a text.

        >>> Arms.of({"red": 0.036, "green": "beta(4,1)"}).names, Arms.of(np.array([0.9, 0.8])).text
        (('red', 'green'), '0.9,0.8')
        """
        if isinstance(arms, Arms):
            return arms
        if isinstance(arms, str):
            return parse_arms(arms)
        if isinstance(arms, PathLike):
            return cls.logged(read_log(arms))
        if is_frame(arms):
            return cls.logged(read_log(arms))
        names: tuple[str, ...] | None = None
        if isinstance(arms, Mapping):
            names, arms = tuple(map(_name, arms)), list(arms.values())
        elif hasattr(arms, "index") and hasattr(arms, "items") and hasattr(arms, "to_dict"):  # a series of pandas
            names, arms = tuple(map(_name, arms.index)), list(arms)  # type: ignore[call-overload]
        if not isinstance(arms, Iterable) or isinstance(arms, bytes | Set) or getattr(arms, "ndim", 1) == 0:
            raise InputError(
                "arms", f"must be means such as [0.9, 0.8] or a text such as '0.9,0.8', got {_shown(arms)}"
            )
        distributions = tuple(_one(arm) for arm in arms)
        numbered = _numbered(distributions)
        return cls(distributions, numbered if names is None or names == numbered else names, _written(distributions))

    @classmethod
    def logged(cls, log: Log, text: str | None = None) -> Arms:
        """The arms of a log, each of whose rewards are resampled."""
        return cls(tuple(log.arms()), log.names, text or log.text, log)

    def __len__(self) -> int:
        return len(self.distributions)

    def __iter__(self) -> Iterator[Distribution]:
        return iter(self.distributions)

    @property
    def means(self) -> tuple[float, ...]:
        """The mean reward of each arm."""
        return tuple(arm.mean for arm in self.distributions)

    @property
    def support(self) -> tuple[float, float]:
        """The least and the largest reward of all arms."""
        ends = [arm.support for arm in self.distributions]
        return min(low for low, _ in ends), max(high for _, high in ends)

    @property
    def from_log(self) -> bool:
        """Whether any of the arms pays the rewards of a user's log. Then nothing is promised of what they give."""
        return any(arm.from_log for arm in self.distributions)

    @property
    def binary(self) -> bool:
        """Whether every reward is 0 or 1."""
        return all(arm.binary for arm in self.distributions)

    @property
    def named(self) -> bool:
        """Whether the arms have names, and not only numbers."""
        return self.names != _numbered(self.distributions)

    def within(self, low: float, high: float) -> bool:
        """Whether no reward lies outside [low, high]."""
        least, most = self.support
        return low <= least and most <= high

    def environment(
        self, population: AnyLevels | None = None, reward_range: tuple[float, float] | None = None
    ) -> Bernoulli | Mixed:
        """The environment of these arms: the quick one if each of them can only pay 0 or 1.

        >>> arms = parse_arms("0.9,0.8")
        >>> type(arms.environment()).__name__, type(arms.environment(reward_range=(0, 2))).__name__
        ('Bernoulli', 'Mixed')
        """
        users = users_of(population)
        if self.binary and reward_range in (None, (0.0, 1.0)):
            return Bernoulli.start(self.means, users)
        return Mixed.start(self.distributions, users, reward_range)

    def best(self) -> tuple[str, ...]:
        """The names of the arms with the largest mean."""
        top = max(self.means)
        return tuple(name for name, mean in zip(self.names, self.means, strict=True) if mean == top)

    def to_json(self) -> dict[str, Any]:
        """JSON-ready: how the arms are written, their names where they have any, and a hash of the log's rewards."""
        record: dict[str, Any] = {"text": self.text}
        if self.from_log:
            record["log"] = self._log_digest()
        if self.log is None and self.named:
            record["names"] = list(self.names)
        return record

    def _log_digest(self) -> str | None:
        """A hash of the log's rewards; of all that the arms pay, where only some of them are from a log."""
        if self.log is not None:
            return self.log.digest()
        return self.digest() if self.from_log else None

    @classmethod
    def from_json(cls, record: Mapping[str, Any], log: object = None) -> Arms:
        """The arms that were written; a log is read again, and must not have changed.

        The rewards of a data frame are not written. ``log`` is that data frame, or the arms, if some are from a log.
        """
        arms = cls.of(log) if log is not None else parse_arms(record["text"])
        if record.get("log") not in (None, arms._log_digest()):
            what = "the arms have" if arms.log is None else "the data frame has"
            what = f"the log '{arms.log.path}' has" if arms.log is not None and arms.log.path else what
            raise InputError("arms", f": {what} changed since this was written")
        return replace(arms, names=tuple(record["names"])) if "names" in record else arms

    def digest(self) -> str:
        """A hash of what every arm pays, whatever the arms are called and however they were written."""
        digest = hashlib.sha256()
        for arm in self.distributions:
            content = arm.values.tobytes() if isinstance(arm, Choice) else str(arm).encode()
            digest.update(f"{arm.name} {len(content)} ".encode() + content)
        return digest.hexdigest()

    def __repr__(self) -> str:
        named = f" ({shortened(', '.join(self.names))})" if self.named else ""
        return f"Arms: {shortened(self.text)}, {len(self)} arms{named}"


def parse_arms(text: str) -> Arms:
    """The arms that ``0.9,0.8``, ``bernoulli(0.9)+5*beta(4,1)``, ``@ren2020-mixed`` or ``replay(log.csv)`` describes.

    A text that ends in .csv or .parquet is a log, too.

    >>> [str(arm) for arm in parse_arms("bernoulli(0.9)+2*beta(4,1)")]
    ['bernoulli(0.9)', 'beta(4,1)', 'beta(4,1)']
    >>> parse_arms("0.9,0.8;0.7")
    Traceback (most recent call last):
    dpbandits.errors.InputError: arms: cannot read '0.8;0.7' at character 5 of '0.9,0.8;0.7': they are means as in ...
    """
    text = text.strip()
    meant = PROBLEMS[known("arms", text[1:], PROBLEMS, "problem")] if text.startswith("@") else text
    unsaved = UNSAVED.search(meant)
    if unsaved is not None:
        again = "the data frame" if unsaved[2] == "data frame" else "the arms"
        raise InputError("arms", f": the rewards of {unsaved[1]} were not saved: give {again} again as arms")
    replay = REPLAY.fullmatch(meant)
    if replay is not None and (")+" not in replay[1].replace(" ", "") or Path(replay[1].strip()).is_file()):
        return Arms.logged(read_log(replay[1].strip()), text)
    if meant.lower().endswith(FILES):
        return Arms.logged(read_log(meant))
    if "replay(" in meant:
        raise InputError("arms", f": a log stands alone, as replay(FILE), got '{meant}'")
    distributions = tuple(_terms(meant) if "(" in meant else _means(meant))
    return Arms(distributions, _numbered(distributions), text)


def _numbered(arms: Sequence[Distribution]) -> tuple[str, ...]:
    return tuple(str(number) for number in range(len(arms)))


def _written(arms: Sequence[Distribution]) -> str:
    """The shortest text for these arms."""
    if all(isinstance(arm, Coin) for arm in arms):
        return ",".join(shortest(arm.mean) for arm in arms)
    return "+".join(map(str, arms))


def _one(arm: object) -> Distribution:
    """An arm from a distribution, ours or SciPy's, a mean, or a text for one arm."""
    if isinstance(arm, Distribution):
        return arm
    if is_scipy(arm):
        return from_scipy(arm)
    if isinstance(arm, str):
        read = list(_terms(arm)) if "(" in arm else []
        if len(read) == 1:
            return read[0]
    elif isinstance(arm, Real) and not isinstance(arm, bool) and math.isfinite(arm):
        return Coin(float(arm))
    if isinstance(arm, Iterable) and not isinstance(arm, str):  # of rewards, perhaps, which are not shown
        how = "give rewards as a data frame, or a file, with the columns arm and reward"
        raise InputError("arms", f"must be means or distributions, got a {type(arm).__name__}: {how}")
    raise InputError("arms", f"must be means or distributions, got {_shown(arm)}")


def _name(name: object) -> str:
    if not isinstance(name, str | Real):
        raise InputError("arms", f"must be named by texts or numbers, got {_shown(name)}")
    return str(name)


def _shown(value: object) -> str:
    return shortened(repr(value), 80)


def _too_many(count: int) -> InputError:
    return InputError("arms", f"must be at most {MOST_ARMS:,}, got {count}")


def _means(text: str) -> Iterator[Distribution]:
    position = 0
    for part in text.split(","):
        yield Coin(_number(part, position, text))
        position += len(part) + 1


def _terms(text: str) -> Iterator[Distribution]:
    position = 0
    while True:
        match = TERM.match(text, position)
        if match is None:
            raise _unreadable(text[position:], position, text)
        arm = _distribution(match["name"], match["inside"], text, match.start("inside"))
        count = int(match["count"] or 1)
        if count > MOST_ARMS:
            raise _too_many(count)
        yield from [arm] * count
        position = match.end()
        if position == len(text):
            return
        if text[position] != "+":
            raise InputError("arms", f": expected '+' at character {position + 1} of '{text}', got '{text[position]}'")
        position += 1


def _distribution(name: str, inside: str, text: str, position: int) -> Distribution:
    if name.lower() in OTHER_NAMES:
        raise InputError("arms", f": distribution '{name}' is unknown: did you mean {OTHER_NAMES[name.lower()]}?")
    cls = DISTRIBUTIONS[known("arms", name, DISTRIBUTIONS, "distribution")]
    values = []
    for part in inside.split(","):
        values.append(_number(part, position, text))
        position += len(part) + 1
    if cls is Choice:
        return Choice(np.array(values))
    if len(values) != cls.arity:
        raise InputError("arms", f": {name} takes {cls.arity} parameters, got {len(values)} in '{name}({inside})'")
    return cls(*values)


def _number(part: str, position: int, text: str) -> float:
    try:
        return float(part)
    except ValueError:
        raise _unreadable(part, position, text) from None


def _unreadable(part: str, position: int, text: str) -> InputError:
    forms = "means as in 0.9,0.6, terms as in beta(4,1)+2*uniform(0,1), a .csv or .parquet file, or @NAME"
    return InputError("arms", f": cannot read '{part}' at character {position + 1} of '{text}': they are {forms}")
