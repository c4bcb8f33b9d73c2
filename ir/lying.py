"""How the outputs of a graph lie in memory when its ops run one by one, as eager runs them.

Note [Layouts by example]
    Where an op's result lies follows from its NumPy evaluation and from how its operands lie. So
    the ops run, on stand-ins: zeros, which take no memory as long as they are only read. What
    products and the like give is row-major whatever they read, so nothing before them need run, and
    nothing is computed for most gradients. Where an op refuses stand-ins (a matrix of zeros has no
    inverse), all of them run on the values themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .graph import Graph, Node, Var
from .interp import evaluate
from .op import Template
from .ops.layouts import memory_order


class Unknown(Exception):
    """Nothing can be said: an op refuses what it is given."""


class Lying(NamedTuple):
    """Where an output lies: in the memory of `root`, strides and offset in bytes."""

    root: Var
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    size: int  # of the root, in bytes from its first element to its last
    order: tuple[int, ...] | None  # of the root's dimensions, where they are turned
    chain: tuple[Node, ...]  # the views of it that lead to the output

    def is_row_major(self, itemsize: int) -> bool:
        """Is it all of its root, in the usual order?"""
        step = itemsize
        for n, stride in zip(reversed(self.shape), reversed(self.strides)):
            if stride != step and n != 1:
                return False
            step *= n
        return self.offset == 0 and step == self.size


def lying(graph: Graph, inputs: Sequence[np.ndarray], given: int) -> list[Lying]:
    """How each output lies if `inputs` lie as these do; the last `given` are apart from others."""
    kept = len(inputs) - given
    inputs = [*inputs[:kept], *map(like, inputs[kept:])]
    try:
        return by_example(graph, inputs, True)
    except Exception:  # see Note [Layouts by example]
        pass
    try:
        return by_example(graph, inputs, False)
    except Exception as error:  # of values that were written since, say
        raise Unknown(str(error)) from None


def is_row_major(node: Node) -> bool:
    """Are its results row-major, however its operands lie?"""
    op = node.op
    is_loop = isinstance(op.lower, Template) and not op.moves_data
    return op.kind in ("product", "reduction") or is_loop


def by_example(graph: Graph, inputs: Sequence[np.ndarray], stand_in: bool) -> list[Lying]:
    """What `lying` gives, by running ops on stand-ins, or on values."""
    needed = {o.var for o in graph.outputs}
    order = []
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            order.append(node)
            if not (stand_in and is_row_major(node)):
                needed.update(node.present())
    known = Known({}, {}, {})
    for item, array in zip(graph.inputs, inputs):
        if item.var in needed:
            known.add(item.var, array, None)
    with np.errstate(all="ignore"):
        for node in reversed(order):
            for var, array in zip(node.outputs, known.results(node, stand_in)):
                known.add(var, array, node)
    return [known.place(o.var) for o in graph.outputs]


class Known(NamedTuple):
    """What is known of values: their arrays, what made them, who made memory (by its owner)."""

    arrays: dict[Var, np.ndarray]
    producers: dict[Var, Node | None]
    roots: dict[int, Var]

    def add(self, var: Var, array: np.ndarray, node: Node | None) -> None:
        self.arrays[var], self.producers[var] = array, node
        self.roots.setdefault(id(owner(array)), var)

    def results(self, node: Node, stand_in: bool) -> Any:
        if stand_in and is_row_major(node):
            return map(fresh, node.outputs)
        made = evaluate(node, self.arrays)
        alone = len([*node.present()]) > 1  # what hands on one of several operands is no look at it
        if not stand_in:
            return map(copied, made) if alone else made
        alone = alone or is_of_write(node)
        return [like(copied(array)) if alone or id(owner(array)) not in self.roots else array
                for array in made]  # fmt: skip

    def root(self, var: Var) -> Var | None:
        return self.roots[id(owner(self.arrays[var]))] if var in self.arrays else None

    def place(self, var: Var) -> Lying:
        array, root = self.arrays[var], self.root(var)
        assert root is not None
        memory = self.arrays[root]
        if min(*array.strides, *memory.strides, 0) < 0:
            raise Unknown("tensors have no negative strides")
        offset = array.ctypes.data - memory.ctypes.data
        chain: list[Node] = []
        while var is not root:
            node = self.producers[var]
            assert node is not None
            chain.append(node)
            var = next(v for v in node.present() if self.root(v) is root)
        return Lying(root, array.shape, array.strides, offset, extent(memory),
                     memory_order(memory), tuple(reversed(chain)))  # fmt: skip


def is_of_write(node: Node) -> bool:
    """Does it pull a gradient out of a write to a part? Eager copies what arrives there."""
    return node.origin is not None and node.origin.op.endswith("_scatter")


def copied(array: np.ndarray) -> np.ndarray:
    """As a clone of it lies."""
    return array.copy(order="C" if 0 in array.strides else "K")


def fresh(var: Var) -> np.ndarray:
    """Zeros that take no memory until somebody looks at them."""
    return np.zeros(var.type.shape, var.dtype.storage)


def like(array: np.ndarray) -> np.ndarray:
    """Zeros of their own that lie as an array does."""
    memory = np.zeros(extent(array) // array.itemsize, array.dtype)
    return np.ndarray(array.shape, array.dtype, memory, 0, array.strides)


def extent(array: np.ndarray) -> int:
    """Bytes from the first element to the last."""
    if not array.size:
        return 0
    steps = [(n - 1) * step for n, step in zip(array.shape, array.strides)]
    return int(sum(steps) + array.itemsize)


def owner(array: Any) -> Any:
    """The array at the bottom of a chain of views."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
