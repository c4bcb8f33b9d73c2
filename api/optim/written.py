"""Update formulas of large parameters as one native kernel each.

`WrittenBuffer` is the third kind of buffer (see buffers.py): the formula runs on it as on arrays,
but writes down what it would compute. The lines are the key of a kernel for all sizes; numbers,
which change from step to step, are its run-time operands. Formulas round as NumPy does, operation
by operation, so that the bits are those of `ArrayBuffer`.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from ..eager_kernels import ANY_SIZE, full_array, is_ready
from ..ir.builder import Builder
from ..ir.graph import WRITE
from ..ir.op import TABLE
from ..ir.passes import optimise
from ..ir.types import FROM_NUMPY, TensorType
from ..runtime.jit import NoCompiler
from ..tracer.large import LARGE
from .buffers import ArrayBuffer

Line = tuple[str, tuple[int, ...]]


class Formula:
    """Lines (op, operands); an operand is a value's number, or ~ the number of a number."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.lines: list[Line] = []
        self.numbers: list[float] = []

    def write(self, op: str, *operands: Any) -> int:
        self.lines.append((op, tuple([self.operand(o) for o in operands])))
        return self.inputs + len(self.lines) - 1

    def operand(self, value: Any) -> int:
        if isinstance(value, WrittenBuffer):
            return value.value
        if isinstance(value, Written):
            return value.number
        self.numbers.append(float(value))
        return ~(len(self.numbers) - 1)


class Written:
    """A value that has no name in the formula, by its number."""

    __slots__ = ("number",)

    def __init__(self, number: int):
        self.number = number


class WrittenBuffer:
    """A buffer of torch's methods; see ArrayBuffer, whose steps these are."""

    __slots__ = ("formula", "value", "writes")

    def __init__(self, formula: Formula, value: int):
        self.formula, self.value, self.writes = formula, value, 0

    def _made(self, op: str, *operands: Any) -> Any:
        return WrittenBuffer(self.formula, self.formula.write(op, *operands))

    def _set(self, op: str, *operands: Any) -> Any:
        self.value = self.formula.write(op, *operands)
        self.writes += 1
        return self

    def _times(self, value: Any, factor: Any) -> Any:
        return value if factor == 1 else Written(self.formula.write("mul", value, factor))

    def mul_(self, factor: Any) -> Any:
        return self._set("mul", self, factor)

    def div_(self, divisor: Any) -> Any:
        return self._set("div", self, divisor)

    def add_(self, other: Any, alpha: Any = 1) -> Any:
        return self._set("add", self, self._times(other, alpha))

    def addcmul_(self, first: Any, second: Any, value: Any = 1) -> Any:
        product = Written(self.formula.write("mul", first, second))
        return self._set("add", self, self._times(product, value))

    def addcdiv_(self, first: Any, second: Any, value: Any = 1) -> Any:
        quotient = Written(self.formula.write("div", first, second))
        return self._set("add", self, self._times(quotient, value))

    def lerp_(self, end: Any, weight: Any) -> Any:
        difference = Written(self.formula.write("sub", end, self))
        if weight < 0.5:
            return self._set("add", self, Written(self.formula.write("mul", difference, weight)))
        return self._set("sub", end, Written(self.formula.write("mul", difference, 1 - weight)))

    def copy_(self, other: Any) -> Any:
        self.value = other.value
        self.writes += 1
        return self

    def clamp_(self, low: Any, high: Any) -> Any:
        return self._set("minimum", Written(self.formula.write("maximum", self, low)), high)

    def sqrt_(self) -> Any:
        return self._set("sqrt", self)

    def maximum_(self, other: Any) -> Any:
        return self._set("maximum", self, other)

    def add(self, other: Any, alpha: Any = 1) -> Any:
        return self._made("add", self, self._times(other, alpha))

    def mul(self, other: Any) -> Any:
        return self._made("mul", self, other)

    def div(self, other: Any) -> Any:
        return self._made("div", self, other)

    def neg(self) -> Any:
        return self._made("neg", self)

    def sqrt(self) -> Any:
        return self._made("sqrt", self)

    def abs(self) -> Any:
        return self._made("abs", self)

    def sign(self) -> Any:
        return self._made("sign", self)

    def clone(self) -> Any:
        return WrittenBuffer(self.formula, self.value)

    def where(self, condition: Any, other: Any) -> Any:
        """This buffer where `condition` holds, else `other`."""
        return self._made("where", condition, self, other)

    def __gt__(self, number: float) -> Any:
        return Written(self.formula.write("gt", self, number))

    def __lt__(self, number: float) -> Any:
        return Written(self.formula.write("lt", self, number))


def update(formula_of: Any, arrays: dict[str, np.ndarray]) -> dict[str, int] | None:
    """Runs a formula on arrays by name, natively; how often each was written, or None if it can't.

    `formula_of(buffers)` writes it. Arrays of another size than the first (step counts) are handed
    to it as they are, and changed.
    """
    first = next(iter(arrays.values()))
    large = {name: a for name, a in arrays.items() if a.shape == first.shape}
    if first.size < LARGE or full_array(list(large.values())) is None:
        return None
    if not is_ready(True, first.size):
        return None
    formula = Formula(len(large))
    buffers: dict[str, Any] = {name: WrittenBuffer(formula, k) for k, name in enumerate(large)}
    small = {name: ArrayBuffer(a.copy()) for name, a in arrays.items() if name not in large}
    given = {**buffers, **small}
    formula_of(given)
    if len(given) > len(arrays):
        return None  # it made new state
    writes = tuple((k, buffers[name].value) for k, name in enumerate(large)
                   if buffers[name].writes)  # fmt: skip
    kernel = kernel_of(tuple(formula.lines), len(large), len(formula.numbers), writes, first.dtype)
    if kernel is None:
        return None
    numbers = [np.array(number, first.dtype) for number in formula.numbers]
    kernel.run(first, [*large.values(), *numbers])
    for name, buffer in small.items():
        np.copyto(arrays[name], buffer.array)
    return {name: given[name].writes for name in arrays}


@lru_cache(maxsize=256)
def kernel_of(lines: tuple[Line, ...], inputs: int, numbers: int, writes: Any, dtype: Any) -> Any:
    """The kernel of a formula that writes values (input, value) in place; None if it has none."""
    from ..backend import Made
    from ..runtime.flat import flat

    kind = FROM_NUMPY[dtype]
    builder = Builder("update")
    values = [builder.input(TensorType(kind, (ANY_SIZE,))) for _ in range(inputs)]
    scalars = [builder.input(TensorType(kind, ())) for _ in range(numbers)]
    with builder.building():
        for op, operands in lines:
            values.append(TABLE[op](*[values[k] if k >= 0 else scalars[~k] for k in operands]))
    for target_, value in writes:
        builder.output(values[value], WRITE, target_)
    with suppress(NoCompiler):
        return flat(Made(optimise(builder.graph())).found(), ANY_SIZE)
    return None
