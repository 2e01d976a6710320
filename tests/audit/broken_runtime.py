"""Policies that change what their code means while they run, each as the text of a module of its own.

A verifier that reads source must see that these names are not fixed. ``WHY`` says for each what it must say.
"""

from __future__ import annotations

HEADER = """
from typing import Any, NamedTuple
import math
from dpbandits.agents import UCB, Doubling
from dpbandits.curators import Batch
from dpbandits.exact import SystemNoise
from dpbandits.mechanisms import laplace
from dpbandits.numerics import unit
from dpbandits.policies.policy import Parts, published
from dpbandits.privacy import Guarantee
from dpbandits.protocols import NO_LINE

STORE = [0.0]
SCALE = 1.0


def acting(arms):
    return Doubling.start(arms, UCB.start(arms, alpha=3.1))


@published("a fault")
def made(arms: int, *, epsilon: float) -> Parts:
    return Parts(acting(arms), Curator.start(arms, epsilon=epsilon))


class Scaled(Batch):
    __slots__ = ()

    def private_sum(self, arm, rng):
        return self.raw_sums[arm] + rng.laplace(0.0, SCALE / self.epsilon)
"""

GUARANTEE = """
    def guarantee(self):
        STORE[0] += 1.0
        if STORE[0] > 1e6:
            {change}
        return Guarantee.central(self.epsilon)
"""

AFTER = "\n\nclass Curator(Scaled):\n    __slots__ = ()\n" + GUARANTEE
RAW = "\n\nclass Raw(Batch):\n    __slots__ = ()\n\n    def mean(self, arm):\n        return self.raw_sums[arm]\n"
AGAIN = "again at run time"

