"""What update formulas are written on: arrays when ops run eagerly, tensors when they are recorded.

A formula is written once, with torch's names of the methods. `ArrayBuffer` runs it on NumPy arrays,
ten times as fast as through ops for small parameters; `TensorBuffer` runs it in ops, so that it can
be recorded or differentiated. Scalars are numbers with the first, numbers or 0-d tensors with the
second.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.bind import state
from ..tracer.readers import readers
from ..tracer.tensor import Tensor

_NATIVE = ("float32", "float64")


class ArrayBuffer:
    """An array under torch's method names. In-place methods count the writes."""

    __slots__ = ("array", "writes")

    def __init__(self, array: Any):
        self.array = np.asarray(array)  # results of 0-d arrays are NumPy scalars
        self.writes = 0

    def value(self) -> Any:
        """The number in a 0-d buffer."""
        return float(self.array)

    def mul_(self, factor: Any) -> Any:
        self.writes += 1
        np.multiply(self.array, array_of(factor), out=self.array)
        return self

    def div_(self, divisor: Any) -> Any:
        self.writes += 1
        np.divide(self.array, array_of(divisor), out=self.array)
        return self

    def add_(self, other: Any, alpha: Any = 1) -> Any:
        self.writes += 1
        other = array_of(other)
        np.add(self.array, other if alpha == 1 else other * alpha, out=self.array)
        return self

    def addcmul_(self, first: Any, second: Any, value: Any = 1) -> Any:
        self.writes += 1
        product = first.array * second.array
        if value != 1:
            product *= value
        np.add(self.array, product, out=self.array)
        return self

    def addcdiv_(self, first: Any, second: Any, value: Any = 1) -> Any:
        self.writes += 1
        quotient = first.array / second.array
        if value != 1:
            quotient *= value
        np.add(self.array, quotient, out=self.array)
        return self

    def lerp_(self, end: Any, weight: Any) -> Any:
        self.writes += 1
        difference = end.array - self.array
        if weight < 0.5:
            difference *= weight
            np.add(self.array, difference, out=self.array)
        else:
            difference *= 1 - weight
            np.subtract(end.array, difference, out=self.array)
        return self

    def copy_(self, other: Any) -> Any:
        self.writes += 1
        self.array[...] = array_of(other)
        return self

    def clamp_(self, low: Any, high: Any) -> Any:
        self.writes += 1
        np.clip(self.array, low, high, out=self.array)
        return self

    def sqrt_(self) -> Any:
        self.writes += 1
        np.sqrt(self.array, out=self.array)
        return self

    def maximum_(self, other: Any) -> Any:
        self.writes += 1
        np.maximum(self.array, other.array, out=self.array)
        return self

    def add(self, other: Any, alpha: Any = 1) -> Any:
        other = array_of(other)
        return ArrayBuffer(self.array + (other if alpha == 1 else other * alpha))

    def mul(self, other: Any) -> Any:
        return ArrayBuffer(self.array * array_of(other))

    def div(self, other: Any) -> Any:
        return ArrayBuffer(self.array / array_of(other))

    def neg(self) -> Any:
        return ArrayBuffer(-self.array)

    def sqrt(self) -> Any:
        return ArrayBuffer(np.sqrt(self.array))

    def abs(self) -> Any:
        return ArrayBuffer(np.abs(self.array))

    def sign(self) -> Any:
        return ArrayBuffer(np.sign(self.array))

    def clone(self) -> Any:
        return ArrayBuffer(self.array.copy())

    def where(self, condition: Any, other: Any) -> Any:
        """This buffer where `condition` holds, else `other`."""
        chosen = np.where(condition, self.array, array_of(other))
        return ArrayBuffer(chosen.astype(self.array.dtype, copy=False))

    def __gt__(self, number: float) -> Any:
        return self.array > number

    def __lt__(self, number: float) -> Any:
        return self.array < number


def array_of(value: Any) -> Any:
    return value.array if type(value) is ArrayBuffer else value


class TensorBuffer:
    """A tensor; scalars may be 0-d tensors, which `alpha=` and `value=` of ops can't be."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor):
        self.tensor = tensor

    def value(self) -> Any:
        """The number in a 0-d buffer, as a 0-d double: bias corrections need the precision."""
        return self.tensor.double()

    def mul_(self, factor: Any) -> Any:
        self.tensor.mul_(tensor_of(factor))
        return self

    def div_(self, divisor: Any) -> Any:
        self.tensor.div_(tensor_of(divisor))
        return self

    def add_(self, other: Any, alpha: Any = 1) -> Any:
        self.tensor.add_(scaled(tensor_of(other), alpha))
        return self

    def addcmul_(self, first: Any, second: Any, value: Any = 1) -> Any:
        self.tensor.add_(scaled(first.tensor * second.tensor, value))
        return self

    def addcdiv_(self, first: Any, second: Any, value: Any = 1) -> Any:
        self.tensor.add_(scaled(first.tensor / second.tensor, value))
        return self

    def lerp_(self, end: Any, weight: Any) -> Any:
        self.tensor.add_((end.tensor - self.tensor) * weight)
        return self

    def copy_(self, other: Any) -> Any:
        other = tensor_of(other)
        if isinstance(other, Tensor):
            self.tensor.copy_(other)
        else:
            self.tensor.fill_(other)
        return self

    def clamp_(self, low: Any, high: Any) -> Any:
        self.tensor.clamp_(low, high)
        return self

    def sqrt_(self) -> Any:
        self.tensor.sqrt_()
        return self

    def maximum_(self, other: Any) -> Any:
        self.tensor.copy_(self.tensor.maximum(other.tensor))
        return self

    def add(self, other: Any, alpha: Any = 1) -> Any:
        return TensorBuffer(self.tensor + scaled(tensor_of(other), alpha))

    def mul(self, other: Any) -> Any:
        return TensorBuffer(self.tensor * tensor_of(other))

    def div(self, other: Any) -> Any:
        return TensorBuffer(self.tensor / tensor_of(other))

    def neg(self) -> Any:
        return TensorBuffer(-self.tensor)

    def sqrt(self) -> Any:
        return TensorBuffer(self.tensor.sqrt())

    def abs(self) -> Any:
        return TensorBuffer(self.tensor.abs())

    def sign(self) -> Any:
        return TensorBuffer(self.tensor.sign())

    def clone(self) -> Any:
        return TensorBuffer(self.tensor.clone())

    def where(self, condition: Any, other: Any) -> Any:
        """This buffer where `condition` holds, else `other`."""
        other = tensor_of(other)
        if not isinstance(other, Tensor):
            other = self.tensor.new_full((), other)
        return TensorBuffer(self.tensor.where(condition, other))

    def __gt__(self, number: float) -> Any:
        return self.tensor > number

    def __lt__(self, number: float) -> Any:
        return self.tensor < number


def tensor_of(value: Any) -> Any:
    return value.tensor if type(value) is TensorBuffer else value


def scaled(value: Any, factor: Any) -> Any:
    """value * factor, and `value` itself where the factor is the number 1."""
    return value if not isinstance(factor, Tensor) and factor == 1 else value * factor


def runs_on_arrays(tensors: Any) -> bool:
    """May a formula over these tensors run on their arrays? Only eagerly and without history."""
    if state.top is not state.bottom or state.grad_enabled or readers:
        return False
    return all(t.dtype.name in _NATIVE and t._array.flags.writeable for t in tensors)


def finish(pairs: Any) -> None:
    """Counts the writes of array buffers in the version counters of their tensors."""
    for tensor, buffer in pairs:
        if buffer.writes:
            tensor.storage_.version += buffer.writes
