"""What is promised: guarantees, and the schedules that keep them."""

from dpbandits.privacy.guarantee import Guarantee
from dpbandits.privacy.release_points import interval_rate, next_release

__all__ = ["Guarantee", "interval_rate", "next_release"]
