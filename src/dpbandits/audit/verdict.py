"""The verdict of an audit: proved, vacuous, not refuted, violated, or refused. It is never "private"."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from dpbandits import __version__
from dpbandits.display import card, shortened
from dpbandits.privacy.guarantee import SHOWS, Guarantee

__all__ = [
    "FAR_BELOW",
    "NOT_REFUTED",
    "OFF_GRID",
    "PROVED",
    "REFUSED",
    "ROUNDING",
    "SUMMING",
    "VACUOUS",
    "VIOLATED",
    "Verdict",
    "judged",
    "to_digits",
]

PROVED, VACUOUS, NOT_REFUTED, VIOLATED, REFUSED = "proved", "vacuous", "not refuted", "violated", "refused"

#: The relative error of losses that are computed in floating point: sums, and what needs an integral or a root.
SUMMING, ROUNDING = 1e-12, 1e-9

FAR_BELOW = 0.1  # of the claim: a smaller worst case says little about it
OFF_GRID = (
    "noise meets a number that is not a whole multiple of rewards on the grid of exact noise, which cannot hide it"
)


@dataclass(frozen=True, repr=False)
class Verdict:
    """The outcome of one audit.

    ``proved``: the claim holds in the domain. ``vacuous``: it holds, but so little was released that this is weak
    evidence. ``not refuted``: an attack failed, and ``reason`` says why there is no proof. ``violated``: there is a
    witness. ``refused``: nothing is known, and ``reason`` says why.

    ``epsilon`` is the worst case in the domain if the claim is proved, a lower bound on it if the claim is violated or
    attacked (with this ``confidence``), and None if nothing is known. ``released`` is what a proof in the central model
    is about: the worst case for an adversary who sees every release. ``epsilon`` is the same number, unless the view is
    actions. ``covered`` says for how many rounds a proof holds; ``horizon`` is the rounds that ``epsilon`` was computed
    for, which are fewer if the view is actions. Where each user has a level of their own, the claim is this level:
    ``levels`` are those that were tried, and ``claim`` is the one that ``epsilon`` belongs to. ``witness`` is where the
    worst case was found; it refutes the claim if that is violated.

    >>> covered = "for up to 64 rounds"
    >>> print(Verdict("proved", "adap-ucb", 1.0, 0.0, 0.99, "exact", "actions", 8, "all rewards", covered=covered))
    adap-ucb: proved for up to 64 rounds
    claim       epsilon 1
    worst case  epsilon 0.99 (exact, actions)
    horizon     8 rounds
    domain      all rewards
    """

    verdict: str
    subject: str
    claim: float
    delta: float
    epsilon: float | None
    method: str  # exact, game, or sequential game
    view: str  # actions, released values, response, bytes
    horizon: int | None
    domain: str
    confidence: float | None = None
    trials: int | None = None
    witness: dict[str, Any] = field(default_factory=dict)
    released: float | None = None
    levels: list[float] = field(default_factory=list)  # of users, where each has their own
    settings: dict[str, Any] = field(default_factory=dict)  # of the policy
    seed: int | None = None
    reason: str = ""  # why there is no proof
    covered: str = ""  # for how many rounds a proof holds, in words

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted."""
        return self.verdict == VIOLATED

    @property
    def exit_status(self) -> int:
        """1 if the claim is violated, 2 if nothing is known, otherwise 0."""
        return {VIOLATED: 1, REFUSED: 2}.get(self.verdict, 0)

    def to_json(self) -> dict[str, Any]:
        """JSON-ready; an infinite epsilon is null, and the witness says why."""
        record = asdict(self)
        for name in ("epsilon", "released"):
            if record[name] is not None and math.isinf(record[name]):
                record[name] = None
        return {**record, "version": __version__}

    def __repr__(self) -> str:
        return "\n".join(
            ["Verdict: " + line if number == 0 else "  " + line for number, line in enumerate(self._few())]
        )

    def _repr_html_(self) -> str:
        claim = Guarantee.central(self.claim, self.delta)
        return card(self._few(), claim.picture(), SHOWS)

    def _few(self) -> list[str]:
        """The verdict, the claim, and what was found."""
        return [*str(self).splitlines()[:3], f"domain      {shortened(self.domain, 90)}"]

    def __str__(self) -> str:
        delta = f", delta {self.delta:.3g}" if self.delta else ""
        covered = f" {self.covered}" if self.covered and self.verdict in (PROVED, VACUOUS) else ""
        claim, user = f"epsilon {self.claim:g}", ""
        if self.levels:
            tried = ", ".join(f"{level:g}" for level in sorted(self.levels))
            claim, user = f"each user's own epsilon, tried at {tried}", f" for a user at {self.claim:g}"
        lines = [f"{self.subject}: {self.verdict}{covered}", f"claim       {claim}{delta}"]
        if self.epsilon is not None:
            what = "worst case" if self.verdict in (PROVED, VACUOUS) else "at least  "
            size = "infinite" if math.isinf(self.epsilon) else f"{self.epsilon:.6g}"
            lines.append(f"{what}  epsilon {size}{user} ({self.method}, {self.view})")
        if self.released is not None and self.view == "actions":
            lines.append(f"releases    epsilon {self.released:.6g} for an adversary who sees every release")
        if self.confidence is not None:
            lines.append(f"confidence  {self.confidence:.6g} from {self.trials:,} trials, seed {self.seed}")
        if self.horizon is not None:
            lines.append(f"horizon     {self.horizon:,} rounds")
        lines.append(f"domain      {self.domain}")
        if self.reason:
            lines.append(f"reason      {self.reason}")
        if self.witness and self.violated:
            lines.append("witness")
            lines += [f"  {name}: {value}" for name, value in self.witness.items()]
        return "\n".join(lines)


def to_digits(epsilon: float) -> float:
    """Epsilon without its last digits, which are rounding errors."""
    return float(f"{epsilon:.12g}")


def judged(epsilon: float, claim: float) -> str:
    """The word for a worst case that was proved and is within the claim."""
    return PROVED if epsilon >= FAR_BELOW * claim else VACUOUS
