"""Variance and standard deviation."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from ..op import Decompose, define
from ..types import FLOAT, TensorType
from ..value import public
from .kinds import reduced_shape
from .reduce import kept, reduce_dims, sum_op


def _var(
    x: np.ndarray, *, dim: Any, keepdim: bool = False, correction: Any = 1, whole: bool = False
) -> Any:
    count = math.prod(x.shape[d] for d in dim)
    centred = x - np.mean(x, axis=dim, keepdims=True)
    squares = (centred * centred.conj()).real if x.dtype.kind == "c" else centred * centred
    total = np.add.reduce(squares, axis=dim, keepdims=keepdim)
    return np.divide(total, total.dtype.type(builtins.max(0, count - correction)))


def _var_expand(
    self: Any, *, dim: Any, keepdim: bool = False, correction: Any = 1, whole: bool = False
) -> Any:
    count = math.prod(self.shape[d] for d in dim)
    centred = self - sum_op(self, dim=dim, keepdim=True) / count
    return sum_op(centred * centred, dim=dim, keepdim=keepdim) / builtins.max(0, count - correction)


def _var_infer(self: TensorType, *, dim: Any, keepdim: bool = False, **_: Any) -> TensorType:
    return TensorType(self.dtype.to_real(), reduced_shape(self.shape, dim, keepdim))


def _var_vjp(grad: Any, self: Any, dim: Any, keepdim: bool, correction: Any) -> Any:
    count = math.prod(self.shape[d] for d in dim)
    scale = 2.0 / (count - correction) if count > correction else float("inf")
    centred = self - self.mean(dim, keepdim=True) if self.ndim else self - self
    return kept(grad, self.type_, dim, keepdim) * scale * centred


var_op = define("var", "self -> result", numpy=_var, infer=_var_infer, lower=Decompose(_var_expand),
                kind="reduction", node="VarBackward0", vjp=dict(self=_var_vjp))  # fmt: skip


def _std_vjp(grad: Any, self: Any, result: Any, dim: Any, keepdim: bool, correction: Any) -> Any:
    half = (grad / (result * 2)).masked_fill(result == 0, 0)
    return _var_vjp(half, self, dim, keepdim, correction)


std_op = define(
    "std", "self -> result", infer=_var_infer, kind="reduction", node="StdBackward0",
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


def _spread_function(name: str, op: Any) -> Any:
    def function(
        input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
        correction: Any = None,
    ) -> Any:  # fmt: skip
        if input.dtype.category < FLOAT:
            raise RuntimeError(f"{name} only support floating point and complex dtypes")
        dim, correction = spread_arguments(dim, unbiased, correction)
        return op(input, keepdim=keepdim, correction=correction, **reduce_dims(input, dim))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(input, dim=None, *, correction=1, keepdim=False)."
    return public(name)(function)


var = _spread_function("var", var_op)
std = _spread_function("std", std_op)
