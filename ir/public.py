"""What `wengert.ir` offers for graphs as data: `trace`, `grad` and `run`, beside `parse`.

    graph = trace(function)(*arguments)     record
    parse(graph.print()) == graph           read and write
    grad(graph)                             differentiate, as often as wanted
    run(graph, inputs)                      interpret
    graph.compile()                         native code

Graphs come from anywhere, also from text: each function verifies what it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import interp, reverse
from .graph import Graph
from .instantiate import instance_for
from .value import Value
from .verify import verify

# Installed by the public package: the recorder, and how a tensor is made of an array and a dtype.
tracer: Callable[[Callable[..., Any]], Callable[..., Graph]] | None = None
tensor_of: Callable[[Any, Any], Any] | None = None


def trace(function: Callable[..., Any]) -> Callable[..., Graph]:
    """A callable that runs `function` on its arguments and gives the graph of what it did.

    After a call its `inputs` are the values of the graph's inputs: the tensors among the arguments,
    then those that the function reached by itself.
    """
    assert tracer is not None
    return tracer(function)


def grad(graph: Graph, wanted: Sequence[int] | None = None) -> Graph:
    """The gradient graph: (inputs, gradients of results) -> gradients of the inputs in `wanted`.

    By default those are all differentiable arguments. Applied again it gives the next order.
    """
    count = len(require_graph(graph).inputs)
    for position in wanted or ():
        if not 0 <= position < count:
            raise IndexError(f"@{graph.name} has {count} inputs; `wanted` must be among them, got "
                             f"{position}")  # fmt: skip
    return reverse.grad(verify(graph), wanted)


def run(graph: Graph, inputs: Sequence[Any]) -> list[Any]:
    """The values of all outputs by the reference interpreter, in order.

    `inputs` are tensors, or arrays in storage form; the outputs are of the same kind. Sizes that
    have names in the graph are those of the inputs.
    """
    arrays = [v._array if isinstance(v, Value) else v for v in inputs]
    plain = instance_for(require_graph(graph), [np.shape(a) for a in arrays])
    results = interp.run(verify(plain), arrays)
    if not any(isinstance(v, Value) for v in inputs):
        return list(results)
    assert tensor_of is not None
    return [tensor_of(array, output.var.dtype) for array, output in zip(results, graph.outputs)]


def require_graph(graph: Any) -> Graph:
    if not isinstance(graph, Graph):
        raise TypeError(f"expected a Graph, got {type(graph).__name__}; use trace() or parse()")
    return graph
