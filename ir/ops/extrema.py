"""Extrema: amax and amin, max and min with indices, argmax and argmin."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from ..op import Decompose, Template, define
from ..types import TensorType, bool_, int64, no_kernel, normalize_dim, normalize_dims
from ..value import Value, public
from .kinds import reduced_shape, reduction
from .layouts import row_major
from .reduce import MAXIMUM, MINIMUM, check_tensor, kept
from .results import named_result


def _empty_check(name: str, x: np.ndarray, dim: Any) -> None:
    for d in dim:
        if x.shape[d] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


def _extremum(name: str, ufunc: Any) -> Any:
    def evaluate(x: np.ndarray, *, dim: Any, keepdim: bool = False, whole: bool = False) -> Any:
        if x.ndim:
            _empty_check(name, x, dim)
        return ufunc.reduce(x, axis=dim, keepdims=keepdim)

    return evaluate


def _shared_vjp(grad: Any, self: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    """Elements that tie for the extremum share the gradient evenly."""
    mask = self == kept(result, self.type_, dim, keepdim)
    count = mask.sum(dim, keepdim=True) if self.ndim else mask.sum()
    spread = kept(grad, self.type_, dim, keepdim)
    return (spread / count).where(mask, spread.new_zeros(()))


amax = reduction("amax", "self -> result", numpy=_extremum("amax", np.maximum),
                 combine=lambda s, a, b: s.maximum(a, b), start="lowest",
                 vjp=dict(self=_shared_vjp))  # fmt: skip
amin = reduction("amin", "self -> result", numpy=_extremum("amin", np.minimum),
                 combine=lambda s, a, b: s.minimum(a, b), start="highest",
                 vjp=dict(self=_shared_vjp))  # fmt: skip
max_all = reduction("max_all", "self -> result", numpy=_extremum("max", np.maximum),
                    combine=lambda s, a, b: s.maximum(a, b), start="lowest", node="MaxBackward1",
                    vjp=dict(self=_shared_vjp))  # fmt: skip
min_all = reduction("min_all", "self -> result", numpy=_extremum("min", np.minimum),
                    combine=lambda s, a, b: s.minimum(a, b), start="highest", node="MinBackward1",
                    vjp=dict(self=_shared_vjp))  # fmt: skip


def _check_whole(name: str, input: Any, dim: Any) -> None:
    """What amax and amin refuse: everything of nothing, and complex numbers."""
    check_tensor(name, input)
    if input.dtype.is_complex and input.numel():
        raise no_kernel(f"{name[1:]}_values_cpu", input.dtype)
    if dim in ((), []) and 0 in input.shape:
        raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == "
                           "0. Specify the reduction dim with the 'dim' argument.")  # fmt: skip


@public("amax")
def amax_(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """amax(input, dim=(), keepdim=False): ties share the gradient."""
    _check_whole("amax", input, dim)
    return amax(input, dim=normalize_dims(dim, input.ndim), keepdim=keepdim)


@public("amin")
def amin_(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """amin(input, dim=(), keepdim=False): ties share the gradient."""
    _check_whole("amin", input, dim)
    return amin(input, dim=normalize_dims(dim, input.ndim), keepdim=keepdim)


def _with_index(name: str, pick: Any) -> Any:
    """Extremum along one dimension with its index: NaN wins, the first of equals is taken."""

    def evaluate(x: np.ndarray, *, dim: int, keepdim: bool = False) -> Any:
        if not x.ndim:
            return x.copy(), np.zeros((), np.int64)
        _empty_check(name, x, (dim,))
        index = np.expand_dims(pick(x, axis=dim), dim)
        values = np.take_along_axis(x, index, dim)
        if not keepdim:
            values, index = values.squeeze(dim), index.squeeze(dim)
        return values, index.astype(np.int64)

    return evaluate


def _with_index_infer(self: TensorType, *, dim: int, keepdim: bool = False) -> Any:
    shape = reduced_shape(self.shape, (dim,), keepdim) if self.shape else ()
    return TensorType(self.dtype, shape), TensorType(int64, shape)


def value_at_index_vjp(
    grad: Any, indices: Any, self_type: TensorType, dim: int, keepdim: bool
) -> Any:
    """The gradient goes to the element that was picked."""
    if not self_type.shape:
        return grad
    if not keepdim:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return grad.new_zeros(self_type.shape).scatter(dim, indices, grad)


def _line_samples(rng: np.random.Generator) -> list[Any]:
    return [((rng.standard_normal((3, 4)),), {"dim": d, "keepdim": k})
            for d in (0, 1) for k in (False, True)]  # fmt: skip


max_dim = define("max_dim", "self -> values indices", numpy=_with_index("max", np.argmax),
                 infer=_with_index_infer, lower=Template("arg_reduce"), node="MaxBackward0",
                 samples=_line_samples,
                 vjp=dict(self=value_at_index_vjp))  # fmt: skip
min_dim = define("min_dim", "self -> values indices", numpy=_with_index("min", np.argmin),
                 infer=_with_index_infer, lower=Template("arg_reduce"), node="MinBackward0",
                 samples=_line_samples,
                 vjp=dict(self=value_at_index_vjp))  # fmt: skip


def _extremum_function(name: str, whole: Any, along: Any) -> Any:
    def function(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        other = dim if other is None and isinstance(dim, Value) else other
        check_tensor(name, input)
        if other is not None:
            return getattr(input, name + "imum")(other)
        if dim is not None and not hasattr(dim, "__index__"):
            raise TypeError(f"{name}() received an invalid combination of arguments - got (Tensor, "
                            f"{type(dim).__name__})")  # fmt: skip
        if dim is None:
            if builtins.any(size == 0 for size in input.shape):
                raise RuntimeError(f"{name}(): Expected reduction dim to be specified for "
                                   "input.numel() == 0. Specify the reduction dim with the 'dim' "
                                   "argument.")  # fmt: skip
            if input.dtype.is_complex:
                raise no_kernel(f"{name}_all", input.dtype)
            return whole(input, dim=tuple(range(input.ndim)), whole=True)
        dim = normalize_dim(dim, input.ndim)
        if input.dtype.is_complex and input.numel():
            raise RuntimeError(f"{name}(): does not support complex input")
        result = along(input, dim=dim, keepdim=keepdim)
        return named_result(f"{name} values indices", result)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (f"{name}(input), {name}(input, dim, keepdim=False) with indices, or "
                        f"{name}(input, other).")  # fmt: skip
    return public(name)(function)


max = _extremum_function("max", max_all, max_dim)
min = _extremum_function("min", min_all, min_dim)


def _arg(pick: Any) -> Any:
    def evaluate(x: np.ndarray, *, dim: Any, keepdim: bool = False) -> Any:
        if dim is None:
            index = np.asarray(pick(x))
            return (index.reshape((1,) * x.ndim) if keepdim else index).astype(np.int64)
        return pick(x, axis=dim, keepdims=keepdim).astype(np.int64)

    return evaluate


def _arg_infer(self: TensorType, *, dim: Any, keepdim: bool = False) -> TensorType:
    dims = tuple(range(len(self.shape))) if dim is None else (dim,)
    return TensorType(int64, reduced_shape(self.shape, dims, keepdim))


argmax_op = define("argmax", "self -> result", numpy=_arg(np.argmax), infer=_arg_infer,
                   samples=_line_samples,
                   lower=Template("arg_reduce"))  # fmt: skip
argmin_op = define("argmin", "self -> result", numpy=_arg(np.argmin), infer=_arg_infer,
                   samples=_line_samples,
                   lower=Template("arg_reduce"))  # fmt: skip


def _arg_function(op: Any) -> Any:
    def function(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
        check_tensor(op.name, input)
        if input.dtype is bool_ or input.dtype.is_complex:
            kind = "bool" if input.dtype is bool_ else "complex"
            raise RuntimeError(f"{op.name}(): does not support {kind} input")
        if dim is None and math.prod(input.shape) == 0:
            raise IndexError(f"{op.name}(): Expected reduction dim to be specified for "
                             "input.numel() == 0. Specify the reduction dim with the 'dim' "
                             "argument.")  # fmt: skip
        if dim is not None:
            dim = normalize_dim(dim, input.ndim)
            if not input.ndim:
                dim = None
            elif input.shape[dim] == 0:
                raise IndexError(f"{op.name}(): Expected reduction dim {dim} to have non-zero "
                                 "size.")  # fmt: skip
        return op(input, dim=dim, keepdim=keepdim)

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = f"{op.name}(input, dim=None, keepdim=False): index of the extremum."
    return public(op.name)(function)


argmax = _arg_function(argmax_op)
argmin = _arg_function(argmin_op)


# --- both extrema --------------------------------------------------------------------------------


@row_major
def _aminmax(x: np.ndarray, *, dim: Any = None, keepdim: bool = False) -> Any:
    axes = tuple(range(x.ndim)) if dim is None else (dim,) if x.ndim else ()
    return (MINIMUM.reduce(x, axis=axes, keepdims=keepdim),
            MAXIMUM.reduce(x, axis=axes, keepdims=keepdim))  # fmt: skip


def _aminmax_axes(type_: TensorType, dim: Any) -> tuple[int, ...]:
    return tuple(range(type_.ndim)) if dim is None or not type_.ndim else (dim,)


def _aminmax_rule(
    grad_min: Any, grad_max: Any, self: Any, min: Any, max: Any, dim: Any, keepdim: bool
) -> Any:
    axes = _aminmax_axes(self.type_, dim)
    parts = [_shared_vjp(g, self, extremum, axes, keepdim)
             for g, extremum in ((grad_min, min), (grad_max, max)) if g is not None]  # fmt: skip
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


aminmax_op = define(
    "aminmax", "self -> min max", numpy=_aminmax, vjp=dict(self=_aminmax_rule),
    infer=lambda self, *, dim=None, keepdim=False: (TensorType(self.dtype, reduced_shape(
        self.shape, _aminmax_axes(self, dim), keepdim)),) * 2,
    lower=Decompose(lambda self, *, dim=None, keepdim=False: tuple(
        op(self, dim=_aminmax_axes(self.type_, dim), keepdim=keepdim) for op in (amin, amax))),
    samples=lambda rng: [((rng.standard_normal((3, 4)),), {"dim": d}) for d in (None, 0, 1)],
)  # fmt: skip


@public("aminmax")
def aminmax(input: Any, *, dim: Any = None, keepdim: bool = False) -> Any:
    """aminmax(input, *, dim=None, keepdim=False): the smallest and the largest."""
    if dim is not None:
        dim = normalize_dim(dim, input.ndim)
        if input.ndim and input.shape[dim] == 0:
            raise IndexError(f"aminmax(): Expected reduction dim {dim} to have non-zero size.")
    elif input.numel() == 0:
        raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the "
                           "operation has no identity.")  # fmt: skip
    if input.dtype.is_complex:
        raise no_kernel("aminmax_cpu", input.dtype)
    return named_result("aminmax min max", aminmax_op(input, dim=dim, keepdim=keepdim))
