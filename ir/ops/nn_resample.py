"""Resampling: interpolation and adaptive averages, as linear maps along one axis after another.

Each output element of an axis is a weighted sum of a few input elements, its taps. `resample` and
`resample_adjoint` are each other's derivative.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ..op import Template, define
from ..types import TensorType
from .nn_common import formally
from .nn_pool import bins, filled
from .totals import add_up

Ints = tuple[int, ...]
Taps = tuple[np.ndarray, np.ndarray]  # indices and weights, both (taps, out)

# --- taps ----------------------------------------------------------------------------------------


def _scale(kind: Any, size: int, out: int, scale: Any, align: bool) -> Any:
    """How far apart, in input elements, output elements are."""
    if align:
        return kind(size - 1) / kind(out - 1) if out > 1 else kind(0)
    if scale is not None and scale > 0:
        return kind(1.0 / scale)
    return kind(size) / kind(out)


def _centres(kind: Any, size: int, out: int, scale: Any, align: bool) -> Any:
    step = _scale(kind, size, out, scale, align)
    places = np.arange(out, dtype=kind)
    return step * places if align else step * (places + kind(0.5)) - kind(0.5)


def _nearest(size: int, out: int, scale: Any, exact: bool) -> Taps:
    """torch computes these in single precision whatever the input."""
    step = np.float32(1.0 / scale) if scale else np.float32(size) / np.float32(out)
    places = np.arange(out, dtype=np.float32) + np.float32(0.5 if exact else 0)
    if not exact and out == size:
        index = np.arange(out)
    elif not exact and out == 2 * size:
        index = np.arange(out) // 2
    else:
        index = np.minimum(np.floor(places * step).astype(np.int64), size - 1)
    return index[None], np.ones((1, out))


def _linear(kind: Any, size: int, out: int, scale: Any, align: bool) -> Taps:
    centre = np.maximum(_centres(kind, size, out, scale, align), 0)
    low = np.minimum(centre.astype(np.int64), size - 1)
    part = np.clip(centre - low.astype(kind), 0, 1)
    return np.stack([low, np.minimum(low + 1, size - 1)]), np.stack([1 - part, part])


def _cubic_near(x: np.ndarray, a: float) -> Any:
    return ((a + 2) * x - (a + 3)) * x * x + 1


def _cubic_far(x: np.ndarray, a: float) -> Any:
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def cubic_weights(part: np.ndarray) -> list[np.ndarray]:
    """Weights of the four elements around a place `part` of the way from the second."""
    return [_cubic_far(part + 1, -0.75), _cubic_near(part, -0.75),
            _cubic_near(1 - part, -0.75), _cubic_far(2 - part, -0.75)]  # fmt: skip


def _cubic(kind: Any, size: int, out: int, scale: Any, align: bool) -> Taps:
    centre = _centres(kind, size, out, scale, align)
    low = np.floor(centre)
    index = low.astype(np.int64) + np.arange(-1, 3)[:, None]
    return np.clip(index, 0, size - 1), np.stack(cubic_weights(centre - low))


def _filter(name: str, x: np.ndarray) -> Any:
    x = np.abs(x)
    if name == "linear":
        return np.maximum(1 - x, 0)
    if name == "cubic":
        return np.where(x < 1, _cubic_near(x, -0.5), np.where(x < 2, _cubic_far(x, -0.5), 0))
    return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0)


def _antialias(kind: Any, name: str, size: int, out: int, scale: Any, align: bool) -> Taps:
    """Weights of a filter as wide as an output element."""
    step = _scale(kind, size, out, scale, align)
    reach = {"linear": 1, "cubic": 2, "lanczos": 3}[name] * max(step, kind(1))
    shrink = kind(1) / step if step >= 1 else kind(1)
    centre = step * (np.arange(out, dtype=kind) + kind(0.5))
    first = np.maximum((centre - reach + kind(0.5)).astype(np.int64), 0)
    count = np.minimum((centre + reach + kind(0.5)).astype(np.int64), size) - first
    taps = np.arange(int(count.max(initial=0)))[:, None]
    weight = _filter(name, (taps + first - centre + kind(0.5)) * shrink)
    weight = np.where(taps < count, weight, 0)
    return np.minimum(first + taps, size - 1), weight / weight.sum(0)


def _average(size: int, out: int) -> Taps:
    start, end = bins(size, out)
    taps = np.arange(int((end - start).max(initial=1)))[:, None]
    weight = np.where(taps < end - start, 1.0 / np.maximum(end - start, 1), 0)
    return np.minimum(start + taps, end - 1), weight


@lru_cache(maxsize=256)
def _taps(mode: str, dtype: np.dtype, size: int, out: int, scale: Any, align: bool) -> Taps:
    kind = dtype.type if dtype.kind == "f" else np.float32
    name, _, smooth = mode.partition("-")
    if name == "nearest":
        index, weight = _nearest(size, out, scale, smooth == "exact")
    elif name == "adaptive":
        index, weight = _average(size, out)
    elif smooth:
        index, weight = _antialias(kind, name, size, out, scale, align)
    else:
        index, weight = {"linear": _linear, "cubic": _cubic}[name](kind, size, out, scale, align)
    return index, weight.astype(dtype)


@lru_cache(maxsize=256)
def _transposed(mode: str, dtype: np.dtype, size: int, out: int, scale: Any, align: bool) -> Taps:
    """The taps of the adjoint: for each input element, the outputs it went into."""
    index, weight = _taps(mode, dtype, size, out, scale, align)
    target, source = index.reshape(-1), np.tile(np.arange(out), index.shape[0])
    used = weight.reshape(-1) != 0
    target, source, values = target[used], source[used], weight.reshape(-1)[used]
    order = np.argsort(target, kind="stable")
    target, source, values = target[order], source[order], values[order]
    counts = np.bincount(target, minlength=size)
    rank = np.arange(target.size) - (np.cumsum(counts) - counts)[target]
    shape = (max(1, int(counts.max(initial=0))), size)
    places, weights = np.zeros(shape, np.int64), np.zeros(shape, dtype)
    places[rank, target], weights[rank, target] = source, values
    return places, weights


# --- evaluation ----------------------------------------------------------------------------------


def _apply(x: np.ndarray, axis: int, taps: Taps) -> Any:
    index, weight = taps
    if index.shape[0] == 1 and (weight == 1).all():
        return np.take(x, index[0], axis=axis)
    shape = (-1, *(1,) * (x.ndim - 1 - axis))
    total = np.take(x, index[0], axis=axis)
    total *= weight[0].reshape(shape)
    for places, values in zip(index[1:], weight[1:]):
        part = np.take(x, places, axis=axis)
        part *= values.reshape(shape)
        total += part
    return total


def _even(x: np.ndarray, axis: int, out: int) -> Any:
    """Averages over bins of one length."""
    length = x.shape[axis] // out
    split = x.reshape(*x.shape[:axis], out, length, *x.shape[axis + 1 :])
    return add_up(split, axis + 1) / x.dtype.type(length)


def _resample(
    x: np.ndarray, *, mode: str, size: Ints, scales: Any = None, align: bool = False
) -> np.ndarray:
    lead = x.ndim - len(size)
    result = x
    for d in reversed(range(len(size))):
        axis, length = lead + d, result.shape[lead + d]
        if mode == "adaptive" and size[d] and length % size[d] == 0:
            result = _even(result, axis, size[d])
            continue
        scale = None if scales is None else scales[d]
        result = _apply(result, axis, _taps(mode, x.dtype, length, size[d], scale, align))
    return np.array(result) if result is x else result


def _adjoint(
    grad: np.ndarray, *, source: Ints, mode: str, size: Ints, scales: Any = None,
    align: bool = False,
) -> np.ndarray:  # fmt: skip
    lead = grad.ndim - len(size)
    result = grad
    for d in range(len(size)):
        if mode == "adaptive" and size[d] and source[d] % size[d] == 0:
            length = source[d] // size[d]
            result = np.repeat(result / grad.dtype.type(length), length, axis=lead + d)
            continue
        scale = None if scales is None else scales[d]
        taps = _transposed(mode, grad.dtype, source[d], size[d], scale, align)
        result = _apply(result, lead + d, taps)
    return np.array(result) if result is grad else result


# --- entries -------------------------------------------------------------------------------------


def _node(attrs: dict[str, Any]) -> str:
    dims = len(attrs["size"])
    name, _, smooth = attrs["mode"].partition("-")
    if name == "adaptive":
        return f"AdaptiveAvgPool{dims}DBackward0"
    prefix = {"linear": ("", "Linear", "Bilinear", "Trilinear")[dims], "cubic": "Bicubic",
              "lanczos": "Lanczos", "nearest": "Nearest"}[name]  # fmt: skip
    exact, ends = ("Exact", "") if smooth == "exact" else ("", "Aa" if smooth else "")
    return f"Upsample{prefix}{exact}{dims}D{ends}Backward0"


def _resample_rule(
    grad: Any, self_type: TensorType, mode: str, size: Ints, scales: Any, align: bool
) -> Any:
    source = self_type.shape[self_type.ndim - len(size) :]
    return resample_adjoint(grad, source=source, mode=mode, size=size, scales=scales, align=align)


def _average_rule(grad: Any, self: Any, size: Ints) -> Any:
    source = tuple(self.shape[self.ndim - len(size) :])
    grad = filled("avg", grad, size)
    return formally(resample_adjoint(grad, source=source, mode="adaptive", size=size), self)


_SAMPLES: Any = ({"mode": "nearest", "size": (3, 7)}, {"mode": "linear", "size": (3, 7)},
                 {"mode": "cubic", "size": (6, 3), "align": True},
                 {"mode": "linear-aa", "size": (3, 3)}, {"mode": "adaptive", "size": (3, 2)},
                 {"mode": "nearest-exact", "size": (6, 9), "scales": (1.5, 1.6)})  # fmt: skip
resample = define(
    "resample", "self -> result", numpy=_resample, node=_node, lower=Template("resample"),
    second=True, shown={"mode": None, "size": "output_size", "align": "align_corners"},
    infer=lambda self, *, size, **_: TensorType(
        self.dtype, (*self.shape[: self.ndim - len(size)], *size)),
    samples=lambda rng: [((rng.standard_normal((2, 2, 4, 6)),), dict(s)) for s in _SAMPLES],
    vjp=dict(self=_resample_rule),
)  # fmt: skip
resample_adjoint = define(
    "resample_adjoint", "self -> result", numpy=_adjoint, lower=Template("resample"),
    infer=lambda self, *, source, **_: TensorType(
        self.dtype, (*self.shape[: self.ndim - len(source)], *source)),
    samples=lambda rng: [((rng.standard_normal((2, 2, *s["size"])),), {**s, "source": (4, 6)})
                         for s in _SAMPLES],
    vjp=dict(self=lambda grad, mode, size, scales, align: resample(
        grad, mode=mode, size=size, scales=scales, align=align)),
)  # fmt: skip


adaptive_avg_pool = define(
    "adaptive_avg_pool", "self -> result", lower=Template("resample"), many_passes=True,
    numpy=lambda x, *, size: _resample(x, mode="adaptive", size=size),
    infer=lambda self, *, size: TensorType(
        self.dtype, (*self.shape[: self.ndim - len(size)], *size)),
    node=lambda attrs: f"AdaptiveAvgPool{len(attrs['size'])}DBackward0", second=True,
    shown={"size": None},
    samples=lambda rng: [((rng.standard_normal((2, 2, 5, 6)),), {"size": (3, 2)})],
    vjp=dict(self=_average_rule),
)  # fmt: skip


def scaled_size(size: Any, scales: Any) -> Ints:
    return tuple(math.floor(n * s) for n, s in zip(size, scales))
