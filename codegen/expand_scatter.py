"""Writing at places: scatters, what index tensors say, slices and diagonals of a value."""

from __future__ import annotations

from typing import Any

from ..ir.ops.gathering import places
from ..ir.types import FLOAT, int32
from .affine import strides_of
from .expand import RULES, Rule, filled, joined, rule
from .private import COORDINATE, UPDATE, WINDOW, Ints, numel, slices

LARGEST_INT32 = 2**31 - 1


@rule("slice_scatter")
def slice_scatter(base: Any, src: Any, *, dim: int, start: int, stop: int, step: int) -> Any:
    size = tuple(base.shape)
    length = src.shape[dim]
    if not length or not numel(size):
        return None
    src = src.to(base.dtype)
    if step != 1:
        steps = list(strides_of(size))
        offset, steps[dim] = start * steps[dim], step * steps[dim]
        return assigned(base, src, tuple(steps), offset)
    zero = (0,) * len(size)

    def at(k: int) -> Ints:
        return tuple(k if d == dim else 0 for d in range(len(size)))

    def upto(k: int) -> Ints:
        return tuple(k if d == dim else n for d, n in enumerate(size))

    before = slices(base, zero, upto(start))
    after = slices(base, at(start + length), size)
    return joined(size, [(src, at(start)), (before, zero), (after, at(start + length))])


def assigned(base: Any, src: Any, strides: Ints, offset: int) -> Any:
    """`base` with `src` at places that are known now, each once."""
    return UPDATE(base, src, strides=strides, offset=offset, found=(), add=False,
                  free=len(src.shape) - 1, wraps=False)  # fmt: skip


@rule("diagonal_scatter")
def diagonal_scatter(base: Any, src: Any, *, offset: int, dim1: int, dim2: int) -> Any:
    if not numel(src.shape):
        return None
    steps = strides_of(tuple(base.shape))
    kept = tuple(s for d, s in enumerate(steps) if d not in (dim1, dim2))
    start = offset * steps[dim2] if offset > 0 else -offset * steps[dim1]
    return assigned(base, src.to(base.dtype), (*kept, steps[dim1] + steps[dim2]), start)


# --- as_strided: elements are counted in memory, which is row-major here if it was then ----------


def inside(shape: Ints, size: Ints, stride: Ints, offset: int, base_stride: Ints) -> bool:
    """Is all that a strided view shows part of a row-major value of `shape`?"""
    last = offset + sum((n - 1) * s for n, s in zip(size, stride))
    plain = tuple(base_stride) == strides_of(shape)
    return plain and bool(numel(size)) and offset >= 0 and last < numel(shape)


@rule("as_strided")
def as_strided(x: Any, *, size: Ints, stride: Ints, offset: int, base_stride: Ints) -> Any:
    if not inside(tuple(x.shape), size, stride, offset, base_stride):
        return None
    return WINDOW(x, size=size, strides=stride, offset=offset)


@rule("as_strided_add")
def as_strided_add(grad: Any, *, shape: Ints, **place: Any) -> Any:
    if not inside(shape, **place):
        return None
    return at_strides(filled(shape, 0, grad.dtype), grad, True, **place)


@rule("as_strided_scatter")
def as_strided_scatter(base: Any, src: Any, **place: Any) -> Any:
    if not inside(tuple(base.shape), **place):
        return None
    return at_strides(base, src.to(base.dtype), False, **place)


def at_strides(base: Any, src: Any, add: bool, *, stride: Ints, offset: int, **_: Any) -> Any:
    """Elements may meet, so they are written in order."""
    return UPDATE(base, src, strides=stride, offset=offset, found=(), add=add, free=0,
                  wraps=False)  # fmt: skip


def update(base: Any, src: Any, strides: Ints, indices: list[Any], add: bool, free: int = 0,
           wraps: bool = False) -> Any:  # fmt: skip
    """`indices` are (index, factor, its strides along src, how many values it may take)."""
    found = tuple((factor, steps, limit) for _, factor, steps, limit in indices)
    return UPDATE(base, src, *(i for i, *_ in indices), strides=strides, offset=0, found=found,
                  add=add, free=free, wraps=wraps)  # fmt: skip


