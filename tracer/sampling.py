"""Real-valued and bernoulli samples with torch's exact values, as NumPy arrays.

Each function takes the generator first, then the shape, the parameters and a dtype name; it
returns an array of the dtype's storage (bfloat16 as rounded float32) filled in row-major order.
Torch fills memory in the order of its strides, so for a permuted dense tensor the caller draws
a row-major array and lays it over the memory.

Note [Streams]: which words a sample consumes is fixed by torch's kernels.
* uniform: one word per float32, float16 or bfloat16, two words per float64.
* normal below 16 elements, log_normal: two float64 uniforms per pair of normals; the second
  normal of a pair is kept in the generator.
* normal from 16 elements: one uniform per element, blocks of 16. float32 and float64 draw for
  every element and then 16 more for the last partial block; float16 and bfloat16 draw for whole
  blocks only, then 16 for the last partial one.
* bernoulli with a number, dropout, exponential, geometric, cauchy: one float64 uniform each.
* bernoulli with an array: one uniform each, float64 if the array is, else float32.

Checked against torch 2.13 on an AMD processor with AVX2, where every sampler takes the route
above. By its published sources torch has another one, not reproduced and not checked here, for
`bernoulli_(number)` (so dropout) and `exponential_` (so multinomial without replacement): with
MKL on an Intel processor, one draw of the generator seeds an MKL stream (MCG31). Builds without
AVX2 and fused multiply-add (ARM among them) may differ in the last bit of floating samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ..ir.types import BY_NAME, no_kernel
from .boxmuller import BLOCK, normal_blocks
from .generator import Generator
from .rounding import STORAGE, cast, dtype_name, scale_and_shift

Array = np.ndarray
Shape = int | Sequence[int]

# C++ names in torch's messages: the scalar type, and the type the kernel is compiled for.
SCALAR_NAMES = {
    "bool": ("Bool", "bool"),
    "uint8": ("Byte", "unsigned char"),
    "int8": ("Char", "signed char"),
    "int16": ("Short", "short int"),
    "int32": ("Int", "int"),
    "int64": ("Long", "long"),
    "uint16": ("UInt16", "short unsigned int"),
    "uint32": ("UInt32", "unsigned int"),
    "uint64": ("UInt64", "long unsigned int"),
    "float16": ("Half", "c10::Half"),
    "bfloat16": ("BFloat16", "c10::BFloat16"),
    "float32": ("Float", "float"),
    "float64": ("Double", "double"),
    "complex64": ("ComplexFloat", "c10::complex<float>"),
    "complex128": ("ComplexDouble", "c10::complex<double>"),
}
LARGEST = {
    "float16": 65504.0,
    "bfloat16": float.fromhex("0x1.fep127"),
    "float32": float.fromhex("0x1.fffffep127"),
    "float64": float.fromhex("0x1.fffffffffffffp1023"),
}
# native(generator, distribution, size, dtype's name, *parameters): a flat array, or None; see
# api/eager_draws.py, which is installed here because the tracer may not see the compiler
native: Any = None
_REAL_OF = {"complex64": "float32", "complex128": "float64"}


def doubles(generator: Generator, count: int) -> Array:
    """Uniform float64 in [0, 1)."""
    drawn = native(generator, "uniform", count, "float64", 0.0, 1.0)
    return generator.doubles(count) if drawn is None else drawn


def singles(generator: Generator, count: int) -> Array:
    """Uniform float32 in [0, 1)."""
    drawn = native(generator, "uniform", count, "float32", 0.0, 1.0)
    return generator.singles(count) if drawn is None else drawn


def uniform(
    generator: Generator, shape: Shape, low: float = 0.0, high: float = 1.0, dtype: str = "float32"
) -> Array:
    """`rand` and `uniform_`: samples in [low, high)."""
    name, size, shape = _target(dtype, shape)
    if name in _REAL_OF:
        return _complex(lambda part: uniform(generator, part, low, high, _REAL_OF[name]), shape)
    _check_floating(name, "check_uniform_bounds")
    _check_uniform_bounds(name, low, high)
    if (drawn := native(generator, "uniform", size, name, low, high)) is not None:
        return drawn.reshape(shape)
    wide = name == "float64"
    kind = np.float64 if wide else np.float32
    draws = doubles(generator, size) if wide else singles(generator, size)
    if low == 0 and high == 1 and (wide or name == "float32"):
        return draws.reshape(shape)  # as they are
    low_value, high_value = kind(low), kind(high)
    out = cast(scale_and_shift(draws, high_value - low_value, low_value), name)
    # rounding may reach the excluded end
    ends = cast(np.array([low, high]), name)
    out[out == ends[1]] = ends[0]
    return out.reshape(shape)


def normal(
    generator: Generator, shape: Shape, mean: float = 0.0, std: float = 1.0, dtype: str = "float32"
) -> Array:
    """`randn` and `normal_` with numbers for mean and std."""
    name, size, shape = _target(dtype, shape)
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if name in _REAL_OF:
        each = std / math.sqrt(2)
        return _complex(lambda part: normal(generator, part, mean, each, _REAL_OF[name]), shape)
    _check_floating(name, "normal_kernel_cpu")
    if (drawn := native(generator, "normal", size, name, mean, std)) is not None:
        return drawn.reshape(shape)
    if size >= BLOCK:
        out = _normal_in_blocks(generator, size, mean, std, name)
    else:
        out = cast(scale_and_shift(paired_normals(generator, size), std, mean), name)
    return out.reshape(shape)


def normal_around(
    generator: Generator, mean: Array | float, std: Array | float, dtype: str | None = None
) -> Array:
    """`torch.normal` where mean, std or both are arrays; dtype defaults to the first array's."""
    if isinstance(mean, np.ndarray):
        name = dtype_name(dtype or mean.dtype)
        if not isinstance(std, np.ndarray):
            out = normal(generator, mean.shape, 0.0, std, name)
            return cast(np.asarray(out + mean), name)
    else:
        name = dtype_name(dtype or np.asarray(std).dtype)
        mean = cast(np.array(mean), name)
    std = np.asarray(std)
    if std.size and not std.min() >= 0:
        raise RuntimeError("normal expects all elements of std >= 0.0")
    shape = np.broadcast_shapes(mean.shape, std.shape)
    scaled = cast(np.asarray(normal(generator, shape, 0.0, 1.0, name) * std), name)
    return cast(np.asarray(scaled + mean), name)


