"""Backward: walks the graph newest node first, iteratively.

A node runs when every consumer that takes part in this backward has sent its gradient; among the
ready ones the newest runs first, and an AccumulateGrad before all. That is torch's order, so hooks
fire in torch's order too.

Note [Order of hooks]
    For each node: hooks of the tensors it gave, in the order they were registered; gradients kept
    by `retain_grad`; pre-hooks of the node; the node itself (for a leaf: accumulation, then its
    post-accumulate hooks); post-hooks of the node. A gradient that `autograd.grad` asked for is
    captured after the tensor's hooks where the walk ends there, else before them, as in torch.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any

from ..ir.bind import state
from ..ir.places import user_place
from . import familiar
from .accumulate import accumulate, add_into
from .derive import derive, is_silent
from .eager import run
from .engine_hooks import (
    check_nan,
    checked_tuple,
    is_told,
    note_forward,
    noting,
    padded,
    run_posthooks,
    run_tensor_hooks,
    tell_of_hooks,
    tensor_hooks,
    warn_of,
)
from .inner_results import look_inside
from .reaching import count_among, count_dependencies, find_needed
from .saved import Freed
from .tape import ANOMALY, AccumulateGrad, Node

_next_run = itertools.count().__next__


class _Current(threading.local):
    run: Any = None


current = _Current()


class Expanded(RuntimeError):
    """A node that stands for several can't run as one: they shall run in its place.

    `roots` and `grads` are edges into them, and the gradients that arrived there; `edges` are those
    of the node that it has not passed on yet, if not all.
    """

    def __init__(self, error: BaseException, roots: list[Any], grads: list[Any], edges: Any = None):
        super().__init__(str(error))
        self.roots, self.grads, self.edges = roots, grads, edges


class Ready:
    """The ready nodes: a binary heap by sequence number.

    Written out after libstdc++'s priority_queue, since the order among equals (leaves) shows.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def push(self, node: Node) -> None:
        self.nodes.append(node)
        self._rise(len(self.nodes) - 1, node)

    def _rise(self, hole: int, node: Node) -> None:
        nodes, key = self.nodes, node.sequence
        while hole:
            parent = (hole - 1) // 2
            if nodes[parent].sequence >= key:
                break
            nodes[hole] = nodes[parent]
            hole = parent
        nodes[hole] = node

    def leaves(self) -> list[Any]:
        """Takes the leaves, which come before all."""
        found = []
        while self.nodes and self.nodes[0].__class__ is AccumulateGrad:
            found.append(self.pop())
        return found

    def pop(self) -> Node:
        nodes = self.nodes
        last = nodes.pop()
        if not nodes:
            return last
        top, hole, count = nodes[0], 0, len(nodes)
        child = 2
        while child < count:
            if nodes[child].sequence < nodes[child - 1].sequence:
                child -= 1
            nodes[hole] = nodes[child]
            hole, child = child, 2 * child + 2
        if child == count:
            nodes[hole] = nodes[child - 1]
            hole = child - 1
        self._rise(hole, last)
        return top