def spread_steps(shape: Ints) -> Ints:
    return tuple(s if n != 1 else 0 for s, n in zip(strides_of(shape), shape))


def _scatter(add: bool) -> Rule:
    def along(base: Any, index: Any, src: Any, *, dim: int) -> Any:
        if not base.ndim or not numel(index.shape) or index.ndim != base.ndim:
            return None
        src = slices(src, (0,) * src.ndim, tuple(index.shape))
        rest = [n for d, n in enumerate(base.shape) if d != dim]
        if index.shape[dim] == 1 and rest == [n for d, n in enumerate(index.shape) if d != dim]:
            return one_hot(base, index, src, dim, add)
        steps = list(strides_of(tuple(base.shape)))
        along_dim, steps[dim] = steps[dim], 0
        where = [(index, along_dim, spread_steps(tuple(index.shape)), base.shape[dim])]
        return update(base, src, tuple(steps), where, add)

    return along


def one_hot(base: Any, index: Any, src: Any, dim: int, add: bool) -> Any:
    """One index per line: every element compares its own place with it."""
    shape = tuple(base.shape)
    steps = tuple(int(d == dim) for d in range(len(shape)))
    here = COORDINATE(size=shape, strides=steps, offset=0)
    index = places(index, shape[dim])
    if shape[dim] <= LARGEST_INT32:  # twice as many fit in a register
        here, index = here.to(int32), index.to(int32)
    hit = here.eq(index.expand(shape))
    value = src.expand(shape)
    return (base + value if add else value).where(hit, base)


RULES["scatter"], RULES["scatter_add"] = _scatter(False), _scatter(True)


@rule("index_put")
def index_put(base: Any, values: Any, *indices: Any, spec: Any, accumulate: bool) -> Any:
    if not base.ndim or (base.dtype.category < FLOAT and accumulate and base.dtype.name == "bool"):
        return None
    places = [d for d, used in enumerate(spec) if used]
    common = max((tuple(i.shape) for i in indices), key=len)
    if any(tuple(i.shape) != common for i in indices) or not numel(common):
        return None
    adjacent = places == list(range(places[0], places[-1] + 1))
    lead = places[0] if adjacent else 0
    kept = [d for d in range(base.ndim) if d not in places]
    shape = (*(base.shape[d] for d in kept[:lead]), *common, *(base.shape[d] for d in kept[lead:]))
    if not numel(shape):
        return None
    steps = strides_of(tuple(base.shape))
    own = (*(steps[d] for d in kept[:lead]), *(0,) * len(common), *(steps[d] for d in kept[lead:]))
    inner = spread_steps(common)
    rest = len(shape) - lead - len(common)
    along = (*(0,) * lead, *inner, *(0,) * rest)
    where = [(i, steps[p], along, base.shape[p]) for i, p in zip(indices, places)]
    values = values.to(base.dtype).expand(shape)
    return update(base, values, own, where, accumulate, wraps=True)


@rule("embedding_grad")
def embedding_grad(grad: Any, indices: Any, *, count: int, padding_idx: int,
                   scale_grad_by_freq: bool) -> Any:  # fmt: skip
    width = grad.shape[-1]
    if scale_grad_by_freq or not numel(grad.shape):
        return None
    rows = grad.view((numel(indices.shape), width))
    flat = indices.view((numel(indices.shape),))
    if padding_idx >= 0:
        rows = rows.masked_fill(flat.eq(padding_idx).unsqueeze(1), 0)
    where = [(flat, width, (1, 0), count)]
    return update(filled((count, width), 0, grad.dtype), rows, (0, 1), where, True)


def _planes(add: bool) -> Rule:
    def rule_(x: Any, indices: Any, *, size: Ints) -> Any:
        dims = len(size)
        lead, volume = numel(x.shape[:-dims]), numel(size)
        inside = numel(x.shape[-dims:])
        if not lead * volume * inside:
            return None
        flat = x.reshape((lead, inside))
        where = [(indices.reshape((lead, inside)), 1, (inside, 1), volume)]
        zero = filled((lead, volume), 0, x.dtype)
        result = update(zero, flat, (volume, 0), where, add, free=1)
        return result.view((*x.shape[:-dims], *size))

    return rule_


RULES["plane_scatter"], RULES["max_unpool"] = _planes(True), _planes(False)
