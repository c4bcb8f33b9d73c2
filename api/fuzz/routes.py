"""The ways to run a program, each giving an `Outcome` per call."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import grammar
from .program import Input, Program

ROUTES = ("eager", "interpreter", "compiled")
WIDE = {
    "float32": "float64",
    "float16": "float64",
    "bfloat16": "float64",
    "complex64": "complex128",
}
_NARROW = re.compile(r"torch\.(bfloat16|float16|float32|complex64)\b")


@dataclass
class Found:
    """One value: its dtype's name, whether it has a history, its strides, and its elements."""

    dtype: str
    history: bool
    strides: tuple[int, ...]  # of dimensions that have several elements
    array: np.ndarray


@dataclass
class Outcome:
    """What a call gave: results, gradients and inputs by name, or the type of its error."""

    values: dict[str, Found] = field(default_factory=dict)
    error: str = ""
    message: str = ""


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def environment(**settings: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def widened(text: str) -> str:
    """The text with narrow floating dtypes made wide."""
    return _NARROW.sub(lambda match: f"torch.{WIDE[match[1]]}", text)


def make_inputs(inputs: tuple[Input, ...], seed: int, wide: bool = False) -> dict[str, Any]:
    """The inputs of one call, by name; wide ones have the values of the narrow ones."""
    return {i.name: make_input(i, seed, wide) for i in inputs}


def make_input(made: Input, seed: int, wide: bool) -> Any:
    space = grammar.namespace()
    torch = space["torch"]
    values = made.values(seed)
    if made.dtype == "number":
        return values
    with quiet():
        tensor = torch.tensor(values, dtype=getattr(torch, made.dtype))
        if wide and made.dtype in WIDE:
            tensor = tensor.to(getattr(torch, WIDE[made.dtype]))
        tensor = eval(made.layout, {**space, "t": tensor})
    return tensor.requires_grad_() if made.requires_grad else tensor


def function_of(text: str, space: dict[str, Any]) -> Callable[..., Any]:
    """A program's text as a Python function; `space` has what it finds outside."""
    everything = {**grammar.namespace(), **space}
    exec(text, everything)
    return everything["program"]  # type: ignore[no-any-return]


def run(program: Program, route: str) -> list[Outcome]:
    """The outcomes of all calls on one route."""
    settings = {"WENGERT_STRICT": "1", "WENGERT_CHECK": "0"}
    if route == "interpreter":
        settings["WENGERT_BACKEND"] = "interpreter"
    compiled = grammar.namespace()["torch"].compile if route != "eager" else (lambda f: f)
    with environment(**settings), quiet():
        captured = captured_inputs(program)
        function = compiled(function_of(program.source(), captured))
        return [call(program, function, captured, k) for k in range(program.calls)]


def reference(program: Program, observer: Observer, wide: bool = True) -> list[Outcome]:
    """Outcomes in float64, eagerly, under the eyes of an observer."""
    torch = grammar.namespace()["torch"]
    before = torch.get_default_dtype()
    text = program.source(observed=True, fresh=observer.fresh)
    with quiet():
        torch.set_default_dtype(torch.float64 if wide else before)
        try:
            captured = captured_inputs(program, wide)
            space = {**captured, "observe": observer.observe, "near": observer.near}
            function = function_of(widened(text) if wide else text, space)
            outcomes = []
            for k in range(program.calls):
                outcomes.append(call(program, function, captured, k, wide))
                observer.between_calls(captured)
            return outcomes
        finally:
            torch.set_default_dtype(before)


class Observer:
    """Sees each value on its way, and what each statement reads.

    Without noise it notes dtypes, truths and integers, the largest magnitudes of values and of
    gradients, and which targets share no memory with an argument (`fresh`). With noise it disturbs
    values and gradients: all results, and what statements with fresh targets read, each time anew,
    so that sums that cancel show it.
    """

    def __init__(self, noise: float = 0.0, seed: int = 0, fresh: frozenset[str] = frozenset()):
        self.noise, self.fresh = noise, fresh
        self.largest, self.steepest, self.dtypes = 0.0, 0.0, set[str]()
        self.shared, self.targets = set[str](), set[str]()
        self.discrete: list[bytes] = []
        self.rng = np.random.default_rng(seed)

    def observe(self, name: str, value: Any, *arguments: Any) -> None:
        self.dtypes.update(dtype_of(x) for x in (value, *arguments))
        if not value.dtype.is_floating_point and not value.dtype.is_complex:
            self.discrete.append(value.numpy().tobytes())
        if any(x.dtype.itemsize == 2 for x in (value, *arguments)):
            return  # NumPy has no bfloat16
        array = value.detach().numpy()
        self.targets.add(name)
        if any(np.may_share_memory(array, x.detach().numpy()) for x in arguments):
            self.shared.add(name)
        if array.dtype.kind not in "fc" or not array.size:
            return
        self.largest = max(self.largest, magnitude(array))
        if self.noise and array.flags.writeable:
            with np.errstate(all="ignore"):
                array[...] = self.altered(array)
        if value.requires_grad:
            value.register_hook(self.disturbed if self.noise else self.note_gradient)

    def note_gradient(self, gradient: Any) -> None:
        if gradient.dtype.itemsize > 2:  # NumPy has no bfloat16
            self.steepest = max(self.steepest, magnitude(gradient.detach().numpy()))

    def near(self, value: Any) -> Any:
        """The value as another reader would round it."""
        if not value.dtype.is_floating_point and not value.dtype.is_complex:
            return value
        result = self.disturbed(value)
        if result.requires_grad:
            result.register_hook(self.disturbed)
        return result

    def altered(self, array: np.ndarray) -> np.ndarray:
        """What remains where an op cancels (sine of a multiple of pi) has any sign."""
        remains = (array != 0) & (np.abs(array) < self.noise)
        left = self.noise * self.rng.uniform(-1, 1, array.shape)
        return np.where(remains, left, array * self.factors(array.shape))

    def factors(self, shape: tuple[int, ...]) -> np.ndarray:
        return 1 + self.noise * self.rng.uniform(-1, 1, shape)

    def between_calls(self, captured: dict[str, Any]) -> None:
        """What a call wrote to and the next one reads was rounded, too."""
        torch = grammar.namespace()["torch"]
        for value in captured.values():
            written = isinstance(value, torch.Tensor) and value._version > 0
            if self.noise and written and value.dtype.is_differentiable:
                with torch.no_grad():
                    value.copy_(self.disturbed(value))

    def disturbed(self, value: Any) -> Any:
        torch = grammar.namespace()["torch"]
        return value * torch.tensor(self.factors(tuple(value.shape)), dtype=value.dtype)


class Rounding(Observer):
    """Rounds results to a dtype's precision, `noise`: they meet points that noise never does."""

    def altered(self, array: np.ndarray) -> np.ndarray:
        result = np.empty_like(array)
        result.real = self.rounded(array.real)
        if array.dtype.kind == "c":
            result.imag = self.rounded(array.imag)
        return result

    def rounded(self, array: np.ndarray) -> np.ndarray:
        mantissa, exponent = np.frexp(array)
        return np.ldexp(np.rint(mantissa * 2 / self.noise) * self.noise / 2, exponent)

    def factors(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.ones(shape)


def magnitude(array: np.ndarray) -> float:
    """The largest of the finite elements."""
    return float(np.abs(array[np.isfinite(array)]).max(initial=0.0))


def captured_inputs(program: Program, wide: bool = False) -> dict[str, Any]:
    return make_inputs(tuple(i for i in program.inputs if i.captured), program.seed, wide)


def call(program: Program, function: Any, captured: dict[str, Any], number: int,
         wide: bool = False) -> Outcome:  # fmt: skip
    """One call, the gradients of its results, and the state of its inputs afterwards."""
    torch = grammar.namespace()["torch"]
    arguments = make_inputs(tuple(i for i in program.inputs if not i.captured),
                            program.seed + number, wide)  # fmt: skip
    outcome = Outcome()
    torch.manual_seed(program.seed + number)
    tensors = {n: t for n, t in {**arguments, **captured}.items() if not isinstance(t, float)}
    for tensor in tensors.values():
        tensor.grad = None
    try:
        results = function(*arguments.values())
        for name, value in zip(program.outputs, results):
            outcome.values[name] = found(value)
        start_backward(torch, results)
    except MemoryError:
        raise
    except Exception as error:
        outcome.error, outcome.message = type(error).__name__, str(error)
    for name, tensor in tensors.items():
        outcome.values[f"{name} afterwards"] = found(tensor)
        if tensor.grad is not None:
            outcome.values[f"gradient of {name}"] = found(tensor.grad)
    return outcome


def start_backward(torch: Any, results: list[Any]) -> None:
    """Backward from all results at once, with weights that tell elements apart."""
    roots = [r for r in results if r.requires_grad]
    if roots:
        weights = [weights_for(torch, r) for r in roots]
        torch.autograd.backward(roots, weights)


def weights_for(torch: Any, root: Any) -> Any:
    """Different for each element, and exact in every dtype."""
    pattern = torch.arange(root.numel()).view(root.shape).remainder(7) - 2.5
    return pattern.to(root.dtype)


def dtype_of(value: Any) -> str:
    return str(value.dtype).rpartition(".")[2]


def found(value: Any) -> Found:
    tensor = value.detach()
    if tensor.dtype.itemsize == 2 and tensor.dtype.is_floating_point:
        tensor = tensor.float()
    strides = tuple(step for step, n in zip(value.stride(), value.shape) if n > 1)
    return Found(dtype_of(value), value.requires_grad, strides if value.numel() else (),
                 np.array(tensor.numpy()))  # fmt: skip
