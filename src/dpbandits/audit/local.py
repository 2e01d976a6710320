"""One response of the local model, for every reward: the law of what is sent, piece by piece.

The reward is a symbol for all real numbers, and every uniform number is a symbol, too. A comparison cuts the reward's
interval or the uniform's, and both sides are followed. So the probability of each path is a function of the reward that
is affine on its interval. The response on a path is a plain answer, or Laplace noise around an affine function of the
reward. The largest ratio of two affine functions is at ends of intervals, so these are compared, in both directions.
NaN and the infinities are tried one by one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from dpbandits import numerics
from dpbandits.audit.anatomy import classes
from dpbandits.audit.counts import bare
from dpbandits.audit.functions import stand_ins
from dpbandits.audit.kinds import check_kind
from dpbandits.audit.memory import cells, check_memory, copy_of_memory, named_arrays, symbolic
from dpbandits.audit.paths import ZERO, Affine, DeviceNoise, End, Path
from dpbandits.audit.poison import Poison
from dpbandits.audit.reading import read_curator
from dpbandits.audit.refusals import Refused
from dpbandits.audit.substitutes import substituted
from dpbandits.audit.symbols import NOISE, ON_GRID, REWARD, SWALLOWED, Num, exact
from dpbandits.audit.symbols import is_on_grid as multiple_of_grid
from dpbandits.audit.watch import beat

__all__ = ["OFF_THE_LINE", "Pair", "worst_pair"]

OFF_THE_LINE = (math.nan, math.inf, -math.inf)
PLAIN = (0.0, 1.0, 0.5, 0.3, 7.0, -1.0)  # finite rewards, for a second check that does not depend on the first
MOST_PATHS = 400
LARGEST = 30.0  # above this epsilon, floats round probabilities to 0 and 1
ROUNDED = Fraction(1, 2**45)  # probabilities below this are not told from 0 in floating point
HALVINGS = 60  # of an interval of epsilons


class Piece(NamedTuple):
    """One path: the interval of rewards, the probability there, and what is sent."""

    low: End
    high: End
    chance: Affine
    answer: str | None  # a plain answer, as text
    centre: Affine  # of Laplace noise
    scale: float
    on_grid: bool
    error: float  # by how much floats may move the probability


class LawAt(NamedTuple):
    """The law of the response to one reward: the probability of each plain answer, or Laplace noise."""

    reward: str
    answers: dict[str, Fraction]
    noise: tuple[float, float] | None  # centre and scale
    errors: dict[str, float]  # by how much floats may move the probability of each plain answer

    def __str__(self) -> str:
        if self.noise is not None:
            if not self.noise[1]:
                return f"{self.noise[0]:.6g} itself, without noise"
            return f"Laplace noise of scale {self.noise[1]:.6g} around {self.noise[0]:.6g}"
        return ", ".join(f"{answer} with probability {float(p):.6g}" for answer, p in sorted(self.answers.items()))


class Pair(NamedTuple):
    """The worst two rewards, and the law of the response to each."""

    epsilon: float
    rounding: float  # by how much floats may make it larger: uniform numbers have 53 bits, and thresholds are rounded
    laws: tuple[LawAt, LawAt]
    on_grid: bool = True  # whether Laplace noise is around a whole multiple of a reward on the grid


class SymbolicDevice:
    """What the verifier needs of a curator: its ``respond``, with the verifier's own functions in it."""

    def __init__(self, curator: Any, changed: frozenset[str]) -> None:
        check_memory(curator, "curator")
        for kind in classes(curator):
            check_kind(kind, "curator")
        self.tape = DeviceNoise(Path([]))
        theirs = {**stand_ins(self.tape), numerics.unit: numerics.unit, numerics.on_grid: _on_grid}
        self.curator = symbolic(
            substituted(curator, read_curator(curator, "respond", changed=changed), theirs), self.tape
        )
        for _, array in named_arrays(self.curator):
            flat = array.reshape(-1)
            for k in range(flat.size):
                flat[k] = Poison("its memory, on which no response may depend")
        self.on_grid = True

    def pieces(self, reward: float | None, level: Any) -> list[Piece]:
        """All paths of the response to a reward; None is a symbol for all of them."""
        found: list[Piece] = []
        todo: list[list[bool]] = [[]]
        while todo:
            beat()
            path = Path(todo.pop())
            depth = len(path.forced)
            self.tape.log = path
            curator = copy_of_memory(self.curator)
            before = cells(curator)
            sent = curator.respond(path.reward(0) if reward is None else reward, level, self.tape)
            if any(one is not two for one, two in zip(before, cells(curator), strict=True)):
                raise Refused("respond writes memory")
            piece = None if path.impossible else _piece(path, sent)
            todo += [[*path.taken[:k], True] for k in range(depth, len(path.taken))]
            if len(found) + len(todo) > MOST_PATHS:
                raise Refused("respond has too many paths")
            if piece is not None and not path.impossible:
                found.append(piece)
        return found

    def laws(self, level: Any) -> list[LawAt]:
        """The law of the response at every end of every interval of rewards, and at NaN and the infinities."""
        pieces = self.pieces(None, level)
        self.on_grid = all(piece.on_grid for piece in pieces)
        found = _laws(pieces)
        for reward in (*OFF_THE_LINE, *PLAIN):
            found.append(_law(f"{reward:g}", Fraction(0), self.pieces(reward, level)))
        return found


