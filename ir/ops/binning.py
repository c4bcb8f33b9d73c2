"""Bins: searchsorted, bucketize, bincount, histc, histogram and histogramdd."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arguments import check_elements
from ..op import Template, define
from ..types import (
    BOOL,
    COMPLEX,
    FLOAT,
    INTEGER,
    TensorType,
    float32,
    float64,
    int32,
    int64,
    no_kernel,
    result_type,
)
from ..value import Value, public
from .kinds import refuse
from .looking import sorter
from .results import named_result

# --- searching -----------------------------------------------------------------------------------


def _binary_search(lines: np.ndarray, values: np.ndarray, right: bool) -> np.ndarray:
    """Insertion points in each sorted line, all lines and values at once."""
    size = lines.shape[-1]
    low = np.zeros(values.shape, np.int64)
    high = np.full(values.shape, size, np.int64)
    for _ in range(math.ceil(math.log2(size + 1)) if size else 0):
        middle = (low + high) >> 1
        found = np.take_along_axis(lines, np.minimum(middle, size - 1), -1)
        after = ~(found > values) if right else ~(found >= values)
        open_ = low < high
        low = np.where(open_ & after, middle + 1, low)
        high = np.where(open_ & ~after, middle, high)
    return low


def _searchsorted(
    sequence: np.ndarray, values: Any, sorter: Any, *, right: bool = False, out_int32: bool = False
) -> np.ndarray:
    dtype = np.int32 if out_int32 else np.int64
    if sorter is not None:
        sequence = np.take_along_axis(sequence, sorter, -1)
    if sequence.ndim == 1 and not (sequence.dtype.kind == "f" and np.isnan(sequence).any()):
        found = np.searchsorted(sequence, values, side="right" if right else "left")
        return np.asarray(found).astype(dtype)
    if sequence.ndim == 1:  # torch's steps pass by NaN
        found = _binary_search(sequence, values.reshape(-1), right)
        return found.reshape(values.shape).astype(dtype)
    return _binary_search(sequence, values, right).astype(dtype)


searchsorted_op = define(
    "searchsorted", "sorted_sequence self sorter? -> result", numpy=_searchsorted,
    lower=Template("searchsorted"), raises=sorter,
    infer=lambda sequence, self, sorter, *, right=False, out_int32=False: TensorType(
        int32 if out_int32 else int64, self.shape),
    samples=lambda rng: [
        ((np.sort(rng.standard_normal(6)), rng.standard_normal((2, 3)), None), {"right": True}),
        ((np.sort(rng.standard_normal((2, 6))), rng.standard_normal((2, 3)), None), {})],
)  # fmt: skip


def _side(name: str, right: bool, side: Any) -> bool:
    if side is None:
        return bool(right)
    if side not in ("left", "right"):
        raise RuntimeError(f"torch.{name}(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(f"torch.{name}(): side and right can't be set to opposites, got side of "
                           "left while right was True")  # fmt: skip
    return bool(side == "right")


@public("searchsorted", method=False)
def searchsorted(
    sorted_sequence: Any, input: Any, *, out_int32: bool = False, right: bool = False,
    side: Any = None, sorter: Any = None,
) -> Any:  # fmt: skip
    """searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None,
    sorter=None): where values belong in sorted lines."""
    right = _side("searchsorted", right, side)
    if sorted_sequence.dtype.category in (BOOL, COMPLEX):
        raise no_kernel("searchsorted_out_cpu", sorted_sequence.dtype)
    if not isinstance(input, Value):
        if sorted_sequence.ndim != 1:
            raise RuntimeError("torch.searchsorted(): input value can be a scalar only when "
                               "boundaries tensor dimension is 1")  # fmt: skip
        input = sorted_sequence.new_full((), input, dtype=result_type((sorted_sequence, input)))
    if sorter is not None and (sorter.dtype is not int64 or sorter.shape != sorted_sequence.shape):
        raise RuntimeError("torch.searchsorted(): boundary and sorter must have the same size and "
                           "sorter must be long")  # fmt: skip
    if not sorted_sequence.ndim:
        raise RuntimeError("torch.searchsorted(): input boundaries tensor should have positive "
                           "dimension, but got 0 dimension")  # fmt: skip
    if sorted_sequence.ndim > 1 and sorted_sequence.shape[:-1] != input.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries tensor and input value tensor must match, but we got "
            f"boundaries tensor {list(sorted_sequence.shape)} and input value tensor "
            f"{list(input.shape)}"
        )
    common = result_type((sorted_sequence, input))
    sorted_sequence, input = sorted_sequence.to(common), input.to(common)
    return searchsorted_op(sorted_sequence, input, sorter, right=right, out_int32=out_int32)


@public("bucketize", method=False)
def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """bucketize(input, boundaries, *, out_int32=False, right=False)."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


# --- counting ------------------------------------------------------------------------------------

bincount_op = define(
    "bincount", "self weights? -> result", data_shape=True, raises=True,
    numpy=lambda x, weights, *, minlength=0: _bincount(x, weights, minlength),
    samples=lambda rng: [((np.array([1, 3, 3]), None), {"minlength": 2}),
                         ((np.array([1, 3, 3]), rng.standard_normal(3)), {})],
)  # fmt: skip


def _bincount(x: np.ndarray, weights: Any, minlength: int) -> np.ndarray:
    if not x.size:
        return np.zeros(minlength, np.int64)
    counts = np.bincount(x, weights, minlength)
    return counts if weights is None or weights.dtype != np.float32 else counts.astype(np.float32)


_BINCOUNT_INPUTS = "bincount only supports 1-d non-negative integral inputs."


