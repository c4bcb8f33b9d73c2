"""Run-time numbers in a recording: their dtypes, and what Python learns of their values.

Note [Numbers that Python refuses]
    Division by zero and powers beyond all bounds are errors among Python's numbers, and infinite
    in native code. A number that is given is guarded. One that was computed goes on through an
    index that is out of range where Python would raise: native code stops there, and the body
    runs and raises, see Note [Errors in native code].

Note [Numbers of tensors]
    The float that `item()` gives is a run-time number where Python does nothing but reckon with
    it: `x * x.sum().item()` is two ops of a graph. Whether that is so is read off the bytecode
    that follows (`api/arithmetic.py`), for the number itself and for each that is computed of it.
    One that goes elsewhere, to a function or into an attribute, is a float: it may not be told
    from one there.
"""

from __future__ import annotations

import math
from typing import Any

from ..ir.bind import interpreting
from ..ir.builder import Symbol, number_type
from ..ir.graph import Var
from ..ir.op import TABLE, Op
from ..ir.types import FLOAT, float64, int64
from .recorded import Branch, Entry, current_place
from .scalars import RunTimeNumber, is_tensor, run_time_number
from .tensor import Tensor


class Numbers:
    """What a recorder knows of run-time numbers."""

    builder: Any
    entries: dict[int, Entry]
    branches: list[Branch]
    needing: set[Var]
    enter: Any
    new_memory: Any

    def __init__(self) -> None:
        super().__init__()
        self.comparisons: list[Any] = []  # (run-time number, comparison, other, outcome)
        self.given_numbers: Any = {}  # ids of those that are read at each call
        self.used_numbers: list[Any] = []  # those whose value Python saw
        self.is_arithmetic: Any = lambda how: False  # see Note [Numbers of tensors]
        self.question_asked: Any = lambda: ""  # see Note [Questions of math]
        self.of_tensors: set[Var] = set()  # such numbers

    def var_of(self, tensor: Tensor) -> Var:
        raise NotImplementedError

    def emit(self, name: str, *operands: Var, **attrs: Any) -> Var:
        """Appends an op to the graph alone: nothing runs."""
        with interpreting(self.builder):
            return TABLE[name](*map(Symbol, operands), **attrs).var  # type: ignore[no-any-return]

    def number_of(self, tensor: Tensor, value: float) -> RunTimeNumber:
        """What `tensor.item()` gives; see Note [Numbers of tensors]."""
        var = self.var_of(tensor)
        if var in self.needing:
            var = self.emit("stop_gradient", var)
        if var.type.shape:
            var = self.emit("view", var, size=())
        # another Var than that of the tensor, which may have other names for it
        var = self.emit("cast", var, dtype=float64)
        made = run_time_number(value)
        self.of_tensors.add(var)
        self.enter(Entry(made, self.new_memory(made._array, var), (), var))
        return made

    def settled_number(self, result: Any, operands: Any, var: Var) -> Any:
        """The result of arithmetic among run-time numbers, as Python gets it."""
        if self.of_tensors.isdisjoint(operands) or result.__class__ is tuple or result._array.ndim:
            return result
        self.of_tensors.add(var)
        if type(result) is RunTimeNumber and self.is_arithmetic(""):
            return result
        self.used_numbers.append(result)
        return result._array.item()

    def keep_wrapped(self, inputs: Any, outputs: Any) -> None:
        """Arithmetic among run-time numbers gives run-time numbers."""
        if not any(isinstance(v, Tensor) and not isinstance(v, RunTimeNumber) for v in inputs):
            for tensor in outputs:
                if tensor.dtype.name == "float64" and not tensor._array.ndim:
                    tensor.__class__ = RunTimeNumber

    def number_operand(self, op: Op, value: Any, inputs: Any) -> Var:
        """A run-time number beside tensors takes the dtype a Python number would."""
        var = self.var_of(value)
        tensors = [v for v in inputs if isinstance(v, Tensor) and not isinstance(v, RunTimeNumber)]
        if not tensors:
            return var
        dtype = number_type(value, inputs, op)
        return var if dtype is var.dtype else self.emit("cast", var, dtype=dtype)

    def constant_type(self, op: Op, value: Any, inputs: Any) -> Any:
        """The dtype of a plain number; beside run-time numbers alone it stays what Python has."""
        if RunTimeNumber in map(type, inputs) and not any(map(is_tensor, inputs)):
            return float64
        return number_type(value, inputs, op)

    # --- what Python asks ---

    def compared(self, number: Any, how: Any, other: Any, outcome: bool) -> None:
        """Python compared a run-time number: the outcome must be the same at replay.

        Of one that was computed it is a branch on a value.
        """
        if id(number) in self.given_numbers and not isinstance(other, RunTimeNumber):
            self.comparisons.append((number, how, other, outcome))
            return
        var = self.emit(how.__name__, self.var_of(number), self.number_var(other))
        self.branches.append(Branch(var, outcome, len(self.builder.nodes), current_place()))

    def questioned(self, number: Tensor) -> bool:
        """Is a computed number's float only asked for by `math.isfinite` or its kin?"""
        given = id(number) in self.given_numbers or number.dtype.category != FLOAT
        question = "" if given else self.question_asked()
        if question:
            var = self.emit(question, self.var_of(number))
            outcome = getattr(math, question)(number._array.item())
            self.branches.append(Branch(var, outcome, len(self.builder.nodes), current_place()))
        return bool(question)

    def number_var(self, value: Any) -> Var:
        if isinstance(value, RunTimeNumber):
            return self.var_of(value)
        return self.builder.constant(float(value), float64)  # type: ignore[no-any-return]

    def divides(self, number: Any, how: Any, outcome: bool) -> None:
        """A number is divided by a run-time number, which the library compared with zero."""
        if id(number) in self.given_numbers:
            self.comparisons.append((number, how, 0, outcome))
        else:
            wrong = self.emit(how.__name__, self.var_of(number), self.number_var(0))
            self.stop_where(wrong, number)

    def raised(self, result: Any, *operands: Any) -> None:
        """A power of numbers: Python refuses it where finite ones give none."""
        if type(result) is float:
            return
        unfit = self.emit("logical_not", self.emit("isfinite", self.var_of(result)))
        for operand in operands:
            fit = self.emit("isfinite", self.number_var(operand))
            unfit = self.emit("logical_and", unfit, fit)
        self.stop_where(unfit, result)

    def stop_where(self, wrong: Var, number: Any) -> None:
        """See Note [Numbers that Python refuses]."""
        entry = self.entries[id(number)]
        row = self.emit("view", self.var_of(number), size=(1,))
        pair = self.emit("cat", row, row, dim=0)
        beyond = self.builder.constant(2, int64)
        index = self.emit("mul", self.emit("cast", wrong, dtype=int64), beyond)
        kept = self.emit("index_select", pair, self.emit("view", index, size=(1,)), dim=0)
        kept = self.emit("view", kept, size=())
        if entry.var in self.of_tensors:
            self.of_tensors.add(kept)
        entry.var = entry.memory.var = kept
