"""Variance and standard deviation, alone and with the mean.

Note [Shifted moments]
    Deviations are taken from the first element, and then from the mean of those: where all
    elements are equal they are exactly 0, as torch's are, and where all are far from 0 and close to
    each other nothing of them is lost in the rounding of a mean. No derivative knows of the shift.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from ..arguments import warn
from ..op import Decompose, define, same
from ..types import FLOAT, TensorType
from ..value import public
from .arithmetic import stop_gradient
from .kinds import reduced_shape
from .layouts import row_major
from .reduce import kept, mean_op, reduce_dims, sum_op, unreduce
from .slices import slice_op
from .totals import add_up


def _average(x: np.ndarray, dim: Any, keepdim: bool = True) -> Any:
    """The mean; NaN of nothing, without a warning."""
    count = math.prod(x.shape[d] for d in dim)
    return add_up(x, dim, keepdim) / x.real.dtype.type(count)


@row_major
def _var(
    x: np.ndarray, *, dim: Any, keepdim: bool = False, correction: Any = 1, whole: bool = False
) -> Any:
    count = math.prod(x.shape[d] for d in dim)
    centred = x - x[tuple([slice(0, 1) if d in dim else slice(None) for d in range(x.ndim)])]
    centred -= _average(centred, dim)
    squares = (centred * centred.conj()).real if x.dtype.kind == "c" else centred * centred
    total = add_up(squares, dim, keepdim)
    return np.divide(total, total.dtype.type(builtins.max(0, count - correction)))


def _centred(x: Any, dim: Any) -> Any:
    """Deviations from the mean; see Note [Shifted moments]."""
    if not x.ndim:
        return x - x
    first = stop_gradient(x)
    for d in dim:
        if x.shape[d] > 1:
            first = slice_op(first, dim=d, start=0, stop=1, step=1)
    shifted = x - first
    count = math.prod(x.shape[d] for d in dim)
    return shifted - sum_op(shifted, dim=dim, keepdim=True) / count


def _var_expand(
    self: Any, *, dim: Any, keepdim: bool = False, correction: Any = 1, whole: bool = False
) -> Any:
    if self.dtype.is_complex:
        return NotImplemented
    count = math.prod(self.shape[d] for d in dim)
    centred = _centred(self, dim)
    return sum_op(centred * centred, dim=dim, keepdim=keepdim) / builtins.max(0, count - correction)


def _check_floats(dtype: Any, name: str) -> None:
    if dtype.category < FLOAT:
        raise RuntimeError(f"{name} only support floating point and complex dtypes")


def _var_infer(self: TensorType, *, dim: Any, keepdim: bool = False, **_: Any) -> TensorType:
    _check_floats(self.dtype, "std and var")
    return TensorType(self.dtype.to_real(), reduced_shape(self.shape, dim, keepdim))


def _var_vjp(grad: Any, self: Any, dim: Any, keepdim: bool, correction: Any) -> Any:
    count = math.prod(self.shape[d] for d in dim)
    scale = 2.0 / (count - correction) if count > correction else float("inf")
    return kept(grad, self.type_, dim, keepdim) * scale * _centred(self, dim)


var_op = define("var", "self -> result", numpy=_var, infer=_var_infer, lower=Decompose(_var_expand),
                kind="reduction", node="VarBackward0", vjp=dict(self=_var_vjp),
                many_passes=True, shown=same("dim", "keepdim"))  # fmt: skip


def _std_vjp(grad: Any, self: Any, result: Any, dim: Any, keepdim: bool, correction: Any) -> Any:
    half = (grad / (result * 2)).masked_fill(result == 0, 0)
    return _var_vjp(half, self, dim, keepdim, correction)


std_op = define(
    "std", "self -> result", infer=_var_infer, kind="reduction", node="StdBackward0",
    many_passes=True, shown=same("dim", "keepdim"),
    numpy=lambda x, *, dim, keepdim=False, correction=1, whole=False: np.sqrt(
        _var(x, dim=dim, keepdim=keepdim, correction=correction)),
    lower=Decompose(lambda self, **attrs: var_op(self, **attrs).sqrt()),
    vjp=dict(self=_std_vjp),
)  # fmt: skip


def spread_arguments(dim: Any, unbiased: Any, correction: Any) -> tuple[Any, Any]:
    """torch's overloads: var(unbiased), var(dim, unbiased), var(dim, correction=)."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return dim, correction


