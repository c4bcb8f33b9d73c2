"""Compares graphs before and after passes on random inputs, for `WENGERT_CHECK=1`.

Note [Rounding or fault]
    What a composite expands to rounds differently, and a graph may magnify that beyond any bound:
    differences of numbers that nearly agree. So where values differ, both graphs are computed once
    more with all floats in double precision: rounding then differs in the last of 16 digits, and
    what still differs is a fault of the pass.

Note [Checked once]
    Passes are functions of the graph alone. So of graphs that are the same but for their places one
    is checked in a process: programs that compile a function again and again would wait for little
    else.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from ..graph import RANDOM, Graph, Input, Node, Output, Var
from ..instantiate import mapped
from ..interp import run, widen
from ..ops import drawing
from ..packing import Unpackable, key_of
from ..types import (
    BOOL,
    COMPLEX,
    FLOAT,
    INTEGER,
    DType,
    TensorType,
    bfloat16,
    complex128,
    float64,
    to_bfloat16,
)
from ..verify import VerifyError, verify

LIMIT = 1 << 20  # elements; larger graphs are only verified
# relative; composites and what they expand to round differently
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2}
USUAL_TOLERANCE = 1e-4
MOST_KNOWN = 1 << 16
known: set[Any] = set()  # graphs, by their keys, and the passes they went through


class Checker:
    """What a graph gives, for comparison with what passes make of it."""

    key: Any = None

    def __init__(self, graph: Graph):
        self.graph = graph
        self.inputs: list[Any] = []
        self.expected: list[Any] | None = None
        size = sum(var.type.numel for var in graph.vars())
        if size > LIMIT:
            return
        rng = np.random.default_rng(0)
        self.inputs = [drawing.first_state() if item.kind == RANDOM else sample(item.var.type, rng)
                       for item in graph.inputs]  # fmt: skip
        # random inputs are not in the domain of every graph: indices, singular matrices
        with suppress(IndexError, RuntimeError, ValueError, np.linalg.LinAlgError):
            self.expected = run(graph, self.inputs)

    @staticmethod
    def unless_known(graph: Graph, *passes: Any) -> Checker | None:
        """None where such a graph went through these passes; see Note [Checked once]."""
        try:
            key = (key_of(graph), *passes)
        except Unpackable:
            return Checker(graph)
        if key in known:
            return None
        checker = Checker(graph)
        checker.key = key
        return checker

    def passed(self) -> None:
        """No pass was at fault."""
        if self.key is not None:
            if len(known) >= MOST_KNOWN:
                known.clear()
            known.add(self.key)

    def check(self, name: str, after: Graph) -> None:
        """The result of pass `name` must be valid and give the same values."""
        try:
            verify(after)
        except VerifyError as error:
            raise VerifyError(f"after pass '{name}': {error}") from None
        if self.expected is None:
            return
        changed = differing(self.graph, self.expected, run(after, self.inputs))
        if changed and not self.same_in_double(after):
            raise VerifyError(f"after pass '{name}': output {changed[0]} of @{self.graph.name} "
                              f"changed its value\n{self.graph}\n{after}")  # fmt: skip

    def same_in_double(self, after: Graph) -> bool:
        """Is the difference one of rounding? See Note [Rounding or fault]."""
        inputs = [widen(array, item.var.dtype).astype(wide(item.var.dtype).storage)
                  for array, item in zip(self.inputs, self.graph.inputs)]  # fmt: skip
        try:
            first, second = widened(self.graph), widened(after)
        except (RuntimeError, TypeError, ValueError):  # some ops ask for the dtype they were given
            return False
        return not differing(first, run(first, inputs), run(second, inputs))


def differing(graph: Graph, wanted: list[Any], got: list[Any]) -> list[int]:
    """The outputs that are not the same."""
    return [k for k, (a, b, output) in enumerate(zip(wanted, got, graph.outputs))
            if not same(a, b, output.var.type)]  # fmt: skip


def wide(value: Any) -> Any:
    """A floating dtype in double precision; anything else as it is."""
    if not isinstance(value, DType) or value.category < FLOAT:
        return value
    return complex128 if value.category == COMPLEX else float64


def widened(graph: Graph) -> Graph:
    """The graph with all floats in double precision."""
    now = {i.var: Var(i.var.type._replace(dtype=wide(i.var.dtype))) for i in graph.inputs}
    nodes = []
    for node in graph.nodes:
        inputs = tuple(None if v is None else now[v] for v in node.inputs)
        attrs = mapped(node.attrs, wide, widened)
        types = node.op.infer_types([None if v is None else v.type for v in inputs], dict(attrs))
        outputs = tuple(map(Var, types))
        now.update(zip(node.outputs, outputs))
        nodes.append(Node(node.op, inputs, outputs, attrs, node.place))
    return Graph(
        graph.name,
        tuple(Input(now[i.var], i.kind, i.name) for i in graph.inputs),
        tuple(nodes),
        tuple(Output(now[o.var], o.kind, o.target) for o in graph.outputs),
    )


def same(wanted: Any, got: Any, type_: TensorType) -> bool:
    if not (type_.dtype.is_floating_point or type_.dtype.is_complex):
        return bool(np.array_equal(wanted, got))
    rtol = TOLERANCE.get(type_.dtype.name, USUAL_TOLERANCE)
    wanted, got = widen(wanted, type_.dtype), widen(got, type_.dtype)
    return bool(np.allclose(got, wanted, rtol=rtol, atol=rtol / 10, equal_nan=True))


def sample(type_: TensorType, rng: np.random.Generator) -> Any:
    """Values near one, so that logarithms and roots are defined; small non-negative integers."""
    if type_.dtype.category == BOOL:
        return rng.integers(0, 2, type_.shape).astype(bool)
    if type_.dtype.category == INTEGER:
        return rng.integers(0, 2, type_.shape).astype(type_.dtype.storage)
    values = np.asarray(rng.uniform(0.5, 1.5, type_.shape))
    if type_.dtype.category == COMPLEX:
        values = values + 1j * rng.uniform(0.5, 1.5, type_.shape)
    if type_.dtype is bfloat16:
        return to_bfloat16(values.astype(np.float32))
    return values.astype(type_.dtype.storage)
