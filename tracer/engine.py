"""Backward: walks the graph newest node first, iteratively.

A node runs when every consumer that takes part in this backward has sent its gradient; among the
ready ones the newest runs first, and an AccumulateGrad before all. That is torch's order, so hooks
fire in torch's order too.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import weakref
from typing import Any

import numpy as np

from ..ir.bind import notify, state
from ..ir.op import TABLE
from ..ir.types import FLOAT
from .eager import history
from .tape import AccumulateGrad, Node, describe_place, user_place
from .tensor import Tensor

_run_ids = itertools.count()


class _Current(threading.local):
    run: Any = None
    anomaly: Any = None  # None, or whether to check for NaN


current = _Current()


def current_run() -> Any:
    return current.run


# --- hooks ---------------------------------------------------------------------------------------


def tensor_hooks(tensor: Tensor) -> dict[int, Any]:
    """The table of hooks of a tensor: on the leaf, or on its place among its node's outputs."""
    if history(tensor) is None or tensor._node is None:
        return tensor.__dict__.setdefault("_hooks", {})
    node = tensor._node
    if node.in_hooks is None:
        node.in_hooks = {}
    table = node.in_hooks.setdefault(tensor._nr, {})
    tensor.__dict__["_hooks"] = table
    return table


def retain(tensor: Tensor) -> None:
    """Registers that `.grad` of a non-leaf is kept; it runs after the tensor's own hooks."""
    history(tensor)
    node = tensor._node
    notes = node._notes()
    notes.setdefault("retained", {}).setdefault(tensor._nr, []).append(weakref.ref(tensor))


def run_tensor_hooks(table: dict[int, Any], grad: Any) -> Any:
    for hook in list(table.values()):
        result = hook(grad)
        if result is not None:
            check_hook_result(grad, result)
            grad = result
    return grad


def check_hook_result(grad: Any, result: Any) -> None:
    if not isinstance(result, Tensor):
        raise TypeError(f"hook should return a Tensor or None, not {type(result).__name__}")
    if grad is not None and result._array.shape != grad._array.shape:
        raise RuntimeError("hook '<hook>' has changed the size of value")
    if grad is not None and result.dtype is not grad.dtype:
        raise RuntimeError("hook '<hook>' has changed the type of value (was "
                           f"{grad.type()} got {result.type()})")  # fmt: skip


# --- one backward --------------------------------------------------------------------------------


