"""Integers, permutations and categorical samples with torch's exact values, as NumPy arrays.

Conventions are those of `sampling`. Bounded integers take `word % range`, from one word below a
range of 2^28 and from two words above; the small bias of the remainder is torch's too.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np

from . import sampling
from .generator import Generator
from .rounding import cast, dtype_name
from .sampling import LARGEST, SCALAR_NAMES, exponential, not_implemented

Array = np.ndarray
Shape = int | Sequence[int]

DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_WIDE_RANGE = 2**28
_UNBOUNDED = ("uint16", "uint32", "uint64", "complex64", "complex128")


def randint(
    generator: Generator, low: int, high: int | None, shape: Shape, dtype: str = "int64"
) -> Array:
    """`randint` and `random_(low, high)`: integers in [low, high); None is the dtype's end."""
    name = dtype_name(dtype)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if name in ("complex64", "complex128"):
        raise RuntimeError(
            "check_random_bounds handles only integral, floating-point and boolean types"
        )
    if high is None and low == -(2**63):
        return _full_range(generator, shape, name)
    low, last = _bounds(low, high, name)
    size, extent = math.prod(shape), last - low + 1
    drawn = sampling.native(generator, "integers", size, name, low, last + 1)
    if drawn is not None:
        return drawn.reshape(shape)
    if extent >= _WIDE_RANGE:
        words = generator.words64(size)
        # 2^64 itself cannot occur: that range has its own kernel
        values = (words % np.uint64(extent)).view(np.int64)
    else:
        values = (generator.words(size) % np.uint32(extent)).astype(np.int64)
    # two's complement wraps as torch's unsigned sum does
    values = (values.view(np.uint64) + np.uint64(low % 2**64)).view(np.int64)
    return cast(values, name).reshape(shape)


def random_integers(generator: Generator, shape: Shape, dtype: str = "int64") -> Array:
    """`random_()`: all non-negative integers of the dtype, or 0..2^digits of a floating one."""
    name = dtype_name(dtype)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if name in _UNBOUNDED:
        not_implemented("random_kernel_cpu", name)
    size = math.prod(shape)
    if name in ("int64", "float64"):
        words = generator.words64(size)
    else:
        words = generator.words(size).astype(np.uint64)
    if name == "bool":
        return (words & np.uint64(1)).astype(np.bool_).reshape(shape)
    extent = 2 ** DIGITS[name] + 1 if name in DIGITS else int(np.iinfo(name).max) + 1
    return cast((words % np.uint64(extent)).view(np.int64), name).reshape(shape)


def randperm(generator: Generator, n: int, dtype: str = "int64") -> Array:
    """`randperm`: a permutation of 0..n-1 by Fisher and Yates from the front."""
    name = dtype_name(dtype)
    _check_permutation(n, name)
    if (drawn := sampling.native(generator, "permutation", n, name)) is not None:
        return drawn
    steps = generator.words(max(n - 1, 0)) % np.arange(n, 1, -1, dtype=np.uint32)
    targets = (steps + np.arange(max(n - 1, 0), dtype=np.uint32)).tolist()
    order = list(range(n))
    for i, j in enumerate(targets):
        order[i], order[j] = order[j], order[i]
    return cast(np.array(order, np.int64), name)


def multinomial(
    generator: Generator,
    weights: Array,
    num_samples: int,
    replacement: bool = False,
    dtype: str | None = None,
    order: tuple[int, ...] | None = None,
) -> Array:
    """`multinomial`: indices drawn by weight from a row, or from each row of a matrix.

    Without replacement, categories of equal score come in order of their index. Torch's order
    among them is that of an unstable selection; equal scores are those of weight zero and, in
    float16 and bfloat16, some that round to the same value.
    """
    name = dtype_name(dtype or weights.dtype)
    _check_multinomial(weights, num_samples, replacement, name)
    if weights.shape[:-1] == (0,):
        return np.empty((0, num_samples), np.int64)
    if replacement and num_samples > 1:
        return _with_replacement(generator, weights, num_samples)
    _check_weights(weights)
    if order is None:
        waits = exponential(generator, weights.shape, 1.0, name)
    else:  # in the order of memory, as torch fills a tensor like the weights
        shape = tuple(weights.shape[d] for d in order)
        waits = exponential(generator, shape, 1.0, name).transpose(np.argsort(order))
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = cast(np.asarray(weights / waits), name)
    if num_samples == 1:
        return np.argmax(scores, axis=-1, keepdims=True)
    return np.argsort(-scores, axis=-1, kind="stable")[..., :num_samples]


NO_WEIGHT = ("invalid multinomial distribution (sum of probabilities <= 0); some weight must be "
             "positive")  # fmt: skip


