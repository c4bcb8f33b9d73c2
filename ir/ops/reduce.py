"""Reductions over dimensions: sum, mean, prod, extrema, any and all, variance."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from ..op import Decompose, Template, define
from ..types import FLOAT, TensorType, bool_, int64, normalize_dim, normalize_dims
from ..value import Value, public
from .arithmetic import conj
from .kinds import accumulate_type, reduced_shape, reduction
from .results import named_result


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
    return np.add.reduce(x, axis=dim, keepdims=keepdim, dtype=x.dtype)


sum_op = reduction(
    "sum", "self -> result", numpy=_sum, node=numbered("Sum"),
    combine=lambda s, a, b: s.add(a, b), start=0,
    vjp=dict(self=lambda grad, self_type, dim, keepdim: unreduce(grad, self_type, dim, keepdim)),
)  # fmt: skip


def _mean(x: np.ndarray, *, dim: Any, keepdim: bool = False, whole: bool = False) -> Any:
    count = math.prod(x.shape[d] for d in dim)
    return np.divide(np.add.reduce(x, axis=dim, keepdims=keepdim), x.dtype.type(count))


def _mean_vjp(grad: Any, self_type: TensorType, dim: Any, keepdim: bool) -> Any:
    return unreduce(grad, self_type, dim, keepdim) / math.prod(self_type.shape[d] for d in dim)


mean_op = reduction(
    "mean", "self -> result", numpy=_mean, node=numbered("Mean"),
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


@public("sum")
def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """sum(input, dim=None, keepdim=False, *, dtype=None); integers are summed as int64."""
    check_tensor("sum", input)
    wanted = dtype or accumulate_type(input.dtype)
    if input.dtype is not wanted:
        input = input.to(wanted)
    return sum_op(input, keepdim=keepdim, **reduce_dims(input, dim))


@public("mean")
def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """mean(input, dim=None, keepdim=False, *, dtype=None)."""
    check_tensor("mean", input)
    if dtype is not None:
        input = input.to(dtype)
    if input.dtype.category < FLOAT:
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {type_word(input.dtype)}"
        )
    return mean_op(input, keepdim=keepdim, **reduce_dims(input, dim))


def type_word(dtype: Any) -> str:
    """torch's C++ name of a dtype, as its errors print it."""
    words = {"int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte",
             "bool": "Bool", "float32": "Float", "float64": "Double", "float16": "Half"}  # fmt: skip
    return words.get(dtype.name, dtype.name)


# --- products ------------------------------------------------------------------------------------


def _prod(x: np.ndarray, *, dim: Any, keepdim: bool = False, whole: bool = False) -> Any:
    return np.multiply.reduce(x, axis=dim, keepdims=keepdim, dtype=x.dtype)


def _prod_vjp(grad: Any, self: Any, dim: Any, keepdim: bool) -> Any:
    """The product of the other elements, exact where there are zeros."""
    spread = kept(grad, self.type_, dim, keepdim)
    return spread * conj(product_of_others(self, dim))


def product_of_others(x: Any, dim: Any) -> Any:
    """For each element, the product of all others along `dim`: cumulative from both sides."""
    order = [d for d in range(x.ndim) if d not in dim] + list(dim)
    lead = tuple(x.shape[d] for d in order[: x.ndim - len(dim)])
    count = math.prod(x.shape[d] for d in dim)
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


@public("prod")
def prod(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """prod(input, dim=None, keepdim=False, *, dtype=None)."""
    wanted = dtype or accumulate_type(input.dtype)
    if input.dtype is not wanted:
        input = input.to(wanted)
    return prod_op(input, keepdim=keepdim, **reduce_dims(input, dim))


# --- extrema -------------------------------------------------------------------------------------


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


@public("amax")
def amax_(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """amax(input, dim=(), keepdim=False): ties share the gradient."""
    return amax(input, dim=normalize_dims(dim, input.ndim), keepdim=keepdim)


@public("amin")
def amin_(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """amin(input, dim=(), keepdim=False): ties share the gradient."""
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


max_dim = define("max_dim", "self -> values indices", numpy=_with_index("max", np.argmax),
                 infer=_with_index_infer, lower=Template("arg_reduce"), node="MaxBackward0",
                 vjp=dict(self=value_at_index_vjp))  # fmt: skip
min_dim = define("min_dim", "self -> values indices", numpy=_with_index("min", np.argmin),
                 infer=_with_index_infer, lower=Template("arg_reduce"), node="MinBackward0",
                 vjp=dict(self=value_at_index_vjp))  # fmt: skip


def _extremum_function(name: str, whole: Any, along: Any) -> Any:
    def function(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        if isinstance(dim, Value) or other is not None:
            return getattr(input, name + "imum")(dim if other is None else other)
        if dim is None:
            if builtins.any(size == 0 for size in input.shape):
                raise RuntimeError(f"{name}(): Expected reduction dim to be specified for "
                                   "input.numel() == 0. Specify the reduction dim with the 'dim' "
                                   "argument.")  # fmt: skip
            return whole(input, dim=tuple(range(input.ndim)), whole=True)
        result = along(input, dim=normalize_dim(dim, input.ndim), keepdim=keepdim)
        return named_result(name, result)

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
                   lower=Template("arg_reduce"))  # fmt: skip
argmin_op = define("argmin", "self -> result", numpy=_arg(np.argmin), infer=_arg_infer,
                   lower=Template("arg_reduce"))  # fmt: skip


def _arg_function(op: Any) -> Any:
    def function(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
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


# --- any and all ---------------------------------------------------------------------------------


def _quantifier(name: str, ufunc: Any, combine: Any, start: int) -> Any:
    def evaluate(x: np.ndarray, *, dim: Any, keepdim: bool = False, whole: bool = False) -> Any:
        return ufunc.reduce(x.astype(np.bool_, copy=False), axis=dim, keepdims=keepdim)

    op = reduction(
        name, "self -> result", numpy=evaluate, dtype=bool_, combine=combine, start=start
    )

    def function(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
        result = op(input, keepdim=keepdim, **reduce_dims(input, dim))
        return result.to("uint8") if input.dtype.name == "uint8" else result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(input, dim=None, keepdim=False)."
    public(name)(function)
    return op


any = _quantifier("any", np.logical_or, lambda s, a, b: s.logical_or(a, b), 0)
all = _quantifier("all", np.logical_and, lambda s, a, b: s.logical_and(a, b), 1)


# --- variance ------------------------------------------------------------------------------------


def _var(
    x: np.ndarray, *, dim: Any, keepdim: bool = False, correction: Any = 1, whole: bool = False
) -> Any:  # noqa: E501
    count = math.prod(x.shape[d] for d in dim)
    centred = x - np.mean(x, axis=dim, keepdims=True)
    squares = (centred * centred.conj()).real if x.dtype.kind == "c" else centred * centred
    total = np.add.reduce(squares, axis=dim, keepdims=keepdim)
    return np.divide(total, total.dtype.type(builtins.max(0, count - correction)))


def _var_expand(
    self: Any, *, dim: Any, keepdim: bool = False, correction: Any = 1, whole: bool = False
) -> Any:  # noqa: E501
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
