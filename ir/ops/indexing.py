"""Indexing: `x[...]` in full, index_put, nonzero.

Basic indices become views (`select`, `slice`, `unsqueeze`); the rest is one `index` op with tensors
of indices, whose counterpart for writing and for gradients is `index_put`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import check_elements, warn
from ..dims import as_index
from ..op import Op, Template, define
from ..types import TensorType, bool_, broadcast_shapes, int64, type_word
from ..value import Value, public
from .accumulate import combine_at, positions_of
from .arithmetic import alias
from .looking import from_either_end
from .masks import check_mask, fits_behind, one_mask
from .slices import select_op, slice_bounds, slice_op
from .views import unsqueeze_op, zeros

# --- the index op --------------------------------------------------------------------------------

# `spec` has an entry per indexed dimension of self: True where the next index tensor applies, False
# for a full slice. So x[:, i, :, j] is index(x, i, j, spec=(False, True, False, True)).


def _place(indices: Any, spec: tuple[bool, ...]) -> tuple[Any, ...]:
    queue = iter(indices)
    return tuple(next(queue) if indexed else slice(None) for indexed in spec)


def index_samples(rng: np.random.Generator) -> list[Any]:
    """Indices without repetitions: adjacent, apart, broadcast."""
    x = rng.standard_normal((3, 4, 2))
    rows, columns = np.array([2, 0]), np.array([[1, 3], [0, 2]])
    return [((x, rows), {"spec": (True,)}), ((x, columns), {"spec": (False, True)}),
            ((x, rows, columns), {"spec": (True, True)}),
            ((x, rows[:, None], np.array([1, 0])), {"spec": (True, False, True)})]  # fmt: skip


def index_infer(self: TensorType, *indices: TensorType, spec: tuple[bool, ...]) -> TensorType:
    common = broadcast_shapes(*(i.shape for i in indices))
    places = [k for k, indexed in enumerate(spec) if indexed]
    rest = [n for k, n in enumerate(self.shape) if k >= len(spec) or not spec[k]]
    adjacent = places == list(range(places[0], places[-1] + 1))
    lead = places[0] if adjacent else 0
    return TensorType(self.dtype, (*rest[:lead], *common, *rest[lead:]))


def _index(x: np.ndarray, *indices: np.ndarray, spec: tuple[bool, ...]) -> Any:
    if len(indices) == 1:
        return np.take(x, indices[0], axis=len(spec) - 1)
    result = x[_place(indices, spec)]
    return result if result.flags.c_contiguous else result.copy()


index_op = define(
    "index", "self *indices -> result", moves_data=True, infer=index_infer,
    second="IndexPutImplBackward0",
    numpy=_index,
    lower=Template("gather"), samples=index_samples,
    shown={"spec": None}, raises=from_either_end(1),
    vjp=dict(self=lambda grad, self_type, indices, spec: index_put_op(
        zeros(TensorType(grad.dtype, self_type.shape)), grad, *indices, spec=spec,
        accumulate=True)),
)  # fmt: skip


def _index_put(x: Any, values: Any, *indices: Any, spec: Any, accumulate: bool = False) -> Any:
    if not accumulate:
        result = np.array(x)
        result[_place(indices, spec)] = values
        return result
    positions, common, lead = positions_of(x.shape, indices, spec)
    shape = positions.shape
    moved = (*shape[common : common + lead], *shape[:common], *shape[common + lead :])
    spread = np.broadcast_to(values, moved)
    order = [*range(lead, lead + common), *range(lead), *range(lead + common, spread.ndim)]
    return combine_at(np.add, x, positions, spread.transpose(order))


def _index_put_self(grad: Any, indices: Any, values_type: Any, spec: Any, accumulate: bool) -> Any:
    if accumulate:
        return grad
    return index_put_op(grad, zeros(values_type), *indices, spec=spec, accumulate=False)


index_put_op: Op = define(
    "index_put", "self values *indices -> result", numpy=_index_put,
    infer=lambda self, values, *indices, **_: self, lower=Template("scatter"),
    raises=from_either_end(2), shown={"spec": None},
    samples=lambda rng: [
        ((x, rng.standard_normal(np.shape(x[_place(i, spec)])), *i),
         {"spec": spec, "accumulate": accumulate})
        for (x, *i), attrs in index_samples(rng) for spec in [attrs["spec"]]
        for accumulate in (True, False)],
    vjp=dict(self=_index_put_self,
             values=lambda grad, indices, spec: index_op(grad, *indices, spec=spec)),
)  # fmt: skip


# --- reading and writing x[...] ------------------------------------------------------------------


_NESTED = (list, tuple, slice, range, Value, np.ndarray, type(None), type(Ellipsis))


def normalise_items(input: Any, item: Any) -> list[Any]:
    """The items of an index as ints, slices, None, Ellipsis, bools and index Values."""
    # a short list with sequences in it counts as a tuple, numpy's old rule that torch keeps
    nested = isinstance(item, list) and len(item) < 32 and any(
        isinstance(i, _NESTED) for i in item)  # fmt: skip
    if nested:
        warn("Using a non-tuple sequence for multidimensional indexing is deprecated and will be "
             "changed in pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this "
             "will be interpreted as tensor index, x[torch.tensor(seq)], which will result either "
             "in an error or a different result")  # fmt: skip
    items = list(item) if isinstance(item, tuple) or nested else [item]
    items = [_as_index(input, i) for i in items]
    if (used := sum(_consumed(i) for i in items)) > input.ndim:
        raise _too_many(input, items)
    if not any(i is Ellipsis for i in items):
        items.append(Ellipsis)
    place = next(k for k, i in enumerate(items) if i is Ellipsis)
    rest = [i for i in items[place + 1 :] if i is not Ellipsis]
    return items[:place] + [slice(None)] * (input.ndim - used) + rest


def _too_many(input: Any, items: list[Any]) -> IndexError:
    if input.ndim or len(items) > 1:
        return IndexError(f"too many indices for tensor of dimension {input.ndim}")
    if isinstance(items[0], slice):
        return IndexError("slice() cannot be applied to a 0-dim tensor.")
    return IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                      "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a "
                      "number")  # fmt: skip


def _consumed(item: Any) -> int:
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if isinstance(item, Value) and item.dtype.name in ("bool", "uint8"):
        return item.ndim
    return 1


def _as_index(input: Any, item: Any) -> Any:
    """Lists and arrays become index Values; what has `__index__` becomes an int."""
    if item is None or item is Ellipsis or isinstance(item, slice | bool):
        return item
    if isinstance(item, Value):
        if item.dtype.category > 1:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        return item
    if isinstance(item, np.bool_):
        return bool(item)
    if hasattr(item, "__index__") and not isinstance(item, np.ndarray):
        return as_index(item)
    if isinstance(item, list | tuple | np.ndarray | range):
        return _index_from_list(input, item)
    if isinstance(item, str):
        raise TypeError("new(): invalid data type 'str'; use integers, slices or Tensors")
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
        f"indices (got {type(item).__name__})"
    )


def _index_from_list(input: Any, item: Any) -> Any:
    if isinstance(item, list | tuple) and any(isinstance(i, Value) for i in item):
        item = [int(i) for i in item]
    array = np.asarray(item)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iub":
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return input._constant(array if array.dtype.kind == "b" else array.astype(np.int64))


def apply_basic(input: Any, items: list[Any]) -> tuple[Any, list[Any]]:
    """Applies ints, slices and None as views; returns the view and an index Value per dimension."""
    result, dim = input, 0
    indices: list[Any] = []
    for place, item in enumerate(items):
        # in vmap, one number per example: an index like others
        if isinstance(item, Value) and not item.ndim and not getattr(item, "_batched", False):
            item = bool(item) if item.dtype.name in ("bool", "uint8") else int(item)
        if item is None:
            result = unsqueeze_op(result, dim=dim)
        elif isinstance(item, bool):  # a new dimension, of which all or nothing is taken
            result = unsqueeze_op(result, dim=dim)
            item = input._constant(np.zeros(int(item), np.int64))
        elif isinstance(item, int):
            result = _select(result, dim, item, place)
            continue
        elif isinstance(item, slice):
            result = _slice(result, dim, item)
        if isinstance(item, Value):
            count = max(1, _consumed(item))
            indices += [None] * (dim - len(indices)) + [item] + [None] * (count - 1)
            dim += count - 1
        dim += 1
    return result, indices


def _select(result: Any, dim: int, index: int, place: int) -> Any:
    """One index of a dimension, which errors call by its place among the items."""
    size = result.shape[dim]
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {place} with size {size}")
    return select_op(result, dim=dim, index=index % size)


def _slice(result: Any, dim: int, item: slice, view: bool = False) -> Any:
    if item.start is None and item.stop is None and item.step is None and not view:
        return result
    bounds = (item.start, item.stop, item.step)
    if not all(bound is None or hasattr(bound, "__index__") for bound in bounds):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    start, stop, step = (None if bound is None else as_index(bound) for bound in bounds)
    if step is not None and step <= 0:
        raise ValueError("step must be greater than zero")
    start, stop, step = slice_bounds(start, stop, step, result.shape[dim])
    if (start, stop, step) == (0, result.shape[dim], 1) and not view:
        return result
    return slice_op(result, dim=dim, start=start, stop=stop, step=step)


def expand_masks(value: Any, indices: list[Any]) -> tuple[list[Any], tuple[bool, ...]]:
    """Bool masks become their nonzero indices; all indices int64, in range, non-negative."""
    found: list[Any] = []
    spec: list[bool] = []
    dim = 0
    while dim < len(indices):
        item = indices[dim]
        if item is None:
            spec.append(False)
            dim += 1
        elif item.dtype.name in ("bool", "uint8"):
            check_mask(value, item, dim)
            if item.dtype is not bool_:
                warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype "
                     "torch.bool instead.")  # fmt: skip
            parts = item.to(bool_).nonzero(as_tuple=True)
            found += parts
            spec += [True] * len(parts)
            dim += max(1, item.ndim)
        else:
            found.append(_wrapped(item, value.shape[dim], dim))
            spec.append(True)
            dim += 1
    _check_broadcast(found)
    return found, tuple(spec)


def _check_broadcast(found: list[Any]) -> None:
    try:
        broadcast_shapes(*(tuple(i.shape) for i in found))
    except RuntimeError:
        listed = ", ".join(str(list(i.shape)) for i in found)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {listed}"
        ) from None


def _wrapped(index: Any, size: int, dim: int) -> Any:
    """Indices as int64; negative ones count from the end. Out of range raises."""
    check_elements(_check_bounds, index, size, dim)
    return index if index.dtype is int64 else index.to(int64)


def _check_bounds(array: np.ndarray, size: int, dim: int) -> None:
    low, high = int(array.min()), int(array.max())
    if low < -size or high >= size:
        bad = low if low < -size else high
        raise IndexError(f"index {bad} is out of bounds for dimension {dim} with size {size}")


def getitem(input: Any, item: Any) -> Any:
    """`input[item]`."""
    if input.ndim:
        if type(item) is int:
            return _select(input, 0, item, 0)
        if type(item) is slice:
            return _slice(input, 0, item, view=True)
        if (
            type(item) is tuple
            and 0 < len(item) <= input.ndim
            and _PLAIN.issuperset(map(type, item))
        ):
            return _plain_item(input, item)
    items = normalise_items(input, item)
    viewed, indices = apply_basic(input, items)
    if indices:
        found, spec = expand_masks(viewed, indices)
        return index_op(viewed, *found, spec=spec)
    return alias(viewed) if viewed is input else viewed


_PLAIN = {int, slice}


def _plain_item(input: Any, item: tuple[Any, ...]) -> Any:
    """The commonest index, ints and slices, without looking for anything else."""
    result, dim = input, 0
    for place, part in enumerate(item):
        if type(part) is int:
            result = _select(result, dim, part, place)
        else:
            result = _slice(result, dim, part)
            dim += 1
    return alias(result) if result is input else result


def setitem(input: Any, item: Any, value: Any) -> None:
    """`input[item] = value`: a write through the view, or index_put."""
    if item is False:
        return
    item = None if item is True else item
    items = normalise_items(input, item)
    viewed, indices = apply_basic(input, items)
    if not isinstance(value, Value):
        value = input._constant_like(value)
    elif getattr(value, "wrapped", False):  # a number takes the dtype
        value = value.to(input.dtype)
    if not indices:
        _write_view(input, viewed, value)
        return
    mask = one_mask(viewed, indices)
    if mask is not None and fits_behind(mask, viewed, value):
        viewed.mask_put_(value if value.ndim else value.to(viewed.dtype), mask)
        return
    found, spec = expand_masks(viewed, indices)
    shape = index_infer(viewed.type_, *[i.type_ for i in found], spec=spec).shape
    value = _fit_value(value, shape, viewed.dtype)
    viewed.index_put_whole_(value, tuple(found), spec)


def _write_view(input: Any, viewed: Any, value: Any) -> None:
    shape = tuple(viewed.shape)
    if tuple(value.shape) != shape:
        lead = len(value.shape) - len(shape)
        if lead > 0 and all(n == 1 for n in value.shape[:lead]):
            value = value.reshape(tuple(value.shape)[lead:])
    if value.ndim:
        viewed.copy_(value if tuple(value.shape) == shape else value.expand(shape))
    else:
        viewed.fill_(value)


def _fit_value(value: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    lead = len(value.shape) - len(shape)
    if lead > 0 and all(n == 1 for n in value.shape[:lead]):
        value = value.reshape(tuple(value.shape)[lead:])
    try:
        fits = broadcast_shapes(tuple(value.shape), shape) == shape
    except RuntimeError:
        fits = False
    if not fits:
        raise RuntimeError(f"shape mismatch: value tensor of shape {list(value.shape)} cannot be "
                           f"broadcast to indexing result of shape {list(shape)}")  # fmt: skip
    if value.dtype is not dtype:
        raise RuntimeError("Index put requires the source and destination dtypes match, got "
                           f"{type_word(dtype)} for the destination and {type_word(value.dtype)} "
                           "for the source.")  # fmt: skip
    return value.expand(shape)


for _name, _function in (("__getitem__", getitem), ("__setitem__", setitem)):
    setattr(Value, _name, _function)


@public("index_put_whole", spaces="", inplace=True, overlap="apart")
def index_put_whole(
    input: Any, value: Any, indices: Any, spec: Any, accumulate: bool = False
) -> Any:
    """Assignment through index tensors that were checked and broadcast already."""
    return index_put_op(input, value, *indices, spec=spec, accumulate=accumulate)


@public("index_put", inplace=True, overlap="apart")
def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """index_put(input, indices, values, accumulate=False)."""
    items = [i if i is None else _as_index(input, i) for i in indices]
    if (used := sum(1 if i is None else _consumed(i) for i in items)) > input.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input.ndim} (got {used})")
    found, spec = expand_masks(input, items)
    shape = index_infer(input.type_, *[i.type_ for i in found], spec=spec).shape
    value = _fit_value(values, shape, input.dtype)
    return index_put_op(input, value, *found, spec=spec, accumulate=accumulate)


# --- nonzero -------------------------------------------------------------------------------------

nonzero_op = define("nonzero", "self -> result", data_shape=True,
                    numpy=lambda x: np.stack(np.nonzero(x), axis=-1) if x.ndim else
                    np.zeros((int(bool(x)), 0), np.int64))  # fmt: skip


@public("nonzero")
def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """nonzero(input, *, as_tuple=False): the indices of elements that are not zero."""
    if not as_tuple:
        return nonzero_op(input)
    if not input.ndim:
        return nonzero(input.unsqueeze(0), as_tuple=True)
    return nonzero_op(input).unbind(1)
