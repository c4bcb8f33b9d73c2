"""torch.fft: three ops (real to complex, complex to real, complex to complex) and all names on top.

`normalization` is torch's: 0 for none, 1 for 1/sqrt(n), 2 for 1/n, n the product of the transformed
sizes. Dimensions are non-negative; the last one named is the halved one of real transforms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arguments import must_be, whole_number
from ..bind import casting
from ..op import Op, define
from ..types import (
    FLOAT,
    TensorType,
    default_dtype,
    float32,
    no_kernel,
    normalize_dim,
    type_word,
)
from ..value import public
from .arithmetic import conj
from .creation import iota
from .joining import cat
from .kinds import require_value
from .nn_pad import constant_pad_op
from .products import drawn

NONE, BY_ROOT_N, BY_N = range(3)
Dims = tuple[int, ...]

# --- the three ops -------------------------------------------------------------------------------


def _factor(normalization: int, count: int) -> float:
    return {NONE: 1.0, BY_ROOT_N: 1 / math.sqrt(count or 1), BY_N: 1 / (count or 1)}[normalization]


def _scaled(result: np.ndarray, normalization: int, count: int) -> np.ndarray:
    if normalization != NONE:
        result = result * result.real.dtype.type(_factor(normalization, count))
    return result


def _sizes(shape: Any, dim: Dims) -> int:
    return math.prod(shape[d] for d in dim)


def _c2c(x: np.ndarray, *, dim: Dims, normalization: int, forward: bool) -> np.ndarray:
    if not dim or not x.size:
        return np.array(x)
    if forward:
        result = np.fft.fftn(x, axes=dim)
    else:
        result = np.fft.ifftn(x, axes=dim, norm="forward")
    return _scaled(result, normalization, _sizes(x.shape, dim))


def _r2c(x: np.ndarray, *, dim: Dims, normalization: int, onesided: bool) -> np.ndarray:
    kind = np.result_type(x.dtype, np.complex64)
    if not x.size:
        return np.zeros(_half_shape(x.shape, dim[-1]) if onesided else x.shape, kind)
    result = np.fft.rfftn(x, axes=dim) if onesided else np.fft.fftn(x.astype(kind), axes=dim)
    return _scaled(result, normalization, _sizes(x.shape, dim))


def _c2r(x: np.ndarray, *, dim: Dims, normalization: int, last_dim_size: int) -> np.ndarray:
    shape = _with_size(x.shape, dim[-1], last_dim_size)
    if not x.size:
        return np.zeros(shape, x.real.dtype)
    sizes = [shape[d] for d in dim]
    result = np.fft.irfftn(x, s=sizes, axes=dim, norm="forward")
    return _scaled(result, normalization, _sizes(shape, dim))


def _with_size(shape: Any, dim: int, size: int) -> Dims:
    return (*shape[:dim], size, *shape[dim + 1 :])


def _half_shape(shape: Any, dim: int) -> Dims:
    return _with_size(shape, dim, shape[dim] // 2 + 1)


def _r2c_infer(self: TensorType, *, dim: Dims, normalization: int, onesided: bool) -> TensorType:
    shape = _half_shape(self.shape, dim[-1]) if onesided else self.shape
    return TensorType(self.dtype.to_complex(), shape)


def _r2c_rule(
    grad: Any, self_type: TensorType, dim: Dims, normalization: int, onesided: bool
) -> Any:
    """The half that was dropped gets no gradient: zeros, then the inverse transform's real part."""
    if onesided:
        grad = resized(grad, {dim[-1]: self_type.shape[dim[-1]]})
    return c2c_op(grad, dim=dim, normalization=normalization, forward=False).real


