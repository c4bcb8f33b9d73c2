"""Forward mode: Jacobian-vector products by way of two reverse passes.

The vector-Jacobian product is linear in its vector, so its own gradient with respect to the vector
is the Jacobian-vector product. A custom Function that has a `jvp` stands in the first pass as
`Transposed`: its values do not matter there, and `jvp` is its gradient.
"""

from __future__ import annotations

from typing import Any

from ..ir.bind import state
from ..ir.ops.views import zeros
from .backward import grad
from .function import BackwardNode, Function
from .modes import set_grad_mode


def pull_linearly(outputs: Any, inputs: Any, vectors: Any) -> Any:
    """The vector-Jacobian product, to be differentiated with respect to `vectors` only."""
    previous, state.pushing = state.pushing, True
    try:
        with set_grad_mode(True):
            return grad(outputs, inputs, vectors, create_graph=True, allow_unused=True)
    finally:
        state.pushing = previous


class Transposed(Function):
    """The transpose of the `jvp` of a Function's node."""

    generate_vmap_rule = True

    @staticmethod
    def forward(node: BackwardNode, *grads: Any) -> Any:
        return tuple(zeros(type_) for type_ in node._in_types)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.of = inputs[0]

    @staticmethod
    def backward(ctx: Any, *tangents: Any) -> Any:
        node = ctx.of
        given: list[Any] = [None] * node._count
        for position, tangent in zip(node._positions, tangents):
            given[position] = tangent
        with node.for_forward():
            pushed = node._forward_cls.jvp(node, *given)
        return (None, *(pushed if isinstance(pushed, tuple) else (pushed,)))


def transposed(node: BackwardNode, grads: list[Any]) -> list[Any]:
    """What `node` gives in the first pass."""
    found = Transposed.apply(node, *grads)
    return [g if edge is not None else None for g, edge in zip(found, node.edges)]


BackwardNode.transposed = transposed  # type: ignore[attr-defined]
