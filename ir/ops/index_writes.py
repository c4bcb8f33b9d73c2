"""Slices along a dimension by index: index_select, index_add, index_copy, index_fill,
index_reduce; elements by flat index: take and put."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arguments import check_elements
from ..op import Decompose, Op, Template, define
from ..types import TensorType, int64, normalize_dim, type_word
from ..value import Value, public
from .accumulate import assign_at, combine_at, inside, positions_of, reduce_at, wrapped
from .gathering import check_range, places, reduce_rule
from .indexing import index_infer, index_op, index_put_op
from .kinds import cast_number
from .looking import along_dim
from .views import zeros


def _spec(dim: int) -> tuple[bool, ...]:
    return (False,) * dim + (True,)


def _positions(x: np.ndarray, index: np.ndarray, dim: int) -> np.ndarray:
    """Flat positions of the slices `index` names, in the order of a source's elements."""
    if not x.ndim:
        return inside(index, 1).reshape(-1)
    flat = inside(index.reshape(-1), x.shape[dim])
    positions, _, lead = positions_of(x.shape, (flat,), _spec(dim))
    return np.moveaxis(positions, 0, lead).reshape(-1)


def slice_samples(rng: np.random.Generator) -> list[Any]:
    """A tensor, indices of its slices, and a source."""
    x = rng.standard_normal((3, 4))
    return [((x, np.array([2, 0]), rng.standard_normal((2, 4))), {"dim": 0}),
            ((x, np.array([1, 3]), rng.standard_normal((3, 2))), {"dim": 1})]  # fmt: skip


def without_source(rng: np.random.Generator, **more: Any) -> list[Any]:
    return [(inputs[:2], {**attrs, **more}) for inputs, attrs in slice_samples(rng)]


# --- reading slices ------------------------------------------------------------------------------

index_select_op = define(
    "index_select", "self index -> result", moves_data=True, lower=Template("gather"),
    infer=lambda self, index, *, dim: (
        index_infer(self, index, spec=_spec(dim)) if self.shape else self),
    numpy=lambda x, index, *, dim: np.take(x, index, axis=dim) if x.ndim else x.copy(),
    samples=without_source, raises=along_dim,
    vjp=dict(self=lambda grad, self_type, index, dim: index_add_op(
        zeros(TensorType(grad.dtype, self_type.shape)), index, grad, dim=dim)),
)  # fmt: skip


def check_slices(name: str, input: Any, dim: int, index: Any) -> tuple[int, Any]:
    """The dimension and the indices of slices, checked; int64 afterwards."""
    dim = normalize_dim(dim, input.ndim)
    if index.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim}; "
                         "flatten() it")  # fmt: skip
    if index.dtype.name not in ("int64", "int32"):
        if name == "index_select":
            raise RuntimeError("index_select(): Expected dtype int32 or int64 for index; got "
                               f"{type_word(index.dtype)}")  # fmt: skip
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index but got: "
                           f"{type_word(index.dtype)}")  # fmt: skip
    return dim, index.reshape(-1) if index.dtype is int64 else index.reshape(-1).to(int64)


def check_bounds(index: Any, size: int, negative: bool = False) -> None:
    check_elements(_check_inside, index, size, negative)


def _check_inside(array: np.ndarray, size: int, negative: bool) -> None:
    outside = (array < (-size if negative else 0)) | (array >= size)
    if not outside.any():
        return
    if negative:
        raise IndexError(f"out of range: tried to access index {array[outside][0]} on a tensor of "
                         f"{size} elements.")  # fmt: skip
    raise IndexError(f"index out of range in self: indices must lie within [0, {size - 1}]")


@public("index_select", overlap="apart")
def index_select(input: Any, dim: int, index: Any) -> Any:
    """index_select(input, dim, index)."""
    dim, index = check_slices("index_select", input, dim, index)
    check_bounds(index, input.shape[dim] if input.ndim else 1)
    if not input.ndim and index.numel() != 1:
        raise RuntimeError("index_select(): Index to scalar can have only 1 value, got "
                           f"{index.numel()} value(s)")  # fmt: skip
    return index_select_op(input, index, dim=dim)


