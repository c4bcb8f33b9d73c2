"""Splits a joint graph into forward and backward, and chooses what to save.

Note [What to save]
    Backward needs values of forward. Each is saved, or recomputed from values that are at hand.
    Products, reductions and random draws are never recomputed. Views and constants cost nothing.
    A pointwise result is recomputed where a few ops make it of values that are saved anyway (or
    are inputs), or of others that are much smaller than itself: of a normalised row the mean is
    saved, not the differences from it. The first line of the backward graph says what was chosen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

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
from .op import TABLE
from .passes import dead_code, in_place

RECOMPUTE_LIMIT = 6  # pointwise nodes recomputed for one value; longer chains are saved
MUCH_SMALLER = 4  # so many times smaller must be what is saved in place of a value


@dataclass(frozen=True)
class Partition:
    """`backward` takes `saved` (values of forward, some of them inputs), then gradients."""

    forward: Graph
    backward: Graph
    saved: tuple[Var, ...]  # what backward needs beside gradients, as Vars of the joint graph
    saved_inputs: tuple[int, ...]  # positions in forward's inputs, for those that are inputs
    grads_of: tuple[int, ...]  # for each result of backward, the input it belongs to
    rereads: bool  # does backward compute values of forward again from inputs?
    viewed: frozenset[int]  # those of `saved_inputs` that it looks at through views of forward
    direct: frozenset[int]  # those that it reads as they are


def partition(
    joint: Graph,
    volatile: frozenset[Var] = frozenset(),
    as_eager: bool = False,
    unseen: Collection[int] = (),
    first: frozenset[Var] = frozenset(),
) -> Partition:
    """Forward computes results, write-backs and saved values; backward the gradients.

    `volatile` inputs will be overwritten before backward: like those that forward itself writes,
    they are saved by value; those in `first` come first. With `as_eager` nothing is computed again:
    what crosses is saved, but for views of inputs and of results that are not `unseen`.
    """
    inputs = [i for i in joint.inputs if i.kind != GRADIENT]
    seeds = [i for i in joint.inputs if i.kind == GRADIENT]
    kept = [o for o in joint.outputs if o.kind != GRAD_OF]
    grads = [o for o in joint.outputs if o.kind == GRAD_OF]
    results = {o.var for o in kept}
    checks = set() if as_eager else dead_code.unread_checks(joint, results)
    forward_nodes = {*dead_code.needed_nodes(joint, results | checks)}
    # an input that forward overwrites is no longer there for backward: its old value is saved
    written = {inputs[o.target].var for o in kept if o.kind == WRITE and o.target is not None}
    written |= volatile
    at_hand = {i.var for i in inputs} - written
    shown = [o.var for o in kept if o.kind == RESULT]
    shared = at_hand | {v for k, v in enumerate(shown) if k not in unseen} if as_eager else None
    backward_nodes, saved = choose(joint, forward_nodes, grads, at_hand | written, shared)
    known = {*joint.nodes}
    through = tuple(n for n in backward_nodes if n not in known)
    from_forward = [v for v in saved if v not in at_hand]
    from_inputs = sorted((v for v in saved if v in at_hand), key=lambda v: v not in first)
    order = from_forward + from_inputs
    again = [n for n in joint.nodes if n in backward_nodes and n in forward_nodes]
    recomputed = [v for n in again for v in n.outputs if n.op.kind == "pointwise"]
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
        through + tuple(n for n in joint.nodes if n in backward_nodes),
        tuple(Output(o.var, RESULT) for o in grads),
        (note,),
    )
    positions = {i.var: k for k, i in enumerate(inputs)}
    return Partition(
        in_place.run(forward),
        in_place.run(dead_code.run(backward)),
        tuple(order),
        tuple(positions[v] for v in from_inputs),
        tuple(o.target for o in grads if o.target is not None),
        reads_inputs(again, set(from_inputs)),
        read_by(again, from_inputs, positions),
        read_by(backward_nodes - forward_nodes, from_inputs, positions),
    )


def read_by(nodes: Iterable[Node], inputs: list[Var], positions: dict[Var, int]) -> frozenset[int]:
    """Positions of the inputs that nodes read."""
    read = {v for node in nodes for v in node.present()}
    return frozenset(positions[v] for v in inputs if v in read)


def reads_inputs(again: list[Node], inputs: set[Var]) -> bool:
    """Do nodes that run again, other than views, read inputs?"""
    seen = set(inputs)
    for node in again:
        if not seen.isdisjoint(node.present()):
            if node.op.kind != "view":
                return True
            seen.update(node.outputs)
    return False


def summary(from_forward: list[Var], from_inputs: list[Var], recomputed: list[Var]) -> str:
    """What backward costs beside its own work: memory kept for it, values computed again."""
    parts = {"saved for backward": from_forward, "inputs kept": from_inputs,
             "recomputed": recomputed}  # fmt: skip
    return "; ".join(
        f"{what}: {len(values)} values, {sum(v.type.nbytes for v in values)} bytes"
        for what, values in parts.items()
    )


def choose(
    joint: Graph,
    forward: set[Node],
    grads: list[Output],
    at_hand: set[Var],
    shared: set[Var] | None = None,
) -> tuple[set[Node], list[Var]]:
    """The nodes backward runs, and the values it gets from forward.

    Where `shared` is given, views of it are all that is computed again.
    """
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
    crossing.sort(key=order.__getitem__)
    if shared is None:
        settle(crossing, producers, backward, saved, at_hand)
    else:
        keep(crossing, producers, backward, saved, shared, shown_whole(joint, producers, shared))
    return backward, list(saved)


def keep(
    crossing: list[Var],
    producers: dict[Var, Node],
    backward: set[Node],
    saved: dict[Var, None],
    shared: set[Var],
    whole: dict[Var, Node],
) -> None:
    """Saves each value that crosses; a view of shared memory is looked at again, and so is what a
    result shows the `whole` of."""
    for var in crossing:
        chain: list[Node] = []
        root = var
        while root not in shared and root in producers and shows_memory(producers[root]):
            chain.append(producers[root])
            root = next(chain[-1].present())
        if root in whole:
            chain.append(whole[root])
            root = next(chain[-1].present())
        if root in shared:
            backward.update(chain)
            saved[root] = None
        else:
            saved[var] = None


def shown_whole(joint: Graph, producers: dict[Var, Node], shared: set[Var]) -> dict[Var, Node]:
    """Values whose memory a result shows, all of it: how they are seen through that."""
    found = {}
    for output in joint.outputs:
        root, chain = memory_shown(output.var, producers)
        if output.kind != RESULT or not chain or root in shared:
            continue
        if is_whole(chain, root):
            attrs = (("size", root.shape),)
            found[root] = Node(TABLE["view"], (output.var,), (root,), attrs, chain[0].place)
        elif (order := turned_by(chain, root)) is not None:
            attrs = (("dims", tuple(np.argsort(order).tolist())),)
            found[root] = Node(TABLE["permute"], (output.var,), (root,), attrs, chain[0].place)
    return found


def memory_shown(var: Var, producers: Mapping[Var, Node]) -> tuple[Var, list[Node]]:
    """The value in whose memory this one lies in eager, and the ops that lead here."""
    chain: list[Node] = []
    while var in producers and shows_memory(producers[var]):
        chain.insert(0, producers[var])
        var = next(chain[0].present())
    return var, chain


def is_whole(chain: list[Node], root: Var) -> bool:
    """Do these views show all of `root` in its order?"""
    array, view = views_of(chain, root)
    same = view.__array_interface__["data"][0] == array.__array_interface__["data"][0]
    return bool(same and array.size and view.size == array.size and view.flags.c_contiguous)


def turned_by(chain: list[Node], root: Var) -> list[int] | None:
    """The dimensions of `root` in the order in which these views show them, if that is all."""
    array, view = views_of(chain, root)
    steps = [*zip(array.strides, array.shape)]
    shown = [*zip(view.strides, view.shape)]
    same = view.__array_interface__["data"][0] == array.__array_interface__["data"][0]
    if not (same and array.size) or len({*steps}) < len(steps) or sorted(steps) != sorted(shown):
        return None
    return [steps.index(step) for step in shown]


def views_of(chain: list[Node], root: Var) -> tuple[np.ndarray, np.ndarray]:
    """Memory like that of `root`, and what these views show of it; empty where sizes vary, or one
    gives several parts."""
    fixed = all(isinstance(n, int) for n in root.shape)
    fixed = fixed and not any(node.op.multi_view for node in chain)
    array = view = np.empty(root.shape if fixed else 0, np.int8)
    for node in chain if fixed else ():
        if node.op.kind == "view":
            view = node.op.numpy(view, **node.attributes)
    return array, view


def shows_memory(node: Node) -> bool:
    """Is the result the operand's memory, in eager? `detach` records as a cut of gradients."""
    return node.op.kind == "view" or node.op.name == "stop_gradient"


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
        made = None if var in pinned else recipe(var, producers, pinned)
        if made is None:
            pinned.add(var)
            saved[var] = None
            continue
        backward.update(made.nodes)
        pinned.update(made.leaves)
        saved.update(dict.fromkeys(made.leaves))


def cheap(node: Node) -> bool:
    return node.op.kind in ("view", "creation", "pointwise")


class Recipe(NamedTuple):
    """How to recompute a value: by which nodes, from which saved values or inputs."""

    nodes: list[Node]
    leaves: list[Var]


def recipe(var: Var, producers: dict[Var, Node], pinned: set[Var]) -> Recipe | None:
    """How to recompute `var`, or None where saving it costs less; see Note [What to save]."""
    nodes: list[Node] = []
    leaves: list[Var] = []
    work = extra = 0
    stack = [var]
    seen: set[Var] = set()
    while stack:
        current = stack.pop()
        if current in seen:
            continue
        seen.add(current)
        node = producers.get(current)
        if current in pinned or node is None or not cheap(node):
            leaves.append(current)
            extra += 0 if current in pinned else current.type.nbytes
        else:
            nodes.append(node)
            work += node.op.kind == "pointwise"
            stack.extend(node.present())
        if work > RECOMPUTE_LIMIT or extra * MUCH_SMALLER > var.type.nbytes:
            return None
    return Recipe(nodes, leaves)
