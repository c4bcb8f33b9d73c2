"""What the eager history of a recorded call's results keeps for backward."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from .tracer.function import BackwardNode
from .tracer.saved import Freed, PackedSaved, PackedSlots, SavedOutput
from .tracer.tape import AccumulateGrad
from .tracer.tensor import Tensor


def nodes_behind(results: list[Tensor]) -> Iterator[Any]:
    """The nodes of the results' history."""
    stack = [t._node for t in results if t._node is not None]
    seen = set()
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(e[0] for e in node.edges if e is not None)


def leaves_behind(results: list[Tensor]) -> list[Tensor]:
    """The leaves that backward from the results would give gradients to."""
    nodes = nodes_behind(results)
    return [node.variable for node in nodes if isinstance(node, AccumulateGrad)]


def saved_in(node: Any) -> Iterator[tuple[Any, int]]:
    """The tensors and outputs that a node keeps, with the versions they had."""
    if isinstance(node, BackwardNode):
        saved = [] if isinstance(node._saved, Freed) else [entry[:2] for entry in node._saved]
    else:
        entries = getattr(node, "saved", None)
        kept = isinstance(entries, tuple) and entries
        saved = list(zip(entries, node.versions)) if kept else []
    for entry, version in saved:
        if isinstance(entry, SavedOutput):
            yield entry, entry.version
        elif isinstance(entry, Tensor):
            yield entry, version


def is_spent(recorder: Any, tensor: Tensor) -> bool:
    """Did backward inside the body free what backward from a result would need?"""
    if not recorder.backward_roots:
        return False
    return recorder.var_of(tensor) in recorder.backward_roots or any(
        isinstance(getattr(node, "saved", None) or getattr(node, "_saved", None), Freed)
        for node in nodes_behind([tensor]))  # fmt: skip


def saved_by_graph(results: list[Tensor]) -> set[int]:
    """Ids of tensors that the results' own history keeps."""
    found: set[int] = set()
    for node in nodes_behind(results):
        kept = [entry for entry, _ in saved_in(node) if isinstance(entry, Tensor)]
        found.update(map(id, kept))
        found.update(id(entry._view.base) for entry in kept if entry._view is not None)
    return found


def storage_of(entry: Any) -> Any:
    """The memory of something that a node keeps."""
    return entry.storage if isinstance(entry, SavedOutput) else entry.storage_


class Reread(NamedTuple):
    """Which results eager's backward reads again.

    `counted` has them by the result that backward comes from: writing into those before it is an
    error. `held` are all of them, with those that were kept as `.data`, or are themselves `.data`
    of what was kept (`apart`): of what is written there nobody is told, and backward computes with
    it. The memory of results that are `unseen` is nobody's: see Note [Parts on the way] in
    outputs.py.
    """

    counted: Mapping[int, tuple[int, ...]] = MappingProxyType({})
    held: tuple[int, ...] = ()
    unseen: frozenset[int] = frozenset()
    apart: frozenset[int] = frozenset()


NOTHING_REREAD = Reread()


def reread_results(results: list[Tensor], needs: list[int], unseen: frozenset[int]) -> Reread:
    """Of the results, those which the history of the ones at `needs` keeps."""
    counted, roots = {}, set()
    shown = [(k, t) for k, t in enumerate(results) if k not in unseen]
    for position in needs:
        kept = [storage_of(entry) for node in nodes_behind([results[position]])
                for entry, _ in saved_in(node)]  # fmt: skip
        roots.update(id(storage.root) for storage in kept)
        ids = {*map(id, kept)}
        found = tuple(k for k, t in shown if id(t._storage) in ids)
        if found:
            counted[position] = found
    held = tuple(k for k, t in shown
                 if t._storage is not None and id(t._storage.root) in roots)  # fmt: skip
    apart = {*held}.difference(*counted.values())
    return Reread(counted, held, unseen, frozenset(apart))


def hooked_inside(results: list[Tensor]) -> bool:
    """Will backward ask hooks for values?"""
    return any(isinstance(getattr(node, "saved", None), PackedSlots)
               or any(isinstance(entry[0], PackedSaved) for entry in getattr(node, "_saved", ()))
               for node in nodes_behind(results))  # fmt: skip


def overwritten(recorder: Any, results: list[Tensor]) -> str:
    """Why backward through the results will raise, or see other values: what it needs was written
    in place, or by way of `.data`, which no version counts."""
    for node in nodes_behind(results):
        for entry, version in saved_in(node):
            storage = storage_of(entry)
            if storage.version != version:
                return f"a value that {node.name()} needs is written in place: backward will raise"
            if recorder.wrote_unseen(node, storage):
                return f"a value that {node.name()} needs is written by way of .data; copy it first"
    return ""