# --- writing slices ------------------------------------------------------------------------------


def take_slices(grad: Any, index: Any, dim: int, source_type: TensorType) -> Any:
    """The slices of a gradient that belong to a source."""
    if not grad.ndim:
        return grad.expand(source_type.shape) if source_type.shape else grad
    return index_select_op(grad, index, dim=dim).view(source_type.shape)


index_add_op: Op = define(
    "index_add", "self index source -> result", samples=slice_samples,
    numpy=lambda x, index, source, *, dim, alpha=1: combine_at(
        np.add, x, _positions(x, index, dim),
        source if alpha == 1 else source * cast_number(alpha, source.dtype)),
    infer=lambda self, index, source, **_: self,
    lower=Decompose(lambda self, index, source, *, dim, alpha=1: index_put_op(
        self, source if alpha == 1 else source * alpha, places(index, self.shape[dim]),
        spec=_spec(dim), accumulate=True) if self.ndim else NotImplemented),
    vjp=dict(self=lambda grad: grad,
             source=lambda grad, index, source_type, dim, alpha: take_slices(
                 grad, index, dim, source_type) * alpha),
)  # fmt: skip
index_copy_op = define(
    "index_copy", "self index source -> result", moves_data=True, samples=slice_samples,
    numpy=lambda x, index, source, *, dim: assign_at(
        x, _positions(x, index, dim), source.reshape(-1)),
    infer=lambda self, index, source, **_: self,
    lower=Decompose(lambda self, index, source, *, dim: index_put_op(
        self, source, places(index, self.shape[dim]), spec=_spec(dim))
        if self.ndim else NotImplemented),
    vjp=dict(self=lambda grad, index, dim: index_fill_op(grad, index, dim=dim, value=0),
             source=lambda grad, index, source_type, dim: take_slices(
                 grad, index, dim, source_type)),
)  # fmt: skip


def _filled(x: np.ndarray, index: np.ndarray, value: Any, dim: int) -> np.ndarray:
    result = np.array(x)
    if x.ndim:
        result[(slice(None),) * dim + (index,)] = value
    elif index.size:
        result[...] = value
    return result


index_fill_op: Op = define(
    "index_fill", "self index -> result", infer=lambda self, index, **_: self,
    numpy=lambda x, index, *, dim, value: _filled(x, index, value, dim),
    lower=Decompose(lambda self, index, *, dim, value: index_put_op(
        self, self.new_full((), value), index, spec=_spec(dim)) if self.ndim else NotImplemented),
    samples=lambda rng: without_source(rng, value=1.5),
    vjp=dict(self=lambda grad, index, dim: index_fill_op(grad, index, dim=dim, value=0)),
)  # fmt: skip
index_fill_tensor = define(
    "index_fill_tensor", "self index value -> result", node="IndexFillBackward1",
    infer=lambda self, index, value, **_: self,
    numpy=lambda x, index, value, *, dim: _filled(x, index, value.astype(x.dtype), dim),
    lower=Decompose(lambda self, index, value, *, dim: index_put_op(
        self, value.to(self.dtype), index, spec=_spec(dim)) if self.ndim else NotImplemented),
    samples=lambda rng: [((*inputs, rng.standard_normal(())), attrs)
                         for inputs, attrs in without_source(rng)],
    vjp=dict(self=lambda grad, index, dim: index_fill_op(grad, index, dim=dim, value=0),
             value=lambda grad, index, dim: (
                 grad - index_fill_op(grad, index, dim=dim, value=0)).sum()),
)  # fmt: skip


