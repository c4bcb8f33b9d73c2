"""Which arguments of a call lie in the same memory: part of what selects a trace.

Note [Shared arguments]
    Arguments of one extent are one value of the graph, so a trace of f(x, x) must not serve
    f(x, y). Nor f(x, x.detach()): which of them are one tensor decides about `x is y`, histories
    and versions. Arguments that share memory in other ways, or have histories of their own, are
    separate inputs, which is right as long as nothing is written there; a body that writes runs
    eagerly for such calls. Captured tensors that lay in the memory of an argument, or of each
    other, must lie there again, and so must an argument that was the gradient of a captured one.
    Those that are always the same tensors can leave it by `.data = ...` alone, of which epochs
    tell.
"""

from __future__ import annotations

import itertools
from typing import Any

from .ir.ops.layouts import memory_order
from .sources import Argument, Captured, GradOf
from .tracer.inplace import overlaps
from .tracer.recorded import extent_of, same_extent
from .tracer.tensor import Tensor


def root_of(tensor: Tensor) -> Any:
    """The array that owns a tensor's bytes."""
    storage = tensor._storage
    return tensor._array if storage is None else storage.root


def layout_of(array: Any) -> Any:
    """True for a row-major array; else what decides how results lie, and which views there are:
    the order of its dimensions, gaps, repeated elements, and dimensions that are one in memory."""
    flags = array.flags
    if flags.c_contiguous:
        return True
    lines = [line for line in zip(array.strides, array.shape) if line[1] != 1]
    order = tuple(sorted(range(len(lines)), key=lambda d: -lines[d][0]))
    joined = tuple(slow[0] == fast[0] * fast[1] for slow, fast in itertools.pairwise(lines))
    return memory_order(array), flags.f_contiguous, overlaps(array), order, joined


def shared_arguments(leaves: Any) -> Any:
    """For each tensor the first in the same memory, of its extent, of its version and the first
    that is itself; None where no two share memory."""
    tensors = [x for x in leaves if isinstance(x, Tensor)]
    if len(tensors) < 2:
        return None
    roots = [id(root_of(x)) for x in tensors]
    if len(set(roots)) == len(roots):
        return None
    pattern = []
    for k, tensor in enumerate(tensors):
        near = [(i, other) for i, other in enumerate(tensors) if roots[i] == roots[k]]
        pattern.append((
            near[0][0],
            next(i for i, other in near if same_extent(other, tensor)),
            next(i for i, other in near if other.storage_ is tensor.storage_),
            next(i for i, other in near if other is tensor),
        ))  # fmt: skip
    return tuple(pattern)


def place_in(base: Tensor, tensor: Tensor) -> Any:
    """Where a tensor lies in the memory of another; None if it does not."""
    if root_of(base) is not root_of(tensor):
        return None
    whole, part = extent_of(base), extent_of(tensor)
    one = (base is tensor, base.storage_ is tensor.storage_)
    return whole[:-1], part[:-1], part[-1] - whole[-1], one  # may turn while the other stays


class Relation:
    """A tensor that was seen as part of another: it must lie there again."""

    def __init__(self, base: Any, tensor: Any, leaves: list[Any]):
        self.base, self.tensor = base, tensor
        self.is_fixed = isinstance(base, Captured) and isinstance(tensor, Captured)
        self.before = place_in(base(leaves), tensor(leaves))

    def holds(self, leaves: list[Any]) -> bool:
        base, tensor = self.base(leaves), self.tensor(leaves)
        if base is None or tensor is None:  # a gradient that was taken away
            return False
        return bool(place_in(base, tensor) == self.before)


def relations_of(recording: Any) -> list[Relation]:
    """Of arguments that the body also reads as captured tensors; of captured tensors."""
    leaves, parameters = recording.leaves, recording.environment.parameter_names()
    places = [*recording.environment.reached,
              *(k for k, leaf in enumerate(leaves) if id(leaf) in parameters)]  # fmt: skip
    pairs = [(Argument(k), Captured(leaves[k])) for k in places if isinstance(leaves[k], Tensor)]
    pairs += [(recording.source_of(base), recording.source_of(tensor))
              for base, tensor in recording.recorder.bound]  # fmt: skip
    pairs = [pair for pair in pairs if not all(isinstance(part, Argument) for part in pair)]
    pairs += [(GradOf(recording.owner_source(owner)), recording.owner_source(grad))
              for owner, grad in recording.recorder.gradients_read()
              if recording.is_from_outside(grad)]  # fmt: skip
    return [Relation(*pair, leaves) for pair in pairs]
