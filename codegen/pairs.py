"""Complex values as pairs of real ones, so that kernels of real numbers compute them.

In memory a complex value is real and imaginary part in turn: a real value with one dimension more,
of size 2. What comes from outside (inputs, results of host calls) is read as that; its parts are
views. What is computed is two values, which are joined only where the host or the caller needs it.

Which ops can be told in parts is what their entries say of them: scalar expressions are read with
`PairReader`, data is moved apart, sums are added apart, a product is four. The rest is called on
the host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ..ir.builder import Symbol
from ..ir.graph import Node, Var
from ..ir.op import TABLE, Op, Reduce, Scalar, Template
from ..ir.program import Strided
from ..ir.types import TensorType
from .expand import built, filled
from .pair_reader import Pair, PairReader
from .private import JOINED, region

UNTOLD = (AttributeError, KeyError, NotImplementedError, TypeError)  # there is no form in parts


@dataclass(frozen=True)
class OnPairs:
    """A host call of `op`: which operands and which results are pairs for complex values."""

    op: Op
    operands: tuple[bool, ...]
    results: tuple[bool, ...]


@lru_cache(maxsize=1024)
def on_pairs(op: Op, operands: tuple[bool, ...], results: tuple[bool, ...]) -> Op:
    return replace(op, name=f"{op.name} of pairs", lower=OnPairs(op, operands, results))


def is_complex(var: Var | None) -> bool:
    return var is not None and var.dtype.is_complex


def of_complex(op: Op, operands: tuple[Any, ...], results: tuple[Any, ...]) -> tuple[Any, ...]:
    """A host call as the program has it: of complex values where it is `OnPairs`."""
    if not isinstance(op.lower, OnPairs):
        return op, operands, results

    def seen(view: Strided | None, paired: bool) -> Strided | None:
        if view is None or not paired:
            return view
        type_ = TensorType(view.type.dtype.to_complex(), view.type.shape[:-1])
        return Strided(view.buffer, type_, tuple(s // 2 for s in view.strides[:-1]),
                       view.offset // 2)  # fmt: skip

    return (op.lower.op, tuple(map(seen, operands, op.lower.operands)),
            tuple(map(seen, results, op.lower.results)))  # fmt: skip


class Pairs:
    """Rewrites the nodes of a graph, one after the other; `same` are values that have two names."""

    def __init__(self, same: dict[Var, Var]):
        self.same = same
        self.parts: dict[Var, tuple[Var, Var]] = {}
        self.memories: dict[Var, Var] = {}
        self.seen: dict[Var, Var] = {}  # real views of complex values, and whose

    def memory(self, var: Var) -> Var:
        """The real value that is a complex one in memory; a real one itself."""
        if not is_complex(var):
            return var
        type_ = TensorType(var.dtype.to_real(), (*var.shape, 2))
        return self.memories.setdefault(var, Var(type_))

    def real(self, node: Node) -> list[Node]:
        """The node in real values."""
        if not any(map(is_complex, (*node.inputs, *node.outputs))):
            return [] if self.is_part(node) else [node]
        try:
            return self.in_parts(node)
        except UNTOLD:
            return self.on_host(node)

    def is_part(self, node: Node) -> bool:
        """Does it take a part of a complex value that was computed? Then it is there already."""
        whole = self.seen.get(node.inputs[0]) if node.inputs else None  # type: ignore[arg-type]
        if whole is None or whole not in self.parts or node.op.name != "select":
            return False
        dim, index = node.attributes["dim"], node.attributes["index"]
        if dim == len(whole.shape):
            self.same[node.outputs[0]] = self.parts[whole][index]
        return dim == len(whole.shape)

    # -- in parts --------------------------------------------------------------------------

    def in_parts(self, node: Node) -> list[Node]:
        if node.op.name == "view_as_real":
            return self.seen_as_real(node)
        told = form_of(node.op)
        inputs = [self.parts[v] if v in self.parts else (self.memory(v),) for v in node.present()]
        nodes, found = built(
            [v for some in inputs for v in some], lambda: self.flat(node, told), node
        )
        for var in node.outputs:
            if is_complex(var):
                self.parts[var], found = (found[0], found[1]), found[2:]
            else:
                self.same[var], found = found[0], found[1:]
        return nodes

    def flat(self, node: Node, told: Callable[..., Any]) -> list[Any]:
        """The results, two for each that is complex."""
        operands = [None if v is None else self.operand(v) for v in node.inputs]
        results = told(node, *operands)
        found: list[Any] = []
        for value, var in zip(results if type(results) is tuple else (results,), node.outputs):
            value = PairReader().cast(value, var.dtype)
            found += [whole(part, var) for part in (value if is_complex(var) else (value,))]
        return found

    def operand(self, var: Var) -> Any:
        if not is_complex(var):
            return Symbol(var)
        if var in self.parts:
            return Pair(*map(Symbol, self.parts[var]))
        memory = Symbol(self.memory(var))
        return Pair(*(memory.select(-1, k) for k in (0, 1)))

    def seen_as_real(self, node: Node) -> list[Node]:
        (var,), (view,) = node.inputs, node.outputs
        assert var is not None
        self.seen[view] = var
        nodes = self.joined(var)
        self.same[view] = self.memory(var)
        return nodes

    # -- in memory -------------------------------------------------------------------------

    def joined(self, var: Var) -> list[Node]:
        """Brings a value that was computed in parts to memory."""
        if var not in self.parts or var in self.memories:
            return []
        memory = self.memory(var)
        ahead = [self.same.get(part, part) for part in self.parts[var]]
        lanes = [Var(TensorType(part.dtype, (*part.shape, 1))) for part in ahead]
        views = [Node(TABLE["view"], (part,), (lane,), (("size", lane.shape),))
                 for part, lane in zip(ahead, lanes)]  # fmt: skip
        starts = [(0,) * len(var.shape) + (k,) for k in (0, 1)]
        attrs = ("size", memory.shape), ("regions", tuple(region(memory.shape, s) for s in starts))
        return [*views, Node(JOINED, tuple(lanes), (memory,), attrs)]

    def on_host(self, node: Node) -> list[Node]:
        nodes = [made for var in node.present() for made in self.joined(var)]
        inputs = tuple(None if v is None else self.memory(v) for v in node.inputs)
        op = on_pairs(node.op, tuple(map(is_complex, node.inputs)),
                      tuple(map(is_complex, node.outputs)))  # fmt: skip
        outputs = tuple(self.memory(v) for v in node.outputs)
        return [*nodes, replace(node, op=op, inputs=inputs, outputs=outputs, over=())]


# --- ops in parts --------------------------------------------------------------------------------


def whole(part: Any, var: Var) -> Symbol:
    """A part of the value's shape; a number is a constant."""
    if isinstance(part, Symbol):
        return part if tuple(part.shape) == var.shape else part.expand(var.shape)
    return filled(var.shape, part, var.dtype.to_real() if var.dtype.is_complex else var.dtype)