def check_source(name: str, input: Any, dim: int, index: Any, source: Any) -> None:
    """A source has the shape of the slices it is written to."""
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"{name}(): self and source expected to have the same dtype, but got (self) "
            f"{input.dtype.name} and (source) {source.dtype.name}"
        )
    have = source.shape[dim] if source.ndim else 1
    if index.numel() != have:
        kind = IndexError if name == "index_copy_" else RuntimeError
        raise kind(f"{name}(): Number of indices ({index.numel()}) should be equal to "
                   f"source.size(dim): ({have}), for dim: {dim}")  # fmt: skip
    slices, given = (_without(dim, value.shape) for value in (input, source))
    if name == "index_copy_":
        if source.ndim not in (0, input.ndim) and input.ndim:
            raise IndexError("index_copy_(): When source and destination are not scalars, their "
                             "dimensionality must match. Source dimensionality "
                             f"({source.ndim}), destination dimensionality ({input.ndim})"
                             )  # fmt: skip
        if slices != given:
            words = [" ".join(map(str, shape)) for shape in (slices, given)]
            raise RuntimeError("index_copy_(): Source/destination tensor must have same slice "
                               f"shapes. Destination slice shape: {words[0]} at dimension {dim} "
                               f"and source slice shape: {words[1]} at dimension {dim}."
                               )  # fmt: skip
    elif slices != given or source.ndim != input.ndim:
        raise RuntimeError("source tensor shape must match self tensor shape, excluding the "
                           f"specified dimension. Got self.shape = {list(input.shape)} "
                           f"source.shape = {list(source.shape)}")  # fmt: skip


def _without(dim: int, shape: Any) -> list[int]:
    return [size for k, size in enumerate(shape) if k != dim]


@public("index_add", inplace=True, overlap="apart")
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """index_add(input, dim, index, source, *, alpha=1)."""
    dim, index = check_slices("index_add_", input, dim, index)
    check_source("index_add_", input, dim, index, source)
    if input.ndim > 1:
        check_range(index, dim, input.shape[dim])
    else:  # torch has a loop of its own for vectors, with another error
        check_bounds(index, input.numel())
    return index_add_op(input, index, source, dim=dim, alpha=alpha)


@public("index_copy", inplace=True, overlap="apart")
def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    """index_copy(input, dim, index, source)."""
    dim, index = check_slices("index_copy_", input, dim, index)
    check_source("index_copy_", input, dim, index, source)
    check_bounds(index, input.shape[dim] if input.ndim else 1)
    return index_copy_op(input, index, source, dim=dim)


@public("index_fill", inplace=True, out="none")
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """index_fill(input, dim, index, value): `value` is a number or a 0-d tensor."""
    dim, index = check_slices("index_fill_", input, dim, index)
    check_bounds(index, input.shape[dim] if input.ndim else 1, negative=True)
    if isinstance(value, Value):
        if value.ndim:
            raise RuntimeError("index_fill_ only supports a 0-dimensional value tensor, but got "
                               f"tensor with {value.ndim} dimension(s).")  # fmt: skip
        return index_fill_tensor(input, index, value, dim=dim)
    if isinstance(value, complex) and not input.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not "
                           "supported")  # fmt: skip
    return index_fill_op(input, index, dim=dim, value=value)


# --- index_reduce --------------------------------------------------------------------------------


def _index_reduce_rule(
    grad: Any, self: Any, index: Any, source: Any, result: Any, dim: int, reduce: str,
    include_self: bool,
) -> tuple[Any, Any]:  # fmt: skip
    """index_reduce is scatter_reduce whose index repeats along the other dimensions."""
    shape = [1] * max(1, source.ndim)
    shape[dim] = -1
    spread = index.view(shape).expand(source.shape) if source.ndim else index.view(())
    return reduce_rule(grad, self, spread, source, result, dim, reduce, include_self)


index_reduce_op = define(
    "index_reduce", "self index source -> result", infer=lambda self, index, source, **_: self,
    numpy=lambda x, index, source, *, dim, reduce, include_self=True: reduce_at(
        x, _positions(x, index, dim), source, reduce, include_self),
    samples=lambda rng: [
        (inputs, {**attrs, "reduce": reduce, "include_self": include})
        for inputs, attrs in slice_samples(rng) for reduce in ("prod", "mean", "amax", "amin")
        for include in (True, False)],
    vjp={("self", "source"): _index_reduce_rule}, raises=along_dim,
)  # fmt: skip


