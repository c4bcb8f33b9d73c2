"""What a body did between two looks at a value: steps in a tree, and their graphs.

Note [Steps]
    A window is what happens between two looks at a value. Its steps are kept in a tree: from each
    step lead the ways that bodies went on from there, by signature. All windows start at one root,
    so rounds of a loop share their steps. A signature names an op, its operands and attributes:
    tensors of the window by number in order of appearance, tensors from before it as ~k (where
    first met, with their piece of memory, dtype, shape, order of dimensions and, where there are
    gaps, strides), Python floats by their class alone, for they are data.
"""

from __future__ import annotations

from typing import Any

from ..ir.bind import interpreting
from ..ir.builder import Builder, Symbol, number_type
from ..ir.graph import CAPTURED, SCALAR, WRITE, Graph, Output, Place, Var
from ..ir.op import TABLE, Op
from ..ir.types import TensorType, float64
from .rebase import look, put

ALIAS, WRITTEN = "alias", "write"  # steps that are no ops


class Step:
    """One step: an op, a value kept from before a write (ALIAS), or a write (WRITTEN)."""

    __slots__ = ("attrs", "is_end", "kind", "next", "operands", "orders", "parent", "place",
                 "programs", "types")  # fmt: skip

    def __init__(self, parent: Step | None, kind: Any = None, operands: Any = (),
                 attrs: Any = None, place: Place | None = None):  # fmt: skip
        self.parent, self.kind, self.operands, self.attrs = parent, kind, operands, attrs
        self.place = place
        self.types: tuple[TensorType, ...] = ()
        self.orders: tuple[Any, ...] = ()  # by output: the order of dimensions in memory, or None
        self.next: dict[Any, Step] = {}
        self.programs: dict[tuple[bool, ...], Any] = {}  # by which results are still in use
        self.is_end = False  # did a window end here?

    def path(self) -> list[Step]:
        """The steps from the window's start to here."""
        steps: list[Step] = []
        step: Step | None = self
        while step is not None and step.parent is not None:
            steps.append(step)
            step = step.parent
        return steps[::-1]


class _Memory:
    """A piece of memory while a graph is built: its value now, and how often it was written.

    Its dimensions lie in it in `order`; None is row-major.
    """

    __slots__ = ("order", "var", "writes")

    def __init__(self, var: Var, order: Any = None):
        self.var, self.writes, self.order = var, 0, order

    def laid_out(self) -> Var:
        """The value as it lies there."""
        if self.order is None:
            return self.var
        return TABLE["permute"](Symbol(self.var), dims=self.order).var


class _Look:
    """A tensor: a chain of views into memory, and its Var as of `seen` writes."""

    __slots__ = ("chain", "memory", "seen", "var")

    def __init__(self, memory: _Memory, chain: Any = ()):
        self.memory, self.chain, self.seen = memory, chain, -1
        self.var: Any = None


class Assembly:
    """Builds the graph of a window. Inputs: tensors from before, floats, memory for the results."""

    def __init__(self, name: str, path: list[Step], alive: tuple[bool, ...]):
        self.builder = Builder(name)
        self.tensors: list[_Look] = []
        self.roots: list[_Memory] = []
        self.pieces: list[_Memory] = []  # memory from before the window
        self.before = [self.seen_before(*key[1:])
                       for step in path for key in step.operands if is_new(key)]  # fmt: skip
        self.float_count = sum(key is float for step in path for key in step.operands)
        self.floats = iter([self.builder.input(TensorType(float64, ()), SCALAR).var
                            for _ in range(self.float_count)])  # fmt: skip
        self.ends: list[int] = []  # by step: how many nodes there are after it
        for step in path:
            self.builder.place = step.place
            self.add(step)
            self.ends.append(len(self.builder.nodes))
        self.finish(alive)

    def seen_before(self, piece: int, dtype: Any, shape: Any, order: Any, _: Any) -> _Look:
        """A tensor from before the window: a piece of memory, maybe with dimensions permuted."""
        if piece == len(self.pieces):
            type_ = TensorType(dtype, shape if order is None else tuple(shape[k] for k in order))
            self.pieces.append(_Memory(self.builder.input(type_, CAPTURED).var))
        if order is None:
            return _Look(self.pieces[piece])
        back = tuple(sorted(range(len(order)), key=order.__getitem__))
        return _Look(self.pieces[piece], ((TABLE["permute"], {"dims": back}, 0),))

    def add(self, step: Step) -> None:
        if step.kind is WRITTEN:
            self.write(self.look_of(step.operands[0]), self.value(step.operands[1]))
        elif step.kind is ALIAS:
            self.define(self.value(step.operands[0]))
        elif step.kind.is_view:
            source = self.look_of(step.operands[0])
            for position in range(len(step.types)):
                chain = (*source.chain, (step.kind, step.attrs, position))
                self.tensors.append(_Look(source.memory, chain))
        else:
            self.apply(step.kind, step)

    def apply(self, op: Op, step: Step) -> None:
        given = [Symbol(self.value(key)) if is_tensor(key) else key for key in step.operands]
        operands = [each.var if isinstance(each, Symbol) else self.number(op, each, given)
                    for each in given]  # fmt: skip
        outputs = tuple(map(Var, step.types))
        self.builder.append(op, operands, outputs, step.attrs)
        for var, order in zip(outputs, step.orders):
            self.define(var, order)

    def define(self, var: Var, order: Any = None) -> None:
        memory = _Memory(var, order)
        self.roots.append(memory)
        self.tensors.append(_Look(memory))

    def number(self, op: Op, key: Any, given: list[Any]) -> Var | None:
        """A Python number takes the dtype that promotion gives it beside the tensors."""
        value = 1.0 if key is float else key[1]
        if value is None:
            return None
        dtype = number_type(value, [value if each is key else each for each in given], op)
        if key is not float:
            return self.builder.constant(value, dtype)
        var = next(self.floats)
        if dtype is float64 or not any(isinstance(each, Symbol) for each in given):
            return var
        with interpreting(self.builder):
            return TABLE["cast"](Symbol(var), dtype=dtype).var

    def look_of(self, key: Any) -> _Look:
        number = key[0] if type(key) is tuple else key
        return self.tensors[number] if number >= 0 else self.before[~number]

    def value(self, key: Any) -> Var:
        """What a tensor is now: looked at again where its memory was written since."""
        look_ = self.look_of(key)
        if look_.seen != look_.memory.writes:
            with interpreting(self.builder):
                look_.var = look(Symbol(look_.memory.var), look_.chain).var
            look_.seen = look_.memory.writes
        return look_.var

    def write(self, target: _Look, value: Var) -> None:
        memory = target.memory
        with interpreting(self.builder):
            memory.var = put(Symbol(memory.var), target.chain, Symbol(value), once=True).var
        memory.writes += 1

    def finish(self, alive: tuple[bool, ...]) -> None:
        """What is still in use is written into its memory, and so is what was written before."""
        outputs = [Output(memory.var, WRITE, k) for k, memory in enumerate(self.pieces)
                   if memory.writes]  # fmt: skip
        with interpreting(self.builder):
            values = [m.laid_out() for m, wanted in zip(self.roots, alive) if wanted]
        for var in values:
            outputs.append(Output(var, WRITE, len(self.builder.inputs)))
            self.builder.input(var.type, CAPTURED)
        self.builder.outputs = outputs

    def graph(self) -> Graph:
        return self.builder.graph()


def is_new(key: Any) -> bool:
    """Is this the first sight of a tensor from before the window?"""
    return type(key) is tuple and type(key[0]) is int


def is_tensor(key: Any) -> bool:
    return type(key) is int or is_new(key)
