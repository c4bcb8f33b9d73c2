"""The ops behind a compiled node, as nodes of eager's.

Note [Errors in backward]
    Where eager's backward raises, as values that it needs were written or freed, it has come to
    some of the leaves before: their hooks ran, their `.grad` was added to. So a compiled node that
    can't go on has its place taken by the nodes of its ops (`Run.expand`): the recorded ops run
    again on copies of what they were given, with the histories of its inputs. What they saved of
    these is then made what it is now (`Copies`), so that it is for eager's nodes to see that it was
    written; so it is once more before each of these nodes, where a hook has written. Where nothing
    is left to run the ops on, they run on zeros: all that needs values is freed, and raises. The
    nodes stay for the next backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .copies import Copies
from .in_part import Part, Served
from .ir.bind import state
from .ir.graph import RANDOM, RESULT, Graph
from .ir.inline import inline
from .ir.types import uint8
from .replaced import replaced
from .saved_values import nodes_behind, saved_in, storage_of
from .tracer.generator import Generator
from .tracer.pending import memory_of
from .tracer.quiet import quiet, restore
from .tracer.readers import readers
from .tracer.saved import Freed, attach_edge
from .tracer.storage import Storage
from .tracer.tape import AccumulateGrad
from .tracer.tensor import Tensor


class Unreadable(RuntimeError):
    """A value that backward needs was written since, or freed."""


class Rewritten(Unreadable):
    """So it was without a word: the ops compute with what is there now."""


class Expansion(NamedTuple):
    """The edges of all results into nodes of ops, these results, and the memory of the nodes."""

    edges: tuple[Any, ...]
    results: list[Tensor]
    copies: Copies

    def differentiable(self, node: Any) -> list[Tensor]:
        return [self.results[k] for k in node.split.function.differentiable]


def edges_of(node: Any, error: Unreadable) -> list[Any]:
    """For each gradient that arrived: where it goes among the nodes of a node's ops."""
    part = node.expansion if node.expansion.__class__ is Part else None
    if node.expansion.__class__ is Expansion:
        node.expansion.copies.update()
    else:
        mode, token = state.grad_enabled, quiet()
        state.grad_enabled = True
        try:
            made = expansion(node)
            readers.discard(node.reference)  # nothing is made of inputs again
            if part is not None:
                part.free(node, made.edges)
        except Exception:
            raise RuntimeError(str(error)) from None  # zeros led to another error
        finally:
            state.grad_enabled = mode
            restore(token)
        differentiable = made.differentiable(node)
        arrived = [differentiable[k] for k in node.numbers]
        is_error = part is None and error.__class__ is not Rewritten
        if is_error and not any(map(is_unreadable, nodes_behind(arrived))):
            raise RuntimeError(str(error))  # it is another call's to read that
        node.expansion = made
    return [node.expansion.edges[number] for number in node.numbers]


def ops_after(node: Any, part: Part) -> list[Any]:
    """The same where hooks wrote after some leaves were served; see Note [Hooks that write]."""
    edges = list(node.edges)
    for k in part.served:
        edges[k] = Served(edges[k])
    edges[part.served[-1]].then = lambda: node.expansion.copies.update()
    for k in part.served:
        edges[k] = edges[k], 0
    mode, token = state.grad_enabled, quiet()
    state.grad_enabled = True
    try:
        node.expansion = made = expansion(node, edges)
        made.copies.become({k: part.found.get(k, memory_of(node.inputs[k])) for k in part.earlier},
                           part.held.as_found())  # fmt: skip
        for inner in behind(made.differentiable(node), node.edges):
            for edge in inner.edges:
                if edge is not None and edge[0].__class__ is Served:
                    edge[0].consumers.append(inner)
    finally:
        state.grad_enabled = mode
        restore(token)
    return [node.expansion.edges[number] for number in part.numbers]


def is_unreadable(node: Any) -> bool:
    """Will it raise, since what it saved was written or freed?"""
    if isinstance(getattr(node, "saved", None) or getattr(node, "_saved", None), Freed):
        return True
    return any(storage_of(entry).version != version for entry, version in saved_in(node))


def expansion(node: Any, edges: Any = None) -> Expansion:
    """The ops run again. Where `edges` are given they lead there, and what was saved stays."""
    function = node.split.function
    graph = function.trace
    alive = node.inputs is not None
    if alive and (node.exposed or node.shown):
        node.notice_writes()
    values = inputs_before(node) if alive else zeros(graph)
    link(values, node.split.wanted, node.edges if edges is None else edges)
    outputs = inline(graph, values, again=True, run=function.customs.run)
    results = [t for t, o in zip(outputs, graph.outputs) if o.kind == RESULT]
    differentiable = [results[k] for k in function.differentiable]
    for number in node.came if alive else range(len(differentiable)):
        for inner in behind([differentiable[number]], node.edges):
            inner.release(node.freed)
    copies = Copies(node, values, results)
    copies.serve(behind(differentiable, node.edges))
    if edges is None:
        copies.update()
    made = tuple([(tensor._node, tensor._nr) for tensor in differentiable])
    return Expansion(made, results, copies)


def behind(results: list[Tensor], edges: Any) -> list[Any]:
    """The nodes behind results that the call made."""
    outside = [Tensor._wrap(np.empty(0), None) for _ in edges]
    for tensor, edge in zip(outside, edges):
        if edge is not None and not isinstance(edge[0], AccumulateGrad):
            tensor._node = edge[0]
    known = {id(node) for node in nodes_behind(outside)}
    return [n for n in nodes_behind(results)
            if id(n) not in known and not isinstance(n, AccumulateGrad)]  # fmt: skip


def inputs_before(node: Any) -> list[Tensor]:
    """What the call was given, as it was, in memory of its own that counts writes from then on."""
    known = {**replaced(node), **(node.before or {}), **node.given}
    values = []
    for k, tensor in enumerate(node.inputs):
        array = known.get(k, memory_of(tensor))
        values.append(value := Tensor._wrap(array.copy(order="K"), tensor.dtype))
        value._storage = Storage(value._array, node.versions[k])
    return values + [Tensor._wrap(snapshot.state(), uint8) for snapshot in node.states]


def zeros(graph: Graph) -> list[Tensor]:
    """Inputs of the types of those that the call was given."""
    values = []
    for item in graph.inputs:
        shape, dtype = item.var.type.shape, item.var.dtype
        array = np.zeros(shape, dtype.storage)
        if item.kind == RANDOM:
            array = Generator().snapshot().state()
        values.append(Tensor._wrap(array, dtype))
    return values


def link(values: list[Tensor], wanted: Sequence[int], edges: Any) -> None:
    """Gives inputs their histories."""
    for k, edge in zip(wanted, edges):
        if edge is not None:
            attach_edge(values[k], edge)
