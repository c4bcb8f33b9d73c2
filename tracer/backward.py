"""`backward()` and `grad()`: arguments checked, a Run made, results handed out."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np

from ..ir.bind import notify, state
from ..ir.op import TABLE
from ..ir.places import describe_place
from ..ir.types import FLOAT, TensorType
from .eager import history
from .engine import Run, start
from .tape import ANOMALY, Node, end_of
from .tensor import Size, Tensor


class GradientEdge(NamedTuple):
    """A place in the graph gradients flow into: a node and the number of its output."""

    node: Any
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The edge that gradients of `tensor` flow into."""
    edge = history(tensor) if isinstance(tensor, Tensor) else None
    if edge is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does "
                           "not require gradients")  # fmt: skip
    return GradientEdge(*edge)


def as_tuple(value: Any) -> tuple[Any, ...]:
    if isinstance(value, (Tensor, GradientEdge)):
        return (value,)
    return tuple(value)


def edge_of(value: Any) -> tuple[Node, int] | None:
    """The edge of a tensor or of a GradientEdge."""
    if isinstance(value, GradientEdge):
        return value.node, value.output_nr
    if not isinstance(value, Tensor):
        raise RuntimeError("all inputs have to be Tensors or GradientEdges, but got "
                           f"{type(value).__name__}")  # fmt: skip
    return history(value)


# --- gradients to start from ---------------------------------------------------------------------


def make_grads(outputs: tuple[Any, ...], grads: Any, batched: bool = False) -> list[Any]:
    """The gradients to start from: ones for scalars, checked shapes for the rest."""
    if grads is None:
        grads = [None] * len(outputs)
    elif isinstance(grads, Tensor):
        grads = [grads]
    grads = list(grads)
    if len(grads) < len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients; give one each")
    return [start_gradient(k, o, g, batched) for k, (o, g) in enumerate(zip(outputs, grads))]


def type_of(out: Any) -> TensorType:
    if isinstance(out, GradientEdge):
        types = out.node.output_types()
        return types[out.output_nr] if out.output_nr < len(types) else types[0]
    return out.type_


def start_gradient(position: int, out: Any, grad: Any, batched: bool) -> Any:
    dtype, shape = (out.dtype, out.shape) if isinstance(out, Tensor) else type_of(out)
    if grad is None:
        if isinstance(out, Tensor) and not out._requires_grad:
            return None
        return implicit_gradient(dtype, shape)
    if not isinstance(grad, Tensor):
        raise TypeError("gradients can be either Tensors or None, but got " + type(grad).__name__)
    have = grad.shape[1:] if batched else grad.shape
    if have != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{position}] has a shape of {grad.shape} and output"
            f"[{position}] has a shape of {Size(shape)}."
        )
    if grad.dtype is dtype:
        return grad
    if grad.dtype.is_complex != dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. "
            f"Mismatch in dtype: grad_output[{position}] has a dtype of {grad.dtype!r} and output"
            f"[{position}] has a dtype of {dtype!r}."
        )
    return grad.to(dtype)


def implicit_gradient(dtype: Any, shape: tuple[int, ...]) -> Any:
    if math.prod(shape) != 1:
        raise RuntimeError(
            "grad can be implicitly created only for scalar outputs; this one has shape "
            f"{list(shape)}: reduce it (sum(), mean()) or pass gradient="
        )
    if dtype.category != FLOAT:
        raise RuntimeError("grad can be implicitly created only for real scalar outputs but got "
                           f"{dtype!r}")  # fmt: skip
    if state.top is state.bottom and dtype.compute is dtype.storage:
        one = np.ones(shape, dtype.storage) if shape else np.array(1, dtype.storage)  # quicker
        return Tensor._wrap(one, dtype)
    return TABLE["full"](size=tuple(shape), fill_value=1, dtype=dtype)


def root_edges(outputs: tuple[Any, ...]) -> list[tuple[Node, int]]:
    edges = []
    for position, out in enumerate(outputs):
        edge = history(out) if isinstance(out, Tensor) else edge_of(out)
        if edge is None:
            raise RuntimeError(
                f"element {position} of tensors does not require grad and does not have a grad_fn"
                f"{cut_hint(out)}"
            )
        edges.append(edge)
    return edges


def cut_hint(tensor: Tensor) -> str:
    """Where the chain of history was cut, if the tensor knows."""
    mark = tensor._mark
    if mark == "inference":
        return "; it was computed in inference_mode()"
    if mark is not None:
        how, place = mark
        where = f" at {describe_place(place)}" if place is not None else ""
        return f"; its history was cut by {how}{where}"
    if not tensor.dtype.is_differentiable:
        return f"; a {tensor.dtype!r} tensor has no gradient"
    return ("; nothing it was computed from requires grad: call requires_grad_() on what you want "
            "gradients of")  # fmt: skip


