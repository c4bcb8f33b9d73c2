"""`torch._tensor`: the class of tensors, where programs look for it."""

from .tracer.tensor import Tensor

__all__ = ["Tensor"]
