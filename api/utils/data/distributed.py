"""DistributedSampler under torch's module name."""

from .sampler import DistributedSampler

__all__ = ["DistributedSampler"]
