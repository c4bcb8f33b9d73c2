"""`torch.autograd.function`."""

from ..naming import found_in
from ..tracer.function import Function, FunctionCtx, once_differentiable

__all__ = ["Function", "FunctionCtx", "once_differentiable"]
found_in(__name__, Function, FunctionCtx)