def log_normal(
    generator: Generator, shape: Shape, mean: float = 1.0, std: float = 2.0, dtype: str = "float32"
) -> Array:
    """`log_normal_`: exponentials of normals."""
    name, size, shape = _target(dtype, shape)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    _check_floating(name, "log_normal_cpu")
    with np.errstate(over="ignore"):
        values = np.exp(scale_and_shift(paired_normals(generator, size), std, mean))
    return cast(values, name).reshape(shape)


def exponential(
    generator: Generator, shape: Shape, lambd: float = 1.0, dtype: str = "float32"
) -> Array:
    """`exponential_` with rate lambd."""
    name, size, shape = _target(dtype, shape)
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    if name not in LARGEST:
        _not_continuous("Exponential", SCALAR_NAMES[name][0])
    values = (-1.0 / lambd) * np.log1p(-doubles(generator, size))
    return cast(values, name).reshape(shape)


def cauchy(
    generator: Generator,
    shape: Shape,
    median: float = 0.0,
    sigma: float = 1.0,
    dtype: str = "float32",
) -> Array:
    """`cauchy_` around median with half-width sigma."""
    name, size, shape = _target(dtype, shape)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    if name not in LARGEST:
        _not_continuous("Cauchy", SCALAR_NAMES[name][1])
    slopes = np.tan(np.pi * (doubles(generator, size) - 0.5))
    return cast(scale_and_shift(slopes, sigma, median), name).reshape(shape)


def geometric(generator: Generator, shape: Shape, p: float, dtype: str = "float32") -> Array:
    """`geometric_`: the number of trials up to the first success."""
    name, size, shape = _target(dtype, shape)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if name == "bool" or name in _REAL_OF:
        not_implemented("geometric_cpu", name)
    with np.errstate(divide="ignore"):
        values = np.ceil(np.log(doubles(generator, size)) / math.log1p(-p))
    return cast(values, name).reshape(shape)


def bernoulli(
    generator: Generator,
    p: float | Array,
    shape: Shape | None = None,
    dtype: str | None = None,
) -> Array:
    """`bernoulli` and `bernoulli_`: ones with probability p, a number or an array.

    An array of p gives shape and dtype where they are not given; see Note [Streams].
    """
    if not isinstance(p, np.ndarray):
        if not 0 <= p <= 1:
            raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
        name, size, shape = _target(dtype or "float32", () if shape is None else shape)
        if (drawn := native(generator, "bernoulli", size, name, p)) is not None:
            return drawn.reshape(shape)
        return cast(doubles(generator, size) < p, name).reshape(shape)
    name, size, shape = _target(dtype or p.dtype.name, p.shape if shape is None else shape)
    if p.dtype.kind != "f":
        not_implemented("bernoulli_tensor_cpu_p_", p.dtype.name)
    if not ((p >= 0) & (p <= 1)).all():
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    draws = doubles(generator, size) if p.dtype == np.float64 else singles(generator, size)
    return cast(draws.reshape(shape) < np.broadcast_to(p, shape), name)


