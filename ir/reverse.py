"""The reverse-mode transform: graph in, graph out, by the catalogue's rules only.

`joint(graph)` computes the graph's results and, given a gradient for each, the gradients of the
inputs. Nodes are visited newest first and gradients summed in arrival order, as eager backward
does, so before fusion the two agree bit for bit.

Note [No gradient]
    Eager's backward goes on where a rule gives no gradient (None): it comes to the nodes behind,
    and tells them so. Leaves keep the `.grad` they have, and a custom Function is given zeros. The
    bias of a norm gets none where gradients arrive at the mean alone, an input of a Function where
    its backward returns None.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from .bind import grad_mode
from .builder import Builder, Symbol
from .graph import ARGUMENT, GRAD_OF, GRADIENT, RESULT, Graph, Node, Origin, Var
from .op import GRAD, GRADS
from .ops.views import zeros
from .pull import Frame, pull
from .types import TensorType


class NodeFrame(Frame):
    """An IR node as `pull` sees it."""

    def __init__(self, node: Node, builder: Builder):
        self.node, self.builder, self.op = node, builder, node.op
        self.attrs = dict(node.attrs)

    def input(self, position: int) -> Any:
        var = self.node.inputs[position]
        return None if var is None else Symbol(var)

    def output(self, position: int) -> Any:
        return Symbol(self.node.outputs[position])

    def input_type(self, position: int) -> TensorType:
        var = self.node.inputs[position]
        assert var is not None
        return var.type

    def output_type(self, position: int) -> TensorType:
        return self.node.outputs[position].type

    def input_count(self) -> int:
        return len(self.node.inputs)


def joint(
    graph: Graph,
    wanted: Sequence[int] | None = None,
    results: Sequence[int] | None = None,
    name: str = "",
    again: bool = False,
    as_eager: bool = False,
) -> Graph:
    """Results and gradients in one graph.

    Inputs: those of `graph`, then a `gradient` for each differentiable result. Outputs: those of
    `graph`, then a `grad` of each input in `wanted` (default: all differentiable arguments).
    `results` numbers the results that get a gradient (default: all differentiable ones). Rules
    choose forms that can be differentiated once more if `again` says so, and those that eager runs
    if `as_eager` does.
    """
    if wanted is None:
        wanted = [k for k, i in enumerate(graph.inputs)
                  if i.kind == ARGUMENT and i.var.dtype.is_differentiable]  # fmt: skip
    builder = Builder(name or f"{graph.name}_joint")
    builder.runs_as_built = as_eager
    builder.inputs = list(graph.inputs)
    builder.nodes = list(graph.unmarked().nodes)  # backward reads what forward left
    builder.outputs = list(graph.unmarked().outputs)
    grads: dict[Var, Any] = {}
    with builder.building(), grad_mode(again):
        candidates = [o for o in graph.outputs if o.kind == RESULT]
        for number, output in enumerate(candidates):
            chosen = results is None or number in results
            if chosen and output.var.dtype.is_differentiable:
                seed = builder.input(output.var.type, GRADIENT, "")
                add_gradient(grads, output.var, seed)
        targets = [graph.inputs[k].var for k in wanted]
        propagate(graph, builder, grads, set(targets))
        builder.place = graph.nodes[-1].place if graph.nodes else None  # of zeros that nothing gave
        for position, var in zip(wanted, targets):
            found = grads.get(var)
            if found is None:
                found = zeros(var.type)
            builder.output(found, GRAD_OF, position)
    return builder.graph()


def propagate(
    graph: Graph, builder: Builder, grads: dict[Var, Any], targets: set[Var], frame: Any = None
) -> None:
    """Walks the nodes newest first and pulls gradients through those on a path to a target.

    `frame` gives what rules see of a node by its number (default: its own Vars).
    """
    reaching = computed_from(graph, targets)
    for index in reversed(range(len(graph.nodes))):
        node = graph.nodes[index]
        if not any(v in grads for v in node.outputs):
            continue
        needs = [wants_gradient(node, k, reaching) for k in range(len(node.inputs))]
        if not any(needs):
            continue
        builder.place = node.place
        builder.origin = Origin(node.op.name, index)
        arrived = [grads.get(v) for v in node.outputs]
        if fills_in(node):
            arrived = [zeros(v.type) if g is None else g for g, v in zip(arrived, node.outputs)]
        found: list[Any] = [None] * len(needs)
        if any(g is not None for g in arrived):
            seen = NodeFrame(node, builder) if frame is None else frame(index)
            found = pull(seen, arrived, needs)
        for var, needed, grad in zip(node.inputs, needs, found):
            if needed and var is not None:
                add_gradient(grads, var, grad)
    builder.place = builder.origin = None


def computed_from(graph: Graph, targets: set[Var]) -> set[Var]:
    """The values that have a derivative with respect to `targets`, and these."""
    reaching = set(targets)
    for node in graph.nodes:
        if any(v in reaching for v in node.present()) and node.op.differentiable:
            reaching.update(v for v in node.outputs if v.dtype.is_differentiable)
    return reaching


def reached(graph: Graph, results: Sequence[int]) -> dict[int, bool]:
    """By position: the inputs that backward of `results` (numbers of results) comes to, and whether
    it has a gradient for them; see Note [No gradient]."""
    found = [o.var for o in graph.outputs if o.kind == RESULT]
    arriving = {found[k]: True for k in results}
    for node in reversed(graph.nodes):
        if not any(v in arriving for v in node.outputs):
            continue
        came = [arriving.get(v, False) or fills_in(node) for v in node.outputs]
        for k, var in enumerate(node.inputs):
            if var is not None and var.dtype.is_differentiable and leads_to(node, k):
                arriving[var] = arriving.get(var, False) or gives(node, k, came)
    places = {i.var: k for k, i in enumerate(graph.inputs)}
    return {places[var]: came for var, came in arriving.items() if var in places}


def gives(node: Node, position: int, came: Sequence[bool]) -> bool:
    """Is there a gradient of an input, where there are those of the outputs that `came`?"""
    op = node.op
    if not any(came) or (op.gives_none is not None and op.gives_none(node, position, came)):
        return False
    rule = op.rule_for(position)
    assert rule is not None
    named = rule.wants(GRAD)
    return all(came) or not named or bool(rule.wants(GRADS)) or any(came[k] for k in named)


def fills_in(node: Node) -> bool:
    """Does a node take gradients of zeros where there are none?"""
    return node.op.kind == "call" and not node.attributes["bare"]


def passed(graph: Graph, results: Sequence[int]) -> list[frozenset[int]]:
    """For each of `results`: which others (as places there) its gradient passes by on its way.

    So it does where another is made by the same node: that is told that no gradient came to it.
    """
    found = [o.var for o in graph.outputs if o.kind == RESULT]
    wanted = [found[k] for k in results]
    places = places_of(wanted)
    own = dict(places)
    for node in graph.nodes:
        together = functools.reduce(operator.or_, [places.get(var, 0) for var in node.outputs], 0)
        if len(node.outputs) > 1 and together:
            places.update(dict.fromkeys(node.outputs, together))
    behind = masks_behind(graph.nodes, places)
    masks = [behind.get(var, 0) | places[var] & ~own[var] for var in wanted]
    return [frozenset(k for k in range(mask.bit_length()) if mask >> k & 1) for mask in masks]


def places_of(found: Sequence[Var]) -> dict[Var, int]:
    """At which places a Var is, as bits."""
    places: dict[Var, int] = {}
    for place, var in enumerate(found):
        places[var] = places.get(var, 0) | 1 << place
    return places


def masks_behind(nodes: Sequence[Node], places: Mapping[Var, int]) -> dict[Var, int]:
    """By Var: the places, as bits, of those that its gradient passes by."""
    behind: dict[Var, int] = {}
    for node in nodes:
        met = 0
        for k, var in enumerate(node.inputs):
            if var is not None and var.dtype.is_differentiable and leads_to(node, k):
                met |= behind.get(var, 0) | places.get(var, 0)
        if met:
            behind.update(dict.fromkeys(node.outputs, met))
    return behind


def wants_gradient(node: Node, position: int, reaching: set[Var]) -> bool:
    var = node.inputs[position]
    if var is None or var not in reaching or not var.dtype.is_differentiable:
        return False
    return leads_to(node, position)


def leads_to(node: Node, position: int) -> bool:
    """Does eager's backward go on from this node to what made that input?"""
    if node.op.kind == "call":
        return bool(position < node.attributes["count"])
    return node.op.rule_for(position) is not None


def add_gradient(grads: dict[Var, Any], var: Var, grad: Any) -> None:
    earlier = grads.get(var)
    if earlier is None or grad is None:
        grads[var] = grad if earlier is None else earlier
    else:
        grads[var] = earlier + grad


def grad(
    graph: Graph, wanted: Sequence[int] | None = None, results: Sequence[int] | None = None
) -> Graph:
    """The gradient graph: (inputs, gradients of results) -> gradients of inputs, as results.

    It is a graph like any other, so applying `grad` again gives higher orders.
    """
    from .graph import Input, Output
    from .passes import dead_code

    both = joint(graph, wanted, results, f"{graph.name}_grad", again=True)
    inputs = tuple(Input(i.var, ARGUMENT if i.kind == GRADIENT else i.kind, i.name)
                   for i in both.inputs)  # fmt: skip
    outputs = tuple(Output(o.var, RESULT) for o in both.outputs if o.kind == GRAD_OF)
    return dead_code.run(both.replace(inputs=inputs, outputs=outputs))
