"""Who pays: distributions of rewards, problems of the papers, a user's own log; and the users' privacy levels."""

from dpbandits.environments.arms import Arms, parse_arms
from dpbandits.environments.bernoulli import Bernoulli
from dpbandits.environments.levels import AnyLevels, Levels, NormalLevels, parse_levels
from dpbandits.environments.mixed import Mixed
from dpbandits.environments.problems import PROBLEMS
from dpbandits.environments.scripted import Scripted

__all__ = [
    "PROBLEMS",
    "AnyLevels",
    "Arms",
    "Bernoulli",
    "Levels",
    "Mixed",
    "NormalLevels",
    "Scripted",
    "parse_arms",
    "parse_levels",
]
