"""DistributedSampler under torch's module name."""

from ...naming import found_in
from .sampler import DistributedSampler

__all__ = ["DistributedSampler"]
found_in(__name__, DistributedSampler)
