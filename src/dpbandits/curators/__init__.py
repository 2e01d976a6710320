"""Who keeps rewards, and what they release."""

from dpbandits.curators.batch import Batch, GaussianBatch
from dpbandits.curators.confidence import interval
from dpbandits.curators.heterogeneous import HeterogeneousBernoulli, HeterogeneousLaplace
from dpbandits.curators.hybrid import Hybrid, HybridOfAll
from dpbandits.curators.interval import Interval
from dpbandits.curators.kept_batches import BatchLikelihood, RunningSum
from dpbandits.curators.lazy import Lazy
from dpbandits.curators.leveled import BinnedBernoulli, WeightedBernoulli, WeightedLaplace
from dpbandits.curators.local import LocalBernoulli, LocalLaplace
from dpbandits.curators.piecewise import LocalPiecewise
from dpbandits.curators.plain import Plain
from dpbandits.curators.tree import Tree

__all__ = [
    "Batch",
    "BatchLikelihood",
    "BinnedBernoulli",
    "GaussianBatch",
    "HeterogeneousBernoulli",
    "HeterogeneousLaplace",
    "Hybrid",
    "HybridOfAll",
    "Interval",
    "Lazy",
    "LocalBernoulli",
    "LocalLaplace",
    "LocalPiecewise",
    "Plain",
    "RunningSum",
    "Tree",
    "WeightedBernoulli",
    "WeightedLaplace",
    "interval",
]
