"""`torch.autograd.function`."""

from ..naming import found_in
from ..tracer.function import BackwardNode as BackwardCFunction
from ..tracer.function import Function, FunctionCtx, once_differentiable

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "once_differentiable",
]
FunctionMeta = type(Function)


class InplaceFunction(Function):
    """`Function` under the name that old programs inherit from."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


found_in(__name__, Function, FunctionCtx)
