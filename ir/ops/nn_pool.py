"""Pools: the entries. Windows slide over the trailing dimensions; any dimensions may lead.

Maximum pools give the flat index of each maximum in its plane; their gradients, and unpooling, are
`plane_scatter` and `plane_gather` along such indices, each the adjoint of the other.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ..op import Template, define, same
from ..types import TensorType, from_numpy_dtype, int64, no_kernel
from .nn_common import formally
from .windows import Ints, Pads, crop, offsets, out_size, pad_spatial


def lowest(dtype: np.dtype) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _hanging_pads(
    size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, out: Ints
) -> Pads:
    """The padding on both sides that all windows need; with ceil_mode the last hang over."""
    return tuple(
        (p, max(p, (o - 1) * s + d * (k - 1) + 1 - n - p))
        for n, k, s, p, d, o in zip(size, kernel, stride, padding, dilation, out)
    )


# --- along indices -------------------------------------------------------------------------------


def _flat_places(indices: np.ndarray, dims: int, volume: int) -> np.ndarray:
    lead, plane = indices.shape[:-dims], indices.shape[-dims:]
    planes = indices.reshape(math.prod(lead), math.prod(plane))
    return (planes + (np.arange(planes.shape[0]) * volume)[:, None]).reshape(-1)


def _plane_scatter(grad: np.ndarray, indices: np.ndarray, *, size: Ints) -> np.ndarray:
    total = np.zeros((*grad.shape[: -len(size)], *size), grad.dtype)
    places = _flat_places(indices, len(size), math.prod(size))
    np.add.at(total.reshape(-1), places, grad.reshape(-1))
    return total


def _plane_gather(x: np.ndarray, indices: np.ndarray, *, dims: int) -> np.ndarray:
    places = _flat_places(indices, dims, math.prod(x.shape[-dims:]))
    return x.reshape(-1).take(places).reshape(indices.shape)


def _index_samples(rng: np.random.Generator, shape: Ints, **attrs: Any) -> list[Any]:
    """Values of planes of `shape`, with distinct places in planes of 3 by 4."""
    places = rng.permuted(np.tile(np.arange(12), (4, 1)), axis=1)[:, :4]
    return [((rng.standard_normal((2, 2, *shape)), places.reshape(2, 2, 2, 2)), attrs)]


plane_scatter = define(
    "plane_scatter", "self indices -> result", numpy=_plane_scatter, lower=Template("scatter"),
    infer=lambda self, indices, *, size: TensorType(
        self.dtype, (*self.shape[: -len(size)], *size)),
    samples=lambda rng: _index_samples(rng, (2, 2), size=(3, 4)), raises=True,
    vjp=dict(self=lambda grad, indices, size: plane_gather(grad, indices, dims=len(size))),
)  # fmt: skip
plane_gather: Any = define(
    "plane_gather", "self indices -> result", numpy=_plane_gather, lower=Template("gather"),
    infer=lambda self, indices, *, dims: TensorType(self.dtype, indices.shape), moves_data=True,
    samples=lambda rng: _index_samples(rng, (3, 4), dims=2), raises=True,
    vjp=dict(self=lambda grad, indices, self_type, dims: plane_scatter(
        grad, indices, size=self_type.shape[-dims:])),
)  # fmt: skip


def _unpool(x: np.ndarray, indices: np.ndarray, *, size: Ints) -> np.ndarray:
    total = np.zeros((*x.shape[: -len(size)], *size), x.dtype)
    total.reshape(-1)[_flat_places(indices, len(size), math.prod(size))] = x.reshape(-1)
    return total


max_unpool = define(
    "max_unpool", "self indices -> result", numpy=_unpool, lower=Template("scatter"),
    shown={"size": None},
    node=lambda attrs: f"MaxUnpool{len(attrs['size'])}DBackward0", moves_data=True,
    infer=lambda self, indices, *, size: TensorType(
        self.dtype, (*self.shape[: -len(size)], *size)),
    samples=lambda rng: _index_samples(rng, (2, 2), size=(3, 4)), raises=True,
    vjp=dict(self=lambda grad, indices, size: plane_gather(grad, indices, dims=len(size))),
)  # fmt: skip

# --- maximum -------------------------------------------------------------------------------------


def _best(candidates: Any, count: int, has_nan: bool) -> tuple[np.ndarray, np.ndarray]:
    """The maxima of arrays met one by one, and which each came from: the first of equals."""
    best: Any = None
    which: Any = None
    for k, values in enumerate(candidates):
        if best is None:
            best = np.array(values)
            which = np.zeros(best.shape, np.uint8 if count <= 256 else np.int32)
            continue
        better = values > best
        if has_nan:
            better |= np.isnan(values)
        np.maximum(best, values, out=best)
        # k grows, so a maximum keeps the last position that was better; masked writes are slower
        np.maximum(which, better.view(np.uint8) * which.dtype.type(k), out=which)
    return best, which


def _has_nan(x: np.ndarray) -> bool:
    return x.dtype.kind == "f" and x.size > 0 and bool(np.isnan(x.min()))


def _max_pool(
    x: np.ndarray, *, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints,
    ceil_mode: bool = False,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    size = x.shape[-len(kernel) :]
    out = out_size(size, kernel, stride, padding, dilation, ceil_mode)
    pads = _hanging_pads(size, kernel, stride, padding, dilation, out)
    padded = pad_spatial(x, pads, lowest(x.dtype))
    parts = (padded[place] for _, place in offsets(kernel, stride, dilation, out))
    best, which = _best(parts, math.prod(kernel), _has_nan(x))
    coordinates = _window_coordinates(kernel, stride, padding, dilation, out)
    if padded is not x:
        _leave_padding(best, which, coordinates, size)
    step, base, move = 1, np.zeros(out, np.int64), np.zeros(math.prod(kernel), np.int64)
    for d in reversed(range(len(size))):
        start, inner = coordinates[d]
        base += start * step
        move += inner * step
        step *= size[d]
    return best, move.take(which) + base


def _window_coordinates(
    kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, out: Ints
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Per dimension: where each window starts (broadcasts to `out`), and how far positions are."""
    dims = len(kernel)
    found = []
    for d in range(dims):
        start = (np.arange(out[d]) * stride[d] - padding[d]).reshape(
            tuple(-1 if k == d else 1 for k in range(dims)))  # fmt: skip
        inner = [position[d] * dilation[d] for position in itertools.product(*map(range, kernel))]
        found.append((start, np.asarray(inner)))
    return found


