"""What counts say about a probability: the exact bounds of Clopper & Pearson (1934)."""

from __future__ import annotations

__all__ = ["share_at_least", "share_at_most"]


def share_at_least(successes: int, trials: int, error: float) -> float:
    """A lower bound on the probability of success, which is too large with probability at most ``error``.

    >>> round(share_at_least(75, 100, 0.05), 4), share_at_least(0, 100, 0.05)
    (0.6687, 0.0)
    """
    from scipy.special import betaincinv  # starting a command that does not need it is quicker

    return float(betaincinv(successes, trials - successes + 1.0, error)) if successes else 0.0


def share_at_most(successes: int, trials: int, error: float) -> float:
    """An upper bound on the probability of success, which is too small with probability at most ``error``.

    >>> round(share_at_most(0, 100, 0.05), 4), share_at_most(100, 100, 0.05)
    (0.0295, 1.0)
    """
    return 1.0 - share_at_least(trials - successes, trials, error)
