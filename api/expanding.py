"""The ops behind a compiled node, as nodes of eager's.

Note [Errors in backward]
    Where eager's backward raises, as values that it needs were written or freed, it has come to
    some of the leaves before: their hooks ran, their `.grad` was added to. So a compiled node that
    can't go on has its place taken by the nodes of its ops (`Run.expand`): the recorded ops run
    again on what they were given, with the histories of its inputs. What they saved of these is
    then made what it is now, so that it is for eager's nodes to see that it was written. Where
    nothing is left to run the ops on, they run on zeros: all that needs values is freed, and
    raises. The nodes stay for the next backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .in_part import Part, Served
from .ir.bind import state
from .ir.graph import RANDOM, RESULT, Graph
from .ir.inline import inline
from .ir.types import uint8
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


class Expansion:
    """The edges of all results into nodes of ops, and what these ops were given and gave.

    `counts` are the versions that results which the caller holds had.
    """

    __slots__ = ("counts", "edges", "results", "values")

    def __init__(self, edges: list[Any], values: list[Tensor], results: list[Tensor], held: Any):
        self.edges, self.values, self.results = edges, values, results
        self.counts = {k: results[k].storage_.version for k in held}


def edges_of(node: Any, error: Unreadable) -> list[Any]:
    """For each gradient that arrived: where it goes among the nodes of a node's ops."""
    part = node.expansion if node.expansion.__class__ is Part else None
    if node.expansion.__class__ is Expansion:
        bring_up_to_date(node, node.expansion)
    else:
        mode, token = state.grad_enabled, quiet()
        state.grad_enabled = True
        try:
            made = expansion(node)
            if part is not None:
                part.free(node, made.edges)
                readers.discard(node.reference)  # nothing is made of inputs again
        except Exception:
            raise RuntimeError(str(error)) from None  # zeros led to another error
        finally:
            state.grad_enabled = mode
            restore(token)
        differentiable = node.split.function.differentiable
        arrived = [made.results[differentiable[k]] for k in node.numbers]
        if part is None and not any(map(is_unreadable, nodes_behind(arrived))):
            raise RuntimeError(str(error))  # it is another call's to read that
        node.expansion = made
    return [node.expansion.edges[number] for number in node.numbers]


def ops_after(node: Any, part: Part) -> list[Any]:
    """The same where hooks wrote after some leaves were served; see Note [Hooks that write]."""
    edges = list(node.edges)
    for k in part.served:
        edges[k] = Served(edges[k])
    edges[part.served[-1]].then = lambda: bring_up_to_date(node, node.expansion)
    for k in part.served:
        edges[k] = edges[k], 0
    mode, token = state.grad_enabled, quiet()
    state.grad_enabled = True
    try:
        node.expansion = expansion(node, edges)
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
    if alive and node.exposed:
        node.notice_writes()
    values = inputs_before(node) if alive else zeros(graph)
    link(values, node.split.wanted, node.edges if edges is None else edges)
    outputs = inline(graph, values, again=True, run=function.customs.run)
    results = [t for t, o in zip(outputs, graph.outputs) if o.kind == RESULT]
    differentiable = [results[k] for k in function.differentiable]
    for number in node.came if alive else range(len(differentiable)):
        for inner in behind(differentiable[number], node.edges):
            inner.release(node.freed)
    roots = [(tensor._node, tensor._nr) for tensor in differentiable]
    made = Expansion(roots, values, results, node.results_held())
    if edges is None:
        bring_up_to_date(node, made)
    return made


def behind(result: Tensor, edges: Any) -> list[Any]:
    """The nodes behind a result that the call made."""
    outside = [Tensor._wrap(np.empty(0), None) for _ in edges]
    for tensor, edge in zip(outside, edges):
        if edge is not None and not isinstance(edge[0], AccumulateGrad):
            tensor._node = edge[0]
    known = {id(node) for node in nodes_behind(outside)}
    return [n for n in nodes_behind([result])
            if id(n) not in known and not isinstance(n, AccumulateGrad)]  # fmt: skip


def inputs_before(node: Any) -> list[Tensor]:
    """What the call was given, as it was, in memory of its own that counts writes from then on."""
    known = {**(node.before or {}), **node.given}
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


def bring_up_to_date(node: Any, made: Expansion) -> None:
    """Memory and counts of inputs and results become what they are now."""
    for tensor, value in zip(node.inputs or (), made.values):
        storage = tensor._storage
        if storage is not None:
            value.storage_.version, value.storage_.written = storage.version, storage.written
        np.copyto(value._array, memory_of(tensor))
    for k, (array, storage, version) in node.results_held().items():
        copy = made.results[k].storage_
        copy.version, copy.written = made.counts[k] + storage.version - version, storage.written
        np.copyto(made.results[k]._array, array)