class Run:
    """One execution of backward over a graph."""

    def __init__(self, retain_graph: bool, create_graph: bool, accumulate: bool):
        self.id = next(_run_ids)
        self.retain_graph, self.create_graph = retain_graph, create_graph
        self.accumulate = accumulate
        self.captures: dict[Any, dict[int, list[int]]] = {}
        self.captured: dict[int, Any] = {}
        self.needed: dict[Node, bool] | None = None
        self.dependencies: dict[Node, int] = {}
        self.callbacks: list[Any] = []
        # Leaves whose incoming gradient nobody else holds: `.grad` may take it without a copy.
        self.exclusive: dict[Node, bool] = {}
        self.place = user_place()

    def expected(self, tensors: Any) -> int:
        """How many of `tensors` take part in this backward."""
        count = 0
        for tensor in tensors:
            edge = history(tensor)
            if edge is None:
                continue
            if edge[0] in self.dependencies and self.is_needed(edge[0]):
                count += 1
        return count

    def is_needed(self, node: Node) -> bool:
        return self.needed is None or self.needed.get(node, False)

    def execute(self, roots: list[tuple[Node, int]], grads: list[Any]) -> None:
        self.dependencies = count_dependencies(roots)
        if self.captures and not self.accumulate or self.needed is not None:
            self.needed = find_needed(roots, self.captures)
        buffers: dict[Node, list[Any]] = {}
        ready: list[tuple[int, int, Node]] = []
        counter = itertools.count()
        waiting = self.dependencies
        for (node, nr), grad in zip(roots, grads):
            put_grad(buffers, node, nr, grad)
        for node, _ in roots:
            if waiting.get(node, 0) == 0 and not any(node is entry[2] for entry in ready):
                heapq.heappush(ready, (-node.sequence, next(counter), node))
        while ready:
            node = heapq.heappop(ready)[2]
            results = self.run_node(node, buffers.pop(node, None))
            for position, edge in enumerate(node.edges):
                if edge is None:
                    continue
                target, nr = edge
                if results is not None and position < len(results):
                    grad = results[position]
                    if grad is not None and self.is_needed(target):
                        if type(target) is AccumulateGrad:
                            self.exclusive[target] = target in buffers or is_fresh(grad, results)
                        put_grad(buffers, target, nr, grad)
                waiting[target] -= 1
                if waiting[target] == 0:
                    heapq.heappush(ready, (-target.sequence, next(counter), target))
            results = None
        for callback in self.callbacks:
            callback()

    def run_node(self, node: Node, grads: list[Any] | None) -> list[Any] | None:
        """Gradients for the node's edges, or None when nothing reached it."""
        if grads is None or all(g is None for g in grads):
            return None
        if isinstance(node, AccumulateGrad):
            self.arrive_at_leaf(node, grads[0])
            return None
        if node.in_hooks or node.extra:
            grads = self.before_node(node, grads)
        wanted = self.captures.get(node)
        if wanted:
            for nr, slots in wanted.items():
                for slot in slots:
                    if nr < len(grads):
                        self.captured[slot] = grads[nr]
        if not self.is_needed(node) or (wanted and not self.passes_through(node)):
            return None
        for grad in grads:
            if grad is not None:
                grad.storage_  # noqa: B018  marks it as held elsewhere, see is_fresh
        results = self.apply(node, pad(node, grads))
        if node.out_hooks:
            results = run_node_hooks(node, results, grads)
        if current.anomaly is not None:
            check_anomaly(node, results)
        if not self.retain_graph:
            node.release()
            if node.place is not None and getattr(node, "saved", 0) is None:
                node._notes()["freed_at"] = self.place
        return results

    def passes_through(self, node: Node) -> bool:
        """Does some captured or accumulated value lie behind this node?"""
        if self.needed is None:
            return True
        return any(e is not None and self.needed.get(e[0], False) for e in node.edges)

    def apply(self, node: Node, grads: list[Any]) -> list[Any]:
        previous = state.grad_enabled
        state.grad_enabled = self.create_graph
        try:
            return node.apply(grads)
        except Exception as error:
            if current.anomaly is not None:
                annotate(error, node)
            raise
        finally:
            state.grad_enabled = previous

    def before_node(self, node: Node, grads: list[Any]) -> list[Any]:
        """Tensor hooks, retained grads and pre-hooks, in torch's order."""
        grads = list(grads)
        for nr, table in (node.in_hooks or {}).items():
            if table and nr < len(grads) and grads[nr] is not None:
                grads[nr] = run_tensor_hooks(table, grads[nr])
        notes = node.extra or {}
        for hook in list(notes.get("prehooks", {}).values()):
            result = hook(tuple(grads))
            if result is not None:
                grads = list(result) if isinstance(result, tuple) else [result]
        for nr, references in notes.get("retained", {}).items():
            for reference in references:
                tensor = reference()
                if tensor is not None and nr < len(grads) and grads[nr] is not None:
                    store_retained(tensor, grads[nr])
        return grads

    def arrive_at_leaf(self, node: AccumulateGrad, grad: Any) -> None:
        leaf = node.variable
        table = leaf.__dict__.get("_hooks")
        if table:
            grad = run_tensor_hooks(table, grad)
        if node.extra:
            for hook in list(node.extra.get("prehooks", {}).values()):
                result = hook((grad,))
                if result is not None:
                    grad = result[0] if isinstance(result, tuple) else result
        for slot in self.captures.get(node, {}).get(0, ()):
            self.captured[slot] = grad
        if self.captures and not (self.accumulate and node in self.captures):
            return
        exclusive = self.exclusive.get(node, False) and not table and not self.captures
        accumulate(leaf, grad, self.create_graph, exclusive)
        if node.out_hooks:
            run_node_hooks(node, [], [grad])
        for hook in list(leaf.__dict__.get("_post_hooks", {}).values()):
            hook(leaf)


def pad(node: Node, grads: list[Any]) -> list[Any]:
    """One entry per output of the node, None where no gradient arrived."""
    types = getattr(node, "out_types", None)
    if types is not None and len(grads) < len(types):
        grads = list(grads) + [None] * (len(types) - len(grads))
    return grads


def put_grad(buffers: dict[Node, list[Any]], node: Node, nr: int, grad: Any) -> None:
    """Adds a gradient to what waits for output `nr` of `node`."""
    slots = buffers.get(node)
    if slots is None:
        slots = buffers[node] = []
    while len(slots) <= nr:
        slots.append(None)
    slots[nr] = grad if slots[nr] is None else slots[nr] + grad


