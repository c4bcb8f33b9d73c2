"""Random tensors, drawn from torch's CPU stream; see `generator.py`.

Every draw is the op `draw` (`ir/ops/drawing.py`), so recordings see it. The methods of tensors are
in `random_methods.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir.arguments import as_dtype, whole_number
from ..ir.bind import notify
from ..ir.ops import drawing
from ..ir.ops.creation import shape_in, shape_of
from ..ir.ops.drawing import draw
from ..ir.ops.kinds import require_value
from ..ir.ops.layouts import fill_order_of, like_order_of
from ..ir.overriding import asking
from ..ir.types import DType, default_dtype, int64, uint8
from . import discrete, rejection, sampling
from .convert import escape
from .creation import deliver, finish, size_given
from .generator import Generator, Snapshot
from .placing import placed
from .rounding import cast, scale_and_shift
from .strided import preserve_format
from .tensor import Tensor, require_cpu

default_generator = Generator()


def pick(generator: Any) -> Generator:
    """The generator to draw from; None is the default one."""
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        raise TypeError(f"generator must be a torch.Generator, not {type(generator).__name__}")
    return generator


# --- distributions: (generator, size, dtype's name, operands, *parameters) -----------------------


def _normal(g: Generator, size: Any, dtype: str, operands: Any, mean: float = 0.0,
            std: float = 1.0, strided: bool = False) -> np.ndarray:  # fmt: skip
    if not strided:
        return sampling.normal(g, size, mean, std, dtype)
    # tensors that are not contiguous are filled one by one, whatever their size
    if dtype.startswith("complex"):
        parts = sampling.paired_normals(g, 2 * int(np.prod(size)))
        values = scale_and_shift(parts, std / math.sqrt(2), mean).view(np.complex128)
        return values.astype(dtype).reshape(size)
    values = sampling.paired_normals(g, int(np.prod(size)))
    return cast(scale_and_shift(values, std, mean), dtype).reshape(size)


def _bernoulli(g: Generator, size: Any, dtype: str, operands: Any, p: Any = None) -> np.ndarray:
    return sampling.bernoulli(g, operands[-1] if p is None else p, size, dtype)


DISTRIBUTIONS: dict[str, Any] = {
    "uniform": lambda g, size, dtype, _, *p: sampling.uniform(g, size, *p, dtype=dtype),
    "normal": _normal,
    "normal_around": lambda g, size, dtype, arrays, mean, std: sampling.normal_around(
        g, arrays[0] if mean is None else mean, arrays[-1] if std is None else std, dtype),
    "log_normal": lambda g, size, dtype, _, *p: sampling.log_normal(g, size, *p, dtype=dtype),
    "exponential": lambda g, size, dtype, _, *p: sampling.exponential(g, size, *p, dtype=dtype),
    "cauchy": lambda g, size, dtype, _, *p: sampling.cauchy(g, size, *p, dtype=dtype),
    "geometric": lambda g, size, dtype, _, p: sampling.geometric(g, size, p, dtype),
    "bernoulli": _bernoulli,
    "integers": lambda g, size, dtype, _, low, high: discrete.randint(g, low, high, size, dtype),
    "all_integers": lambda g, size, dtype, _: discrete.random_integers(g, size, dtype),
    "rrelu": lambda g, size, dtype, arrays, *bounds: sampling.rrelu_noise(
        g, arrays[0], *bounds, dtype),
    "permutation": lambda g, size, dtype, _: discrete.randperm(g, size[0], dtype),
    "multinomial": lambda g, size, dtype, arrays, count, replacement, *more: (
        discrete.multinomial(g, arrays[0], count, replacement, *more)),
    "poisson": lambda g, size, dtype, arrays: rejection.poisson(g, arrays[0], dtype),
    "binomial": lambda g, size, dtype, arrays: rejection.binomial(g, *arrays, dtype),
    "gamma": lambda g, size, dtype, arrays: rejection.standard_gamma(g, arrays[0], dtype),
    "dirichlet": lambda g, size, dtype, arrays: rejection.sample_dirichlet(g, arrays[0], dtype),
}  # fmt: skip


def _source(distribution: str, generator: Any, size: Any, dtype: str, operands: Any,
            parameters: Any, strided: bool) -> np.ndarray:  # fmt: skip
    more = {"strided": True} if strided and distribution == "normal" else {}
    sample = DISTRIBUTIONS[distribution]
    return np.asarray(sample(pick(generator), size, dtype, operands, *parameters, **more))


def _generator_at(state: np.ndarray) -> Generator:
    generator = Generator()
    generator.resume(Snapshot.of(state))
    return generator


drawing.source = _source
drawing.generator_at = _generator_at
drawing.first_state = lambda: Generator().state()


def draw_tensor(distribution: str, size: Any, dtype: DType, *operands: Tensor,
                parameters: tuple[Any, ...] = (), generator: Any = None,
                order: Any = None) -> Any:  # fmt: skip
    """Runs `draw`, leaving out the attributes that have their defaults."""
    more: dict[str, Any] = {}
    if parameters:
        more["parameters"] = parameters
    if generator is not None:
        more["generator"] = pick(generator)
    if order is not None:
        more["order"] = order
    return draw(*operands, distribution=distribution, size=tuple(size), dtype=dtype, **more)


def order_within(out: Any, shape: Any) -> Any:
    """The order in which a tensor given as `out` is filled, if it has the shape already."""
    fits = isinstance(out, Tensor) and tuple(out.shape) == tuple(shape)
    return fill_order_of(out) if fits else None


# --- the state -----------------------------------------------------------------------------------


def manual_seed(seed: int) -> Generator:
    """Seeds the default generator."""
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seeds the default generator from the system's entropy."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    notify("seed_asked")
    return default_generator.initial_seed()


def state_of(generator: Generator) -> Tensor:
    """The whole state as a byte tensor, laid out as torch's."""
    return Tensor._wrap(generator.state(), uint8)