def _check_countable(array: np.ndarray) -> None:
    if array.min() < 0:
        raise RuntimeError(_BINCOUNT_INPUTS)


@public("bincount")
def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """bincount(input, weights=None, minlength=0): how often each number occurs."""
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if input.dtype.category != INTEGER:
        raise no_kernel("bincount_cpu", input.dtype)
    if input.ndim != 1:
        raise RuntimeError(_BINCOUNT_INPUTS)
    check_elements(_check_countable, input)
    if weights is not None:
        if tuple(weights.shape) != tuple(input.shape):
            raise RuntimeError("weights should be 1-d and have the same length as input")
        if weights.dtype not in (float32, float64):
            weights = weights.to(float64)
    return bincount_op(input, weights, minlength=int(minlength))


def _bins_of(x: np.ndarray, edges: np.ndarray, even: bool) -> np.ndarray:
    """The bin of each value; -1 outside. The last bin includes its upper edge."""
    bins = len(edges) - 1
    inside = (x >= edges[0]) & (x <= edges[-1])
    if even:
        place = np.where(inside, (x - edges[0]) * (bins / (edges[-1] - edges[0])), 0)
        found = np.minimum(place.astype(np.int64), bins - 1)
        found -= x < edges[found]  # the quotient may have rounded over an edge
        found += (x >= edges[found + 1]) & (found < bins - 1)
    else:
        found = np.minimum(np.searchsorted(edges, x, side="right") - 1, bins - 1)
    return np.where(inside, found, -1)


def _histogram(x: np.ndarray, weight: Any, *edges: np.ndarray, even: bool = True) -> np.ndarray:
    """Counts (or sums of weights) in the boxes of `edges`; `x` holds points, one a row."""
    refuse("histogram", "c", x)
    points = x.reshape(-1, len(edges))
    shape = tuple(len(e) - 1 for e in edges)
    found = [_bins_of(points[:, k], e, even) for k, e in enumerate(edges)]
    inside = np.logical_and.reduce([f >= 0 for f in found])
    flat = np.ravel_multi_index([f[inside] for f in found], shape)
    sums = np.bincount(flat, None if weight is None else weight.reshape(-1)[inside],
                       math.prod(shape))  # fmt: skip
    return sums.reshape(shape).astype(x.dtype)


histogram_op = define(
    "histogram", "self weight? *edges -> result", numpy=_histogram,
    infer=lambda self, weight, *edges, even=True: TensorType(
        self.dtype, tuple(e.shape[0] - 1 for e in edges)),
    samples=lambda rng: [((rng.standard_normal(9), None, np.linspace(-2, 2, 5)), {}),
                         ((rng.standard_normal(9), None, np.array([-2, 0, 0.5, 3])),
                          {"even": False})],
)  # fmt: skip


def _check_float(name: str, input: Any) -> None:
    if input.dtype.category != FLOAT:
        raise no_kernel("histogram_cpu", input.dtype)


def _ends(name: str, column: Any, low: Any, high: Any, margin: float = 0.5) -> tuple[Any, Any]:
    """The range of the bins: as given, or that of the data."""
    if low == high and column.numel():
        low, high = column.min().item(), column.max().item()
    elif low == high and margin == 0.5:
        low, high = 0.0, 1.0
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"{name}: range of [{low}, {high}] is not finite; pass finite ends")
    if low > high:
        raise RuntimeError(f"{name}: max must be larger than min")
    return (low - margin, high + margin) if low == high else (low, high)


def _even_edges(column: Any, bins: int, low: Any, high: Any) -> Any:
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    values = np.linspace(float(low), float(high), bins + 1).astype(column.dtype.compute)
    return column.new_tensor(values)


@public("histc")
def histc(input: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """histc(input, bins=100, min=0, max=0): counts in equal bins."""
    _check_float("histc", input)
    input = input.detach()
    low, high = _ends("torch.histc", input, min, max, 1)
    return histogram_op(input, None, _even_edges(input, bins, low, high))


@public("histogram")
def histogram(
    input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    """histogram(input, bins, *, range=None, weight=None, density=False): hist and bin_edges."""
    _check_float("histogram", input)
    flat = input.detach().reshape((input.numel(), 1))
    hist, edges = histogramdd(flat, [bins], range=range, density=density,
                              weight=None if weight is None else weight.reshape(-1))  # fmt: skip
    return named_result("histogram hist bin_edges", (hist, edges[0]))


@public("histogramdd", method=False)
def histogramdd(
    input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    """histogramdd(input, bins, *, range=None, weight=None, density=False)."""
    _check_float("histogramdd", input)
    points = input.detach().reshape((-1, input.shape[-1]))
    columns = points.unbind(1)
    bins = [bins] * len(columns) if isinstance(bins, int) else list(bins)
    if len(bins) != len(columns):
        raise RuntimeError(f"torch.histogramdd(): expected {len(columns)} bin sizes or sequences, "
                           f"got {len(bins)}")  # fmt: skip
    even = not isinstance(bins[0], Value)
    if even:
        bounds = range or [0.0, 0.0] * len(columns)
        edges = [_even_edges(c, b, *_ends("torch.histogramdd()", c, *bounds[2 * k : 2 * k + 2]))
                 for k, (c, b) in enumerate(zip(columns, bins))]  # fmt: skip
    else:
        edges = bins
    hist = histogram_op(points, weight, *edges, even=even)
    if density:
        hist = hist / hist.sum()
        for k, edge in enumerate(edges):
            hist = hist / edge.diff().view([-1 if d == k else 1 for d in builtin_range(hist.ndim)])
    return named_result("histogramdd hist bin_edges", (hist, tuple(edges)))


builtin_range = range