def count_dependencies(roots: list[tuple[Node, int]]) -> dict[Node, int]:
    """For every reachable node, how many edges lead into it."""
    counts: dict[Node, int] = {}
    stack = []
    for node, _ in roots:
        if node not in counts:
            counts[node] = 0
            stack.append(node)
    while stack:
        for edge in stack.pop().edges:
            if edge is None:
                continue
            target = edge[0]
            seen = counts.get(target)
            if seen is None:
                counts[target] = 1
                stack.append(target)
            else:
                counts[target] = seen + 1
    return counts


def find_needed(roots: list[tuple[Node, int]], captures: dict[Any, Any]) -> dict[Node, bool]:
    """Which nodes lie on a path to one that is captured: the others need not run."""
    needed: dict[Node, bool] = {}
    stack: list[tuple[Node, bool]] = [(node, False) for node, _ in roots]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            needed[node] = node in captures or any(
                e is not None and needed.get(e[0], False) for e in node.edges
            )
        elif node not in needed:
            needed[node] = node in captures
            stack.append((node, True))
            stack.extend((e[0], False) for e in node.edges if e is not None and e[0] not in needed)
    return needed


def run_node_hooks(node: Node, results: list[Any], grads: list[Any]) -> list[Any]:
    inputs = tuple(results)
    for hook in list(node.out_hooks.values()):
        changed = hook(inputs, tuple(grads))
        if changed is not None:
            inputs = changed if isinstance(changed, tuple) else (changed,)
    return list(inputs)


def store_retained(tensor: Tensor, grad: Any) -> None:
    tensor._grad = grad if tensor._grad is None else tensor._grad + grad


def accumulate(leaf: Tensor, grad: Tensor, create_graph: bool, exclusive: bool) -> None:
    """Adds `grad` to the leaf's `.grad`: taken as it is, copied, in place, or out of place."""
    notify("grad_read", leaf)
    if leaf._grad is None:
        leaf._grad = grad if create_graph or exclusive else grad.detach().clone()
        notify("grad_set", leaf)
    elif create_graph:
        leaf._grad = leaf._grad + grad
        notify("grad_set", leaf)
    else:
        leaf._grad.add_(grad)


def is_fresh(grad: Tensor, results: list[Any]) -> bool:
    """Was `grad` made by the node that returns it, for this edge alone?

    A value that was saved or viewed has a storage; one that is passed on from the incoming
    gradients was marked as having one when the node ran.
    """
    array = grad._array
    return (
        grad._storage is None
        and not grad._requires_grad
        and array.base is None
        and array.flags.writeable
        and sum(grad is other for other in results) == 1
    )


# --- anomaly mode --------------------------------------------------------------------------------


def check_anomaly(node: Node, results: Any) -> None:
    if not current.anomaly or results is None:
        return
    for position, grad in enumerate(results):
        if grad is not None and np.isnan(grad._values_array()).any():
            raise RuntimeError(
                f"Function '{node.name()}' returned nan values in its {position}th output. "
                f"The forward call was at {describe_place(node.place)}."
            )


def annotate(error: Exception, node: Node) -> None:
    if hasattr(error, "add_note"):
        error.add_note(f"Error detected in {node.name()}: its forward call was at "
                       f"{describe_place(node.place)}")  # fmt: skip


# --- public entry points -------------------------------------------------------------------------


def as_tuple(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, Tensor) else tuple(value)


def make_grads(outputs: tuple[Any, ...], grads: Any) -> list[Any]:
    """The gradients to start from: ones for scalars, checked shapes for the rest."""
    if grads is None:
        grads = [None] * len(outputs)
    elif isinstance(grads, Tensor):
        grads = [grads]
    grads = list(grads)
    if len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    return [start_gradient(out, grad) for out, grad in zip(outputs, grads)]


def start_gradient(out: Tensor, grad: Any) -> Any:
    if grad is None:
        if not out._requires_grad:
            return None
        if out._array.size != 1:
            raise RuntimeError(
                "grad can be implicitly created only for scalar outputs; this one has shape "
                f"{list(out._array.shape)}: reduce it (sum(), mean()) or pass gradient="
            )
        if out.dtype.category > FLOAT:
            raise RuntimeError("grad can be implicitly created only for real scalar outputs "
                               f"but got {out.dtype!r}")  # fmt: skip
        return out.new_ones(out.shape)
    if not isinstance(grad, Tensor):
        raise TypeError("gradients can be either Tensors or None, but got " + type(grad).__name__)
    if grad._array.shape != out._array.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[0] has a shape of {grad.shape} and output[0] has a "
            f"shape of {out.shape}."
        )
    if grad.dtype.is_complex != out.dtype.is_complex:
        raise RuntimeError("For complex Tensors, both grad_output and output are required to have "
                           "the same dtype.")  # fmt: skip
    return grad if grad.dtype is out.dtype else grad.to(out.dtype)