def _on_grid(x: Any) -> Any:
    """A reward in [0, 1] on the grid, which stands for the reward from then on."""
    if not isinstance(x, Num):
        return numerics.on_grid(x)
    path: Any = x.log
    if len(x.terms) != 1 or x.const != 0.0 or path.reward_in(x) != 1:
        raise Refused("something else than one reward is put on the grid")
    [term] = x.terms
    return Num(path, 0.0, 1, {(REWARD, term[1], (*term[2], ON_GRID)): 1}, 1.0)


def _piece(path: Path, sent: Any) -> Piece | None:
    """What is sent on a path; None if it has probability 0."""
    answer: str | None = None
    centre, scale, on_grid = ZERO, 0.0, True
    if not isinstance(sent, Num):
        answer = repr(bare(sent))  # 1 and 1.0 are two answers
    else:
        noises = sent.of(NOISE)
        slope = path.reward_in(sent)
        if path.impossible:
            return None
        if len(noises) > 1 or any(j in path.uniform for _, j in noises):
            raise Refused("what is sent is continuous, and not one Laplace noise")
        if not math.isfinite(sent.const):
            answer = repr(sent.const)
        else:
            centre = Affine(Fraction(exact(sent.const)), slope)
            for (_, j), f in noises.items():
                scale = float(abs(f)) * path.scales[j]
                if sent.peak > SWALLOWED * scale:
                    raise Refused("a number is so large that rounding can swallow its noise")
                whole = path.steps[-1:] == (ON_GRID,) and (slope / Fraction(f)).denominator == 1
                on_grid = whole and not sent.off if slope else multiple_of_grid(float(centre.value / Fraction(f)))
            if not noises and (not slope or path.low == path.high):
                answer = repr(float(centre.at(path.low)))
    chance = path.chance()
    ends = (chance.at(path.low), chance.at(path.high))
    return (
        None
        if max(ends) <= 0 or path.impossible
        else Piece(path.low, path.high, chance, answer, centre, scale, on_grid, path.error)
    )


def _laws(pieces: list[Piece]) -> list[LawAt]:
    borders = sorted({end for piece in pieces for end in (piece.low, piece.high)})
    found = []
    for low, high in itertools.pairwise(borders):
        here = [piece for piece in pieces if piece.low <= low and high <= piece.high]
        for at in (low, high):
            found.append(_law(f"{float(at):g}", at, here))
    for at in borders:
        here = [piece for piece in pieces if piece.low == piece.high == at]
        if here:
            found.append(_law(f"{float(at):g}", at, here))
    return found


def _law(reward: str, at: End, pieces: Iterable[Piece]) -> LawAt:
    answers: dict[str, Fraction] = {}
    errors: dict[str, float] = {}
    noises: dict[tuple[float, float], Fraction] = {}
    for piece in pieces:
        share = Fraction(piece.chance.at(at))
        if share <= 0:
            continue
        if piece.answer is not None:
            answers[piece.answer] = answers.get(piece.answer, Fraction(0)) + share
            errors[piece.answer] = errors.get(piece.answer, 0.0) + piece.error
        else:
            noise = (float(piece.centre.at(at)), piece.scale)
            noises[noise] = noises.get(noise, Fraction(0)) + share
    total = sum(answers.values(), Fraction(0)) + sum(noises.values(), Fraction(0))
    if abs(total - 1) > Fraction(1, 10**12):
        raise Refused(f"the probabilities of the responses to {reward} add up to {float(total):g}")
    if len(noises) > 1 or (noises and answers):
        raise Refused("what is sent is a mixture of noises")
    return LawAt(reward, answers, next(iter(noises), None), errors)


