"""Splits a joint graph into forward and backward, and chooses what to save.

Backward needs values of forward. Each is saved, or recomputed from values that are at hand. Views,
constants and casts cost nothing and are always recomputed; pointwise results are recomputed where
all their operands are saved anyway (or are inputs); products, reductions and random draws never.
"""

from __future__ import annotations

from dataclasses import dataclass

from .graph import (
    GRAD_OF,
    GRADIENT,
    RESULT,
    SAVED,
    SAVED_IN,
    WRITE,
    Graph,
    Input,
    Node,
    Output,
    Var,
)
from .passes import dead_code

FREE = ("view", "creation")
RECOMPUTE_LIMIT = 6  # pointwise nodes recomputed for one value; longer chains are saved


@dataclass(frozen=True)
class Partition:
    """`backward` takes `saved` (values of forward, some of them inputs), then gradients."""

    forward: Graph
    backward: Graph
    saved: tuple[Var, ...]  # what backward needs beside gradients, as Vars of the joint graph
    saved_inputs: tuple[int, ...]  # positions in forward's inputs, for those that are inputs
    grads_of: tuple[int, ...]  # for each result of backward, the input it belongs to


def partition(joint: Graph, volatile: frozenset[Var] = frozenset()) -> Partition:
    """Forward computes results, write-backs and saved values; backward the gradients.

    `volatile` inputs will be overwritten after forward, before backward: like those that forward
    itself writes, they are saved by value.
    """
    inputs = [i for i in joint.inputs if i.kind != GRADIENT]
    seeds = [i for i in joint.inputs if i.kind == GRADIENT]
    kept = [o for o in joint.outputs if o.kind != GRAD_OF]
    grads = [o for o in joint.outputs if o.kind == GRAD_OF]
    forward_nodes = needed_nodes(joint, [o.var for o in kept])
    # an input that forward overwrites is no longer there for backward: its old value is saved
    written = {inputs[o.target].var for o in kept if o.kind == WRITE and o.target is not None}
    written |= volatile
    at_hand = {i.var for i in inputs} - written
    backward_nodes, saved = choose(joint, forward_nodes, grads, at_hand | written)
    from_forward = [v for v in saved if v not in at_hand]
    from_inputs = [v for v in saved if v in at_hand]
    order = from_forward + from_inputs
    recomputed = len([n for n in backward_nodes if n in forward_nodes])
    note = summary(from_forward, from_inputs, recomputed)
    forward = Graph(
        f"{joint.name.removesuffix('_joint')}_forward",
        tuple(inputs),
        tuple(n for n in joint.nodes if n in forward_nodes),
        tuple(kept) + tuple(Output(v, SAVED) for v in from_forward),
        joint.notes,
    )
    backward = Graph(
        f"{joint.name.removesuffix('_joint')}_backward",
        tuple(Input(v, SAVED_IN) for v in order) + tuple(seeds),
        tuple(n for n in joint.nodes if n in backward_nodes),
        tuple(Output(o.var, RESULT) for o in grads),
        (note,),
    )
    positions = {i.var: k for k, i in enumerate(inputs)}
    return Partition(
        forward,
        dead_code.run(backward),
        tuple(order),
        tuple(positions[v] for v in from_inputs),
        tuple(o.target for o in grads if o.target is not None),
    )


def summary(from_forward: list[Var], from_inputs: list[Var], recomputed: int) -> str:
    size = sum(v.type.nbytes for v in from_forward)
    shared = sum(v.type.nbytes for v in from_inputs)
    return (f"saved for backward: {len(from_forward)} values, {size} bytes; inputs kept: "
            f"{len(from_inputs)}, {shared} bytes; recomputed: {recomputed} nodes")  # fmt: skip


def needed_nodes(graph: Graph, roots: list[Var]) -> set[Node]:
    """The nodes that `roots` are computed by; random draws belong to them too."""
    needed, nodes = set(roots), set()
    for node in reversed(graph.nodes):
        if node.op.random or any(v in needed for v in node.outputs):
            needed.update(node.present())
            nodes.add(node)
    return nodes


def choose(
    joint: Graph, forward: set[Node], grads: list[Output], at_hand: set[Var]
) -> tuple[set[Node], list[Var]]:
    """The nodes backward runs, and the values it gets from forward."""
    producers = joint.producers()
    backward: set[Node] = set()
    saved: dict[Var, None] = {}
    stack = [o.var for o in grads]
    seen: set[Var] = set()
    crossing: list[Var] = []
    while stack:
        var = stack.pop()
        if var in seen:
            continue
        seen.add(var)
        node = producers.get(var)
        if node is None:
            if var in at_hand:
                saved[var] = None
        elif node in forward:
            crossing.append(var)
        else:
            backward.add(node)
            stack.extend(node.present())
    # in order of definition: once a value is saved, later ones are recomputed from it
    order = {var: k for k, var in enumerate(joint.vars())}
    settle(sorted(crossing, key=order.__getitem__), producers, backward, saved, at_hand)
    return backward, list(saved)


def settle(
    crossing: list[Var],
    producers: dict[Var, Node],
    backward: set[Node],
    saved: dict[Var, None],
    at_hand: set[Var],
) -> None:
    """Saves or recomputes each value that crosses from forward to backward."""
    pinned = set(at_hand) | {v for v in crossing if not cheap(producers[v])}
    for var in crossing:
        if var in pinned:
            saved[var] = None
            continue
        chain = recipe(var, producers, pinned)
        if chain is None:
            pinned.add(var)
            saved[var] = None
            continue
        for node in chain:
            backward.add(node)
            for operand in node.present():
                if operand in pinned:
                    saved[operand] = None


def cheap(node: Node) -> bool:
    return not node.op.random and node.op.kind in ("view", "creation", "pointwise")


def recipe(var: Var, producers: dict[Var, Node], pinned: set[Var]) -> list[Node] | None:
    """The nodes that recompute `var` from pinned values, or None if that is too much work."""
    nodes: list[Node] = []
    work = 0
    stack = [var]
    seen: set[Var] = set()
    while stack:
        current = stack.pop()
        if current in pinned or current in seen:
            continue
        seen.add(current)
        node = producers.get(current)
        if node is None or not cheap(node):
            return None
        nodes.append(node)
        work += node.op.kind == "pointwise"
        if work > RECOMPUTE_LIMIT:
            return None
        stack.extend(node.present())
    return nodes
