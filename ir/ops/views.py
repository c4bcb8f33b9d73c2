"""Views: data movement that shares memory. Each has `put`, the functional form of a write."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dims import is_dim
from ..op import Decompose, Op, define, same
from ..types import DType, TensorType, normalize_dim, type_word
from ..value import public
from .kinds import view
from .stretches import can_view


def sizes(values: tuple[Any, ...]) -> tuple[int, ...]:
    """`f(2, 3)` and `f((2, 3))` alike, as a tuple of ints."""
    if len(values) == 1 and isinstance(values[0], list | tuple):
        values = tuple(values[0])
    return tuple([v if v.__class__ is int else as_int(v) for v in values])


def as_int(value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"expected an int, got {type(value).__name__}: sizes and dims must be ints")
    return value if is_dim(value) else int(value.__index__())


def zeros(type_: TensorType) -> Any:
    """A Value of zeros, made by the interpreter that runs now."""
    from .creation import full

    return full(size=type_.shape, fill_value=0, dtype=type_.dtype)


# --- reshaping -----------------------------------------------------------------------------------


def view_shape(size: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """`size` with -1 filled in; RuntimeError in torch's words where it does not fit."""
    count = math.prod(shape)
    if math.prod(size) == count and all(n >= 0 for n in size):
        return size
    wild = [k for k, n in enumerate(size) if n == -1]
    if len(wild) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if any(n < -1 for n in size):
        raise RuntimeError(f"invalid shape dimension {min(size)}; only -1 may be negative")
    rest = math.prod(n for n in size if n != -1)
    if wild:
        if rest == 0 and count == 0:
            raise RuntimeError(f"cannot reshape tensor of 0 elements into shape {list(size)} "
                               "because the unspecified dimension size -1 can be any value and is "
                               "ambiguous; give all sizes")  # fmt: skip
        if rest == 0 or count % rest:
            raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {count}")
        return tuple(count // rest if n == -1 else n for n in size)
    if rest != count:
        raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {count}")
    return size


def _view(x: np.ndarray, *, size: tuple[int, ...]) -> np.ndarray:
    try:
        return x.reshape(size, copy=False)
    except ValueError:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        ) from None


def _reshape_infer(self: TensorType, *, size: tuple[int, ...]) -> TensorType:
    return TensorType(self.dtype, view_shape(size, self.shape))


view_op = view(
    "view", "self -> result", numpy=_view, infer=_reshape_infer,
    put=lambda base, patch, *, size: patch.reshape(base.shape),
    samples=lambda rng: [((rng.standard_normal((3, 4)),), {"size": (2, 6)})],
    vjp=dict(self=lambda grad, self_type: grad.reshape(self_type.shape)),
)  # fmt: skip
reshape_copy = define(
    "reshape_copy", "self -> result", infer=_reshape_infer, node="UnsafeViewBackward0",
    numpy=lambda x, *, size: np.array(x, order="C").reshape(size), moves_data=True, kind="view",
    lower=Decompose(lambda self, *, size: view_op(self, size=size)),
    samples=lambda rng: [((rng.standard_normal((3, 4)),), {"size": (2, 6)})],
    vjp=dict(self=lambda grad, self_type: grad.reshape(self_type.shape)),
)  # fmt: skip


@public("view", spaces="")
def view_(input: Any, *shape: Any, dtype: Any = None) -> Any:
    """view(*shape) or view(dtype): the same memory in another shape or element type."""
    if dtype is None and len(shape) == 1 and isinstance(shape[0], DType):
        dtype = shape[0]
    if dtype is not None:
        from .reinterpreting import view_dtype

        return view_dtype(input, dtype)
    if not shape:
        raise TypeError("view() received an invalid combination of arguments - got (), but "
                        "expected one of: (torch.dtype dtype), (tuple of ints size)")  # fmt: skip
    size = view_shape(sizes(shape), tuple(input.shape))
    can_view(input, size)  # a recording learns for which sizes; the op itself refuses
    return view_op(input, size=size)