def _with_replacement(generator: Generator, weights: Array, num_samples: int) -> Array:
    rows = np.atleast_2d(weights)
    if not (rows >= 0).all() and not np.isnan(rows).any():
        raise RuntimeError("invalid multinomial distribution (encountering probability entry < 0)")
    if not np.isfinite(rows).all():
        raise RuntimeError(
            "invalid multinomial distribution (encountering probability entry = infinity or NaN)"
        )
    kind = np.float64 if weights.dtype == np.float64 else np.float32
    sums = np.cumsum(rows, axis=-1, dtype=kind)
    if not (sums[:, -1] > 0).all():
        raise RuntimeError(NO_WEIGHT)
    edges = (sums / sums[:, -1:]).astype(np.float64)
    edges[:, -1] = 1
    draws = generator.doubles(len(rows) * num_samples).reshape(len(rows), num_samples)
    picks = np.stack([np.searchsorted(edge, draw) for edge, draw in zip(edges, draws)])
    return picks.astype(np.int64).reshape((*weights.shape[:-1], num_samples))


def _check_weights(weights: Array) -> None:
    if weights.shape[-1] == 0:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
            "identity."
        )
    if not (weights.max() < np.inf and weights.min() >= 0):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if (weights.sum(-1) == 0).any():
        raise RuntimeError(NO_WEIGHT)


def _check_multinomial(weights: Array, num_samples: int, replacement: bool, name: str) -> None:
    if weights.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if name not in LARGEST:
        raise RuntimeError(
            "multinomial only supports floating-point dtypes for input, got: "
            + SCALAR_NAMES[name][0]
        )
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > weights.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    if weights.shape[-1] > 2**24:
        raise RuntimeError("number of categories cannot exceed 2^24")


def _bounds(low: int, high: int | None, name: str) -> tuple[int, int]:
    """The first and last integer to draw, after torch's checks."""
    if high is not None and not low < high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    if name in DIGITS:
        low = _next_representable(low, name)
        last = 2 ** DIGITS[name] if high is None else _last_representable(high, name) - 1
        if not low < (last if high is None else last + 1):
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, "
                f"but got from={low} >= to={last + 1}"
            )
        smallest, largest = -LARGEST[name], LARGEST[name]
    else:
        limits = (0, 1) if name == "bool" else (np.iinfo(name).min, np.iinfo(name).max)
        smallest, largest = int(limits[0]), min(int(limits[1]), 2**63 - 1)
        last = largest if high is None else high - 1
    for value, role in ((low, "from"), (last, "to - 1")):
        if not smallest <= value <= largest:
            raise RuntimeError(f"{role} is out of bounds for {SCALAR_NAMES[name][1]}")
        if name in DIGITS and abs(value) > 2 ** DIGITS[name]:
            _warn_imprecise(role, name)
    return low, last


def _warn_imprecise(role: str, name: str) -> None:
    digits, kind = DIGITS[name], SCALAR_NAMES[name][1]
    warnings.warn(
        f"{role} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations "
        f"{kind} can support discrete uniform distribution only within this range. This warning "
        "will become an error in version 1.7 release, please fix the code in advance",
        stacklevel=4,
    )


def _as_floating(value: int, name: str) -> int:
    rounded = float(cast(np.array([value], np.int64), name)[0])
    return int(rounded) if math.isfinite(rounded) else (2**63 - 1 if rounded > 0 else -(2**63))


def _next_representable(low: int, name: str) -> int:
    """Moves low up until casting a larger integer cannot fall below it."""
    cast_up = _as_floating(low + 1, name)
    if cast_up >= low:
        return low
    return cast_up + 2 ** (abs(low + 1).bit_length() - DIGITS[name])


def _last_representable(high: int, name: str) -> int:
    """Moves high down until casting a smaller integer cannot reach it."""
    cast_down = _as_floating(high - 1, name)
    if cast_down < high:
        return high
    return cast_down - 2 ** (abs(high - 1).bit_length() - DIGITS[name])


def _full_range(generator: Generator, shape: tuple[int, ...], name: str) -> Array:
    if name not in ("int64", "float64", "float32", "bfloat16"):
        raise RuntimeError(
            "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16"
        )
    return cast(generator.words64(math.prod(shape)).view(np.int64), name).reshape(shape)


def _check_permutation(n: int, name: str) -> None:
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if name in ("bool", *_UNBOUNDED):
        not_implemented("randperm", name)
    if name in DIGITS and n > 2 ** DIGITS[name] + 1:
        limit = 2 ** DIGITS[name] + 1
        raise RuntimeError(f"n cannot be greater than {limit} for {SCALAR_NAMES[name][0]} type.")
    if name not in DIGITS and n > np.iinfo(name).max + 1:
        raise RuntimeError(f"value cannot be converted to type {name}_t without overflow")