def worst_pair(
    curator: Any, level: float | None, claim: float, changed: frozenset[str] = frozenset(), delta: float = 0.0
) -> Pair:
    """The largest loss between two rewards, at this delta. ``level`` is the user's, None where it must not matter.

    ``changed`` are names that may be bound again at run time. ``Refused`` if the law cannot be computed.
    """
    at = Poison("the user's level, although all users have one epsilon") if level is None else level
    device = SymbolicDevice(curator, changed)
    laws = device.laws(at)
    pairs = [_loss(one, two, claim, delta) for one, two in itertools.combinations(laws, 2)]
    known = [pair for pair in pairs if pair is not None]
    if not known:
        raise Refused("all responses have an answer that is so unlikely that floats call it 0")
    worst = max(known, key=lambda pair: pair.epsilon)
    if len(known) < len(pairs) and worst.epsilon <= claim * 1.01:
        raise Refused(f"epsilon must be at most about {LARGEST:g}: a response is so unlikely that floats call it 0")
    most = max(pair.epsilon + pair.rounding for pair in known)
    return worst._replace(rounding=0.0 if math.isinf(worst.epsilon) else most - worst.epsilon, on_grid=device.on_grid)


def _loss(one: LawAt, two: LawAt, claim: float, delta: float) -> Pair | None:
    """The loss between two laws at this delta; None if floats cannot tell."""
    if one.noise is not None and two.noise is not None:
        (a, scale), (b, other) = one.noise, two.noise
        hidden = scale == other and scale > 0.0 and math.isfinite(a - b)
        loss = 0.0 if one.noise == two.noise else abs(a - b) / scale if hidden else math.inf
        return Pair(max(loss + 2.0 * math.log1p(-delta), 0.0), 0.0, (one, two))  # the curve of Laplace noise
    if one.noise is not None or two.noise is not None:
        return Pair(math.inf, 0.0, (one, two))
    if delta:
        loss = _at_delta(one, two, delta, rounded=False)
        return Pair(loss, _at_delta(one, two, delta, rounded=True) - loss if math.isfinite(loss) else 0.0, (one, two))
    chances = [*one.answers.values(), *two.answers.values()]
    if set(one.answers) != set(two.answers):
        different = set(one.answers) ^ set(two.answers)
        shares = [law.answers[answer] for law in (one, two) for answer in different if answer in law.answers]
        return None if claim > LARGEST or max(shares) < ROUNDED else Pair(math.inf, 0.0, (one, two))
    if min(chances) < ROUNDED:
        return None
    losses = {answer: abs(_log(one.answers[answer] / two.answers[answer])) for answer in one.answers}
    most = max(loss + _relative(one, answer) + _relative(two, answer) for answer, loss in losses.items())
    return Pair(max(losses.values()), most - max(losses.values()), (one, two))


def _relative(law: LawAt, answer: str) -> float:
    """By how much floats may move the logarithm of the probability of an answer."""
    share = law.errors[answer] / float(law.answers[answer])
    return -math.log1p(-share) if share < 1.0 else math.inf


def _at_delta(one: LawAt, two: LawAt, delta: float, *, rounded: bool) -> float:
    """The least epsilon at which no answer, and no set of answers, needs a larger delta; infinite if there is none."""

    def needed(epsilon: float) -> float:
        grown, most = math.exp(epsilon), 0.0
        for a, b in ((one, two), (two, one)):
            excess = 0.0
            for answer, share in a.answers.items():
                slack = a.errors[answer] + grown * b.errors.get(answer, 0.0) if rounded else 0.0
                excess += max(float(share) - grown * float(b.answers.get(answer, 0)) + slack, 0.0)
            most = max(most, excess)
        return most

    low, high = 0.0, 2.0 * LARGEST
    if needed(low) <= delta:
        return 0.0
    if needed(high) > delta:
        return math.inf
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if needed(middle) <= delta else (middle, high)
    return high


def _log(p: Fraction) -> float:
    near = Fraction(1, 2) < p < 2  # where the difference of two logarithms would lose digits
    return math.log1p(float(p - 1)) if near else math.log(p.numerator) - math.log(p.denominator)