def root_edges(outputs: tuple[Any, ...]) -> list[tuple[Node, int]]:
    edges = []
    for position, out in enumerate(outputs):
        edge = history(out)
        if edge is None:
            raise RuntimeError(
                f"element {position} of tensors does not require grad and does not have a grad_fn"
                f"{cut_hint(out)}"
            )
        edges.append(edge)
    return edges


def cut_hint(tensor: Tensor) -> str:
    place = tensor.__dict__.get("_cut")
    if place is not None:
        return f"; its history was cut at {describe_place(place)}"
    return ("; nothing it was computed from requires grad, or it was computed under no_grad() or "
            "from detached values")  # fmt: skip


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
    grad_variables: Any = None,
) -> None:
    """Sums of gradients of `tensors` into the leaves' `.grad`."""
    outputs = as_tuple(tensors)
    if grad_tensors is None and grad_variables is not None:
        grad_tensors = grad_variables
    if inputs is not None and len(as_tuple(inputs)) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    if state.inference:
        raise RuntimeError("backward() called inside inference_mode(): leave the block first")
    grads = make_grads(outputs, grad_tensors)
    run = Run(create_graph if retain_graph is None else retain_graph, create_graph, True)
    for position, tensor in enumerate(as_tuple(inputs)):
        edge = history(tensor)
        if edge is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        run.captures.setdefault(edge[0], {}).setdefault(edge[1], []).append(position)
        run.needed = {}
    start(run, root_edges(outputs), grads)
    notify("backward_ran", outputs, run.retain_graph)
    for position, tensor in enumerate(as_tuple(inputs)):
        if tensor._node is not None and run.captured.get(position) is not None:
            tensor._grad = (run.captured[position] if tensor._grad is None
                            else tensor._grad + run.captured[position])  # fmt: skip


def start(run: Run, roots: list[Any], grads: list[Any]) -> None:
    previous = current.run
    current.run = run
    try:
        run.execute(roots, grads)
    finally:
        current.run = previous


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Gradients of the sum of `outputs` with respect to `inputs`, without touching `.grad`."""
    outputs, inputs = as_tuple(outputs), as_tuple(inputs)
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    if is_grads_batched:
        return batched_grad(outputs, inputs, grad_outputs, retain_graph, create_graph,
                            allow_unused, materialize_grads)  # fmt: skip
    grads = make_grads(outputs, grad_outputs)
    run = Run(create_graph if retain_graph is None else retain_graph, create_graph, False)
    for position, tensor in enumerate(inputs):
        edge = history(tensor)
        if edge is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad"
                               + cut_hint(tensor))  # fmt: skip
        run.captures.setdefault(edge[0], {}).setdefault(edge[1], []).append(position)
    start(run, root_edges(outputs), grads)
    notify("backward_ran", outputs, run.retain_graph)
    results = tuple(run.captured.get(position) for position in range(len(inputs)))
    if not allow_unused and any(r is None for r in results):
        raise RuntimeError(
            "One of the differentiated Tensors appears to not have been used in the graph. Set "
            "allow_unused=True if this is the desired behavior."
        )
    if materialize_grads:
        results = tuple(x.new_zeros(x.shape) if r is None else r for x, r in zip(inputs, results))
    return results


def batched_grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any,
    retain: Any,
    create: bool,
    unused: bool,
    zeros: bool,
) -> tuple[Any, ...]:
    """`is_grads_batched=True`: one backward per entry of the leading dimension, stacked."""
    grad_outputs = as_tuple(grad_outputs)
    count = grad_outputs[0].shape[0]
    rows = []
    for k in range(count):
        keep = True if k < count - 1 else retain
        rows.append(grad(outputs, inputs, [g[k] for g in grad_outputs], keep, create,
                         allow_unused=unused, materialize_grads=zeros))  # fmt: skip
    return tuple(
        None if column[0] is None else TABLE["stack"](*column, dim=0) for column in zip(*rows)
    )
