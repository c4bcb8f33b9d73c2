"""Norms of vectors: linalg.vector_norm's op, `torch.norm`, dist and renorm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..op import Decompose, define
from ..types import (
    FLOAT,
    DType,
    TensorType,
    normalize_dim,
    normalize_dims,
    promote_types,
    result_type,
    type_word,
)
from ..value import FUNCTIONS, Value, public
from .arithmetic import conj
from .kinds import reduced_shape, require_value
from .layouts import row_major
from .reduce import MAXIMUM, MINIMUM, check_tensor, kept
from .totals import add_up


@row_major
def _vector_norm(
    x: np.ndarray, *, ord: float = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None,
    form: int = 0,
) -> Any:  # fmt: skip
    axes = tuple(range(x.ndim)) if dim is None else dim
    if dtype is not None:
        x = x.astype(dtype.compute)
    magnitude = np.abs(x)
    if math.isinf(ord):
        pick = MAXIMUM if ord > 0 else MINIMUM
        if not x.size and 0 not in [x.shape[d] for d in axes]:
            return np.zeros(reduced_shape(x.shape, axes, keepdim), magnitude.dtype)
        if ord > 0 and not magnitude.size:
            return MAXIMUM.reduce(magnitude, axis=axes, keepdims=keepdim, initial=0)
        return pick.reduce(magnitude, axis=axes, keepdims=keepdim)
    if ord == 0:
        return add_up((x != 0).astype(magnitude.dtype), axes, keepdim)
    if ord == 1:
        return add_up(magnitude, axes, keepdim)
    if ord == 2:
        return np.sqrt(add_up(magnitude * magnitude, axes, keepdim))
    total = add_up(np.power(magnitude, ord), axes, keepdim)
    return np.power(total, total.dtype.type(1 / ord))


def _vector_norm_infer(
    self: TensorType, *, ord: float = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None,
    form: int = 0,
) -> TensorType:  # fmt: skip
    axes = tuple(range(self.ndim)) if dim is None else dim
    return TensorType((dtype or self.dtype).to_real(), reduced_shape(self.shape, axes, keepdim))


def _vector_norm_rule(
    grad: Any, self: Any, result: Any, ord: float, dim: Any, keepdim: bool
) -> Any:
    """torch's formulas: finite, and zero where the norm is zero."""
    axes = tuple(range(self.ndim)) if dim is None else dim
    grad = kept(grad, self.type_, axes, keepdim)
    norm = kept(result, self.type_, axes, keepdim)
    if ord == 0:
        return None
    if ord == 1:
        return self.sgn() * grad
    if ord == 2:
        return grad * (self / norm).masked_fill(norm.eq(0), 0)
    if math.isinf(ord):
        magnitude = self.abs()
        mask = magnitude.eq(norm).logical_or(magnitude.isnan())
        count = mask.sum(axes, keepdim=True) if self.ndim else mask.sum()
        return self.sgn() * ((grad / count) * mask)
    if ord < 1:
        scaled = self.sgn() * self.abs().pow(ord - 1).masked_fill(self.eq(0), 0)
        return scaled * grad * norm.pow(1 - ord)
    scaled = self.sgn() * self.abs().pow(ord - 1) if ord < 2 else self * self.abs().pow(ord - 2)
    return scaled * (grad / norm.pow(ord - 1)).masked_fill(norm.eq(0), 0)


def _norm_samples(rng: np.random.Generator) -> list[Any]:
    x = rng.standard_normal((3, 4))
    return [((x,), {"ord": p, "dim": d, "keepdim": k})
            for p, d, k in ((2, None, False), (1, (0,), False), (3, (1,), True),
                            (math.inf, (0, 1), False), (-math.inf, (1,), False), (0.5, (0,), True),
                            (0, (0,), False), (1.5, None, False))]  # fmt: skip


vector_norm_op = define(
    "linalg_vector_norm", "self -> result", numpy=_vector_norm, infer=_vector_norm_infer,
    vjp=dict(self=_vector_norm_rule), gives_none=lambda node, *_: node.attributes["ord"] == 0,
    samples=_norm_samples, kind="reduction",
    # 1: where torch's own functions still call the older norm
    node=lambda attrs: ("LinalgVectorNormBackward0", "NormBackward1")[attrs.get("form", 0)],
)  # fmt: skip


def vector_norm(
    x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """linalg.vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None)."""
    check_tensor("linalg_vector_norm", x)
    ord = ord.item() if isinstance(ord, Value) else ord
    if x.dtype.category < FLOAT:
        raise RuntimeError("linalg.vector_norm: Expected a floating point or complex tensor as "
                           f"input. Got {type_word(x.dtype)}")  # fmt: skip
    check_dtype("linalg.vector_norm", x, dtype)
    axes = None if dim is None or dim in ((), []) else normalize_dims(dim, x.ndim)
    if ord < 0 or ord == math.inf:
        _check_identity(x, ord, axes)
    return vector_norm_op(x, ord=ord, dim=axes, keepdim=keepdim,
                          dtype=None if dtype is x.dtype else dtype)  # fmt: skip


def check_dtype(name: str, input: Any, dtype: DType | None) -> None:
    """The dtype a norm is computed in must hold all that its input does."""
    if dtype is None:
        return
    if dtype.category < FLOAT:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got "
                           f"{type_word(dtype)}")  # fmt: skip
    if dtype.is_complex != input.dtype.is_complex:
        kind = "complex" if input.dtype.is_complex else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got "
                           f"{type_word(dtype)}")  # fmt: skip
    if promote_types(input.dtype, dtype) is not dtype:
        raise RuntimeError(
            f"{name}: the dtype of the input ({type_word(input.dtype)}) should be convertible "
            f"without narrowing to the specified dtype ({type_word(dtype)})"
        )


