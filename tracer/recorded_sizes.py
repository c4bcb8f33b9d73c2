"""How a recorder sees sizes: as they are. `symbolic.py` has the recorder that sees formulas."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from ..ir.graph import Var
from ..ir.op import Op
from ..ir.types import TensorType
from . import eager
from .tensor import Tensor


class PlainSizes:
    """What of recording depends on how sizes are known."""

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """The op on real values."""
        return eager.run(op, inputs, attrs)

    def result_vars(self, op: Op, operands: Any, outputs: Any, attrs: Any) -> tuple[Var, ...]:
        """Vars for the results of a call."""
        return tuple(Var(TensorType(t.dtype, t._array.shape)) for t in outputs)

    def remember(self, op: Op, inputs: Any, operands: Any, outputs: Any, vars_: Any,
                 attrs: Any) -> None:  # fmt: skip
        """Completes what eager history knows of a call."""

    def input_type(self, tensor: Tensor) -> TensorType:
        """The type of a tensor from outside."""
        return TensorType(tensor.dtype, tensor._array.shape)

    def inner(self, name: str) -> Any:
        """A recorder for a graph inside this one."""
        return type(self)(name)  # type: ignore[call-arg]

    def shaped_like(self, tensor: Tensor, other: Tensor) -> None:
        """A tensor made for this recording has the shape of another."""

    def watching(self) -> Any:
        """A context for the recorded body, and for what is recorded after it."""
        return nullcontext()

    def close(self) -> None:
        """Nothing more will be recorded."""
