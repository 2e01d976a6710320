"""Arms as text: ``0.9,0.8``, ``bernoulli(0.9)+5*beta(4,1)``, ``@ren2020-mixed``, ``replay(log.csv)``."""

from __future__ import annotations

import re

import numpy as np

from dpbandits.environments.bernoulli import Bernoulli
from dpbandits.environments.distributions import DISTRIBUTIONS, Choice, Coin, Distribution
from dpbandits.environments.log import read_log
from dpbandits.environments.mixed import Mixed
from dpbandits.environments.population import Levels, NormalLevels
from dpbandits.environments.problems import PROBLEMS
from dpbandits.errors import InputError, known

__all__ = ["build", "parse_arms", "replayed"]

TERM = re.compile(r"\s*(?:(?P<count>\d+)\s*\*\s*)?(?P<name>[A-Za-z]\w*)\s*\((?P<inside>[^()]*)\)\s*")


def parse_arms(text: str) -> list[Distribution]:
    """The arms that a text describes.

    >>> [str(arm) for arm in parse_arms("bernoulli(0.9)+2*beta(4,1)")]
    ['bernoulli(0.9)', 'beta(4,1)', 'beta(4,1)']
    >>> parse_arms("0.9,0.8;0.7")
    Traceback (most recent call last):
    dpbandits.errors.InputError: arms: cannot read '0.8;0.7' at character 5 of '0.9,0.8;0.7'
    """
    if not isinstance(text, str):
        raise InputError(f"arms must be a text such as '0.9,0.8', got {text!r}")
    text = text.strip()
    if text.startswith("@"):
        text = PROBLEMS[known("problem", text[1:], PROBLEMS)]
    log = replayed(text)
    if log is not None:
        arms = read_log(log)
    elif "(" in text:
        arms = _terms(text)
    else:
        arms = _means(text)
    if len(arms) < 2:
        raise InputError(f"arms must be at least 2, got {len(arms)} in '{text}'")
    return arms


def replayed(text: str) -> str | None:
    """The log that a text asks to replay.

    >>> replayed("replay(log.csv)"), replayed("0.9,0.8")
    ('log.csv', None)
    """
    match = re.fullmatch(r"\s*replay\((.+)\)\s*", text)
    return None if match is None else match[1].strip()


def _means(text: str) -> list[Distribution]:
    arms: list[Distribution] = []
    position = 0
    for part in text.split(","):
        try:
            arms.append(Coin(float(part)))
        except InputError as error:
            raise InputError(f"arms: {error}") from None
        except ValueError:
            raise InputError(f"arms: cannot read '{part}' at character {position + 1} of '{text}'") from None
        position += len(part) + 1
    return arms


def _terms(text: str) -> list[Distribution]:
    arms: list[Distribution] = []
    position = 0
    while True:
        match = TERM.match(text, position)
        if match is None:
            raise InputError(f"arms: cannot read '{text[position:]}' at character {position + 1} of '{text}'")
        arms += [_distribution(match["name"], match["inside"], text, match.start("inside"))] * int(match["count"] or 1)
        position = match.end()
        if position == len(text):
            return arms
        if text[position] != "+":
            raise InputError(f"arms: expected '+' at character {position + 1} of '{text}', got '{text[position]}'")
        position += 1


def _distribution(name: str, inside: str, text: str, position: int) -> Distribution:
    cls = DISTRIBUTIONS[known("arm", name, DISTRIBUTIONS)]
    values = []
    for part in inside.split(","):
        try:
            values.append(float(part))
        except ValueError:
            raise InputError(f"arms: cannot read '{part}' at character {position + 1} of '{text}'") from None
        position += len(part) + 1
    if cls is Choice:
        return Choice(np.array(values))
    if len(values) != cls.arity:
        raise InputError(f"arms: {name} takes {cls.arity} parameters, got {len(values)} in '{name}({inside})'")
    try:
        return cls(*values)
    except InputError as error:
        raise InputError(f"arms: {error}") from None


def build(
    arms: list[Distribution],
    population: Levels | NormalLevels | None = None,
    reward_range: tuple[float, float] | None = None,
) -> Bernoulli | Mixed:
    """The environment of these arms: the quick one if each of them can only pay 0 or 1.

    >>> type(build(parse_arms("0.9,0.8"))).__name__, type(build(parse_arms("0.9,0.8"), None, (0, 2))).__name__
    ('Bernoulli', 'Mixed')
    """
    binary = all(arm.code == 0 or (isinstance(arm, Choice) and np.isin(arm.values, (0, 1)).all()) for arm in arms)
    if binary and reward_range in (None, (0.0, 1.0)):
        return Bernoulli.start([arm.mean for arm in arms], population)
    return Mixed.start(arms, population, reward_range)
