"""What the IR and the tracer ask of this package, which is imported only when they ask."""

from __future__ import annotations

import sys
from typing import Any

from .ir import graph, public
from .tracer import sampling
from .tracer.large import LARGE, Kernels
from .tracer.tensor import Tensor


def trace(function: Any) -> Any:
    """`wengert.ir.trace`."""
    from .tracing import Traced

    return Traced(function)


def compile_graph(given: graph.Graph) -> Any:
    """`Graph.compile()`."""
    from .graph_function import GraphFunction
    from .ir.instantiate import is_symbolic
    from .ir.verify import verify
    from .named_sizes import ForSizes

    return ForSizes(given) if is_symbolic(given) else GraphFunction(verify(given))


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


def first_draw(*call: Any) -> Any:
    """`sampling.native`, once."""
    from . import eager_draws

    sampling.native = eager_draws.draw if sys.maxsize > LARGE else lambda *call: None
    return sampling.native(*call)


public.tracer = trace
public.tensor_of = Tensor._wrap
graph.compiler = compile_graph
Kernels.forward, Kernels.backward = first_forward, first_backward
sampling.native = first_draw