@public("reshape")
def reshape(input: Any, *shape: Any, **named: Any) -> Any:
    """reshape(input, shape): a view where the strides allow it, else a copy."""
    shape = (named["shape"],) if "shape" in named else shape
    if not shape:
        raise TypeError('reshape() missing 1 required positional arguments: "shape"')
    size = view_shape(sizes(shape), tuple(input.shape))
    if can_view(input, size):
        return view_op(input, size=size)
    return reshape_copy(input, size=size)


@public("view_as", spaces="")
def view_as(input: Any, other: Any) -> Any:
    """view_as(other): view(other.size())."""
    return view_(input, tuple(other.shape))


@public("reshape_as", spaces="")
def reshape_as(input: Any, other: Any) -> Any:
    """reshape_as(other): reshape(other.size())."""
    return reshape(input, tuple(other.shape))


@public("flatten")
def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """flatten(input, start_dim=0, end_dim=-1)."""
    first, last = normalize_dim(start_dim, input.ndim), normalize_dim(end_dim, input.ndim)
    if not input.ndim:
        return reshape(input, (1,))
    if first > last:
        raise RuntimeError(
            "flatten() has invalid args: start_dim cannot come after end_dim; give them in order"
        )
    if first == last:
        return input
    shape = tuple(input.shape)
    middle = math.prod(shape[first : last + 1])
    return reshape(input, (*shape[:first], middle, *shape[last + 1 :]))


@public("ravel")
def ravel(input: Any) -> Any:
    """ravel(input): flattened, contiguous."""
    return reshape(input, (-1,) if math.prod(input.shape) else (0,))


@public("unflatten")
def unflatten(input: Any, dim: int, sizes: Any) -> Any:
    """unflatten(input, dim, sizes): splits one dimension into several."""
    dim = normalize_dim(dim, input.ndim)
    shape = tuple(input.shape)
    if -1 not in sizes and math.prod(sizes) != shape[dim]:
        raise RuntimeError(f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size "
                           f"of dim {dim} ({shape[dim]}) in the input tensor")  # fmt: skip
    inner = view_shape(tuple(sizes), (shape[dim],))
    return reshape(input, (*shape[:dim], *inner, *shape[dim + 1 :]))


# --- permuting -----------------------------------------------------------------------------------


def inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    order = [0] * len(dims)
    for place, d in enumerate(dims):
        order[d] = place
    return tuple(order)


permute_op: Op = view(
    "permute", "self -> result", numpy=lambda x, *, dims: x.transpose(dims),
    infer=lambda self, *, dims: TensorType(self.dtype, tuple(self.shape[d] for d in dims)),
    put=lambda base, patch, *, dims: permute_op(patch, dims=inverse(dims)),
    samples=lambda rng: [((rng.standard_normal((2, 3, 4)),), {"dims": (2, 0, 1)})],
    vjp=dict(self=lambda grad, dims: permute_op(grad, dims=inverse(dims))),
)  # fmt: skip
transpose_op: Op = view(
    "transpose", "self -> result",
    numpy=lambda x, *, dim0, dim1: x.swapaxes(dim0, dim1) if x.ndim else x[...],
    infer=lambda self, *, dim0, dim1: TensorType(self.dtype, tuple(
        self.shape[d] for d in swapped(self.ndim, dim0, dim1))),
    put=lambda base, patch, *, dim0, dim1: transpose_op(patch, dim0=dim0, dim1=dim1),
    lower=Decompose(lambda self, *, dim0, dim1: permute_op(self, dims=swapped(
        self.ndim, dim0, dim1))),
    samples=lambda rng: [((rng.standard_normal((2, 3, 4)),), {"dim0": 0, "dim1": 2})],
    vjp=dict(self=lambda grad, dim0, dim1: transpose_op(grad, dim0=dim0, dim1=dim1)),
)  # fmt: skip
t_op: Op = view(
    "t", "self -> result", numpy=lambda x: x.T, node="TBackward0",
    infer=lambda self: TensorType(self.dtype, self.shape[::-1]),
    put=lambda base, patch: t_op(patch),
    lower=Decompose(lambda self: permute_op(self, dims=tuple(range(self.ndim))[::-1])),
    samples=lambda rng: [((rng.standard_normal((3, 4)),), {}), ((rng.standard_normal(3),), {})],
    vjp=dict(self=lambda grad: t_op(grad)),
)  # fmt: skip


