"""Views by strides: as_strided and unfold, with their adjoints and functional writes.

Note [Strides as attributes]
    `as_strided` reads memory, not elements. An op may not depend on where its input lies, so the
    input's own strides are an attribute (`base_stride`): with them the op is a gather of elements,
    the same for every interpreter. Eager input that lies as the attribute says gives a true view.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..op import Op, define
from ..types import TensorType, normalize_dim
from ..value import public
from .accumulate import assign_at, combine_at, strides_of
from .kinds import view
from .slices import slice_op
from .views import as_int, sizes, zeros

# --- as_strided ----------------------------------------------------------------------------------


def memory_positions(size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> np.ndarray:
    """Where the elements of a strided tensor lie, counted in elements."""
    total = np.asarray(offset)
    for k, (n, step) in enumerate(zip(size, stride)):
        line = np.arange(n) * step
        total = total + line.reshape((n,) + (1,) * (len(size) - k - 1))
    return np.broadcast_to(total, size)


def element_positions(
    shape: tuple[int, ...], size: Any, stride: Any, offset: int, base_stride: Any
) -> np.ndarray:
    """Which elements of a tensor of `shape` and `base_stride` the strided view reads.

    -1 stands for memory of the storage that no element of the tensor has.
    """
    wanted = memory_positions(size, stride, offset)
    if tuple(base_stride) == tuple(strides_of(shape)):
        return np.where((wanted >= 0) & (wanted < math.prod(shape)), wanted, -1)
    lies = memory_positions(shape, base_stride, 0).reshape(-1)
    owner = np.full(max(int(lies.max(initial=0)), int(wanted.max(initial=0))) + 1, -1)
    owner[lies] = np.arange(lies.size)
    return np.where(wanted >= 0, owner[np.maximum(wanted, 0)], -1)


def _lies_so(x: np.ndarray, base_stride: tuple[int, ...]) -> bool:
    return all(n <= 1 or have == want * x.itemsize
               for n, have, want in zip(x.shape, x.strides, base_stride))  # fmt: skip


def bottom(array: Any) -> Any:
    """The array at the bottom of a chain of views."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def memory_of(array: Any) -> Any:
    """All memory that an array is a view of, flat."""
    return bottom(array).ravel(order="K")


def strided_array(
    memory: np.ndarray, size: tuple[int, ...], stride: tuple[int, ...], offset: int
) -> Any:
    """A writable view of flat `memory`; `offset` and `stride` count elements."""
    step = memory.itemsize
    return np.ndarray(size, memory.dtype, memory, offset * step, [s * step for s in stride])


def _as_strided(x: np.ndarray, *, size: Any, stride: Any, offset: int, base_stride: Any) -> Any:
    if x.size and _lies_so(x, base_stride):
        memory = memory_of(x)
        here = (x.ctypes.data - memory.ctypes.data) // x.itemsize
        last = here + offset + sum((n - 1) * s for n, s in zip(size, stride))
        inside = memory.dtype == x.dtype and here + offset >= 0 and last < memory.size
        if memory.flags.writeable and inside and math.prod(size):
            return strided_array(memory, size, stride, here + offset)
    places = element_positions(x.shape, size, stride, offset, base_stride)
    if not x.size:
        return np.zeros(size, x.dtype)
    return np.where(places >= 0, x.reshape(-1)[places], x.dtype.type(0))


def _added(grad: np.ndarray, shape: tuple[int, ...], places: np.ndarray) -> np.ndarray:
    inside = places >= 0
    return combine_at(np.add, np.zeros(shape, grad.dtype), places[inside], grad[inside])


def _written(x: np.ndarray, src: np.ndarray, places: np.ndarray) -> np.ndarray:
    inside = places >= 0
    return assign_at(x, places[inside], src[inside])


