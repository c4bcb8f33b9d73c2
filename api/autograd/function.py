"""`torch.autograd.function`."""

from ..tracer.function import Function, FunctionCtx, once_differentiable

__all__ = ["Function", "FunctionCtx", "once_differentiable"]