def form_of(op: Op) -> Callable[..., Any]:
    """How an op computes with parts: a function of the node and its operands."""
    if op.name in FORMS:
        return FORMS[op.name]
    if isinstance(op.lower, Scalar):
        return read
    if op.moves_data or (isinstance(op.lower, Reduce) and adds(op.lower)):
        return apart
    return TEMPLATES[op.lower.name] if isinstance(op.lower, Template) else untold


def untold(node: Node, *operands: Any) -> Any:
    raise NotImplementedError(node.op.name)


def read(node: Node, *operands: Any) -> Any:
    return node.op.lower.emit(PairReader(), *operands, **{**node.op.defaults, **node.attributes})


def apart(node: Node, *operands: Any) -> Any:
    """The op on the real parts and on the imaginary ones; real operands (indices) go to both."""
    sides = []
    for part in ("real", "imag"):
        values = [getattr(o, part) if isinstance(o, Pair) else o for o in operands]
        named = {k: getattr(v, part) if k == "value" else v for k, v in node.attributes.items()}
        sides.append(node.op(*values, **named))
    return tuple(map(Pair, *sides)) if type(sides[0]) is tuple else Pair(*sides)


def product(node: Node, a: Pair, b: Pair, *added: Pair | None) -> Pair:
    """What is linear in both operands; a third is added."""

    def times(x: Any, y: Any, *third: Any) -> Any:
        return node.op(x, y, *third, **node.attributes)

    none = [None] * len(added)
    re = times(a.real, b.real, *(c and c.real for c in added)) - times(a.imag, b.imag, *none)
    im = times(a.real, b.imag, *(c and c.imag for c in added)) + times(a.imag, b.real, *none)
    return Pair(re, im)


def matrices(node: Node, a: Pair, b: Pair) -> Pair:
    """One product of real matrices, of the numbers as they are in memory:

    (x, y) @ ((p, q), (-q, p)) == (xp - yq, xq + yp), for each x + yi and p + qi
    """
    stack = TABLE["stack"]
    *lead, rows, inner = a.real.shape
    columns = b.real.shape[-1]
    left = stack(*a, dim=len(lead) + 2).view((*lead, rows, 2 * inner))
    upper, lower = (stack(*pair, dim=len(lead) + 2) for pair in (b, (-b.imag, b.real)))
    right = stack(upper, lower, dim=len(lead) + 1).view((*lead, 2 * inner, 2 * columns))
    return as_complex(node, node.op(left, right).view((*lead, rows, columns, 2)))


def as_complex(node: Node, x: Any) -> Pair:
    return Pair(x.select(-1, 0), x.select(-1, 1))


def of_sizes(node: Node, x: Pair) -> Any:
    return node.op(PairReader().abs(x), **node.attributes)


def of_truth(node: Node, x: Pair) -> Any:
    return node.op(PairReader().cast(x, "bool"), **node.attributes)


FORMS = {"view_as_complex": as_complex, "constant_pad_nd": apart, "cumsum": apart,
         "linalg_vector_norm": of_sizes, "any": of_truth, "all": of_truth}  # fmt: skip
TEMPLATES = {"scatter": apart, "matmul": matrices, **dict.fromkeys(
    ("convolution", "conv_input", "conv_weight"), product)}  # fmt: skip


class Adding:
    """A reader that knows how to add and nothing else."""

    def add(self, a: str, b: str) -> str:
        return a + b


def adds(lower: Reduce) -> bool:
    try:
        return bool(lower.combine(Adding(), "a", "b") == "ab")
    except AttributeError:
        return False
