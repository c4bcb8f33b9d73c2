"""Sorting, ranks and running extrema, said as the places of elements, at which values are
gathered."""

from __future__ import annotations

from typing import Any

from ..ir.op import TABLE
from ..ir.types import float32, int64, uint8
from .expand import Rule, filled, first_place, rule
from .private import COORDINATE, ORDER, RUNNING, SEARCH, numel

COMPUTED = {"bool": uint8, "float16": float32, "bfloat16": float32}  # where scans do not have it
LONGEST = 2**31 - 1  # kernels count places in 32 bits


def has_lines(x: Any) -> bool:
    return bool(x.ndim and numel(x.shape) and max(x.shape) <= LONGEST)


def places(x: Any, dim: int, descending: bool = False, start: int = 0, stop: Any = None) -> Any:
    """Indices of the elements of these ranks along `dim`."""
    stop = x.shape[dim] if stop is None else stop
    return ORDER(x, dim=dim, descending=descending, start=start, stop=stop)


def values_at(x: Any, index: Any, dim: int) -> tuple[Any, Any]:
    return TABLE["gather"](x, index, dim=dim), index


@rule("sort")
def sort(x: Any, *, dim: int, descending: bool = False, **_: Any) -> Any:
    return values_at(x, places(x, dim, descending), dim) if has_lines(x) else None


@rule("argsort")
def argsort(x: Any, *, dim: int, descending: bool = False) -> Any:
    return places(x, dim, descending) if has_lines(x) else None


@rule("topk")
def topk(x: Any, *, k: int, dim: int, largest: bool = True, **_: Any) -> Any:
    return values_at(x, places(x, dim, largest, 0, k), dim) if has_lines(x) and k else None


def _at_rank(index_of: Any) -> Rule:
    """The rule of an op that picks one element of each line; `index_of` gives its place."""

    def rule_(x: Any, *, dim: int, keepdim: bool = False, **attrs: Any) -> Any:
        if not has_lines(x):
            return None
        picked = values_at(x, index_of(x, dim=dim, **attrs), dim)
        shape = tuple(x.shape)
        size = (*shape[:dim], *((1,) * keepdim), *shape[dim + 1 :])
        return tuple(v.view(size) for v in picked)

    return rule_


def _kthvalue(x: Any, *, dim: int, k: int) -> Any:
    return places(x, dim, start=k - 1, stop=k)


def _median(x: Any, *, dim: int) -> Any:
    """NaN wins: the first one is the median."""
    middle = _kthvalue(x, dim=dim, k=(x.shape[dim] + 1) // 2)
    if not x.dtype.is_floating_point:
        return middle
    bad = x.isnan()
    missing = TABLE["any"](bad, dim=(dim,), keepdim=True)
    first = first_place(bad, missing, dim)
    return first.where(missing, middle)


def _nanmedian(x: Any, *, dim: int) -> Any:
    if not x.dtype.is_floating_point:
        return _median(x, dim=dim)
    present = TABLE["sum"](x.isnan().logical_not().to(int64), dim=(dim,), keepdim=True)
    rank = (present - 1).clamp(min=0).floor_divide(2)
    return TABLE["gather"](places(x, dim), rank, dim=dim)


def _mode(x: Any, *, dim: int) -> Any:
    """The last of the longest run of equal elements in a sorted line; NaN equals nothing."""
    order = places(x, dim)
    line = values_at(x, order, dim)[0].movedim(dim, -1).contiguous()
    known = line
    if x.dtype.is_floating_point:  # searching wants no NaN
        known = line.masked_fill(line.isnan(), float("inf"))
    begun = SEARCH(known, known, right=False, out_int32=False)
    size = tuple(line.shape)
    here = COORDINATE(size=size, strides=(*(0,) * (len(size) - 1), 1), offset=0)
    length = here - begun
    if x.dtype.is_floating_point:
        length = length.masked_fill(line.isnan(), 0)
    longest = TABLE["amax"](length, dim=(len(size) - 1,), keepdim=True)
    rank = first_place(length, longest, len(size) - 1).movedim(-1, dim)
    return TABLE["gather"](order, rank, dim=dim)


for name, index_of in (("kthvalue", _kthvalue), ("median_dim", _median),
                       ("nanmedian_dim", _nanmedian), ("mode", _mode)):  # fmt: skip
    rule(name)(_at_rank(index_of))


def _of_all(name: str) -> Rule:
    def rule_(x: Any) -> Any:
        if not 0 < numel(x.shape) <= LONGEST:
            return None
        line = x.reshape((numel(x.shape),))
        return TABLE[f"{name}_dim"](line, dim=0, keepdim=False)[0]

    return rule_


for name in ("median", "nanmedian"):
    rule(name)(_of_all(name))


def _running(combine: str) -> Rule:
    """The latest of equals has the index; NaN stays."""

    def rule_(x: Any, *, dim: int) -> Any:
        if not has_lines(x):
            return None
        wide = x.to(COMPUTED.get(x.dtype.name, x.dtype))
        hit = wide.eq(RUNNING(wide, dim=dim, combine=combine))
        if x.dtype.is_floating_point:
            hit = hit.logical_or(x.isnan())
        shape = tuple(x.shape)
        steps = tuple(int(d == dim) for d in range(x.ndim))
        here = COORDINATE(size=shape, strides=steps, offset=0)
        seen = here.where(hit, filled(shape, 0, here.dtype))
        return values_at(x, RUNNING(seen, dim=dim, combine="maximum"), dim)

    return rule_


rule("cummax")(_running("maximum"))
rule("cummin")(_running("minimum"))


@rule("searchsorted")
def searchsorted(sequence: Any, values: Any, sorter: Any, *, right: bool = False,
                 out_int32: bool = False) -> Any:  # fmt: skip
    if not numel(values.shape) or not numel(sequence.shape) or sequence.dtype != values.dtype:
        return None
    if sorter is not None:
        sequence = TABLE["gather"](sequence, sorter, dim=sequence.ndim - 1)
    return SEARCH(sequence, values, right=right, out_int32=out_int32)
