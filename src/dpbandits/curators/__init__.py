"""Who keeps rewards, and what they release."""

from dpbandits.curators.batch import Batch
from dpbandits.curators.batches import BatchLikelihood, RunningSum
from dpbandits.curators.heterogeneous import HeterogeneousBernoulli, HeterogeneousLaplace
from dpbandits.curators.hybrid import Hybrid, HybridOfAll
from dpbandits.curators.interval import Interval
from dpbandits.curators.local import LocalBernoulli, LocalLaplace
from dpbandits.curators.plain import Plain
from dpbandits.curators.tree import Tree

__all__ = [
    "Batch",
    "BatchLikelihood",
    "HeterogeneousBernoulli",
    "HeterogeneousLaplace",
    "Hybrid",
    "HybridOfAll",
    "Interval",
    "LocalBernoulli",
    "LocalLaplace",
    "Plain",
    "RunningSum",
    "Tree",
]