def get_state(self: Generator) -> Tensor:
    """Generator.get_state(): see `state_of`."""
    state = state_of(self)
    escape(state, "get_state()")
    return state


def set_state(self: Generator, new_state: Tensor) -> Generator:
    """Generator.set_state(new_state): continues from a state that `get_state` gave."""
    if not isinstance(new_state, Tensor):
        raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
    self.restore(new_state._array)
    return self


# here, because generator.py knows no tensors
Generator.get_state, Generator.set_state = get_state, set_state  # type: ignore[attr-defined]


def get_rng_state() -> Tensor:
    """The default generator's state as a byte tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Restores a state taken by `get_rng_state`."""
    default_generator.set_state(new_state)


# --- tensors of random numbers -------------------------------------------------------------------


def _maker(name: str, distribution: str) -> Any:
    def function(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None,
                 requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
                 out: Any = None, **named: Any) -> Tensor:  # fmt: skip
        require_cpu(device, pin_memory)
        shape = shape_of(name, size_given(name, size, named))
        wanted = as_dtype(dtype) or (default_dtype() if out is None else out.dtype)
        order = order_within(out, shape)
        result = draw_tensor(distribution, shape, wanted, generator=generator, order=order)
        return deliver(result, requires_grad, out, name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(*size, generator=None, out=None, dtype=None, requires_grad=False)."
    return function


rand = placed(_maker("rand", "uniform"))
randn = placed(_maker("randn", "normal"))


def _maker_like(name: str, distribution: str) -> Any:
    def function(input: Tensor, *, dtype: Any = None, generator: Any = None, layout: Any = None,
                 device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                 memory_format: Any = None) -> Tensor:  # fmt: skip
        require_value(name, input)
        require_cpu(device, pin_memory)
        wanted = as_dtype(dtype) or input.dtype
        order = like_order_of(input) if memory_format in (None, preserve_format) else None
        result = draw_tensor(distribution, input.shape, wanted, generator=generator, order=order)
        return finish(result, requires_grad)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(input, *, dtype=None, generator=None, requires_grad=False)."
    return asking(function)


rand_like = _maker_like("rand_like", "uniform")
randn_like = _maker_like("randn_like", "normal")


@placed
def randint(*args: Any, generator: Any = None, dtype: Any = None, device: Any = None,
            layout: Any = None, pin_memory: bool = False, requires_grad: bool = False,
            out: Any = None, **named: Any) -> Tensor:  # fmt: skip
    """randint(low=0, high, size, *, generator=None, out=None, dtype=torch.int64)."""
    require_cpu(device, pin_memory)
    order = named.pop("_order", None)
    low, high, size = _limits(args, named)
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= "
                           f"to={high}")  # fmt: skip
    wanted = as_dtype(dtype) or (int64 if out is None else out.dtype)
    order = order or order_within(out, size)
    result = draw_tensor("integers", size, wanted, generator=generator, parameters=(low, high),
                         order=order)  # fmt: skip
    return deliver(result, requires_grad, out, "randint")


def _limits(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[int, int, tuple[int, ...]]:
    """low, high and size of randint, however they were given."""
    short = len(args) + len(named) < 3
    names = ("high", "size") if short else ("low", "high", "size")
    given = {**dict(zip(names, args)), **named}
    if len(args) > len(names) or given.keys() - {"low", "high", "size"} or "size" not in given:
        raise TypeError("randint() received an invalid combination of arguments: give high and "
                        "size, or low, high and size")  # fmt: skip
    low, high = (whole_number("randint", word, given.get(word, 0), names.index(word) + 1)
                 for word in (names[0], "high"))  # fmt: skip
    return 0 if short else low, high, shape_in("randint", given["size"], len(names))


@asking
def randint_like(input: Tensor, *args: Any, dtype: Any = None, **named: Any) -> Tensor:
    """randint_like(input, low=0, high, *, dtype=None)."""
    require_value("randint_like", input)
    kept = named.pop("memory_format", None) in (None, preserve_format)
    return randint(*args, size=tuple(input.shape), dtype=dtype or input.dtype,
                   _order=like_order_of(input) if kept else None, **named)  # fmt: skip


@placed
def randperm(n: int, *, generator: Any = None, dtype: Any = None, device: Any = None,
             layout: Any = None, pin_memory: bool = False, requires_grad: bool = False,
             out: Any = None) -> Tensor:  # fmt: skip
    """randperm(n, *, generator=None, out=None, dtype=torch.int64): 0..n-1 in random order."""
    require_cpu(device, pin_memory)
    n = whole_number("randperm", "n", n, 1)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    wanted = as_dtype(dtype) or (int64 if out is None else out.dtype)
    result = draw_tensor("permutation", (n,), wanted, generator=generator)
    return deliver(result, requires_grad, out, "randperm")
