"""Privacy guarantees, and the release schedules that satisfy them."""

from dpbandits.privacy.guarantee import Guarantee
from dpbandits.privacy.release_points import interval_rate, next_release

__all__ = ["Guarantee", "interval_rate", "next_release"]
