"""Custom autograd Functions in a recording: ops with a derivative of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.bind import interpreting, state
from ..ir.graph import CAPTURED, Graph, Input, Var
from ..ir.op import TABLE
from ..ir.ops.views import zeros
from .custom_calls import custom_call, tensors_of
from .recorded import current_place
from .scalars import RunTimeNumber
from .tensor import Tensor

if TYPE_CHECKING:
    from .recorder import Recorder


def record_function(
    recorder: Recorder, node: Any, inputs: list[Tensor], outputs: list[Any]
) -> None:
    """Puts a `call` with the Function's backward, recorded ahead of time, behind its outputs."""
    cls = node._forward_cls
    if not (recorder.may_run_ahead(cls.backward) and recorder.may_run_ahead(cls.vjp)):
        recorder.refuse(f"the backward of {node.name()} may do more than compute")
        return
    results = [t for t in outputs if isinstance(t, Tensor)]
    if not node.materialize_grads and len(results) > 1:
        recorder.refuse(f"the backward of {node.name()} asks which gradients there are")
        return
    recorder.custom_count += 1
    inner = recorder.inner(f"{node.name()}_{recorder.custom_count}")
    graph, read, absent = record_backward(inner, node, results)
    if graph is None:
        recorder.problems.append(read)
        return
    operands = [recorder.var_of(t) for t in (*inputs, *results, *read)]
    stateful = recorder.reads_state(node)
    if stateful:
        graph = with_context(recorder, inner, node, graph, operands, read)
    recorder.customs[graph.name] = custom_call(recorder, node, operands, outputs)
    if stateful and recorder.customs[graph.name] is None:
        recorder.refuse(f"the backward of {node.name()} reads what may change until it runs, and "
                        "its context holds more than tensors and values")  # fmt: skip
    vars_ = tuple(Var(recorder.var_of(t).type) for t in results)
    attrs = {"backward": graph, "count": len(inputs), "outputs": len(results), "absent": absent,
             "bare": not node.materialize_grads}  # fmt: skip
    own = tuple([own_output(node, results, t) for t in read])
    if max(own, default=-1) >= 0:
        attrs["own"] = own
    recorder.builder.place = current_place()  # of the call, not of the forward's last line
    recorder.builder.append(TABLE["call"], operands, vars_, attrs)
    for tensor, var in zip(results, vars_):
        entry = recorder.entries[id(tensor)]
        entry.var = var
        if entry.chain:
            recorder.custom_views.add(var)
        else:
            entry.memory.var = var
        if tensor._requires_grad:
            recorder.needing.add(var)
            if any(tensor is dirty for dirty in node.dirty_tensors or ()):
                entry.memory.recorded = True  # its history goes on in this node


def own_output(node: Any, results: list[Tensor], tensor: Tensor) -> int:
    """Which of its own results a tensor is that backward reads; -1 for others."""
    if tensor._node is not node:
        return -1
    return next(k for k, t in enumerate(results) if t._node is node and t._nr == tensor._nr)


def with_context(
    recorder: Recorder, inner: Recorder, node: Any, graph: Graph, operands: list[Var], read: Any
) -> Graph:
    """The backward of a Function that reads Python's state, and in `operands` all that its context
    holds, so that it can run with another state. What it reads of tensors must be among that."""
    first = len(operands) - len(read)
    known = dict.fromkeys([*operands[:first], *map(recorder.var_of, tensors_of(node))])
    for tensor, var in zip(read, operands[first:]):
        if var in known or inner.var_of(tensor) in inner.fixed:
            continue
        if isinstance(tensor, RunTimeNumber):
            recorder.used_numbers.append(tensor)
        else:
            recorder.refuse(f"the backward of {node.name()} reads a tensor from outside; save it "
                            "for backward")  # fmt: skip
    more = [var for var in known if var not in operands]
    operands += more
    given = [Input(Var(var.type), CAPTURED) for var in more]
    count = len(read)
    return graph.replace(inputs=(*graph.inputs[:count], *given, *graph.inputs[count:]))


def record_backward(inner: Recorder, node: Any, results: list[Tensor]) -> Any:
    """The custom backward as a graph, the tensors it reads, and which inputs get no gradient.

    It runs once, on gradients of ones, with a recorder of its own.
    """
    grads = [Tensor._wrap(np.ones(t._array.shape, t.dtype.storage), t.dtype) for t in results]
    previous = state.grad_enabled
    state.grad_enabled = True
    try:
        with interpreting(inner), inner.watching():
            for grad, result in zip(grads, results):
                inner.shaped_like(grad, result)
                inner.var_of(grad)
            given = node.apply(list(grads))
            filled = [zeros(t) if r is None else r for r, t in zip(given, node._in_types)]
            absent = tuple(k for k, r in enumerate(given) if r is None)
    except Exception as error:  # eager raises it when backward runs
        return None, f"the backward of {node.name()} raises {type(error).__name__}", ()
    finally:
        state.grad_enabled = previous
    if inner.undo_draws():
        return None, f"the backward of {node.name()} draws random numbers", ()
    if inner.problems or inner.branches:
        return None, f"the backward of {node.name()} looks at values", ()
    graph = inner.finish(filled)
    read = inner.externals[len(grads) :]
    inputs = (*graph.inputs[len(grads) :], *graph.inputs[: len(grads)])
    return graph.replace(inputs=inputs), read, absent