def swapped(ndim: int, dim0: int, dim1: int) -> tuple[int, ...]:
    order = list(range(ndim))
    if ndim:
        order[dim0], order[dim1] = dim1, dim0
    return tuple(order)


@public("permute")
def permute(input: Any, *dims: Any, **named: Any) -> Any:
    """permute(input, dims)."""
    wanted = sizes((named["dims"],) if "dims" in named else dims)
    if len(wanted) != input.ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {input.ndim} is not "
            f"equal to len(dims) = {len(wanted)}"
        )
    order = tuple(normalize_dim(d, input.ndim) for d in wanted)
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return permute_op(input, dims=order)


@public("transpose", "swapaxes", "swapdims")
def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """transpose(input, dim0, dim1)."""
    return transpose_op(input, dim0=normalize_dim(dim0, input.ndim),
                        dim1=normalize_dim(dim1, input.ndim))  # fmt: skip


@public("t")
def t(input: Any) -> Any:
    """t(input): the transpose of a matrix; 0-d and 1-d tensors as they are."""
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return t_op(input)


@public("movedim", "moveaxis")
def movedim(input: Any, source: Any, destination: Any) -> Any:
    """movedim(input, source, destination)."""
    source = [source] if isinstance(source, int) else list(source)
    destination = [destination] if isinstance(destination, int) else list(destination)
    if len(source) != len(destination):
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({source} dims) "
                           f"should contain the same number of dims as destination "
                           f"({destination} dims)")  # fmt: skip
    source = [normalize_dim(d, input.ndim) for d in source]
    destination = [normalize_dim(d, input.ndim) for d in destination]
    if len(set(source)) < len(source) or len(set(destination)) < len(destination):
        raise RuntimeError(f"movedim: repeated dim in `source` ({source})")
    order = [d for d in range(input.ndim) if d not in source]
    for place, d in sorted(zip(destination, source)):
        order.insert(place, d)
    return permute_op(input, dims=tuple(order))


# --- size-one dimensions -------------------------------------------------------------------------

unsqueeze_op = view(
    "unsqueeze", "self -> result", numpy=lambda x, *, dim: np.expand_dims(x, dim),
    infer=lambda self, *, dim: TensorType(
        self.dtype, (*self.shape[:dim], 1, *self.shape[dim:])),
    put=lambda base, patch, *, dim: squeeze_op(patch, dim=(dim,)),
    lower=Decompose(lambda self, *, dim: view_op(
        self, size=(*self.shape[:dim], 1, *self.shape[dim:]))),
    samples=lambda rng: [((rng.standard_normal((3, 4)),), {"dim": d}) for d in range(3)],
    vjp=dict(self=lambda grad, dim: squeeze_op(grad, dim=(dim,))),
)  # fmt: skip


def _squeezed(shape: tuple[int, ...], dim: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for k, n in enumerate(shape) if not (n == 1 and k in dim))


squeeze_op: Op = view(
    "squeeze", "self -> result",
    numpy=lambda x, *, dim, form=1: x.reshape(_squeezed(x.shape, dim), copy=False),
    infer=lambda self, *, dim, form=1: TensorType(self.dtype, _squeezed(self.shape, dim)),
    # torch numbers its forms: 0 for all dimensions, 1 for one, 2 for a tuple
    node=lambda attrs: f"SqueezeBackward{attrs.get('form', 1)}",
    put=lambda base, patch, *, dim, form=1: view_op(patch, size=tuple(base.shape)),
    lower=Decompose(lambda self, *, dim, form=1: view_op(
        self, size=_squeezed(tuple(self.shape), dim))),
    samples=lambda rng: [((rng.standard_normal((1, 3, 1)),),
        {"dim": d}) for d in ((0,), (0, 1, 2))],
    vjp=dict(self=lambda grad, self_type: grad.reshape(self_type.shape)),
)  # fmt: skip