as_strided_op = view(
    "as_strided", "self -> result", numpy=_as_strided, lower=None, restrides=True,
    shown={"offset": "storage_offset", "base_stride": None, "self_sym_sizes": None},
    infer=lambda self, *, size, **_: TensorType(self.dtype, size),
    beyond=lambda shape, **attrs: bool((element_positions(shape, **attrs) < 0).any()),
    put=lambda base, patch, **attrs: as_strided_scatter_op(base, patch, **attrs),
    samples=lambda rng: [((rng.standard_normal((3, 4)),), {
        "size": (2, 3), "stride": (5, 2), "offset": 1, "base_stride": (4, 1)})],
    vjp=dict(self=lambda grad, self_type, size, stride, offset, base_stride: as_strided_add(
        grad, shape=self_type.shape, size=size, stride=stride, offset=offset,
        base_stride=base_stride)),
)  # fmt: skip
as_strided_add: Op = define(
    "as_strided_add", "grad -> result",
    numpy=lambda grad, *, shape, size, stride, offset, base_stride: _added(
        grad, shape, element_positions(shape, size, stride, offset, base_stride)),
    infer=lambda grad, *, shape, **_: TensorType(grad.dtype, shape),
    samples=lambda rng: [((rng.standard_normal((2, 3)),), {
        "shape": (3, 4), "size": (2, 3), "stride": (2, 2), "offset": 1, "base_stride": (4, 1)})],
    vjp=dict(grad=lambda grad_result, size, stride, offset, base_stride: as_strided_op(
        grad_result, size=size, stride=stride, offset=offset, base_stride=base_stride)),
)  # fmt: skip
as_strided_scatter_op: Op = define(
    "as_strided_scatter", "self src -> result", moves_data=True,
    shown={"offset": "storage_offset", "base_stride": None},
    numpy=lambda x, src, *, size, stride, offset, base_stride: _written(
        x, src, element_positions(x.shape, size, stride, offset, base_stride)),
    infer=lambda self, src, **_: self,
    samples=lambda rng: [((rng.standard_normal((3, 4)), rng.standard_normal((2, 3))), {
        "size": (2, 3), "stride": (5, 2), "offset": 1, "base_stride": (4, 1)})],
    vjp=dict(self=lambda grad, src_type, size, stride, offset, base_stride: as_strided_scatter_op(
                 grad, zeros(src_type), size=size, stride=stride, offset=offset,
                 base_stride=base_stride),
             src=lambda grad, size, stride, offset, base_stride: as_strided_op(
                 grad, size=size, stride=stride, offset=offset, base_stride=base_stride)),
)  # fmt: skip


def strided_attributes(input: Any, size: Any, stride: Any, storage_offset: Any) -> dict[str, Any]:
    """The attributes of as_strided, checked against the storage where the input has one."""
    size, stride = sizes((tuple(size),)), sizes((tuple(stride),))
    if len(size) != len(stride):
        raise RuntimeError(f"mismatch in length of strides and shape: sizes {list(size)}, strides "
                           f"{list(stride)}")  # fmt: skip
    if any(s < 0 for s in stride):
        raise RuntimeError("as_strided: Negative strides are not supported at the moment, got "
                           f"strides: {list(stride)}")  # fmt: skip
    own = getattr(input, "_array", None)
    here = 0 if own is None else input.storage_offset()
    offset = here if storage_offset is None else as_int(storage_offset)
    base_stride = tuple(strides_of(tuple(input.shape))) if own is None else input.stride()
    last = offset + sum((n - 1) * s for n, s in zip(size, stride))
    count = math.prod(input.shape) if own is None else bottom(own).nbytes // own.itemsize
    if math.prod(size) and (offset < 0 or last >= count):
        item = input.dtype.itemsize
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and "
            f"itemsize {item} requiring a storage size of {(last + 1) * item} are out of bounds "
            f"for storage of size {count * item}"
        )
    return {"size": size, "stride": stride, "offset": offset - here, "base_stride": base_stride}