def _c2r_rule(grad: Any, self_type: TensorType, dim: Dims, normalization: int) -> Any:
    """Frequencies that stand for two, themselves and their mirror image, count twice."""
    last = dim[-1]
    result = r2c_op(grad, dim=dim, normalization=normalization, onesided=True)
    doubled = grad.shape[last] - result.shape[last]
    if doubled <= 0:
        return result
    rest = result.shape[last] - doubled - 1
    middle = result.narrow(last, 1, doubled) * 2
    return cat(result.narrow(last, 0, 1), middle, result.narrow(last, 1 + doubled, rest), dim=last)


def _samples(kind: str, **attrs: Any) -> Any:
    calls = [((4, 3), {"dim": dim, "normalization": k, **attrs})
             for dim, k in (((1,), NONE), ((0, 1), BY_ROOT_N), ((0, 1), BY_N))]  # fmt: skip
    return drawn(*calls, complex_=kind == "c")


c2c_op: Op = define(
    "fft_c2c", "self -> result", numpy=_c2c, node="FftC2CBackward0", infer=lambda self, **_: self,
    samples=_samples("c", forward=True),
    vjp=dict(self=lambda grad, dim, normalization, forward: c2c_op(
        grad, dim=dim, normalization=normalization, forward=not forward)),
)  # fmt: skip
r2c_op: Op = define(
    "fft_r2c", "self -> result", numpy=_r2c, node="FftR2CBackward0", infer=_r2c_infer,
    samples=_samples("r", onesided=True),
    vjp=dict(self=_r2c_rule),
)  # fmt: skip
c2r_op = define(
    "fft_c2r", "self -> result", numpy=_c2r, node="FftC2RBackward0",
    samples=_samples("c", last_dim_size=5),
    infer=lambda self, *, dim, normalization, last_dim_size: TensorType(
        self.dtype.to_real(), _with_size(self.shape, dim[-1], last_dim_size)),
    vjp=dict(self=_c2r_rule),
)  # fmt: skip


# --- arguments -----------------------------------------------------------------------------------


def resized(input: Any, sizes: dict[int, int]) -> Any:
    """`input` cut or filled with zeros at the end of the named dimensions."""
    for d, size in sizes.items():
        have = input.shape[d]
        if have > size:
            input = input.narrow(d, 0, size)
        elif have < size:
            behind = input.ndim - 1 - d
            input = constant_pad_op(input, pad=(0, 0) * behind + (0, size - have))
    return input


def _normalization(name: str, norm: Any, forward: bool) -> int:
    if norm is not None and not isinstance(norm, str):
        raise must_be(f"fft_{name}", "norm", "str", norm)
    if norm is None or norm == "backward":
        return NONE if forward else BY_N
    if norm == "forward":
        return BY_N if forward else NONE
    if norm == "ortho":
        return BY_ROOT_N
    raise RuntimeError(f'Invalid normalization mode: "{norm}"; use backward, forward or ortho')


def _promoted(name: str, input: Any, complex_: bool = False) -> Any:
    """Integers become the default float; 16-bit floats are refused, as on torch's CPU."""
    require_value(f"fft_{name}", input)
    dtype = input.dtype
    if dtype.category < FLOAT:
        dtype = default_dtype()
    if dtype.itemsize < 4 and casting():
        dtype = float32
    if dtype.itemsize < 4:
        raise RuntimeError(f"Unsupported dtype {type_word(dtype)}; use float() or double()")
    dtype = dtype.to_complex() if complex_ else dtype
    return input if dtype is input.dtype else input.to(dtype)


def _one_dim(dim: int, ndim: int) -> int:
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return normalize_dim(dim, ndim)


def check_size(size: int) -> int:
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified; use at least 1")
    return size


def _sizes_and_dims(input: Any, s: Any, dim: Any) -> tuple[list[int], Dims]:
    """The transformed dimensions and their sizes, -1 for as they are."""
    ndim = input.ndim
    s = [s] if isinstance(s, int) else s
    if dim is not None:
        dims = tuple(_one_dim(d, ndim) for d in ((dim,) if isinstance(dim, int) else dim))
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif s is not None:
        if len(s) > ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {ndim} "
                               "dimensions.")  # fmt: skip
        dims = tuple(range(ndim - len(s), ndim))
    else:
        dims = tuple(range(ndim))
    sizes = [-1] * len(dims) if s is None else [int(n) for n in s]
    return sizes, dims