SOURCES = {
    "by_globals": (AGAIN, AFTER.format(change='acting.__globals__["SCALE"] = 1e-9')),
    "by_a_frame": (AGAIN, "\nimport sys\n" + AFTER.format(change='sys._getframe().f_globals["SCALE"] = 1e-9')),
    "by_an_alias": (
        AGAIN,
        "\nimport sys\nfrom builtins import setattr as put\n"
        + AFTER.format(change='put(sys.modules[__name__], "SCALE", 1e-9)'),
    ),
    "by_getattr": (AGAIN, AFTER.format(change='getattr(acting, "__glob" + "als__")["SCALE"] = 1e-9')),
    "by_code": (AGAIN, RAW + AFTER.format(change="Curator.mean.__code__ = Raw.mean.__code__")),
    "by_method": (AGAIN, RAW + AFTER.format(change="Curator.mean = Raw.mean")),
    "by_package": (
        AGAIN,
        "\nimport dpbandits.curators.batch as batch\n\n\ndef clear(value, sensitivity, epsilon, rng):\n"
        "    return value\n"
        + "\n\nclass Curator(Batch):\n    __slots__ = ()\n"
        + GUARANTEE.format(change="batch.laplace = clear"),
    ),
    "by_its_function": (
        AGAIN,
        "\nimport dpbandits.curators.batch as batch\nCurator = Batch\n\n\ndef later():\n    batch.laplace = None\n",
    ),
    "by_methodcaller": (
        AGAIN,
        RAW
        + "\nimport operator\n"
        + AFTER.format(change='operator.methodcaller("__seta" + "ttr__", Curator, "mean", Raw.mean)(type)'),
    ),
    "by_another_getattr": (
        AGAIN,
        "\nfind = getattr\n" + AFTER.format(change='find(acting, "__glob" + "als__")["SCALE"] = 1e-9'),
    ),
    "by_wrapping": (
        AGAIN,
        RAW
        + "\nimport functools\n"
        + AFTER.format(change='functools.update_wrapper(Curator.mean, Raw.mean, assigned=("__co" + "de__",))'),
    ),
    "by_members": (
        AGAIN,
        "\nimport inspect\n"
        + AFTER.format(change='dict(inspect.getmembers(inspect.currentframe()))["f_glo" + "bals"]["SCALE"] = 1e-9'),
    ),
    "by_a_thread": (
        AGAIN,
        "\nimport threading\n\n\ndef move(source, target):\n    while True:\n        target[:] = source\n"
        + AFTER.format(change="threading.Thread(target=move, args=(self.raw_sums, self.means), daemon=True).start()"),
    ),
    "by_registering_later": (
        AGAIN,
        "\nfrom dpbandits.curators import confidence\n\n\ndef tells(curator, arm, beta):\n"
        "    return curator.raw_sums[arm], curator.raw_sums[arm]\n"
        + AFTER.format(change="confidence.found.register(Curator, tells)"),
    ),
    "own_globals": (
        "global names are not those of its module",
        "\nimport types\nG = {'FACTOR': 1.0}\n\n\ndef times(x):\n    return x * FACTOR\n\n\n"
        "scaled = types.FunctionType(times.__code__, G, 'times')\n\n\nclass Curator(Batch):\n    __slots__ = ()\n\n"
        "    def private_sum(self, arm, rng):\n        return self.raw_sums[arm] + rng.laplace(0.0, scaled(1.0))\n",
    ),
    "like_a_function": (
        "uses fake",
        "\nimport types\n\n\ndef same(x):\n    return x\n\n\nclass Fake:\n"
        "    __class__ = property(lambda self: types.FunctionType)\n    __code__ = same.__code__\n"
        "    __name__ = __qualname__ = 'same'\n    __defaults__ = __kwdefaults__ = None\n\n"
        "    def __call__(self, x):\n        STORE[0] = x\n        return x\n\n\nfake = Fake()\n\n\n"
        "class Curator(Batch):\n    __slots__ = ()\n\n    def add(self, arm, response, level, rng):\n"
        "        self.raw_counts[arm] += 1\n        self.raw_sums[arm] += unit(fake(response))\n",
    ),
    "through_math": (
        "math.keep",
        "\nmath.keep = STORE.append\n\n\nclass Curator(Batch):\n    __slots__ = ()\n\n"
        "    def add(self, arm, response, level, rng):\n        math.keep(response)\n"
        "        self.raw_counts[arm] += 1\n        self.raw_sums[arm] += unit(response)\n",
    ),
    "other_source": (
        "reads raw_sums",
        RAW.replace("Raw", "Curator") + "\n\nimport linecache\n\nwith open(__file__) as file:\n"
        "    TEXT = file.read().replace('return self.raw_sums', 'return self.means')\n"
        "linecache.cache[__file__] = (len(TEXT), None, TEXT.splitlines(True), __file__)\n",
    ),
    "other_signature": (
        "does more with the curator|bound again",
        "\nimport inspect\nCurator = Batch\n\n\nclass Peeks(NamedTuple):\n    arms: int\n\n"
        "    def act(self, releases, t, rng):\n        return int(releases[2][0] > 0.5), 1, NO_LINE\n\n\n"
        "KEYS = list(inspect.signature(Peeks.act).parameters.values())\n"
        "Peeks.act.__signature__ = inspect.Signature([KEYS[0], KEYS[2], KEYS[1], KEYS[3]])\nacting = Peeks\n",
    ),
    "planted": (
        "an absorb of its own",
        "\nimport dpbandits.curators.plain as plain\n\n\nclass Curator(Batch):\n    __slots__ = ()\n\n"
        "    def add(self, arm, response, level, rng):\n        self.raw_counts[arm] += 1\n"
        "        self.raw_sums[arm] += unit(response)\n\n    def respond(self, reward, level, rng):\n"
        "        return reward\n\n    def absorb(self, environment, arm, n, line, rewards, noise):\n"
        "        self.means[arm] = environment.total(arm, n, rewards)\n        return n\n\n\n"
        "Curator.__module__ = plain.__name__\nplain.Curator = Curator\n",
    ),
    "peeks_by_getattr": (
        "more with the curator|bound again",
        "\nCurator = Batch\n\n\nclass Peeks(NamedTuple):\n    arms: int\n\n    def act(self, releases, t, rng):\n"
        "        return int(getattr(releases, 'raw' + '_sums')[0] > 0.5), 1, NO_LINE\n\n\nacting = Peeks\n",
    ),
}
#: They change the package for good, so each needs a process of its own.
ALONE = {
    "quiet_noise": (
        "was replaced",
        "\n\ndef quiet(self, loc, scale):\n    return 0.0\n\n\nSystemNoise.laplace = quiet\n\n\n"
        "class Curator(Batch):\n    __slots__ = ()\n\n    def private_sum(self, arm, rng):\n"
        "        return self.raw_sums[arm] + SystemNoise().laplace(0.0, 1.0 / self.epsilon)\n",
    ),
}