class Run:
    """One execution of backward over a graph."""

    __slots__ = ("captured", "captures", "create_graph", "dependencies", "freed", "id", "needed",
                 "retain_graph", "targets")  # fmt: skip

    def __init__(self, retain_graph: bool, create_graph: bool):
        self.id = _next_run()
        self.retain_graph, self.create_graph = retain_graph, create_graph
        self.captures: dict[Any, list[tuple[int, int]]] = {}  # node: (output, slot) pairs
        self.captured: dict[int, Any] = {}
        self.targets: set[Any] | None = None  # `inputs=` of backward: nodes that must run
        self.needed: dict[Node, bool] | None = None
        self.dependencies: dict[Node, int] = {}
        self.freed = Freed(None)

    def will_run(self, node: Node) -> bool:
        """Does the node take part in this backward?"""
        if self.needed is None:
            return node in self.dependencies
        return self.needed.get(node, False) or node in self.captures

    def is_plain(self) -> bool:
        """Does nobody look on, and nobody ask for more than gradients of leaves?"""
        return (
            state.top is run
            and not self.create_graph
            and not self.captures
            and self.targets is None
            and not ANOMALY
        )

    def execute(self, roots: list[tuple[Node, int]], grads: list[Any]) -> None:
        place = self.freed.place = user_place()
        if len(roots) == 1 and self.is_plain():
            (node, number), freed = roots[0], None if self.retain_graph else self.freed
            if node.plan is not None and familiar.backward(node, number, grads[0], freed, place):
                return
        waiting = self.dependencies = count_dependencies(roots)
        if self.captures or self.targets is not None:
            self.needed = find_needed(roots, self.captures, self.targets or ())
            if any(node.joins for node in self.needed):
                waiting = self.dependencies = count_among(self.needed, waiting)
        buffers: dict[Node, list[Any]] = {}
        ready = Ready()
        if len(roots) == 1:
            node, number = roots[0]
            buffers[node] = [None] * number + [grads[0]]
            ready.nodes.append(node)
        else:
            for (node, number), grad in zip(roots, grads):
                put_grad(buffers, node, number, grad)
            for node in buffers:
                if waiting[node] == 0:
                    ready.push(node)
        self.loop(ready, buffers)

    def loop(self, ready: Ready, buffers: dict[Node, list[Any]]) -> None:
        """Runs nodes until none is ready."""
        create_graph, nodes, place = self.create_graph, ready.nodes, self.freed.place
        plain = self.needed is None and not ANOMALY
        unwatched = state.top is run
        direct = unwatched and not create_graph
        freed = None if self.retain_graph else self.freed
        watch = getattr(state.top, "pulling", None)  # a recorder notes whose derivative runs
        sums: Any = {} if direct else None  # totals made here, which may be added to in place
        node: Any = ready.pop() if nodes else None
        try:
            while node is not None:
                slots: Any = buffers.pop(node, None) or [None]
                results, leaves, follow, joins = None, (), None, False
                if watch is not None:
                    watch(node)
                if node.__class__ is AccumulateGrad:
                    self.arrive(node, slots)
                elif not plain or node.extra is not None:
                    results, joins = self.step(node, slots), node.joins
                elif unwatched and node.is_op:
                    saved = node.saved
                    if saved.__class__ is Freed:
                        raise RuntimeError(saved.message())
                    results = derive(node, slots, direct)
                    if saved and freed is not None:
                        node.saved = freed
                else:
                    results, joins = node.apply(slots), node.joins
                    if freed is not None and not joins:
                        node.release(freed)
                slots = None
                if joins and results is not None:
                    self.serve_in_order(node, results, ready, buffers, sums, plain)
                elif results is not None:
                    leaves, follow = self.pass_on(node.edges, results, ready, buffers, sums, plain)
                results = None  # a gradient nobody holds may be taken
                for leaf in leaves:
                    accumulate(leaf.variable, buffers.pop(leaf, None) or [None], create_graph,
                               direct, place)  # fmt: skip
                node = follow if follow is not None else ready.pop() if nodes else None
        except Expanded as expanded:
            self.expand(node, expanded, ready, buffers)
            with noting(node):
                self.loop(ready, buffers)
        except Exception as error:
            note_forward(error, node)
            raise
        if watch is not None:
            watch(None)

    def serve_in_order(
        self, node: Node, results: Any, ready: Ready, buffers: Any, sums: Any, plain: bool
    ) -> None:
        """As `pass_on` of a node that stands for several: to leaves in the order of these."""
        edges, results = list(node.edges), list(results)
        needed = None
        if self.needed is not None:
            needed = [k for k, edge in enumerate(edges) if edge and self.will_run(edge[0])]
        order, part = node.serve(None if self.retain_graph else self.freed, needed)
        self.pass_by([e for e, g in zip(edges, results) if g is None], ready, buffers)
        edges = [None if g is None else e for e, g in zip(edges, results)]
        position = None
        try:
            for position in order:
                edge, grad = edges[position], results[position]
                edges[position] = results[position] = None
                leaves, follow = self.pass_on((edge,), (grad,), ready, buffers, sums, plain)
                grad = None  # nobody holds it
                if follow is not None:
                    ready.push(follow)
                for leaf in (*leaves, *ready.leaves()):
                    self.arrive(leaf, buffers.pop(leaf, None) or [None])
                if part is not None and part.is_overtaken():
                    raise part.by_ops(node, [e for e in edges if e is not None])
        except Expanded:
            raise
        except BaseException:
            if part is not None:
                part.stop(node, position)
            raise
        if part is not None:
            part.settle(node)
        leaves, follow = self.pass_on(edges, results, ready, buffers, sums, plain)
        for leaf in leaves:
            self.arrive(leaf, buffers.pop(leaf, None) or [None])
        if follow is not None:
            ready.push(follow)

    def expand(self, node: Node, expanded: Expanded, ready: Ready, buffers: Any) -> None:
        """Other nodes take the place of one."""
        waiting, roots = self.dependencies, expanded.roots
        inner = [edge for edge in dict.fromkeys(roots) if edge[0] not in waiting]
        for target, count in count_dependencies(inner, waiting).items():
            waiting[target] = waiting.get(target, 0) + count
        if self.needed is not None:
            found = find_needed(inner, self.captures, self.targets or ())
            self.needed = {**found, **self.needed}
        for (root, number), grad in zip(roots, expanded.grads):
            put_grad(buffers, root, number, grad)
        for target in dict.fromkeys(root for root, _ in inner):
            if waiting[target] == 0 and (self.needed is None or self.will_run(target)):
                ready.push(target)
        if self.needed is None or self.needed.get(node, False):
            edges = node.edges if expanded.edges is None else expanded.edges
            self.pass_by(edges, ready, buffers)

    def pass_by(self, edges: Any, ready: Ready, buffers: Any) -> None:
        """Of these edges of a node that stands for several, eager has none that it comes to.

        So what is behind them takes no part in this backward, unless other edges lead there.
        """
        waiting, ways = self.dependencies, [*edges]
        while ways:
            edge = ways.pop()
            if edge is None:
                continue
            target = edge[0]
            waiting[target] -= 1
            if waiting[target] or (self.needed is not None and not self.will_run(target)):
                continue
            if target in buffers:
                ready.push(target)
            else:
                ways += target.edges

    def pass_on(
        self, edges: Any, results: Any, ready: Ready, buffers: Any, sums: Any, plain: bool
    ) -> tuple[Any, Any]:
        """Hands results to the nodes behind; gives leaves to serve at once, and the next node.

        Nobody sees the order of leaves without hooks; a single successor needs no heap.
        """
        waiting, needed, nodes = self.dependencies, self.needed, ready.nodes
        leaves: tuple[Any, ...] = ()
        follow = None
        for edge, grad in zip(edges, results):
            if edge is None:
                continue
            target, number = edge
            count = waiting[target] = waiting[target] - 1
            if needed is not None and not self.will_run(target):
                continue
            if grad is not None:
                slots = buffers.get(target)
                if slots is None:
                    buffers[target] = [None] * number + [grad] if number else [grad]
                else:
                    add_into(slots, number, grad, target, sums)
            if count == 0:
                if plain and target.__class__ is AccumulateGrad and is_silent(target):
                    leaves += (target,)
                elif follow is None and not nodes:
                    follow = target
                else:
                    if follow is not None:
                        ready.push(follow)
                        follow = None
                    ready.push(target)
        return leaves, follow

    def step(self, node: Node, slots: list[Any]) -> list[Any] | None:
        """A node with hooks, captures or checks; see Note [Order of hooks]."""
        if node.joins:
            look_inside(self, node, slots)
        needed = self.needed is None or self.needed.get(node, False)
        if node in self.captures:
            if not needed:
                slots = tensor_hooks(node, slots)
            for number, slot in self.captures[node]:
                self.captured[slot] = slots[number] if number < len(slots) else None
        if not needed:
            return None
        extra = node.extra
        if extra is not None:
            if state.top is not run:
                tell_of_hooks(node)
            slots = tensor_hooks(node, slots)
            for hook in list(extra.prehooks.values()):
                slots = padded(node, slots)
                changed = hook(tuple(slots))
                if changed is not None:
                    slots = list(checked_tuple(hook, changed, len(slots)))
        try:
            if node.is_op and state.top is run and node.saved.__class__ is not Freed:
                results = derive(node, slots, not self.create_graph)
            else:
                results = node.apply(slots)
        except Exception as error:
            if ANOMALY and not is_told(error):
                warn_of(node)
            raise
        if extra is not None and extra.posthooks:
            results = run_posthooks(node, results, padded(node, slots))
        if not self.retain_graph and not node.joins:
            node.release(self.freed)
        if ANOMALY and ANOMALY[-1]:
            check_nan(node, results)
        return results

    def arrive(self, node: AccumulateGrad, slots: list[Any]) -> None:
        """A leaf's gradient with hooks or captures on the way."""
        leaf = node.variable
        grad = slots[0]
        if state.top is not run:
            tell_of_hooks(node)
        if leaf._leaf is not None and leaf._leaf.hooks:
            grad = run_tensor_hooks(leaf._leaf.hooks, grad)
        for _, slot in self.captures.get(node, ()):
            self.captured[slot] = grad
        if self.needed is not None and not self.needed.get(node, False):
            return
        extra = node.extra
        if extra is not None:
            for hook in list(extra.prehooks.values()):
                changed = hook((grad,))
                if changed is not None:
                    grad = changed[0] if isinstance(changed, tuple) else changed
        if grad is not None:
            accumulate(leaf, [grad], self.create_graph, False, self.freed.place)
        if extra is not None:
            run_posthooks(node, [], [grad])


def put_grad(buffers: dict[Node, list[Any]], node: Node, number: int, grad: Any) -> None:
    """Adds a gradient to what waits for an output of `node`."""
    slots = buffers.setdefault(node, [None])
    if grad is not None:
        add_into(slots, number, grad, node, None)


# --- starting ------------------------------------------------------------------------------------


def start(task: Run, roots: list[Any], grads: list[Any]) -> None:
    """Executes `task` in the grad mode it asks for."""
    previous, mode, cut, asking = current.run, state.grad_enabled, state.cut, state.asking
    current.run = task
    state.grad_enabled = task.create_graph
    state.cut = None  # gradients have no history, and that is nobody's fault
    state.asking = False
    try:
        task.execute(roots, grads)
    finally:
        current.run = previous
        state.grad_enabled, state.cut, state.asking = mode, cut, asking
