"""Parts of a tensor as views: select, slice, diagonal; and their functional writes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dims import Dim
from ..op import Decompose, Op, define
from ..types import INTEGER, Shape, TensorType, normalize_dim
from ..value import Value, public
from .kinds import view
from .views import as_int, unsqueeze_op, zeros


def at(dim: int, index: Any) -> tuple[Any, ...]:
    return (slice(None),) * dim + (index,)


def _scatter_into(x: np.ndarray, src: np.ndarray, place: Any) -> np.ndarray:
    result = np.array(x)
    result[place] = src
    return result


select_op = view(
    "select", "self -> result", numpy=lambda x, *, dim, index: x[at(dim, index) + (...,)],
    second=True,
    infer=lambda self, *, dim, index: TensorType(
        self.dtype, self.shape[:dim] + self.shape[dim + 1 :]),
    put=lambda base, patch, *, dim, index: select_scatter(base, patch, dim=dim, index=index),
    samples=lambda rng: [((rng.standard_normal((3, 4)),), {"dim": 1, "index": 2})],
    vjp=dict(self=lambda grad, self_type, dim, index: select_scatter(
        zeros(self_type), grad, dim=dim, index=index)),
)  # fmt: skip
select_scatter: Op = define(
    "select_scatter", "self src -> result", moves_data=True,
    numpy=lambda x, src, *, dim, index: _scatter_into(x, src, at(dim, index)),
    infer=lambda self, src, *, dim, index: self,
    lower=Decompose(lambda self, src, *, dim, index: slice_scatter(
        self, unsqueeze_op(src, dim=dim), dim=dim, start=index, stop=index + 1, step=1)),
    samples=lambda rng: [((rng.standard_normal((3, 4)), rng.standard_normal(3)),
        {"dim": 1, "index": 2})],
    vjp=dict(self=lambda grad, src_type, dim, index: select_scatter(
                 grad, zeros(src_type), dim=dim, index=index),
             src=lambda grad, dim, index: select_op(grad, dim=dim, index=index)),
)  # fmt: skip


def slice_bounds(start: Any, stop: Any, step: Any, size: int) -> tuple[int, int, int]:
    """As `slice.indices` for a positive step, with `stop` not before `start`; of Dims, too."""
    if Dim not in (type(start), type(stop), type(size)):
        first, last, step = slice(start, stop, step).indices(size)
        return first, max(first, last), step

    def counted(bound: Any) -> Any:
        if bound < 0:
            bound = bound + size
        return (bound if bound < size else size) if bound > 0 else 0

    first = 0 if start is None else counted(as_int(start))
    last = size if stop is None else counted(as_int(stop))
    return first, max(first, last), 1 if step is None else as_int(step)


def slice_length(start: int, stop: int, step: int) -> int:
    return max(0, -(-(stop - start) // step))


def _slice_infer(self: TensorType, *, dim: int, start: int, stop: int, step: int = 1) -> TensorType:
    length = slice_length(start, stop, step)
    return TensorType(self.dtype, (*self.shape[:dim], length, *self.shape[dim + 1 :]))


slice_op = view(
    "slice", "self -> result", second=True, infer=_slice_infer, shown={"stop": "end"},
    numpy=lambda x, *, dim, start, stop, step=1: x[at(dim, slice(start, stop, step))],
    put=lambda base, patch, *, dim, start, stop, step=1: slice_scatter(
        base, patch, dim=dim, start=start, stop=stop, step=step),
    samples=lambda rng: [((rng.standard_normal((3, 4)),),
        {"dim": 1, "start": 1, "stop": 4, "step": 2})],
    vjp=dict(self=lambda grad, self_type, dim, start, stop, step: slice_scatter(
        zeros(self_type), grad, dim=dim, start=start, stop=stop, step=step)),
)  # fmt: skip
slice_scatter: Op = define(
    "slice_scatter", "self src -> result", moves_data=True, batch="shift", shown={"stop": "end"},
    numpy=lambda x, src, *, dim, start, stop, step=1: _scatter_into(
        x, src, at(dim, slice(start, stop, step))),
    infer=lambda self, src, **_: self,
    samples=lambda rng: [((rng.standard_normal((3, 4)), rng.standard_normal((3, 2))),
        {"dim": 1, "start": 1, "stop": 4, "step": 2})],
    vjp=dict(self=lambda grad, src_type, dim, start, stop, step: slice_scatter(
                 grad, zeros(src_type), dim=dim, start=start, stop=stop, step=step),
             src=lambda grad, dim, start, stop, step: slice_op(
                 grad, dim=dim, start=start, stop=stop, step=step)),
)  # fmt: skip


@public("select")
def select(input: Any, dim: int, index: Any) -> Any:
    """select(input, dim, index): the slice at `index`, without that dimension."""
    if not input.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim, index = normalize_dim(dim, input.ndim), as_int(index)
    size = input.shape[dim]
    if not -size <= index < size:
        raise IndexError(f"select(): index {index} out of range for tensor of size "
                         f"{list(input.shape)} at dimension {dim}")  # fmt: skip
    return select_op(input, dim=dim, index=index % size)


def narrow_bounds(input: Any, dim: int, start: Any, length: Any) -> tuple[int, int, int]:
    """The arguments of narrow, checked and counted from the front."""
    if not input.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if isinstance(start, Value) and (start.ndim or start.dtype.category != INTEGER):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    dim, start, length = normalize_dim(dim, input.ndim), as_int(start), as_int(length)
    size = input.shape[dim]
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but "
                         f"got {start})")  # fmt: skip
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return dim, start, length


@public("narrow")
def narrow(input: Any, dim: int, start: Any, length: int) -> Any:
    """narrow(input, dim, start, length)."""
    dim, start, length = narrow_bounds(input, dim, start, length)
    return slice_op(input, dim=dim, start=start, stop=start + length, step=1)


def diagonal_count(shape: Shape, offset: int, dim1: int, dim2: int) -> int:
    """How many elements a diagonal has."""
    rows, columns = shape[dim1], shape[dim2]
    return max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))


def _diagonal_place(shape: Any, offset: int, dim1: int, dim2: int) -> Any:
    count = diagonal_count(shape, offset, dim1, dim2)
    first = np.arange(count) + max(0, -offset)
    second = np.arange(count) + max(0, offset)
    return first, second


def _diagonal_scatter(x: np.ndarray, src: np.ndarray, *, offset: int, dim1: int, dim2: int) -> Any:
    result = np.array(x)
    window = np.moveaxis(result, (dim1, dim2), (-2, -1))
    first, second = _diagonal_place(x.shape, offset, dim1, dim2)
    window[..., first, second] = src
    return result


def _diagonal_infer(
    self: TensorType, *, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> TensorType:
    kept = [n for k, n in enumerate(self.shape) if k not in (dim1, dim2)]
    return TensorType(self.dtype, (*kept, diagonal_count(self.shape, offset, dim1, dim2)))


def _diagonal(x: np.ndarray, *, offset: int, dim1: int, dim2: int) -> np.ndarray:
    result = np.diagonal(x, offset, dim1, dim2)
    if x.flags.writeable:
        result.flags.writeable = True
    return result


diagonal_op = view(
    "diagonal", "self -> result", second=True, numpy=_diagonal, restrides=True,
    infer=_diagonal_infer,
    put=lambda base, patch, *, offset, dim1, dim2: diagonal_scatter(
        base, patch, offset=offset, dim1=dim1, dim2=dim2),
    samples=lambda rng: [((rng.standard_normal((3, 4)),),
        {"offset": k, "dim1": 0, "dim2": 1}) for k in (-1, 0, 1)],
    vjp=dict(self=lambda grad, self_type, offset, dim1, dim2: diagonal_scatter(
        zeros(self_type), grad, offset=offset, dim1=dim1, dim2=dim2)),
)  # fmt: skip
diagonal_scatter: Op = define(
    "diagonal_scatter", "self src -> result", moves_data=True, numpy=_diagonal_scatter,
    infer=lambda self, src, **_: self,
    samples=lambda rng: [((rng.standard_normal((3, 4)), rng.standard_normal(3)),
        {"offset": 1, "dim1": 0, "dim2": 1})],
    vjp=dict(self=lambda grad, src_type, offset, dim1, dim2: diagonal_scatter(
                 grad, zeros(src_type), offset=offset, dim1=dim1, dim2=dim2),
             src=lambda grad, offset, dim1, dim2: diagonal_op(
                 grad, offset=offset, dim1=dim1, dim2=dim2)),
)  # fmt: skip


@public("diagonal")
def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """diagonal(input, offset=0, dim1=0, dim2=1)."""
    first, second = normalize_dim(dim1, input.ndim), normalize_dim(dim2, input.ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return diagonal_op(input, offset=offset, dim1=first, dim2=second)


# --- the functional writes -----------------------------------------------------------------------


def _check_part(name: str, src: Any, wanted: Any) -> None:
    if tuple(src.shape) != tuple(wanted):
        raise RuntimeError(
            f"{name}(): expected src to have a size equal to the slice of self. "
            f"src size = {list(src.shape)}, slice size = {list(wanted)}"
        )


@public("select_scatter")
def select_scatter_(input: Any, src: Any, dim: int, index: int) -> Any:
    """select_scatter(input, src, dim, index): input with src at input.select(dim, index)."""
    dim, size = normalize_dim(dim, input.ndim), input.shape[normalize_dim(dim, input.ndim)]
    if not -size <= index < size:
        raise IndexError(f"select(): index {index} out of range for tensor of size "
                         f"{list(input.shape)} at dimension {dim}")  # fmt: skip
    _check_part("select_scatter", src, [n for k, n in enumerate(input.shape) if k != dim])
    return select_scatter(input, src, dim=dim, index=index % size)


@public("slice_scatter")
def slice_scatter_(
    input: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    """slice_scatter(input, src, dim=0, start=None, end=None, step=1)."""
    dim = normalize_dim(dim, input.ndim)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    start, stop, step = slice_bounds(start, end, step, input.shape[dim])
    attrs = dict(dim=dim, start=start, stop=stop, step=step)
    _check_part("slice_scatter", src, _slice_infer(input.type_, **attrs).shape)
    return slice_scatter(input, src, **attrs)


@public("diagonal_scatter")
def diagonal_scatter_(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """diagonal_scatter(input, src, offset=0, dim1=0, dim2=1)."""
    attrs = dict(offset=offset, dim1=normalize_dim(dim1, input.ndim),
                 dim2=normalize_dim(dim2, input.ndim))  # fmt: skip
    _check_part("diagonal_scatter", src, diagonal_op.infer(input.type_, **attrs).shape)
    return diagonal_scatter(input, src, **attrs)


narrow_copy_op = define(
    "narrow_copy", "self -> result", moves_data=True,
    numpy=lambda x, *, dim, start, length: x[at(dim, slice(start, start + length))].copy(),
    infer=lambda self, *, dim, start, length: TensorType(
        self.dtype, (*self.shape[:dim], length, *self.shape[dim + 1 :])),
    lower=Decompose(lambda self, *, dim, start, length: slice_op(
        self, dim=dim, start=start, stop=start + length, step=1)),
    samples=lambda rng: [((rng.standard_normal((3, 4)),), {"dim": 1, "start": 1, "length": 2})],
    vjp=dict(self=lambda grad, self_type, dim, start, length: slice_scatter(
        zeros(TensorType(grad.dtype, self_type.shape)), grad, dim=dim, start=start,
        stop=start + length, step=1)),
)  # fmt: skip


@public("narrow_copy")
def narrow_copy(input: Any, dim: int, start: int, length: int) -> Any:
    """narrow_copy(input, dim, start, length): as narrow, never a view."""
    dim, start, length = narrow_bounds(input, dim, start, length)
    return narrow_copy_op(input, dim=dim, start=start, length=length)
