"""Window functions: `torch.signal.windows` and the older `torch.hann_window` family.

They are computed in their own precision, as torch's are: ends that would be 0 are what rounding
leaves of it there. Half precision is computed in double precision and rounded once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..ir.arguments import as_dtype
from ..ir.numerics.bessel import i0
from ..ir.types import bfloat16, default_dtype, to_bfloat16, type_word
from .creation import finish
from .tensor import Tensor, require_cpu

Formula = Callable[[np.ndarray, float], np.ndarray]  # of the positions and the last one


def _make(values: np.ndarray, dtype: Any, requires_grad: bool) -> Tensor:
    array = to_bfloat16(values) if dtype is bfloat16 else values.astype(dtype.storage)
    return finish(Tensor._wrap(array, dtype), requires_grad)


def _positions(count: int, dtype: Any) -> np.ndarray:
    return np.arange(count, dtype=np.float32 if dtype.name == "float32" else np.float64)


def _cosines(coefficients: Iterable[float], falling: bool = False) -> Formula:
    """The sum of (-1)^i a_i cos(2 pi i n / N), from the last term on if `falling`."""

    def formula(n: np.ndarray, last: float) -> np.ndarray:
        angle = n * n.dtype.type(2 * np.pi / max(last, 1.0))
        terms = [(-1) ** i * a * np.cos(i * angle) for i, a in enumerate(coefficients)]
        return functools.reduce(np.add, reversed(terms) if falling else terms)

    return formula


def _triangle(n: np.ndarray, last: float) -> np.ndarray:
    return 1 - np.abs(2 * n / last - 1)


def _kaiser(beta: float) -> Formula:
    def formula(n: np.ndarray, last: float) -> np.ndarray:
        n = n.astype(np.float64)  # the Bessel function needs it
        ratio = np.minimum(2 * n / last - 1, 1.0)
        root = np.sqrt(np.maximum(1 - ratio * ratio, 0))
        return i0(beta * root) / i0(np.array([beta]))

    return formula


# --- torch.signal.windows ------------------------------------------------------------------------


def _signal(name: str, M: int, formula: Formula, sym: bool, options: dict[str, Any],
            single: bool = True) -> Tensor:  # fmt: skip
    """A window of M points; `single`: one point is 1 whatever the formula."""
    require_cpu(options.pop("device", None))
    layout = options.pop("layout", None)
    dtype = as_dtype(options.pop("dtype", None)) or default_dtype()
    requires_grad = options.pop("requires_grad", False)
    if options:
        raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(options))}'")
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not None and str(layout) != "torch.strided":
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype.name not in ("float32", "float64"):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    if M == 1 and single:
        return _make(np.ones(1), dtype, requires_grad)
    last = float(M - 1 if sym or (M == 1 and not single) else M)
    return _make(formula(_positions(M, dtype), last), dtype, requires_grad)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Tensor:
    """general_cosine(M, *, a, sym=True): alternating cosines with coefficients `a`."""
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    coefficients = list(a)
    if not coefficients:
        raise ValueError("Coefficients cannot be empty")
    return _signal("general_cosine", M, _cosines(coefficients), sym, options)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """general_hamming(M, *, alpha=0.54, sym=True)."""
    return _signal("general_hamming", M, _cosines((alpha, 1 - alpha)), sym, options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """hamming(M, *, sym=True)."""
    return _signal("hamming", M, _cosines((0.54, 0.46)), sym, options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """hann(M, *, sym=True)."""
    return _signal("hann", M, _cosines((0.5, 0.5)), sym, options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """blackman(M, *, sym=True)."""
    return _signal("blackman", M, _cosines((0.42, 0.5, 0.08)), sym, options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """nuttall(M, *, sym=True): four cosines with minimal sidelobes."""
    terms = (0.3635819, 0.4891775, 0.1365995, 0.0106411)
    return _signal("nuttall", M, _cosines(terms), sym, options)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """bartlett(M, *, sym=True): a triangle."""
    return _signal("bartlett", M, _triangle, sym, options)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:
    """kaiser(M, *, beta=12.0, sym=True)."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _signal("kaiser", M, _kaiser(beta), sym, options)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """gaussian(M, *, std=1.0, sym=True)."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")

    def formula(n: np.ndarray, last: float) -> np.ndarray:
        return np.exp(-np.square((n - last / 2) / (std * math.sqrt(2))))

    return _signal("gaussian", M, formula, sym, options, single=False)


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """cosine(M, *, sym=True): half a sine wave."""

    def formula(n: np.ndarray, last: float) -> np.ndarray:
        return np.sin(np.pi * (n + 0.5) / (last + 1))

    return _signal("cosine", M, formula, sym, options, single=False)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True,
                **options: Any) -> Tensor:  # fmt: skip
    """exponential(M, *, center=None, tau=1.0, sym=True)."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def formula(n: np.ndarray, last: float) -> np.ndarray:
        start = -last / 2 if center is None else -center
        return np.exp(-np.abs((n + start) / tau))

    return _signal("exponential", M, formula, sym, options, single=False)


# --- torch.*_window ------------------------------------------------------------------------------


def _window(name: str, length: int, periodic: bool, formula: Formula, dtype: Any, device: Any,
            requires_grad: bool) -> Tensor:  # fmt: skip
    require_cpu(device)
    wanted = as_dtype(dtype) or default_dtype()
    if not wanted.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {type_word(wanted)}")
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length="
                           f"{length}")  # fmt: skip
    if length == 1:
        return _make(np.ones(1), wanted, requires_grad)
    last = float(length if periodic else length - 1)
    return _make(formula(_positions(length, wanted), last), wanted, requires_grad)


def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = None,
                layout: Any = None, device: Any = None, pin_memory: bool = False,
                requires_grad: bool = False) -> Tensor:  # fmt: skip
    """hann_window(window_length, periodic=True)."""
    formula = _cosines((0.5, 0.5))
    return _window("hann_window", window_length, periodic, formula, dtype, device, requires_grad)


def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54,
                   beta: float = 0.46, *, dtype: Any = None, layout: Any = None, device: Any = None,
                   pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46)."""
    formula = _cosines((alpha, beta))
    return _window("hamming_window", window_length, periodic, formula, dtype, device, requires_grad)


def blackman_window(window_length: int, periodic: bool = True, *, dtype: Any = None,
                    layout: Any = None, device: Any = None, pin_memory: bool = False,
                    requires_grad: bool = False) -> Tensor:  # fmt: skip
    """blackman_window(window_length, periodic=True)."""
    formula = _cosines((0.42, 0.5, 0.08), falling=True)
    return _window("blackman_window", window_length, periodic, formula, dtype, device,
                   requires_grad)  # fmt: skip


def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Any = None,
                    layout: Any = None, device: Any = None, pin_memory: bool = False,
                    requires_grad: bool = False) -> Tensor:  # fmt: skip
    """bartlett_window(window_length, periodic=True)."""
    return _window("bartlett_window", window_length, periodic, _triangle, dtype, device,
                   requires_grad)  # fmt: skip


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *,
                  dtype: Any = None, layout: Any = None, device: Any = None,
                  pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """kaiser_window(window_length, periodic=True, beta=12.0)."""
    formula = _kaiser(beta)
    return _window("kaiser_window", window_length, periodic, formula, dtype, device, requires_grad)
