"""`call`: a value with a derivative of its own, for custom Functions in recorded graphs.

The operands are, in order: the function's `count` inputs, its outputs as its forward computed them,
and what its backward reads. The results are the outputs, unchanged. The derivative is `backward`, a
graph from (what backward reads, gradients of the results) to the gradients of the inputs.

`absent` has the numbers of the inputs that get none, though they require grad; `bare` says that
backward is not called where no gradient came (`ctx.set_materialize_grads(False)`).

`own` has the numbers of the outputs that backward reads, -1 for what else it reads. These depend on
the inputs by the same derivative. So a rule that may be differentiated calls again, which computes
nothing anew.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from ..bind import state
from ..graph import Graph
from ..inline import inline
from ..op import Decompose, define
from ..types import TensorType
from .views import zeros


def _results(operands: tuple[Any, ...], count: int, outputs: int) -> tuple[Any, ...]:
    return tuple(operands[count : count + outputs])


def _rule(
    grads: Any, results_type: Any, operands: Any, i: int, backward: Any, count: int, own: Any,
    absent: Any, bare: bool,
) -> Any:  # fmt: skip
    """The gradient of input `i`: the custom backward, inlined."""
    if i >= count or i in absent:
        return None
    filled = [zeros(t) if g is None else g for g, t in zip(grads, results_type)]
    read = list(operands[count + len(results_type) :])
    if own and state.grad_enabled:
        again = call(*operands, backward=backward, count=count, outputs=len(results_type), own=own,
                     absent=absent, bare=bare)  # fmt: skip
        listed = again if isinstance(again, tuple) else (again,)
        read = [value if k < 0 else listed[k] for value, k in zip_longest(read, own, fillvalue=-1)]
    return inline(backward, [*read, *filled])[i]


def _infer(*operands: TensorType, backward: Graph, count: int, outputs: int, **_: Any) -> Any:
    """Checks that `backward` is a graph for these operands."""
    if not isinstance(backward, Graph):
        raise TypeError(f"backward must be a graph, not {backward!r}")
    results = _results(operands, count, outputs)
    wanted = (*operands[count + outputs :], *results)
    if len(results) != outputs or [i.var.type for i in backward.inputs] != list(wanted):
        raise TypeError(f"backward takes {len(backward.inputs)} inputs, which are not what it "
                        "reads and the gradients of the results")  # fmt: skip
    if [o.var.type for o in backward.outputs] != list(operands[:count]):
        raise TypeError("backward does not give the gradients of the inputs")
    return results


call = define(
    "call", "*operands -> *results",
    numpy=lambda *operands, backward, count, outputs, own=(), absent=(), bare=False: _results(
        operands, count, outputs),
    infer=_infer,
    lower=Decompose(lambda *operands, count, outputs, **_: _results(operands, count, outputs)),
    moves_data=True, kind="call", vjp=dict(operands=_rule),
    gives_none=lambda node, position, came: position in node.attributes["absent"],
)  # fmt: skip
