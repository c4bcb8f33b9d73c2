"""Results of one node that gradients of others pass by.

Note [Results on the way]
    A compiled call has one node for all its results. Where one of them is computed from another,
    the gradient of the former passes by the latter, and joins there what came from outside. Hooks
    of that tensor, its `retain_grad` and `autograd.grad` see the sum, and a hook may change it. One
    node can't tell, so the nodes of its ops take its place, and get what is asked of its results.
    So they do where more than one piece of the user's code runs on the way, for the order's sake.
    From then on its edges lead to them, one for each result, and what is asked of a result is
    asked of them (`relay`): with create_graph, others may lead there, too. So it is with results
    that a segment hands on as it got them. Results that show parts of tensors are among those of
    the node where gradients pass by them (Note [Parts on the way] in api/outputs.py).
"""

from __future__ import annotations

from typing import Any

from .derive import is_silent
from .tape import AccumulateGrad


def look_inside(run: Any, node: Any, slots: list[Any]) -> None:
    """Raises Expanded where somebody looks at what only the nodes of ops see."""
    extra, captures = node.extra, run.captures.get(node, ())
    hooks = {} if extra is None else {k: t for k, t in extra.tensor_hooks.items() if t}
    retained = {} if extra is None else extra.retained
    if not (hooks or retained or captures):
        return
    if extra is not None and (extra.prehooks or extra.posthooks):
        return  # they are of this node
    arrived = [k for k, grad in enumerate(slots) if grad is not None]
    kept = {*retained, *(number for number, _ in captures)}
    if node.expansion is None and not is_seen(node, arrived, hooks.keys(), kept):
        return
    expanded, edges = node.by_ops(slots)
    for number, table in hooks.items():
        inner, place = edges[number]
        inner._extra().tensor_hooks[place] = table
    for number, references in retained.items():
        inner, place = edges[number]
        inner._extra().retained[place] = references
        if run.targets is not None and node in run.targets:
            run.targets.add(inner)
    for number, slot in captures:
        inner, place = edges[number]
        run.captures.setdefault(inner, []).append((place, slot))
    run.captures.pop(node, None)
    raise expanded


def is_seen(node: Any, arrived: list[int], hooked: Any, kept: set[int]) -> bool:
    """See Note [Results on the way]."""
    passed = {k for number in arrived for k in node.passes(number)}
    if not passed.isdisjoint(hooked) or not passed.isdisjoint(kept):
        return True
    met = [k for k in arrived if k in hooked]
    if len(arrived) < 2 or not met:
        return False
    leaves = [e[0] for e in node.edges if e is not None and e[0].__class__ is AccumulateGrad]
    return len(met) > 1 or not all(map(is_silent, leaves))
