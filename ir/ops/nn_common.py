"""What the nn.functional files share: argument checks, in-place calls, reductions of losses.

Note [Formal dependence]
    torch's backward kernels of piecewise linear functions take the input (or output) along, so a
    gradient computed with create_graph=True can be differentiated again, with zeros as result.
    Rules in ops lose that where the input only makes a mask or an index. `formally` restores it.
"""

from __future__ import annotations

from typing import Any

from .. import value as value_module
from ..arguments import not_a_tensor, warn
from ..bind import state
from ..op import Decompose, define
from ..types import FLOAT, DType, no_kernel
from ..value import Value
from .views import zeros


def check_value(name: str, **values: Any) -> None:
    """The error in torch's words for arguments that must be Tensors and are not."""
    for position, (argument, value) in enumerate(values.items(), 1):
        if not isinstance(value, Value):
            raise not_a_tensor(name, argument, value, position)


def floats_only(kernel: str, dtype: DType, complex_too: bool = False) -> None:
    """Refuses dtypes that a kernel of torch's has not, in its words."""
    if dtype.category < FLOAT or (dtype.is_complex and not complex_too):
        raise no_kernel(kernel, dtype)


def maybe_inplace(function: Any, inplace: bool, input: Any, *args: Any) -> Any:
    """`function(input, *args)`, written into `input` where the user asked for it."""
    if not inplace:
        return function(input, *args)
    assert value_module.run_inplace is not None
    return value_module.run_inplace(function, input, args, {})


# --- formal dependence ---------------------------------------------------------------------------

formal_op = define(
    "formal", "self other -> result", numpy=lambda x, other: x, infer=lambda self, other: self,
    moves_data=True, lower=Decompose(lambda self, other: self),
    vjp=dict(self=lambda grad: grad, other=lambda other_type: zeros(other_type)),
    samples=lambda rng: [((rng.standard_normal((2, 3)), rng.standard_normal(4)), {})],
)  # fmt: skip


def formally(grad: Any, *others: Any) -> Any:
    """`grad`, which `others` took part in though its derivative is 0; Note [Formal dependence]."""
    if state.grad_enabled:
        for other in others:
            # in a graph, nobody knows yet what will require grad
            in_graph = other is not None and not hasattr(other, "_array")
            if in_graph or getattr(other, "requires_grad", False):
                grad = formal_op(grad, other)
    return grad


def in_one_go(value: Any) -> bool:
    """May a gradient skip the graph? Only now, and if nobody differentiates it again."""
    if state.grad_enabled:
        return False
    return hasattr(value, "_array") or getattr(state.top, "runs_as_built", False)


# --- reductions of losses ------------------------------------------------------------------------


def reduction_name(reduction: str, size_average: Any = None, reduce: Any = None) -> str:
    """The reduction asked for, by name or by the two arguments that preceded it."""
    if size_average is not None or reduce is not None:
        average = True if size_average is None else size_average
        whole = True if reduce is None else reduce
        reduction = "none" if not whole else "mean" if average else "sum"
        warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{reduction}' instead.",
        )
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduce_loss(loss: Any, reduction: str) -> Any:
    """`loss` summed or averaged over all its elements, or as it is."""
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def spread_loss(grad: Any, shape: tuple[int, ...], reduction: str) -> Any:
    """The gradient of a reduced loss as one that broadcasts over `shape`."""
    if reduction != "mean":
        return grad
    count = 1
    for size in shape:
        count *= size
    return grad / count