@public("as_strided")
def as_strided(input: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """as_strided(input, size, stride, storage_offset=None): a view of the storage."""
    return as_strided_op(input, **strided_attributes(input, size, stride, storage_offset))


@public("as_strided_scatter")
def as_strided_scatter(
    input: Any, src: Any, size: Any, stride: Any, storage_offset: Any = None
) -> Any:
    """as_strided_scatter(input, src, size, stride, storage_offset=None)."""
    attrs = strided_attributes(input, size, stride, storage_offset)
    if tuple(src.shape) != attrs["size"]:
        raise RuntimeError("expected src to have a size equal to the slice of self. src size = "
                           f"{list(src.shape)}, slice size = {list(attrs['size'])}")  # fmt: skip
    return as_strided_scatter_op(input, src, **attrs)


# --- unfold --------------------------------------------------------------------------------------


def windows_shape(shape: Any, dimension: int, size: int, step: int) -> tuple[int, ...]:
    if not shape:
        return (size,)
    count = (shape[dimension] - size) // step + 1
    return (*shape[:dimension], count, *shape[dimension + 1 :], size)


def _unfold(x: np.ndarray, *, dimension: int, size: int, step: int) -> np.ndarray:
    if not x.ndim:
        return x.reshape((1,))[:size]
    shape = windows_shape(x.shape, dimension, size, step)
    strides = list(x.strides)
    strides[dimension] *= step
    return np.lib.stride_tricks.as_strided(x, shape, (*strides, x.strides[dimension]))


def _window_positions(shape: Any, dimension: int, size: int, step: int) -> np.ndarray:
    return _unfold(np.arange(math.prod(shape)).reshape(shape), dimension=dimension, size=size,
                   step=step)  # fmt: skip


def _unfold_samples(shape: tuple[int, ...]) -> Any:
    return lambda rng: [((rng.standard_normal(shape),), {"dimension": 1, "size": 2, "step": s})
                        for s in (1, 2)]  # fmt: skip


unfold_op = view(
    "unfold", "self -> result", numpy=_unfold, lower=None, restrides=True,
    samples=_unfold_samples((3, 5)),
    infer=lambda self, *, dimension, size, step: TensorType(
        self.dtype, windows_shape(self.shape, dimension, size, step)),
    put=lambda base, patch, **attrs: unfold_scatter(base, patch, **attrs),
    vjp=dict(self=lambda grad, self_type, dimension, size, step: unfold_backward(
        grad, input_sizes=self_type.shape, dimension=dimension, size=size, step=step)),
)  # fmt: skip
unfold_backward: Op = define(
    "unfold_backward", "grad -> result",
    numpy=lambda grad, *, input_sizes, dimension, size, step: combine_at(
        np.add, np.zeros(input_sizes, grad.dtype),
        _window_positions(input_sizes, dimension, size, step), grad),
    infer=lambda grad, *, input_sizes, **_: TensorType(grad.dtype, input_sizes),
    samples=lambda rng: [((rng.standard_normal((3, 4, 2)),), {
        "input_sizes": (3, 5), "dimension": 1, "size": 2, "step": 1})],
    vjp=dict(grad=lambda grad_result, dimension, size, step: unfold_op(
        grad_result, dimension=dimension, size=size, step=step)),
)  # fmt: skip
unfold_scatter: Op = define(
    "unfold_scatter", "self src -> result", moves_data=True,
    numpy=lambda x, src, *, dimension, size, step: assign_at(
        x, _window_positions(x.shape, dimension, size, step), src),
    infer=lambda self, src, **_: self,
    samples=lambda rng: [((rng.standard_normal((3, 5)), rng.standard_normal((3, 2, 2))), {
        "dimension": 1, "size": 2, "step": 3})],
    vjp=dict(self=lambda grad, src_type, dimension, size, step: unfold_scatter(
                 grad, zeros(src_type), dimension=dimension, size=size, step=step),
             src=lambda grad, dimension, size, step: unfold_op(
                 grad, dimension=dimension, size=size, step=step)),
)  # fmt: skip


@public("unfold", spaces="")
def unfold(input: Any, dimension: int, size: int, step: int) -> Any:
    """unfold(dimension, size, step): sliding windows, in a new last dimension."""
    dimension = normalize_dim(dimension, input.ndim)
    extent = input.shape[dimension] if input.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > extent:
        raise RuntimeError(f"maximum size for tensor at dimension {dimension} is {extent} but size "
                           f"is {size}; use a smaller one")  # fmt: skip
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not input.ndim:
        return slice_op(input.reshape((1,)), dim=0, start=0, stop=size, step=1)
    return unfold_op(input, dimension=dimension, size=size, step=step)