def _spread_function(name: str, op: Any, method: bool = True) -> Any:
    def function(
        input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
        correction: Any = None,
    ) -> Any:  # fmt: skip
        _check_floats(input.dtype, "std and var")
        dim, correction = spread_arguments(dim, unbiased, correction)
        dims = reduce_dims(input, dim)
        shape = getattr(getattr(input, "_array", None), "shape", None)  # nobody need be told
        if shape is not None and math.prod([shape[d] for d in dims["dim"]]) <= correction:
            warn(f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than "
                 "the reduction factor (input numel divided by output numel).")  # fmt: skip
        return op(input, keepdim=keepdim, correction=correction, **dims)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(input, dim=None, *, correction=1, keepdim=False)."
    return public(name, method=method, out="cast")(function)


var = _spread_function("var", var_op)
std = _spread_function("std", std_op)


# --- with the mean -------------------------------------------------------------------------------


def _with_mean(name: str, alone: Any, rule: Any) -> Any:
    """var_mean or std_mean: two outputs, one node."""

    @row_major
    def evaluate(
        x: np.ndarray, *, dim: Any, keepdim: bool = False, correction: Any = 1, whole: bool = False
    ) -> Any:
        spread = alone.numpy(x, dim=dim, keepdim=keepdim, correction=correction)
        return spread, _average(x, dim, keepdim)

    def infer(self: TensorType, *, dim: Any, keepdim: bool = False, **_: Any) -> Any:
        _check_floats(self.dtype, name)
        shape = reduced_shape(self.shape, dim, keepdim)
        return TensorType(self.dtype.to_real(), shape), TensorType(self.dtype, shape)

    op = define(
        name, "self -> result0 result1", numpy=evaluate, infer=infer, vjp=dict(self=rule),
        shown=same("dim", "keepdim"),
        lower=Decompose(lambda self, *, dim, keepdim=False, **more: (
            alone(self, dim=dim, keepdim=keepdim, **more),
            mean_op(self, dim=dim, keepdim=keepdim))),
        samples=lambda rng: [((rng.standard_normal((3, 4)),), {"dim": d, "keepdim": k})
                             for d, k in (((0, 1), False), ((1,), True), ((0,), False))],
    )  # fmt: skip
    return _spread_function(name, op, method=False)


def _mean_part(grad: Any, self: Any, dim: Any, keepdim: bool) -> Any:
    return unreduce(grad, self.type_, dim, keepdim) / math.prod(self.shape[d] for d in dim)


def _var_mean_rule(
    grad_result0: Any, grad_result1: Any, self: Any, dim: Any, keepdim: bool, correction: Any
) -> Any:
    parts = []
    if grad_result0 is not None:
        parts.append(_var_vjp(grad_result0, self, dim, keepdim, correction))
    if grad_result1 is not None:
        parts.append(_mean_part(grad_result1, self, dim, keepdim))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def _std_mean_rule(
    grad_result0: Any, grad_result1: Any, self: Any, result0: Any, dim: Any, keepdim: bool,
    correction: Any,
) -> Any:  # fmt: skip
    if grad_result0 is not None:
        grad_result0 = (grad_result0 / (result0 * 2)).masked_fill(result0.eq(0), 0)
    return _var_mean_rule(grad_result0, grad_result1, self, dim, keepdim, correction)


var_mean = _with_mean("var_mean", var_op, _var_mean_rule)
std_mean = _with_mean("std_mean", std_op, _std_mean_rule)
