"""Random tensors, drawn from torch's CPU stream; see `generator.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.ops.creation import shape_of
from ..ir.types import DType, bfloat16, default_dtype, int64, to_bfloat16, uint8
from . import discrete, sampling
from .creation import as_dtype, finish
from .generator import Generator
from .tensor import Tensor, require_cpu

default_generator = Generator()


def pick(generator: Any) -> Generator:
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        raise TypeError(f"generator must be a torch.Generator, not {type(generator).__name__}")
    return generator


def wrap_values(values: np.ndarray, dtype: DType) -> Tensor:
    """Sampled values as a tensor; bfloat16 comes as rounded float32."""
    if dtype is bfloat16:
        return Tensor._wrap(to_bfloat16(values), bfloat16)
    return Tensor._wrap(np.ascontiguousarray(values).astype(dtype.storage, copy=False).reshape(
        values.shape), dtype)  # fmt: skip


def manual_seed(seed: int) -> Generator:
    """Seeds the default generator."""
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seeds the default generator from the system's entropy."""
    return default_generator.seed()


def initial_seed() -> int:
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state as a byte tensor."""
    return Tensor._wrap(default_generator.get_state(), uint8)


def set_rng_state(new_state: Tensor) -> None:
    """Restores a state taken by `get_rng_state`."""
    default_generator.set_state(new_state._array)


def _maker(name: str, sample: Any) -> Any:
    def function(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None,
                 requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
                 out: Any = None, **named: Any) -> Tensor:  # fmt: skip
        require_cpu(device)
        size = (named["size"],) if "size" in named else size
        wanted = as_dtype(dtype) or default_dtype()
        if not (wanted.is_floating_point or wanted.is_complex):
            raise NotImplementedError(f'"{name}" not implemented for {wanted.name!r}; '
                                      "use randint for integers")  # fmt: skip
        result = wrap_values(sample(pick(generator), shape_of(size), dtype=wanted.name), wanted)
        return finish(result, requires_grad)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(*size, generator=None, dtype=None, requires_grad=False)."
    return function


rand = _maker("rand", sampling.uniform)
randn = _maker("randn", sampling.normal)


def rand_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False, **_: Any) -> Tensor:
    """rand_like(input)."""
    return rand(tuple(input.shape), dtype=dtype or input.dtype, requires_grad=requires_grad)


def randn_like(
    input: Tensor, *, dtype: Any = None, requires_grad: bool = False, **_: Any
) -> Tensor:
    """randn_like(input)."""
    return randn(tuple(input.shape), dtype=dtype or input.dtype, requires_grad=requires_grad)


def randint(*args: Any, generator: Any = None, dtype: Any = None, device: Any = None,
            requires_grad: bool = False, **named: Any) -> Tensor:  # fmt: skip
    """randint(high, size) or randint(low, high, size)."""
    require_cpu(device)
    values = list(args)
    size = named.get("size", None)
    if size is None:
        size = values.pop()
    low, high = (0, values[0]) if len(values) == 1 else (
        values if values else (named.get("low", 0), named["high"]))  # fmt: skip
    if "high" in named and len(values) == 1:
        low, high = values[0], named["high"]
    low, high = int(low), int(high)
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= "
                           f"to={high}")  # fmt: skip
    wanted = as_dtype(dtype) or int64
    drawn = discrete.randint(pick(generator), low, high, shape_of((size,)), dtype=wanted.name)
    return finish(wrap_values(drawn, wanted), requires_grad)


def randint_like(input: Tensor, *args: Any, dtype: Any = None, **named: Any) -> Tensor:
    """randint_like(input, high) or randint_like(input, low, high)."""
    return randint(*args, tuple(input.shape), dtype=dtype or input.dtype, **named)


def randperm(n: int, *, generator: Any = None, dtype: Any = None, device: Any = None,
             requires_grad: bool = False, **_: Any) -> Tensor:  # fmt: skip
    """randperm(n): 0..n-1 in random order."""
    require_cpu(device)
    if n < 0:
        raise RuntimeError(f"n must be non-negative, got {n}")
    wanted = as_dtype(dtype) or int64
    drawn = discrete.randperm(pick(generator), n, dtype=wanted.name)
    return finish(wrap_values(drawn, wanted), requires_grad)


def _inplace(name: str, sample: Any) -> Any:
    """A method that overwrites the tensor with samples; the graph sees a fresh value."""

    def method(self: Tensor, *args: Any, generator: Any = None, **named: Any) -> Tensor:
        from .inplace import run_inplace

        def draw(target: Tensor) -> Tensor:
            values = sample(pick(generator), target, *args, **named)
            return wrap_values(values, target.dtype)

        draw.__name__ = "copy"
        return run_inplace(draw, self, (), {})

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"{name}: overwrites the tensor with random numbers."
    setattr(Tensor, name, method)
    return method


def check_range(low: float, high: float) -> None:
    if not low <= high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low} > "
                           f"to={high}")  # fmt: skip


def _uniform(g: Any, t: Tensor, a: float = 0.0, b: float = 1.0, **named: float) -> Any:
    low, high = float(named.get("from", a)), float(named.get("to", b))
    check_range(low, high)
    return sampling.uniform(g, t.shape, low, high, dtype=t.dtype.name)


def _normal(g: Any, t: Tensor, mean: float = 0.0, std: float = 1.0) -> Any:
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    return sampling.normal(g, t.shape, float(mean), float(std), dtype=t.dtype.name)


_inplace("uniform_", _uniform)
_inplace("normal_", _normal)
