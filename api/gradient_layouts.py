"""Gradients of compiled functions, as eager's lie in memory.

Note [Gradients in memory]
    Strides of gradients can be seen: `autograd.grad` returns them, hooks get them. Native code
    hands out row-major arrays, where eager's may repeat elements (that of `x.sum()` is the gradient
    of the sum, expanded), be turned, or be memory that arrived. How they lie is found when
    gradients first arrive that lie so (`ir/lying.py`). What is memory that arrived is shown from
    there; for others backward computes what is in memory, in its order, and that is looked at as
    eager does. What goes to leaves whose `.grad` alone is seen is row-major as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .executor import Executor
from .ir import reverse
from .ir.builder import Builder, Symbol
from .ir.graph import GRAD_OF, RESULT, Graph, Var
from .ir.inline import run_node
from .ir.lying import Lying, Unknown, lying
from .ir.ops.slices import select_op
from .ir.ops.strided import memory_of
from .ir.ops.views import inverse, permute_op
from .ir.passes import optimise
from .tracer.derive import is_silent
from .tracer.engine import current
from .tracer.tape import AccumulateGrad
from .tracer.tensor import Tensor

MOST = 64  # layouts that are remembered for one backward


def seen(node: Any) -> tuple[int, ...]:
    """The gradients of a node that somebody may look at: those that go on, or are asked for."""
    run = current.run
    if run is None:
        return tuple(range(len(node.edges)))
    captures = run.captures
    return tuple([
        k for k, edge in enumerate(node.edges)
        if edge is not None
        and (edge[0].__class__ is not AccumulateGrad or edge[0] in captures
             or not is_silent(edge[0]))
    ])  # fmt: skip


class Core(NamedTuple):
    """What of a gradient is in memory: its dimensions but for `dropped`, in `order`."""

    dropped: tuple[int, ...]
    order: tuple[int, ...]


def core_of(lies: Lying, itemsize: int) -> Core | None:
    """The core of a gradient that shows all of a memory, else None."""
    shape, strides = lies.shape, lies.strides
    dropped = tuple([d for d, n in enumerate(shape) if n == 1 or strides[d] == 0])
    left = [d for d in range(len(shape)) if d not in dropped]
    order = sorted(range(len(left)), key=lambda k: -strides[left[k]])
    step = itemsize
    for k in reversed(order):
        if strides[left[k]] != step:
            return None
        step *= shape[left[k]]
    return Core(dropped, tuple(order)) if lies.offset == 0 and step == lies.size else None


class Look(NamedTuple):
    """How a gradient is made: of one that arrived, or of what backward computes."""

    lies: Lying
    given: int | None  # the number of the one that arrived
    core: Core | None  # what is computed, if that is not the gradient
    is_whole: bool  # is it that array itself?

    def at(self, array: np.ndarray, memories: dict[Any, np.ndarray], dtype: Any) -> np.ndarray:
        """The gradient; `memories` has those that several gradients show parts of."""
        _, shape, strides, offset, size, *_ = self.lies
        if self.given is not None:
            memory = array
            if not array.flags.c_contiguous:
                memory = memory_of(array)
                offset += array.ctypes.data - memory.ctypes.data
            return np.ndarray(shape, dtype.storage, memory, offset, strides)
        if self.is_whole:
            return array
        if self.core is not None:
            return np.ndarray(shape, array.dtype, array, 0, strides)
        memory = memories.get(self.lies.root)
        if memory is None:
            memory = memories[self.lies.root] = np.zeros(size // array.itemsize, array.dtype)
        part = np.ndarray(shape, array.dtype, memory, offset, strides)
        part[...] = array
        return part


class LaidOut:
    """Backward for gradients that arrive in one layout, where those in `seen` are seen."""

    def __init__(self, node: Any, arrived: Sequence[Any], seen: Sequence[int]):
        self.numbers = node.numbers
        ordinary, self.left = node.split.for_gradients(node.numbers)
        graph = eager_graph(node, self.left)
        inputs = [*node.inputs_now(), *[g._array for g in arrived]]
        places = lying(graph, inputs, len(arrived))
        self.dtypes = [o.var.dtype for o in ordinary.source.outputs]
        lies = [place if k in seen else None for k, place in zip(self.left, places)]
        given = [i.var for i in graph.inputs[-len(arrived) :]]
        arrays = {var: g._array for var, g in zip(given, arrived)}
        self.looks = [None if place is None else look_of(place, lies, given, arrays, dtype)
                      for place, dtype in zip(lies, self.dtypes)]  # fmt: skip
        self.executor = self.executor_for(ordinary, node.split)

    def is_turned(self) -> bool:
        """Is anything not as the usual backward gives it?"""
        return any(self.looks)

    def executor_for(self, ordinary: Executor, split: Any) -> Executor | None:
        """What computes all that did not arrive; None if that is nothing."""
        if all(look is not None and look.given is not None for look in self.looks):
            return None
        cores = [None if look is None else look.core for look in self.looks]
        if not any(cores):
            return ordinary
        known, key = split.cores, (self.numbers, tuple(cores))
        if key not in known:
            strict = split.function.settings.strict
            graph = ordinary.source.unmarked()
            results = zip([output.var for output in graph.outputs], cores)
            graph = optimise(with_results(graph, results, shown_core), strict=strict)
            known[key] = split.function.executor(graph)
        return known[key]  # type: ignore[no-any-return]

    def run(self, arguments: list[np.ndarray], arrived: Sequence[Any]) -> list[Any]:
        """The gradients; one tensor where eager has one for several inputs."""
        arrays = self.looks if self.executor is None else self.executor.call(*arguments)
        made: dict[Lying, Any] = {}
        memories: dict[Any, np.ndarray] = {}
        found = []
        for look, dtype, array in zip(self.looks, self.dtypes, arrays):
            if look is None:
                tensor = Tensor._wrap(array, dtype)
            elif look.given is not None and look.is_whole:
                tensor = arrived[look.given]
            else:
                tensor = made.get(look.lies)
            if tensor is None:
                source = array if look.given is None else arrived[look.given]._array
                tensor = made[look.lies] = Tensor._wrap(look.at(source, memories, dtype), dtype)
            found.append(tensor)
        return found


def eager_graph(node: Any, left: Sequence[int]) -> Graph:
    """Backward as recorded: gradients of those inputs in `wanted` that are `left`."""
    split = node.split
    function, wanted = split.function, [split.wanted[k] for k in left]
    results = [function.differentiable[k] for k in node.numbers]
    joint = reverse.joint(function.trace, wanted, results, as_eager=True)
    return joint.replace(outputs=tuple(o for o in joint.outputs if o.kind == GRAD_OF))


def look_of(
    place: Lying, others: Sequence[Any], given: list[Any], arrays: Any, dtype: Any
) -> Look | None:
    """How a gradient that lies so is made; None if nothing else shows its memory."""
    if place.root in arrays:
        array = arrays[place.root]
        is_same = array.dtype == dtype.storage  # real parts of complex numbers begin where they do
        is_whole = is_same and place[1:4] == (array.shape, array.strides, 0)
        return Look(place, given.index(place.root), None, is_whole)
    itemsize = dtype.storage.itemsize
    shared = [other for other in others if other is not None and other.root is place.root]
    is_whole = 0 in place.shape or place.is_row_major(itemsize)
    if len(shared) == 1 and is_whole:
        return None
    if len({*shared}) > 1:
        return Look(place, None, None, False)
    return Look(place, None, None if is_whole else core_of(place, itemsize), is_whole)


def shown_core(value: Any, core: Core | None) -> Any:
    """What of a gradient is in memory, in its order."""
    if core is None:
        return value
    for dim in reversed(core.dropped):
        value = select_op(value, dim=dim, index=0)
    return permute_op(value, dims=core.order)


def with_results(graph: Graph, results: Iterable[tuple[Var, Any]], show: Any) -> Graph:
    """The graph whose results are what `show` makes of these values."""
    builder = Builder(graph.name)
    builder.inputs, builder.nodes = list(graph.inputs), list(graph.nodes)
    with builder.building():
        for var, how in results:
            builder.output(show(Symbol(var), how), RESULT)
    return builder.graph(graph.notes)


class LaidOutAgain:
    """The same with create_graph: what is computed are memories, and eager's ops look at them."""

    def __init__(self, node: Any, arrived: Sequence[Any], seen: Sequence[int]):
        function, self.left = node.split.function.gradient(node.split.wanted, node.numbers)
        graph = function.trace
        inputs = [*node.inputs_now(), *[g._array for g in arrived]]
        places = lying(graph, inputs, len(arrived))
        self.given = {i.var: k for k, i in enumerate(graph.inputs[-len(arrived) :])}
        self.lies = [place if k in seen else None for k, place in zip(self.left, places)]
        kept = [(place.root, place.order) if place is not None else (output.var, None)
                for place, output in zip(self.lies, graph.outputs)]  # fmt: skip
        self.roots = [root for root, _ in kept]
        self.orders = {root: order for root, order in kept if root not in self.given}
        self.function = None
        if self.is_turned() and self.orders:
            self.function = function.like(with_results(graph, self.orders.items(), turned))

    def is_turned(self) -> bool:
        """Is anything not as the usual function gives it?"""
        shared = len(self.orders) < len(self.roots)
        return shared or any(place is not None and (place.order or place.chain)
                             for place in self.lies)  # fmt: skip

    def run(self, inputs: list[Tensor], arrived: Sequence[Any]) -> list[Any]:
        """The gradients, with history."""
        values = {var: arrived[k] for var, k in self.given.items()}
        made = [] if self.function is None else self.function.run([*inputs, *arrived])
        for (root, order), value in zip(self.orders.items(), made):
            values[root] = value if order is None else permute_op(value, dims=inverse(order))
        looks: dict[Any, Any] = {}
        for place, root in zip(self.lies, self.roots):
            chain = () if place is None else place.chain
            if (root, chain) not in looks:
                value = values[root]
                for node in chain:
                    value = run_node(node, [value])
                looks[root, chain] = value
        return [looks[root, () if place is None else place.chain]
                for place, root in zip(self.lies, self.roots)]  # fmt: skip


def turned(value: Any, order: tuple[int, ...] | None) -> Any:
    """A value in its order in memory."""
    return value if order is None else permute_op(value, dims=order)


def laid_out(node: Any, arrived: Sequence[Any], kind: Any = LaidOut) -> Any:
    """How gradients are made that are seen; None where they are as backward gives them."""
    places = seen(node)
    if not places:
        return None
    known = node.split.layouts
    key = (kind, node.numbers, places, tuple([g._array.strides for g in arrived]))
    if key not in known:
        if len(known) >= MOST:
            known.clear()
        try:
            found = kind(node, arrived, places)
        except Unknown:
            return None
        known[key] = found if found.is_turned() else None
    return known[key]
