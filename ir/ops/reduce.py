"""Reductions over dimensions: sum, mean, prod, any and all; what reductions share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arguments import as_dtype
from ..bind import notify, state
from ..op import Decompose, same
from ..types import FLOAT, TensorType, bool_, normalize_dims, type_word, uint8
from ..value import Value, public
from .arithmetic import conj
from .kinds import accumulate_type, reduced_shape, reduction
from .totals import add_up

# NumPy's type stubs refuse a `keepdims` that is not a literal.
MULTIPLY: Any = np.multiply
MAXIMUM: Any = np.maximum
MINIMUM: Any = np.minimum


def unreduce(grad: Any, self_type: TensorType, dim: Any, keepdim: bool) -> Any:
    """A reduced gradient spread over the reduced dimensions again."""
    return kept(grad, self_type, dim, keepdim).expand(self_type.shape)


def kept(value: Any, self_type: TensorType, dim: Any, keepdim: bool) -> Any:
    """A reduced value with its dropped dimensions back as size 1."""
    if keepdim or not self_type.shape:
        return value
    return value.view(reduced_shape(self_type.shape, dim, True))


def numbered(name: str) -> Any:
    """torch numbers its node names: 0 for the reduction of everything, 1 with dimensions."""
    return lambda attrs: f"{name}Backward{0 if attrs.get('whole') else 1}"


def _sum(x: np.ndarray, *, dim: Any, keepdim: bool = False, whole: bool = False) -> Any:
    return add_up(x, dim, keepdim)


sum_op = reduction(
    "sum", "self -> result", numpy=_sum, node=numbered("Sum"),
    combine=lambda s, a, b: s.add(a, b), start=0,
    vjp=dict(self=lambda grad, self_type, dim, keepdim: unreduce(grad, self_type, dim, keepdim)),
)  # fmt: skip


def _mean(x: np.ndarray, *, dim: Any, keepdim: bool = False, whole: bool = False) -> Any:
    count = math.prod(x.shape[d] for d in dim)
    return np.divide(add_up(x, dim, keepdim), x.dtype.type(count))


def _mean_vjp(grad: Any, self_type: TensorType, dim: Any, keepdim: bool) -> Any:
    return unreduce(grad, self_type, dim, keepdim) / math.prod(self_type.shape[d] for d in dim)


mean_op = reduction(
    "mean", "self -> result", numpy=_mean, node=numbered("Mean"), shown=same("self_sym_numel"),
    lower=Decompose(lambda self, *, dim, keepdim=False, whole=False: (
        sum_op(self, dim=dim, keepdim=keepdim) / math.prod(self.shape[d] for d in dim))),
    vjp=dict(self=_mean_vjp),
)  # fmt: skip


def reduce_dims(input: Any, dim: Any) -> dict[str, Any]:
    """The attributes of a reduction: dimensions, and whether the user named none."""
    if dim is None:
        return {"dim": tuple(range(input.ndim)), "whole": True}
    return {"dim": normalize_dims(dim, input.ndim)}


def check_tensor(name: str, input: Any) -> None:
    if not isinstance(input, Value):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, "
                        f"not {type(input).__name__}")  # fmt: skip


@public("sum", out="any")
def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """sum(input, dim=None, keepdim=False, *, dtype=None); integers are summed as int64."""
    check_tensor("sum", input)
    wanted = as_dtype(dtype) or accumulate_type(input.dtype)
    if input.dtype is not wanted:
        input = input.to(wanted)
    return sum_op(input, keepdim=keepdim, **reduce_dims(input, dim))


@public("mean", out="cast")
def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """mean(input, dim=None, keepdim=False, *, dtype=None)."""
    check_tensor("mean", input)
    if dtype is not None:
        input = input.to(as_dtype(dtype))
    if input.dtype.category < FLOAT:
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {type_word(input.dtype)}"
        )
    return mean_op(input, keepdim=keepdim, **reduce_dims(input, dim))


# --- products ------------------------------------------------------------------------------------


def _prod(x: np.ndarray, *, dim: Any, keepdim: bool = False, whole: bool = False) -> Any:
    return MULTIPLY.reduce(x, axis=dim, keepdims=keepdim, dtype=x.dtype)


def any_known(mask: Any) -> bool | None:
    """Is an eager mask true anywhere? None where values are not known yet, or not for good."""
    if state.top is not state.bottom:  # a recording is replayed on other values
        notify("value_asked")
        return None
    array = getattr(mask, "_array", None)
    return None if array is None else bool(array.any())


def _prod_vjp(grad: Any, self: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    """The product of the other elements, exact where there are zeros."""
    spread = kept(grad, self.type_, dim, keepdim)
    if any_known(self.eq(0)) is False:
        return spread * conj(kept(result, self.type_, dim, keepdim) / self)
    return spread * conj(product_of_others(self, dim))


def product_of_others(x: Any, dim: Any) -> Any:
    """For each element, the product of all others along `dim`: cumulative from both sides."""
    order = [d for d in range(x.ndim) if d not in dim] + list(dim)
    lead = tuple(x.shape[d] for d in order[: x.ndim - len(dim)])
    count = math.prod(x.shape[d] for d in dim)
    if not count:
        return x
    flat = x.permute(order).reshape((*lead, count))
    last = len(lead)
    ones = flat.new_ones((*lead, 1))
    before = ones.cat_with(flat.narrow(last, 0, count - 1), dim=last).cumprod(last)
    backwards = flat.narrow(last, 1, count - 1).flip((last,))
    after = ones.cat_with(backwards, dim=last).cumprod(last).flip((last,))
    others = (before * after).reshape(tuple(x.shape[d] for d in order))
    inverse = [order.index(d) for d in range(x.ndim)]
    return others.permute(inverse)


prod_op = reduction(
    "prod", "self -> result", numpy=_prod, node=numbered("Prod"), domain=(0.5, 2),
    combine=lambda s, a, b: s.mul(a, b), start=1, vjp=dict(self=_prod_vjp),
)  # fmt: skip


@public("prod", out="any")
def prod(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """prod(input, dim=None, keepdim=False, *, dtype=None)."""
    check_tensor("prod", input)
    if dim is not None and not isinstance(dim, int):
        raise TypeError(f"prod() received an invalid combination of arguments - got (Tensor, "
                        f"{type(dim).__name__})")  # fmt: skip
    wanted = as_dtype(dtype) or accumulate_type(input.dtype)
    if input.dtype is not wanted:
        input = input.to(wanted)
    return prod_op(input, keepdim=keepdim, **reduce_dims(input, dim))


# --- any and all ---------------------------------------------------------------------------------


def _quantifier(name: str, ufunc: Any, combine: Any, start: int) -> Any:
    def evaluate(x: np.ndarray, *, dim: Any, keepdim: bool = False, whole: bool = False) -> Any:
        return ufunc.reduce(x.astype(np.bool_, copy=False), axis=dim, keepdims=keepdim)

    op = reduction(
        name, "self -> result", numpy=evaluate, dtype=bool_, combine=combine, start=start
    )

    def function(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
        check_tensor(name, input)
        if dim is not None and not isinstance(dim, int) and not len(dim):
            return input.to(bool_).to(uint8) if input.dtype is uint8 else input.to(bool_)
        result = op(input, keepdim=keepdim, **reduce_dims(input, dim))
        return result.to(uint8) if input.dtype is uint8 else result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(input, dim=None, keepdim=False)."
    public(name)(function)
    return op


any = _quantifier("any", np.logical_or, lambda s, a, b: s.logical_or(a, b), 0)
all = _quantifier("all", np.logical_and, lambda s, a, b: s.logical_and(a, b), 1)