@public("unsqueeze")
def unsqueeze(input: Any, dim: int) -> Any:
    """unsqueeze(input, dim): a new dimension of size 1."""
    return unsqueeze_op(input, dim=normalize_dim(dim, input.ndim + 1))


@public("squeeze")
def squeeze(input: Any, dim: Any = None, *more: Any) -> Any:
    """squeeze(input, dim=None): drops dimensions of size 1."""
    dim = (dim, *more) if more else dim
    if dim is None:
        return squeeze_op(input, dim=tuple(range(input.ndim)), form=0)
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    wrapped = tuple(normalize_dim(d, input.ndim) for d in dims)
    return squeeze_op(input, dim=wrapped if input.ndim else (),
                      form=1 if isinstance(dim, int) else 2)  # fmt: skip


# --- broadcasting --------------------------------------------------------------------------------


def _expand(x: np.ndarray, *, size: tuple[int, ...]) -> np.ndarray:
    result = np.broadcast_to(x, size)
    if x.flags.writeable:  # writing is refused by the strides, where it must be
        result.flags.writeable = True
    return result


expand_op = view(
    "expand", "self -> result", numpy=_expand, shown=same("self_sym_sizes"),
    infer=lambda self, *, size: TensorType(self.dtype, size),
    put=lambda base, patch, *, size: patch.reshape(base.shape),  # only where nothing is repeated
    samples=lambda rng: [((rng.standard_normal((3, 1)),), {"size": (2, 3, 4)})],
    vjp=dict(self=lambda grad: grad),  # fit() sums what was repeated
)  # fmt: skip


@public("expand", spaces="")
def expand(input: Any, *shape: Any, implicit: bool = False, **named: Any) -> Any:
    """expand(*sizes): repeats dimensions of size 1 without copying; -1 keeps a size."""
    size = sizes((named["size"],) if "size" in named else shape)
    lead = len(size) - input.ndim
    if lead < 0:
        raise RuntimeError(
            f"expand({type_name(input)}{{{list(input.shape)}}}, size={list(size)}): the number of "
            f"sizes provided ({len(size)}) must be greater or equal to the number of dimensions in "
            f"the tensor ({input.ndim})"
        )
    return expand_op(input, size=_expanded(size, tuple(input.shape), lead))


def _expanded(size: tuple[int, ...], shape: tuple[int, ...], lead: int) -> tuple[int, ...]:
    result = list(size)
    for place in reversed(range(len(size))):  # torch meets the last mismatch first
        wanted = size[place]
        have = shape[place - lead] if place >= lead else None
        if wanted == -1:
            if have is None:
                raise RuntimeError(
                    f"The expanded size of the tensor (-1) isn't allowed in a leading, "
                    f"non-existing dimension {place}"
                )
            result[place] = have
        elif have is not None and have != 1 and have != wanted:
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({have}) "
                f"at non-singleton dimension {place}.  Target sizes: {list(size)}.  Tensor sizes: "
                f"{list(shape)}"
            )
    return tuple(result)


def type_name(input: Any) -> str:
    return f"torch.{type_word(input.dtype)}Tensor"


@public("expand_as", spaces="")
def expand_as(input: Any, other: Any) -> Any:
    """expand_as(other): expand(other.size())."""
    return expand(input, tuple(other.shape))


@public("broadcast_to")
def broadcast_to(input: Any, size: Any, *more: Any) -> Any:
    """broadcast_to(input, size)."""
    return expand(input, size, *more)
