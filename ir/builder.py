"""Builds graphs: an interpreter that appends a node for every op that runs.

While a Builder is on the stack, functions written for Values (derivative rules, decompositions,
public functions) run on `Symbol`s, which stand for Vars.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .bind import interpreting
from .graph import Graph, Input, Node, Origin, Output, Place, Var, freeze
from .op import TABLE, Op
from .types import TensorType, float32, held_number, result_type, scalar_dtype
from .value import Value


class Symbol(Value):
    """A Var while a Builder is at work on it."""

    __slots__ = ("var",)

    def __init__(self, var: Var):
        self.var = var

    @property
    def dtype(self) -> Any:  # type: ignore[override]
        return self.var.type.dtype

    @property
    def shape(self) -> Any:
        return self.var.type.shape

    @property
    def requires_grad(self) -> bool:
        return False

    def to(self, dtype: Any, **_: Any) -> Any:
        """The value in another dtype."""
        if isinstance(dtype, str):
            from .types import BY_NAME

            dtype = BY_NAME[dtype]
        if isinstance(dtype, Value):
            dtype = dtype.dtype
        return self if dtype is self.dtype else TABLE["cast"](self, dtype=dtype)

    def detach(self) -> Symbol:
        return self

    def contiguous(self, memory_format: Any = None) -> Symbol:
        return self

    def size(self, dim: Any = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        return self.var.type.numel

    def is_complex(self) -> bool:
        return bool(self.dtype.is_complex)

    def is_floating_point(self) -> bool:
        return bool(self.dtype.is_floating_point)

    def __repr__(self) -> str:
        return f"<symbol {self.var.type}>"

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise TypeError("a value in IR has no truth: rules may not branch on values")


class Builder:
    """Collects nodes. `inputs` and `outputs` are added by the caller."""

    runs_as_built = False  # are ops chosen as for eager execution?

    def __init__(self, name: str = "graph"):
        self.name = name
        self.inputs: list[Input] = []
        self.nodes: list[Node] = []
        self.outputs: list[Output] = []
        self.place: Place | None = None
        self.origin: Origin | None = None

    def input(self, type_: TensorType, kind: str = "argument", name: str = "") -> Symbol:
        var = Var(type_)
        self.inputs.append(Input(var, kind, name))
        return Symbol(var)

    def output(self, symbol: Any, kind: str = "result", target: int | None = None) -> None:
        self.outputs.append(Output(symbol.var, kind, target))

    def graph(self, notes: tuple[str, ...] = ()) -> Graph:
        return Graph(self.name, tuple(self.inputs), tuple(self.nodes), tuple(self.outputs), notes)

    def __call__(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """The interpreter: appends a node, returns Symbols."""
        operands = self.lift(op, inputs)
        types = [None if v is None else v.type for v in operands]
        outputs = tuple(map(Var, op.infer_types(types, attrs)))
        self.append(op, operands, outputs, attrs)
        symbols = tuple(map(Symbol, outputs))
        return symbols if op.many_outputs or len(op.outputs) > 1 else symbols[0]

    def append(self, op: Op, operands: Any, outputs: Any, attrs: dict[str, Any]) -> Node:
        node = Node(op, tuple(operands), tuple(outputs), freeze(attrs, op), self.place, self.origin)
        self.nodes.append(node)
        return node

    def lift(self, op: Op, inputs: Sequence[Any]) -> list[Var | None]:
        """Operands as Vars; numbers become constants of the dtype promotion gives them."""
        return [self.lift_one(op, value, inputs) for value in inputs]

    def lift_one(self, op: Op, value: Any, inputs: Sequence[Any]) -> Var | None:
        if value is None:
            return None
        if isinstance(value, Symbol):
            return value.var
        if isinstance(value, bool | int | float | complex):
            return self.constant(value, number_type(value, inputs, op))
        raise TypeError(f"{op.name}: {type(value).__name__} can't be an operand in IR")

    def constant(self, value: Any, dtype: Any) -> Var:
        op = TABLE["constant"]
        attrs = {"value": held_number(value, dtype), "dtype": dtype}
        var = Var(TensorType(dtype, ()))
        self.append(op, (), (var,), attrs)
        return var

    @contextmanager
    def building(self) -> Iterator[Builder]:
        """Ops of the block are appended here."""
        with interpreting(self):
            yield self


def number_type(value: Any, operands: Sequence[Any], op: Op | None = None) -> Any:
    """The dtype a number takes beside the other operands: the one `op` computes in."""
    values = [v for v in operands if isinstance(v, Value)]
    if not values:
        return scalar_dtype(value)
    if op is None or op.promote is None:
        return result_type([*values, value])
    dtype = op.promote([*values, value])
    exact = op.exact_second and operands[1] is value and any(v.ndim for v in values)
    return float32 if exact and dtype.compute is not dtype.storage else dtype