@public("index_reduce", inplace=True, overlap="apart")
def index_reduce(
    input: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """index_reduce(input, dim, index, source, reduce, *, include_self=True)."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError("index_reduce(): Expected reduce to be one of prod, mean, amax or amin "
                           f"but got {reduce}.")  # fmt: skip
    dim, index = check_slices("index_reduce", input, dim, index)
    check_source("index_reduce", input, dim, index, source)
    check_bounds(index, input.shape[dim] if input.ndim else 1)
    return index_reduce_op(input, index, source, dim=dim, reduce=reduce, include_self=include_self)


# --- flat indices --------------------------------------------------------------------------------


def _flat(value: Any) -> Any:
    return value.reshape((math.prod(value.shape),))


take_op = define(
    "take", "self index -> result", moves_data=True,
    numpy=lambda x, index: x.reshape(-1)[index],
    infer=lambda self, index: TensorType(self.dtype, index.shape),
    lower=Decompose(lambda self, index: index_op(_flat(self), index, spec=(True,))),
    samples=lambda rng: [((rng.standard_normal((3, 4)), np.array([[0, 11], [-2, 5]])), {})],
    vjp=dict(self=lambda grad, self_type, index: put_op(
        zeros(TensorType(grad.dtype, self_type.shape)), index, grad, accumulate=True)),
)  # fmt: skip


def _put(x: np.ndarray, index: np.ndarray, source: np.ndarray, *, accumulate: bool = False) -> Any:
    positions = wrapped(index, x.size).reshape(-1)
    if accumulate:
        return combine_at(np.add, x, positions, source)
    return assign_at(x, positions, source.reshape(-1))


put_op: Op = define(
    "put", "self index source -> result", numpy=_put, infer=lambda self, index, source, **_: self,
    lower=Decompose(lambda self, index, source, *, accumulate=False: index_put_op(
        _flat(self), source.reshape(tuple(index.shape)), index, spec=(True,),
        accumulate=accumulate).reshape(tuple(self.shape))),
    samples=lambda rng: [((rng.standard_normal((3, 4)), np.array([0, 11, 5]),
                           rng.standard_normal(3)), {"accumulate": a}) for a in (True, False)],
    vjp=dict(self=lambda grad, index, source_type, accumulate: grad if accumulate else put_op(
                 grad, index, zeros(source_type)),
             source=lambda grad, index, source_type: take_op(grad, index).reshape(
                 source_type.shape)),
)  # fmt: skip


def _check_flat(name: str, input: Any, index: Any) -> None:
    if index.dtype is not int64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got "
                           f"{index.dtype.name}")  # fmt: skip
    count = input.numel()
    if index.numel() and not count:
        raise IndexError(f"{name}(): tried to take from an empty tensor")
    check_bounds(index, count, negative=True)


@public("take", overlap="apart")
def take(input: Any, index: Any) -> Any:
    """take(input, index): elements by their position in the flattened tensor."""
    _check_flat("take", input, index)
    return take_op(input, index)


@public("put", inplace=True, overlap="apart")
def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """put(input, index, source, accumulate=False): writes elements by flat position."""
    _check_flat("put_", input, index)
    if source.dtype is not input.dtype:
        raise RuntimeError("put_(): self and source expected to have the same dtype, but got "
                           f"self.dtype = {input.dtype.name} and source.dtype = "
                           f"{source.dtype.name}")  # fmt: skip
    if index.numel() != source.numel():
        raise IndexError("put_(): Expected source and index to have the same number of elements, "
                           f"but got source.numel() = {source.numel()}, index.numel() = "
                           f"{index.numel()}")  # fmt: skip
    return put_op(input, index, source, accumulate=accumulate)
