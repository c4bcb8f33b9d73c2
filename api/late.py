"""What the IR and the tracer ask of this package, which is imported only when they ask."""

from __future__ import annotations

from typing import Any

from .ir import graph, public
from .tracer.large import Kernels
from .tracer.tensor import Tensor


def trace(function: Any) -> Any:
    """`wengert.ir.trace`."""
    from .tracing import Traced

    return Traced(function)


def compile_graph(given: graph.Graph) -> Any:
    """`Graph.compile()`."""
    from .graph_function import GraphFunction
    from .ir.verify import verify

    return GraphFunction(verify(given))


def install_kernels() -> None:
    """At the process's first large call: there will be more calls, and more memory, like this."""
    from . import eager_kernels
    from .runtime import freed_memory

    freed_memory.keep()
    Kernels.forward, Kernels.backward = eager_kernels.forward, eager_kernels.backward


def first_forward(op: Any, values: Any, attrs: Any) -> Any:
    """`Kernels.forward`, once."""
    install_kernels()
    return Kernels.forward(op, values, attrs)


def first_backward(node: Any, grads: Any) -> Any:
    """`Kernels.backward`, once."""
    install_kernels()
    return Kernels.backward(node, grads)


public.tracer = trace
public.tensor_of = Tensor._wrap
graph.compiler = compile_graph
Kernels.forward, Kernels.backward = first_forward, first_backward