def _leave_padding(best: np.ndarray, which: np.ndarray, coordinates: Any, size: Ints) -> None:
    """Where nothing beat the padding, the index is that of the window's first true element."""
    nothing = best == lowest(best.dtype)
    if not nothing.any():
        return
    inside: Any = True
    for n, (start, inner) in zip(size, coordinates):
        place = start[..., None] + inner
        inside = inside & (place >= 0) & (place < n)
    first = np.broadcast_to(np.argmax(inside, axis=-1), best.shape)
    which[nothing] = first[nothing]


def _max_pool_type(
    self: TensorType, *, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    dims = len(kernel)
    out = out_size(self.shape[-dims:], kernel, stride, padding, dilation, ceil_mode)
    shape = (*self.shape[:-dims], *out)
    return TensorType(self.dtype, shape), TensorType(int64, shape)


def _distinct(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Values far enough apart that a small step changes no maximum."""
    return rng.permutation(math.prod(shape)).reshape(shape) * 0.1


max_pool = define(
    "max_pool", "self -> result indices", numpy=_max_pool, infer=_max_pool_type,
    lower=Template("pool"), many_passes=True,
    node=lambda attrs: f"MaxPool{len(attrs['kernel'])}DWithIndicesBackward0", second=True,
    shown={"indices": "result1", "kernel": "kernel_size",
           **same("stride", "padding", "dilation", "ceil_mode")},
    samples=lambda rng: [((_distinct(rng, 2, 2, 5, 6),), {
        "kernel": (3, 2), "stride": (2, 1), "padding": (1, 0), "dilation": (1, 2),
        "ceil_mode": True})],
    vjp=dict(self=lambda grad_result, indices, self, kernel: formally(plane_scatter(
        grad_result, indices, size=tuple(self.shape[-len(kernel) :])), self)),
)  # fmt: skip


def bins(size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each of `count` adaptive bins over `size` elements starts and ends."""
    places = np.arange(count)
    return places * size // count, -(-(places + 1) * size // count)


def _adaptive_max(x: np.ndarray, *, size: Ints) -> tuple[np.ndarray, np.ndarray]:
    """Bins differ in length by one at most: shorter ones see their last element twice."""
    dims = len(size)
    shape = x.shape[-dims:]
    edges = [bins(n, count) for n, count in zip(shape, size)]
    taps = [np.minimum(start + np.arange(int((end - start).max(initial=1)))[:, None], end - 1)
            for start, end in edges]  # fmt: skip
    flat = x.reshape(*x.shape[:-dims], math.prod(shape))
    tables = [_grid_places(chosen, shape) for chosen in itertools.product(*taps)]
    parts = (flat.take(table, axis=-1) for table in tables)
    best, which = _best(parts, len(tables), _has_nan(x))
    stacked = np.stack([table.reshape(-1) for table in tables])
    columns = np.arange(stacked.shape[1]).reshape(size)
    return best, stacked[which, np.broadcast_to(columns, which.shape)]


def _grid_places(chosen: Any, shape: Ints) -> np.ndarray:
    """Flat places of the grid of per-dimension indices."""
    total: Any = 0
    for index, n in zip(chosen, shape):
        total = np.expand_dims(total, -1) * n + index if np.ndim(total) else total * n + index
    return np.asarray(total)


def _adaptive_type(self: TensorType, *, size: Ints) -> Any:
    shape = (*self.shape[: -len(size)], *size)
    return TensorType(self.dtype, shape), TensorType(int64, shape)


def filled(kind: str, grad: Any, size: Ints) -> Any:
    """The gradient of an adaptive pool, which torch refuses where there are no bins."""
    if 0 in size:
        empty = grad.ndim - len(size) + size.index(0)
        raise RuntimeError(f"adaptive_{kind}_pool{len(size)}d_backward(): Expected grad_output to "
                           "have non-zero size for non-batch dimensions, but grad_output has sizes "
                           f"{list(grad.shape)} with dimension {empty} being empty")  # fmt: skip
    return grad


adaptive_max_pool = define(
    "adaptive_max_pool", "self -> result indices", numpy=_adaptive_max, infer=_adaptive_type,
    node=lambda attrs: f"AdaptiveMaxPool{len(attrs['size'])}DBackward0",
    shown={"indices": "result1", "size": None},
    samples=lambda rng: [((_distinct(rng, 2, 2, 5, 6),), {"size": (3, 4)})],
    vjp=dict(self=lambda grad_result, indices, self, size: formally(plane_scatter(
        filled("max", grad_result, size), indices, size=tuple(self.shape[-len(size) :])), self)),
)  # fmt: skip

# --- fractional maximum --------------------------------------------------------------------------


def _fraction_starts(sample: np.ndarray, n: int, count: int, kernel: int) -> np.ndarray:
    """Where the windows start: `sample` shifts a sequence of even steps, one per plane."""
    starts = np.full((*sample.shape, count), n - kernel, np.int64)
    if count > 1:
        alpha = sample.dtype.type(n - kernel) / sample.dtype.type(count - 1)
        steps = np.arange(count - 1, dtype=sample.dtype)
        shift = (sample * alpha).astype(np.int64)[..., None]
        starts[..., :-1] = ((steps + sample[..., None]) * alpha).astype(np.int64) - shift
    return starts


def _fractional_max(
    x: np.ndarray, samples: np.ndarray, *, kernel: Ints, size: Ints
) -> tuple[np.ndarray, np.ndarray]:
    dims = len(kernel)
    if x.dtype.kind == "c":
        raise no_kernel(f"fractional_max_pool{dims}d_out_frame", from_numpy_dtype(x.dtype))
    shape = x.shape[-dims:]
    lead = x.shape[:-dims]
    samples = samples.reshape(*lead, dims)
    order = (1, 0) if dims == 2 else range(dims)  # torch's two kernels differ in this
    starts = [_fraction_starts(samples[..., order[d]], shape[d], size[d], kernel[d])
              for d in range(dims)]  # fmt: skip
    places: Any = 0
    for d in range(dims):
        ends = (1,) * (dims - 1 - d)
        grid = starts[d].reshape(*lead, *(1,) * d, size[d], *ends)
        places = places * shape[d] + grid
    steps = [1] * dims
    for d in reversed(range(dims - 1)):
        steps[d] = steps[d + 1] * shape[d + 1]
    moves = [sum(i * s for i, s in zip(position, steps))
             for position in itertools.product(*map(range, kernel))]  # fmt: skip
    planes = _flat_places(places, dims, math.prod(shape))
    flat = x.reshape(-1)
    best, which = _best((flat.take(planes + move) for move in moves), len(moves), _has_nan(x))
    return best.reshape(places.shape), places + np.asarray(moves).take(which).reshape(places.shape)


fractional_max_pool = define(
    "fractional_max_pool", "self samples -> result indices", numpy=_fractional_max,
    shown={"size": "output_size", "indices": "result1", "kernel": "kernel_size"},
    node=lambda attrs: f"FractionalMaxPool{len(attrs['size'])}DBackward0",
    infer=lambda self, samples, *, kernel, size: _adaptive_type(self, size=size),
    samples=lambda rng: [((_distinct(rng, 2, 2, 5, 6), rng.random((2, 2, 2))),
                          {"kernel": (2, 2), "size": (3, 3)})],
    vjp=dict(self=lambda grad_result, indices, self, size: formally(plane_scatter(
        grad_result, indices, size=tuple(self.shape[-len(size) :])), self)),
)  # fmt: skip

# --- average -------------------------------------------------------------------------------------


def _divisors(
    size: Ints, kernel: Ints, stride: Ints, padding: Ints, out: Ints, inside: bool
) -> Any:
    """How many elements each window averages: all inside the padding, or only true ones."""
    total: Any = 1
    for n, k, s, p, o in zip(size, kernel, stride, padding, out):
        start = np.arange(o) * s - p
        end = np.minimum(start + k, n + p)
        if not inside:
            start, end = np.maximum(start, 0), np.minimum(end, n)
        total = np.multiply.outer(total, end - start)
    return total


def _scaled(
    sums: np.ndarray, size: Ints, kernel: Ints, stride: Ints, padding: Ints, inside: bool,
    divisor: int | None,
) -> Any:  # fmt: skip
    if divisor is None:
        out = sums.shape[-len(kernel) :]
        divisor = _divisors(size, kernel, stride, padding, out, inside)
    if sums.dtype.kind in "iu":  # towards zero, as C divides
        quotient = np.abs(sums) // np.abs(divisor)
        return (np.sign(sums) * np.sign(divisor) * quotient).astype(sums.dtype)
    return np.divide(sums, divisor, dtype=sums.dtype, casting="unsafe")


def _avg_pool(
    x: np.ndarray, *, kernel: Ints, stride: Ints, padding: Ints, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    size, ones = x.shape[-len(kernel) :], (1,) * len(kernel)
    out = out_size(size, kernel, stride, padding, ones, ceil_mode)
    padded = pad_spatial(x, _hanging_pads(size, kernel, stride, padding, ones, out))
    sums = np.zeros((*x.shape[: -len(kernel)], *out), x.dtype)
    for _, place in offsets(kernel, stride, ones, out):
        sums += padded[place]
    return _scaled(sums, size, kernel, stride, padding, count_include_pad, divisor_override)


def _avg_spread(
    grad: np.ndarray, *, size: Ints, kernel: Ints, stride: Ints, padding: Ints,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> np.ndarray:  # fmt: skip
    """The adjoint of the average: each window's gradient over its elements."""
    ones, out = (1,) * len(kernel), grad.shape[-len(kernel) :]
    pads = _hanging_pads(size, kernel, stride, padding, ones, out)
    lengths = tuple(n + before + after for n, (before, after) in zip(size, pads))
    total = np.zeros((*grad.shape[: -len(kernel)], *lengths), grad.dtype)
    share = _scaled(grad, size, kernel, stride, padding, count_include_pad, divisor_override)
    for _, place in offsets(kernel, stride, ones, out):
        total[place] += share
    return crop(total, pads)


def _avg_type(
    self: TensorType, *, kernel: Ints, stride: Ints, padding: Ints, ceil_mode: bool = False,
    **_: Any,
) -> TensorType:  # fmt: skip
    dims = len(kernel)
    out = out_size(self.shape[-dims:], kernel, stride, padding, (1,) * dims, ceil_mode)
    return TensorType(self.dtype, (*self.shape[:-dims], *out))


def _avg_rule(grad: Any, self: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: Any,
              count_include_pad: Any, divisor_override: Any) -> Any:  # fmt: skip
    size = tuple(self.shape[-len(kernel) :])
    return formally(avg_spread(
        grad, size=size, kernel=kernel, stride=stride, padding=padding, ceil_mode=ceil_mode,
        count_include_pad=count_include_pad, divisor_override=divisor_override), self)  # fmt: skip


def _avg_spread_type(self: TensorType, *, size: Ints, kernel: Ints, **attrs: Any) -> TensorType:
    result = TensorType(self.dtype, (*self.shape[: -len(kernel)], *size))
    if (pooled := _avg_type(result, kernel=kernel, **attrs)) != self:
        raise RuntimeError(f"avg_spread: averages of size {size} are {pooled}, not {self}")
    return result


def _avg_spread_rule(grad: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: Any,
                     count_include_pad: Any, divisor_override: Any) -> Any:  # fmt: skip
    return avg_pool(grad, kernel=kernel, stride=stride, padding=padding, ceil_mode=ceil_mode,
                    count_include_pad=count_include_pad,
                    divisor_override=divisor_override)  # fmt: skip


_AVG_SAMPLE = {"kernel": (3, 2), "stride": (2, 1), "padding": (1, 0), "ceil_mode": True,
               "count_include_pad": False}  # fmt: skip
avg_pool = define(
    "avg_pool", "self -> result", numpy=_avg_pool, infer=_avg_type, lower=Template("pool"),
    second=True, shown={"kernel": "kernel_size"},
    node=lambda attrs: f"AvgPool{len(attrs['kernel'])}DBackward0", many_passes=True,
    samples=lambda rng: [((rng.standard_normal((2, 2, 6, 4)),), dict(_AVG_SAMPLE))],
    vjp=dict(self=_avg_rule),
)  # fmt: skip
avg_spread = define(
    "avg_spread", "self -> result", numpy=_avg_spread, lower=Template("pool"),
    infer=_avg_spread_type, node=lambda attrs: f"AvgPool{len(attrs['kernel'])}DBackwardBackward0",
    samples=lambda rng: [((rng.standard_normal((2, 2, 4, 3)),), {**_AVG_SAMPLE, "size": (6, 4)})],
    vjp=dict(self=_avg_spread_rule),
)  # fmt: skip