# --- public entry points -------------------------------------------------------------------------


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Sums of gradients of `tensors` into the leaves' `.grad`."""
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.",
                      FutureWarning, stacklevel=2)  # fmt: skip
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    outputs = as_tuple(tensors)
    targets = () if inputs is None else as_tuple(inputs)
    if inputs is not None and not targets:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    grads = make_grads(outputs, grad_tensors)
    roots = root_edges(outputs)
    run = Run(create_graph if retain_graph is None else retain_graph, create_graph)
    if inputs is not None:
        run.targets = set()
        for tensor in targets:
            if isinstance(tensor, Tensor):
                tensor.retain_grad()
            run.targets.add(end_of(edge_of(tensor))[0])
    start(run, roots, grads)
    notify("backward_ran", outputs, run.retain_graph)


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
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    outputs, inputs = as_tuple(outputs), as_tuple(inputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True). "
                      "To accumulate gradient for other parts of the graph, please use "
                      "torch.autograd.backward.", FutureWarning, stacklevel=2)  # fmt: skip
    if is_grads_batched:
        return batched_grad(outputs, inputs, grad_outputs, retain_graph, create_graph,
                            allow_unused, materialize_grads)  # fmt: skip
    grads = make_grads(outputs, grad_outputs)
    roots = root_edges(outputs)
    run = Run(create_graph if retain_graph is None else retain_graph, create_graph)
    for position, tensor in enumerate(inputs):
        edge = edge_of(tensor)
        if edge is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad"
                               + cut_hint(tensor))  # fmt: skip
        node, number = end_of(edge)
        run.captures.setdefault(node, []).append((number, position))
    start(run, roots, grads)
    notify("backward_ran", outputs, run.retain_graph)
    results = tuple(run.captured.get(position) for position in range(len(inputs)))
    if not allow_unused and None in [r if r is None else 0 for r in results]:
        index = next(k for k, r in enumerate(results) if r is None)
        raise RuntimeError(
            f"The differentiated Tensor at index {index} appears to not have been used in the "
            "graph. Set allow_unused=True if this is the desired behavior."
        )
    return materialized(inputs, results, create_graph) if materialize_grads else results


def materialized(inputs: Any, results: Any, create_graph: bool) -> tuple[Any, ...]:
    """Zeros in place of missing gradients."""
    if any(r is None and not isinstance(x, Tensor) for x, r in zip(inputs, results)):
        raise RuntimeError("materialize_grads cannot be used when the given input is a "
                           "GradientEdge")  # fmt: skip
    return tuple(x.detach().new_zeros(tuple(x.shape), requires_grad=create_graph) if r is None
                 else r for x, r in zip(inputs, results))  # fmt: skip


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
    grad_outputs = make_grads(outputs, grad_outputs, batched=True)
    sizes = [g.shape[:1] for g in grad_outputs if g is not None]
    if not all(sizes):
        raise ValueError("is_grads_batched=True takes gradients with a leading batch dimension, "
                         "but got one of dimensionality 0")  # fmt: skip
    ((count,), *_) = sizes
    rows = []
    for k in range(count):
        keep = True if k < count - 1 else retain
        rows.append(grad(outputs, inputs, [None if g is None else g[k] for g in grad_outputs],
                         keep, create, allow_unused=unused, materialize_grads=zeros))  # fmt: skip
    with state_of(create):
        return tuple(
            None if column[0] is None else TABLE["stack"](*column, dim=0) for column in zip(*rows)
        )


def tensor_backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Adds the gradient of this tensor to the `.grad` of the leaves it was computed from."""
    if inputs is not None:
        backward(self, gradient, retain_graph, create_graph, inputs=inputs)
        return
    node = self._node
    at_once = None if node is None else node.at_once
    if (at_once is not None and node.extra is None and not create_graph and self._view is None
            and state.top is state.bottom and not ANOMALY
            and at_once(self._nr, gradient, retain_graph)):  # fmt: skip
        return
    grads = [start_gradient(0, self, gradient, False)]
    run = Run(create_graph if retain_graph is None else retain_graph, create_graph)
    start(run, root_edges((self,)), grads)
    notify("backward_ran", (self,), run.retain_graph)


tensor_backward.__name__ = tensor_backward.__qualname__ = "backward"
Tensor.backward = tensor_backward  # type: ignore[method-assign]


def state_of(enabled: bool) -> Any:
    from .modes import set_grad_mode

    return set_grad_mode(enabled and state.grad_enabled)
