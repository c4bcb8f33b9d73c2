"""The IR: a typed SSA graph, frozen.

A `Graph` has inputs, nodes in execution order and outputs. Every `Var` is defined once, by an input
or a node. Equality is structural: two graphs are equal when they print the same text without source
places. Passes build new graphs; nothing is changed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from .op import Op
from .types import DType, TensorType

ARGUMENT, CAPTURED, BUFFER, SCALAR, RANDOM, SAVED_IN, GRADIENT = (
    "argument", "captured", "buffer", "scalar", "random", "saved", "gradient")  # fmt: skip
INPUT_KINDS = (ARGUMENT, CAPTURED, BUFFER, SCALAR, RANDOM, SAVED_IN, GRADIENT)
RESULT, WRITE, SAVED, GRAD_OF = "result", "write", "saved", "grad"
OUTPUT_KINDS = (RESULT, WRITE, SAVED, GRAD_OF)


class Var:
    """An SSA value: its type, and its identity."""

    __slots__ = ("type",)

    def __init__(self, type: TensorType):
        self.type = type

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    def __repr__(self) -> str:
        return f"<var {self.type}>"


@dataclass(frozen=True, init=False)
class Place:
    """A line of the user's Python."""

    file: str
    line: int
    # the node's number in the graph as it was recorded: passes hand places on, so this says what
    # became of it; not part of the text form
    node: int = field(default=-1, compare=False, repr=False)

    # that of a frozen dataclass takes twice as long, and this runs for every node
    def __init__(self, file: str, line: int, node: int = -1) -> None:
        fields = self.__dict__
        fields["file"], fields["line"], fields["node"] = file, line, node

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Origin:
    """What a node of a backward graph is the derivative of."""

    op: str  # the forward op
    index: int  # its node number in the graph that was differentiated


Attrs = tuple[tuple[str, Any], ...]


def freeze(attrs: dict[str, Any], op: Op) -> Attrs:
    """Attributes as sorted pairs, without those that equal their default."""
    kept = {k: v for k, v in attrs.items() if k not in op.defaults or not _same(v, op.defaults[k])}
    return tuple(sorted(kept.items()))


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


@dataclass(frozen=True, eq=False, init=False)
class Node:
    """One instruction. `inputs` has None for an optional operand that is absent.

    `over`: positions of operands that nobody reads later, so that the result may take their memory.
    """

    op: Op
    inputs: tuple[Var | None, ...]
    outputs: tuple[Var, ...]
    attrs: Attrs = ()
    place: Place | None = None
    origin: Origin | None = None
    over: tuple[int, ...] = ()

    # as above

    def __init__(self, op: Op, inputs: tuple[Var | None, ...], outputs: tuple[Var, ...],
                 attrs: Attrs = (), place: Place | None = None, origin: Origin | None = None,
                 over: tuple[int, ...] = ()) -> None:  # fmt: skip
        fields = self.__dict__
        fields["op"], fields["inputs"], fields["outputs"], fields["attrs"] = (
            op, inputs, outputs, attrs)  # fmt: skip
        fields["place"], fields["origin"], fields["over"] = place, origin, over

    @property
    def attributes(self) -> dict[str, Any]:
        """All attributes, defaults included."""
        return {**self.op.defaults, **dict(self.attrs)}

    def present(self) -> Iterator[Var]:
        return (v for v in self.inputs if v is not None)

    # `replace` takes twice as long, and these run for every node

    def at(self, place: Place | None) -> Node:
        """The node with another place."""
        return Node(self.op, self.inputs, self.outputs, self.attrs, place, self.origin, self.over)

    def taking(self, over: tuple[int, ...]) -> Node:
        """The node with other marks of whose memory it may take."""
        return Node(self.op, self.inputs, self.outputs, self.attrs, self.place, self.origin, over)


@dataclass(frozen=True, eq=False)
class Input:
    """A value from outside: what kind, and the name it prints under."""

    var: Var
    kind: str = ARGUMENT
    name: str = ""


@dataclass(frozen=True, eq=False)
class Output:
    """A value that leaves: a result, a write-back to input `target`, a saved value, a gradient.

    `donated`: nobody reads the target once the value is there, so that it may take its memory.
    """

    var: Var
    kind: str = RESULT
    target: int | None = None
    donated: bool = False


@dataclass(frozen=True, eq=False)
class Graph:
    """A function from inputs to outputs."""

    name: str
    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Output, ...]
    notes: tuple[str, ...] = field(default=())  # what passes say of it, printed as comments

    def __str__(self) -> str:
        from .printer import print_graph

        return print_graph(self)

    def print(self, *, places: bool = True) -> str:
        """The text form, which `parse` reads back."""
        from .printer import print_graph

        return print_graph(self, places=places)

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return self.print(places=False) == other.print(places=False)

    def __hash__(self) -> int:
        return hash(self.print(places=False))

    def replace(self, **changes: Any) -> Graph:
        return replace(self, **changes)

    def numbered(self) -> Graph:
        """The graph with each node's number in its place, so that it is known after passes."""
        nodes = [
            n if n.place is None else n.at(Place(n.place.file, n.place.line, k))
            for k, n in enumerate(self.nodes)
        ]
        return self.replace(nodes=tuple(nodes))

    def unmarked(self) -> Graph:
        """The graph without marks of whose memory may be taken: for who changes what is read."""
        if not any(n.over for n in self.nodes) and not any(o.donated for o in self.outputs):
            return self
        nodes = tuple([n.taking(()) if n.over else n for n in self.nodes])
        outputs = tuple(replace(o, donated=False) for o in self.outputs)
        return self.replace(nodes=nodes, outputs=outputs)

    def uses(self) -> dict[Var, int]:
        """How often each Var is read, outputs included."""
        counts: dict[Var, int] = {}
        for node in self.nodes:
            for var in node.present():
                counts[var] = counts.get(var, 0) + 1
        for output in self.outputs:
            counts[output.var] = counts.get(output.var, 0) + 1
        return counts

    def producers(self) -> dict[Var, Node]:
        return {var: node for node in self.nodes for var in node.outputs}

    def vars(self) -> Iterator[Var]:
        """All Vars in order of definition."""
        for item in self.inputs:
            yield item.var
        for node in self.nodes:
            yield from node.outputs

    def compile(self) -> Any:
        """A callable that runs the graph natively."""
        assert compiler is not None
        return compiler(self)


compiler: Callable[[Graph], Any] | None = None  # installed by the public package
