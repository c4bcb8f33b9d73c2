"""Small functions of the torch namespace: facts of a tensor, where elements are, fill, copies."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op import define
from ..types import INTEGER, TensorType, int64
from ..value import Value, public
from .creation import fill as fill_op
from .creation import fill_tensor
from .kinds import require_value
from .reduce import check_tensor
from .slices import slice_bounds, slice_op
from .views import sizes

# The tracer makes it torch.Size, which this room cannot know.
make_size: Any = tuple


def _question(name: str, answer: Any) -> None:
    def function(input: Any) -> Any:
        check_tensor(name, input)
        return answer(input)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(input): as the method."
    public(name, method=False)(function)


_question("numel", lambda input: input.numel())
_question("is_signed", lambda input: input.dtype.is_signed)
_question("is_inference", lambda input: input.is_inference())
_question("get_device", lambda input: -1)
_question("detach", lambda input: input.detach())


@public("broadcast_shapes", method=False)
def broadcast_shapes(*shapes: Any) -> Any:
    """broadcast_shapes(*shapes): the common shape; an int counts as a vector's."""
    listed = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    for shape in listed:
        if any(n < 0 for n in shape):
            raise ValueError("Attempting to broadcast a dimension with negative length!")
    common: list[int] = [1] * max(map(len, listed), default=0)
    for place, shape in enumerate(listed):
        for k in range(-1, -len(shape) - 1, -1):
            if shape[k] == 1 or common[k] == shape[k]:
                continue
            if common[k] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[k]} at {k}! Mismatching "
                    f"argument at index {place} had {shape}; but expected shape should be "
                    f"broadcastable to {common}"
                )
            common[k] = shape[k]
    return make_size(tuple(common))


# --- where ---------------------------------------------------------------------------------------


@public("argwhere")
def argwhere(input: Any) -> Any:
    """argwhere(input): the indices of elements that are not zero, one a row."""
    return input.nonzero()


nonzero_static_op = define(
    "nonzero_static", "self -> result",
    numpy=lambda x, *, size, fill_value=-1: _nonzero_static(x, size, fill_value),
    infer=lambda self, *, size, fill_value=-1: TensorType(int64, (size, self.ndim)),
    samples=lambda rng: [((np.array([[0.0, 1.0], [2.0, 0.0]]),), {"size": 3})],
)  # fmt: skip


def _nonzero_static(x: np.ndarray, size: int, fill_value: int) -> np.ndarray:
    result = np.full((size, x.ndim), fill_value, np.int64)
    found = np.argwhere(x)[:size]
    result[: len(found)] = found
    return result


@public("nonzero_static")
def nonzero_static(input: Any, *, size: int, fill_value: int = -1) -> Any:
    """nonzero_static(input, *, size, fill_value=-1): nonzero, in as many rows as asked for."""
    return nonzero_static_op(input, size=size, fill_value=fill_value)


@public("unravel_index", method=False)
def unravel_index(indices: Any, shape: Any) -> Any:
    """unravel_index(indices, shape): flat indices as coordinates."""
    if indices.dtype.category != INTEGER:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype!r}")
    shape = (shape,) if isinstance(shape, int) else sizes((tuple(shape),))
    coordinates, step = [], 1
    indices = indices.to(int64)
    for n in reversed(shape):
        coordinates.append((indices // step) % n)
        step *= n
    return tuple(reversed(coordinates))


# --- fill ----------------------------------------------------------------------------------------


@public("fill", method=False)
def fill(input: Any, value: Any) -> Any:
    """fill(input, value): a tensor like this one, of one value."""
    if not isinstance(value, Value):
        return fill_op(input, value=value, form=0)
    if value.ndim:
        raise RuntimeError("fill only supports 0-dimension value tensor but got tensor with "
                           f"{value.ndim} dimensions.")  # fmt: skip
    return fill_tensor(input, value.to(input.dtype), size=tuple(input.shape), form=1)


# --- copies of views -----------------------------------------------------------------------------


def _copied(result: Any) -> Any:
    return tuple(part.clone() for part in result) if isinstance(result, tuple) else result.clone()


def _copying(name: str) -> None:
    """`name_copy`: what the view shows, as a tensor of its own."""

    def function(input: Any, *args: Any, **kwargs: Any) -> Any:
        require_value(f"{name}_copy", input)
        return _copied(getattr(input, name)(*args, **kwargs))

    function.__name__ = function.__qualname__ = f"{name}_copy"
    function.__doc__ = f"{name}_copy(input, ...): as {name}, never a view."
    public(f"{name}_copy", method=False)(function)


for _name in ("as_strided", "diagonal", "expand", "permute", "select", "split", "split_with_sizes",
              "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view"):  # fmt: skip
    _copying(_name)


@public("slice_copy", method=False)
def slice_copy(input: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    """slice_copy(input, dim=0, start=None, end=None, step=1)."""
    start, stop, step = slice_bounds(start, end, step, input.shape[dim])
    return slice_op(input, dim=dim % input.ndim, start=start, stop=stop, step=step).clone()
