"""`torch.autograd.variable`: Variables, which are tensors since torch 0.4."""

from . import Variable

__all__ = ["Variable"]
