"""Which arguments of a call lie in the same memory: part of what selects a trace.

Note [Shared arguments]
    Arguments of one extent are one value of the graph, so a trace of f(x, x) must not serve
    f(x, y). Arguments that share memory in other ways are separate inputs, which is right as long
    as nothing is written there; a body that writes runs eagerly for such calls. Captured tensors
    that an argument was, when recorded, must be that argument again.
"""

from __future__ import annotations

from typing import Any

from .tracer.extents import order_of
from .tracer.inplace import overlaps
from .tracer.recorded import same_extent
from .tracer.tensor import Tensor


def root_of(tensor: Tensor) -> Any:
    """The array that owns a tensor's bytes."""
    storage = tensor._storage
    return tensor._array if storage is None else storage.root


def layout_of(array: Any) -> Any:
    """True for a row-major array; else the order of its dimensions, gaps and repeated elements."""
    flags = array.flags
    if flags.c_contiguous:
        return True
    return order_of(array), flags.f_contiguous, overlaps(array)


def shared_arguments(leaves: Any) -> Any:
    """For each tensor the first one in the same memory, and the first of its extent; or None."""
    tensors = [x for x in leaves if isinstance(x, Tensor)]
    if len(tensors) < 2:
        return None
    roots = [id(root_of(x)) for x in tensors]
    if len(set(roots)) == len(roots):
        return None
    pattern = []
    for k, tensor in enumerate(tensors):
        equal = next(i for i, other in enumerate(tensors)
                     if roots[i] == roots[k] and same_extent(other, tensor))  # fmt: skip
        pattern.append((roots.index(roots[k]), equal))
    return tuple(pattern)


def bound_arguments(recording: Any) -> list[tuple[int, Tensor]]:
    """Places of arguments that the body also reads as captured tensors, with those tensors."""
    leaves, parameters = recording.leaves, recording.environment.parameter_names()
    places = [*recording.environment.reached,
              *(k for k, leaf in enumerate(leaves) if id(leaf) in parameters)]  # fmt: skip
    found = [(k, leaves[k]) for k in places if isinstance(leaves[k], Tensor)]
    for known, tensor in recording.recorder.bound:
        places = [recording.argument_places.get(id(t)) for t in (known, tensor)]
        if places[0] is not None and places[1] is None:
            found.append((places[0], tensor))
        elif places[1] is not None and places[0] is None:
            found.append((places[1], known))
    return found