def _filled(input: Any, sizes: list[int], dims: Dims) -> dict[int, int]:
    return {d: check_size(input.shape[d] if n == -1 else n) for n, d in zip(sizes, dims)}


# --- one dimension -------------------------------------------------------------------------------


def _one(name: str, forward: bool) -> Any:
    """fft or ifft: real input takes the cheaper real transform."""

    def function(input: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
        input = _promoted(name, input)
        d = _one_dim(dim, input.ndim)
        input = resized(input, {d: check_size(input.shape[d] if n is None else n)})
        normalization = _normalization(name, norm, forward)
        if input.dtype.is_complex:
            return c2c_op(input, dim=(d,), normalization=normalization, forward=forward)
        result = r2c_op(input, dim=(d,), normalization=normalization, onesided=False)
        return result if forward else conj(result)

    return published(name, function, "input, n=None, dim=-1, norm=None")


def published(name: str, function: Any, arguments: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"fft.{name}({arguments})."
    return public(name, spaces="fft", method=False, out="kind")(function)


def _one_real(name: str, forward: bool) -> Any:
    """rfft or ihfft: real signal, half a spectrum."""

    def function(input: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
        if input.dtype.is_complex:
            raise RuntimeError(f"{name} expects a real input tensor, but got "
                               f"{type_word(input.dtype)}")  # fmt: skip
        input = _promoted(name, input)
        d = _one_dim(dim, input.ndim)
        input = resized(input, {d: check_size(input.shape[d] if n is None else n)})
        normalization = _normalization(name, norm, forward)
        result = r2c_op(input, dim=(d,), normalization=normalization, onesided=True)
        return result if forward else conj(result)

    return published(name, function, "input, n=None, dim=-1, norm=None")


def _one_to_real(name: str, forward: bool) -> Any:
    """irfft or hfft: half a spectrum, real signal."""

    def function(input: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
        input = _promoted(name, input, complex_=True)
        d = _one_dim(dim, input.ndim)
        size = check_size(2 * (input.shape[d] - 1) if n is None else n)
        input = resized(input, {d: size // 2 + 1})
        input = conj(input) if forward else input
        return c2r_op(input, dim=(d,), normalization=_normalization(name, norm, forward),
                      last_dim_size=size)  # fmt: skip

    return published(name, function, "input, n=None, dim=-1, norm=None")


fft, ifft = _one("fft", True), _one("ifft", False)
rfft, ihfft = _one_real("rfft", True), _one_real("ihfft", False)
hfft, irfft = _one_to_real("hfft", True), _one_to_real("irfft", False)


# --- several dimensions --------------------------------------------------------------------------


def _many(name: str, forward: bool, default: Any) -> Any:
    def function(input: Any, s: Any = None, dim: Any = default, norm: Any = None) -> Any:
        input = _promoted(name, input, complex_=True)
        sizes, dims = _sizes_and_dims(input, s, dim)
        input = resized(input, _filled(input, sizes, dims))
        normalization = _normalization(name, norm, forward)
        return c2c_op(input, dim=dims, normalization=normalization, forward=forward)

    return published(name, function, f"input, s=None, dim={default}, norm=None")


def _many_real(name: str, forward: bool, default: Any) -> Any:
    def function(input: Any, s: Any = None, dim: Any = default, norm: Any = None) -> Any:
        if input.dtype.is_complex:
            raise RuntimeError(f"{name} expects a real-valued input tensor, but got "
                               f"{type_word(input.dtype)}")  # fmt: skip
        input = _promoted(name, input)
        sizes, dims = _sizes_and_dims(input, s, dim)
        if not dims:
            raise RuntimeError(f"{name} must transform at least one axis")
        input = resized(input, _filled(input, sizes, dims))
        normalization = _normalization(name, norm, forward)
        if forward:
            return r2c_op(input, dim=dims, normalization=normalization, onesided=True)
        half = r2c_op(input, dim=dims[-1:], normalization=normalization, onesided=True)
        if len(dims) == 1:
            return conj(half)
        return c2c_op(conj(half), dim=dims[:-1], normalization=normalization, forward=False)

    return published(name, function, f"input, s=None, dim={default}, norm=None")


def _many_to_real(name: str, forward: bool, default: Any) -> Any:
    def function(input: Any, s: Any = None, dim: Any = default, norm: Any = None) -> Any:
        input = _promoted(name, input, complex_=True)
        sizes, dims = _sizes_and_dims(input, s, dim)
        if not dims:
            raise RuntimeError(f"{name} must transform at least one axis")
        last = sizes[-1] if sizes[-1] != -1 else 2 * (input.shape[dims[-1]] - 1)
        check_size(last)
        wanted = _filled(input, [*sizes[:-1], last // 2 + 1], dims)
        input = resized(input, wanted)
        input = conj(input) if forward else input
        return c2r_op(input, dim=dims, normalization=_normalization(name, norm, forward),
                      last_dim_size=last)  # fmt: skip

    return published(name, function, f"input, s=None, dim={default}, norm=None")


fft2, ifft2 = _many("fft2", True, (-2, -1)), _many("ifft2", False, (-2, -1))
fftn, ifftn = _many("fftn", True, None), _many("ifftn", False, None)
rfft2, ihfft2 = _many_real("rfft2", True, (-2, -1)), _many_real("ihfft2", False, (-2, -1))
rfftn, ihfftn = _many_real("rfftn", True, None), _many_real("ihfftn", False, None)
hfft2, irfft2 = _many_to_real("hfft2", True, (-2, -1)), _many_to_real("irfft2", False, (-2, -1))
hfftn, irfftn = _many_to_real("hfftn", True, None), _many_to_real("irfftn", False, None)


# --- frequencies and order -----------------------------------------------------------------------


def _frequencies(name: str, half: bool) -> Any:
    def function(n: int, d: float = 1.0, *, dtype: Any = None, layout: Any = None,
                 device: Any = None, requires_grad: bool = False) -> Any:  # fmt: skip
        n, dtype = whole_number(name, "n", n, 1), dtype or default_dtype()
        if dtype.category < FLOAT:
            raise RuntimeError(f"{name} requires a floating point or complex dtype")
        if dtype.is_complex:
            raise no_kernel("arange_cpu", dtype)
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
        if half:
            result = iota(size=n // 2 + 1, dtype=dtype)
        else:
            positive = (n + 1) // 2
            result = cat(iota(size=positive, dtype=dtype),
                         iota(size=n - positive, start=-(n // 2), dtype=dtype), dim=0)  # fmt: skip
        result = result * (1.0 / (n * d) if n * d else math.inf)
        return result.requires_grad_() if requires_grad else result

    return published(name, function, "n, d=1.0, *, dtype=None")


fftfreq, rfftfreq = _frequencies("fftfreq", False), _frequencies("rfftfreq", True)


def _shift(name: str, inverse: bool) -> Any:
    def function(input: Any, dim: Any = None) -> Any:
        dims = tuple(range(input.ndim)) if dim is None else (dim,) if isinstance(dim, int) else dim
        dims = tuple(normalize_dim(d, input.ndim) for d in dims)
        sizes = [input.shape[d] for d in dims]
        return input.roll([(n + 1) // 2 if inverse else n // 2 for n in sizes], dims)

    return published(name, function, "input, dim=None")


fftshift, ifftshift = _shift("fftshift", False), _shift("ifftshift", True)
