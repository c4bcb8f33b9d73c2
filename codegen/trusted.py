"""Indices that need no check: an earlier kernel has checked them, or an op has found them itself.

A call ends with the kernel that sees an index out of range (runtime/run.ll), so those after it may
rely on what it saw. In a training step that leaves the checks of the forward pass, before its
parameters are written: what is written before a kernel that may fail, as the statistics of a batch
norm, has to wait in memory of its own until that has not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..ir.graph import Var
from ..ir.program import may_raise
from .affine import Expr
from .classify import HOST
from .cluster import Cluster
from .indirect import wraps
from .kernel import CHECK, Kernel
from .private import ORDER
from .schedule import Scheduler


def trust(plan: Scheduler, kernels: dict[Cluster, Kernel]) -> None:
    """Marks the checks that can't fail once those before have not."""
    seen: set[Any] = set()
    for cluster in plan.clusters:
        kernel = kernels.get(cluster)
        if kernel is None or not kernel.points:
            continue
        found = []
        for at, (index, e) in kernel.checks.items():
            instr = kernel.instrs[at]
            assert instr.node is not None
            key = index, elements(e, kernel.sizes), instr.limit
            known = (*key, False) in seen or (*key, wraps(instr.node)) in seen
            if known or is_place(plan, index, instr.limit):
                kernel.instrs[at] = replace(instr, sure=True)
            elif key[1] is not None:
                found.append((*key, wraps(instr.node)))
        seen.update(found)


def last_check(plan: Scheduler, kernels: dict[Cluster, Kernel]) -> int:
    """The position of the last cluster that may still fail; -1 if none may."""
    return max([-1, *(c.position for c in plan.clusters if may_fail(c, kernels.get(c)))])


def may_fail(cluster: Cluster, kernel: Kernel | None) -> bool:
    if cluster.kind == HOST:
        (node,) = cluster.members
        return may_raise(node.op, node.inputs)
    return kernel is not None and any(i.kind == CHECK and not i.sure for i in kernel.instrs)


def elements(e: Expr, sizes: Sequence[int]) -> Any:
    """Which elements loops of such sizes come to, as something to compare; None if unknown."""
    if e.dynamic:
        return None
    steps = sorted(((c, n) for c, n in zip(e.coefs, sizes) if c and n > 1), reverse=True)
    joined: list[tuple[int, int]] = []
    for step, count in steps:
        if joined and joined[-1][0] == step * count:
            _, outer = joined.pop()
            count *= outer
        joined.append((step, count))
    return e.offset, tuple(joined)


def is_place(plan: Scheduler, index: Var, limit: int) -> bool:
    """Was it found by an op that looks along a dimension, or in planes, of so many, or clamped?"""
    node = plan.producer.get(index)
    if node is None:
        return False
    attrs = node.attributes
    if node.op.name == "clamp":
        low, high = attrs.get("min"), attrs.get("max")
        return low is not None and high is not None and low >= 0 and high < limit
    if node.op is not ORDER and node.op.outputs[node.outputs.index(index)] != "indices":
        return False
    shape = node.inputs[0].shape  # type: ignore[union-attr]
    if "dim" in attrs:
        return bool(shape) and shape[attrs["dim"]] <= limit
    plane = attrs.get("kernel") or attrs["size"]
    return math.prod(shape[-len(plane) :]) <= limit