def dropout_mask(generator: Generator, shape: Shape, p: float) -> Array:
    """The elements that dropout keeps, as bool: `bernoulli_(1 - p)`.

    Torch's dropout multiplies by `mask.astype(dtype) / (1 - p)`, the quotient rounded in dtype;
    it draws nothing if p is 0 or 1 or the tensor is empty.
    """
    return bernoulli(generator, 1.0 - p, shape, "bool")


def rrelu_noise(
    generator: Generator, x: Array, lower: float, upper: float, dtype: str | None = None
) -> Array:
    """The slopes of `rrelu` in training: uniform where x <= 0, drawn in order there, else 1."""
    name = dtype_name(dtype or x.dtype)
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    kind = np.float64 if name == "float64" else np.float32
    start, stop = float(kind(lower)), float(kind(upper))
    noise = np.ones(x.shape, STORAGE[name])
    below = x <= 0
    draws = doubles(generator, int(np.count_nonzero(below)))
    noise[below] = cast(draws * (stop - start) + start, name)  # two roundings: not fused here
    return noise


def paired_normals(generator: Generator, count: int) -> Array:
    """Standard normals in float64, two at a time; one left over waits in the generator."""
    kept = [] if generator.next_normal is None or not count else [generator.next_normal]
    draws = doubles(generator, 2 * ((count - len(kept) + 1) // 2))
    values = _paired_one_by_one(kept, draws) if count <= BLOCK else _paired(kept, draws)
    if count:
        generator.next_normal = float(values[count]) if len(values) > count else None
    return np.asarray(values[:count], np.float64)


def _paired_one_by_one(kept: list[float], draws: Array) -> list[float]:
    """As `_paired`: of a few, in a tenth of the time."""
    values, rest = list(kept), iter(draws.tolist())
    for first, second in zip(rest, rest):
        r, angle = math.sqrt(-2.0 * math.log1p(-second)), 2.0 * math.pi * first
        values += (r * math.cos(angle), r * math.sin(angle))
    return values


def _paired(kept: list[float], draws: Array) -> Array:
    r = np.sqrt(-2.0 * np.log1p(-draws[1::2]))
    angle = 2.0 * np.pi * draws[::2]
    values = np.empty(len(kept) + draws.size)
    values[: len(kept)] = kept
    np.multiply(r, np.cos(angle), values[len(kept) :: 2])
    np.multiply(r, np.sin(angle), values[len(kept) + 1 :: 2])
    return values


def _normal_in_blocks(generator: Generator, size: int, mean: float, std: float, name: str) -> Array:
    wide = name == "float64"
    draw = doubles if wide else singles
    whole, rest = divmod(size, BLOCK)
    reduced = name in ("float16", "bfloat16")
    draws = draw(generator, whole * BLOCK if reduced else size)
    out = np.empty(size, np.float64 if wide else np.float32)
    out[: whole * BLOCK] = normal_blocks(draws[: whole * BLOCK].reshape(-1, BLOCK)).reshape(-1)
    if rest:
        out[-BLOCK:] = normal_blocks(draw(generator, BLOCK).reshape(1, BLOCK))[0]
    return cast(scale_and_shift(out, std, mean), name)


def _target(dtype: str, shape: Shape) -> tuple[str, int, tuple[int, ...]]:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return dtype_name(dtype), math.prod(shape), shape


def _complex(draw: Callable[[tuple[int, ...]], Array], shape: tuple[int, ...]) -> Array:
    parts = draw((*shape, 2))
    return parts.view(np.complex64 if parts.dtype == np.float32 else np.complex128)[..., 0]


def _check_uniform_bounds(name: str, low: float, high: float) -> None:
    scalar, compiled = SCALAR_NAMES[name]
    for value, role in ((low, "from"), (high, "to")):
        if not abs(value) <= LARGEST[name]:
            raise RuntimeError(f"{role} is out of bounds for {compiled}")
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    if high - low > LARGEST[name]:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{scalar}>::max(), but found "
            f"to={high:g} and from={low:g} which result in to-from to exceed the limit"
        )


def _check_floating(name: str, kernel: str) -> None:
    if name not in LARGEST:
        not_implemented(kernel, name)


def not_implemented(kernel: str, name: str) -> NoReturn:
    """Raises as torch's dispatcher does for a dtype that a kernel lacks."""
    raise no_kernel(kernel, BY_NAME[name])


def _not_continuous(distribution: str, kind: str) -> NoReturn:
    raise RuntimeError(
        f"{distribution} distribution is a continuous probability distribution. "
        f"dtype must be a floating point but you specified {kind}"
    )
