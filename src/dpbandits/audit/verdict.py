"""The verdict of an audit: proved, not refuted, or violated. It is never "private"."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from dpbandits import __version__
from dpbandits.display import card, shortened
from dpbandits.privacy.guarantee import Guarantee

__all__ = ["NOT_REFUTED", "PROVED", "ROUNDING", "VIOLATED", "Verdict"]

PROVED, NOT_REFUTED, VIOLATED = "proved", "not refuted", "violated"

#: The relative error of losses, which are computed in floating point.
ROUNDING = 1e-9


@dataclass(frozen=True, repr=False)
class Verdict:
    """The outcome of one audit.

    ``epsilon`` is the worst case if the method is exact, otherwise a lower bound on it with this ``confidence``.
    ``released`` is the worst case for an adversary who sees every release; it is given if the view is actions. If it is
    above the claim, the actions of more rounds may violate the claim.

    >>> print(Verdict("proved", "adap-ucb", 1.0, 0.0, 0.99, "exact", "actions", 8, "rewards of 0 and 1"))
    adap-ucb: proved
    claim       epsilon 1
    worst case  epsilon 0.99 (exact, actions)
    horizon     8 rounds
    domain      rewards of 0 and 1
    """

    verdict: str
    subject: str
    claim: float
    delta: float
    epsilon: float
    method: str  # exact, game, or sequential game
    view: str  # actions, released values, response, bytes
    horizon: int | None
    domain: str
    confidence: float | None = None
    trials: int | None = None
    witness: dict[str, Any] = field(default_factory=dict)
    released: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)  # of the policy
    seed: int | None = None

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted."""
        return self.verdict == VIOLATED

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
        claim = Guarantee.central(self.epsilon, self.delta)
        return card(self._few(), claim.picture())

    def _few(self) -> list[str]:
        """The verdict, the claim, and what was found."""
        return [*str(self).splitlines()[:3], f"domain      {shortened(self.domain, 90)}"]

    def __str__(self) -> str:
        delta = f", delta {self.delta:.3g}" if self.delta else ""
        what = "worst case" if self.method == "exact" else "at least  "
        size = "infinite" if math.isinf(self.epsilon) else f"{self.epsilon:.6g}"
        lines = [
            f"{self.subject}: {self.verdict}",
            f"claim       epsilon {self.claim:g}{delta}",
            f"{what}  epsilon {size} ({self.method}, {self.view})",
        ]
        if self.released is not None:
            above = "; this is above the claim, so more rounds may violate it" if self.released > self.claim else ""
            lines.append(f"releases    epsilon {self.released:.6g} for an adversary who sees every release{above}")
        if self.confidence is not None:
            lines.append(f"confidence  {self.confidence:.6g} from {self.trials:,} trials, seed {self.seed}")
        if self.horizon is not None:
            lines.append(f"horizon     {self.horizon:,} rounds")
        lines.append(f"domain      {self.domain}")
        if self.witness and self.violated:
            lines.append("witness")
            lines += [f"  {name}: {value}" for name, value in self.witness.items()]
        return "\n".join(lines)