def _check_identity(x: Any, ord: float, axes: Any) -> None:
    """Norms by a maximum or a negative power say nothing of no elements."""
    if axes is None and math.prod(x.shape) == 0:
        raise RuntimeError(f"linalg.vector_norm cannot compute the {ord:g} norm on an empty tensor "
                           "because the operation does not have an identity")  # fmt: skip
    for d in axes or ():
        if x.shape[d] == 0:
            raise RuntimeError(f"linalg.vector_norm cannot compute the {ord:g} norm on the "
                               f"dimension {d} because this dimension is empty and the operation "
                               "does not have an identity")  # fmt: skip


@public("norm")
def norm(
    input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    """norm(input, p='fro', dim=None, keepdim=False, dtype=None): of vectors; 'nuc' of matrices."""
    check_tensor("norm", input)
    dims = dim if dim is None or not isinstance(dim, int) else (dim,)
    if not isinstance(p, str):
        return vector_norm(input, 2 if p is None else p, dims, keepdim, dtype=dtype)
    if p == "fro" and (dims is None or len(dims) <= 2):
        return vector_norm(input, 2, dims, keepdim, dtype=dtype)
    dims = tuple(range(input.ndim)) if dims is None else tuple(dims)
    if len(dims) != 2:
        raise RuntimeError("linalg.matrix_norm: dim must be a 2-tuple. Got "
                           f"{' '.join(map(str, dims))}")  # fmt: skip
    return FUNCTIONS["linalg.matrix_norm"].call(input, p, dims, keepdim, dtype=dtype)


def _dist_rule(grad: Any, self: Any, other: Any, result: Any, p: float) -> Any:
    return _vector_norm_rule(grad, self - other, result, p, None, False)


def _dist_other_rule(grad: Any, self: Any, other: Any, result: Any, p: float) -> Any:
    slope = _dist_rule(grad, self, other, result, p)
    return None if slope is None else -slope


dist_op = define(
    "dist", "self other -> result", numpy=lambda a, b, *, p: _vector_norm(a - b, ord=p),
    infer=lambda self, other, *, p: TensorType(result_type((self, other)).to_real(), ()),
    lower=Decompose(lambda self, other, *, p: vector_norm_op(self - other, ord=p)),
    samples=lambda rng: [((rng.standard_normal((3, 4)), rng.standard_normal(4)), {"p": p})
                         for p in (2, 1, 3.0)],
    vjp=dict(self=_dist_rule, other=_dist_other_rule),
    gives_none=lambda node, *_: node.attributes["p"] == 0,
)  # fmt: skip


@public("dist", out="none")
def dist(input: Any, other: Any, p: float = 2) -> Any:
    """dist(input, other, p=2): the norm of the difference."""
    check_tensor("dist", input)
    require_value("dist", other, "other", 1)
    if result_type((input, other)).category < FLOAT:
        raise RuntimeError("norm(): input dtype should be either floating point or complex. Got "
                           f"{type_word(input.dtype)} instead.")  # fmt: skip
    common = result_type((input, other))
    return dist_op(input.to(common), other.to(common), p=p)


def _other_dims(ndim: int, dim: int) -> tuple[int, ...]:
    return tuple(d for d in range(ndim) if d != dim)


def _renorm(x: np.ndarray, *, p: float, dim: int, maxnorm: float) -> Any:
    norms = _vector_norm(x, ord=p, dim=_other_dims(x.ndim, dim), keepdim=True)
    scale = np.where(norms > maxnorm, norms.dtype.type(maxnorm) / (norms + norms.dtype.type(1e-7)),
                     norms.dtype.type(1))  # fmt: skip
    return np.multiply(x, scale, order="C")


def _renorm_expand(self: Any, *, p: float, dim: int, maxnorm: float) -> Any:
    norms = vector_norm_op(self, ord=p, dim=_other_dims(self.ndim, dim), keepdim=True)
    scale = maxnorm / (norms + 1e-7)
    return self * scale.where(norms > maxnorm, scale.new_full((), 1))


def _renorm_rule(grad: Any, self: Any, p: float, dim: int, maxnorm: float) -> Any:
    dims = _other_dims(self.ndim, dim)
    norms = vector_norm_op(self, ord=p, dim=dims, keepdim=True)
    inner = (conj(self) * grad).sum(dims, keepdim=True)
    inner = inner.real if inner.dtype.is_complex else inner
    inverse = (norms + 1e-7).reciprocal()
    towards = _vector_norm_rule(inner, self, norms, p, dims, True)
    return (maxnorm * inverse * (grad - inverse * towards)).where(norms > maxnorm, grad)


renorm_op = define(
    "renorm", "self -> result", numpy=_renorm, batch="loop", infer=lambda self, **_: self,
    lower=Decompose(_renorm_expand), vjp=dict(self=_renorm_rule),
    samples=lambda rng: [((rng.standard_normal((3, 4)),), {"p": p, "dim": d, "maxnorm": 1.5})
                         for p, d in ((2, 0), (1, 1))],
)  # fmt: skip


@public("renorm", inplace=True)
def renorm(input: Any, p: float, dim: int, maxnorm: float) -> Any:
    """renorm(input, p, dim, maxnorm): slices along `dim` with a larger norm are scaled to it."""
    check_tensor("renorm", input)
    if input.dtype.category < FLOAT:
        raise RuntimeError("linalg.vector_norm: Expected a floating point or complex tensor as "
                           f"input. Got {type_word(input.dtype)}")  # fmt: skip
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if input.ndim < 2:
        raise RuntimeError(
            f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions"
        )
    return renorm_op(input, p=p, dim=normalize_dim(dim, input.ndim), maxnorm=maxnorm)
