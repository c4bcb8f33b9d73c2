"""How native code makes the views that a compiled function gives back (`runtime/views.ll`).

Note [Views by example]
    What eager makes of a result that is looked at through a chain of view ops is always the same
    for tensors of one layout, but for the objects that it refers to: the result, its storage and
    its node. So a result is made up and looked at, and what comes of it is the pattern. Where it
    holds anything else that is not known to stay, native code asks Python.
"""

from __future__ import annotations

from types import NoneType
from typing import Any

import numpy as np

from .eager_graph import EAGER
from .ir.bind import state
from .ir.types import TensorType
from .runtime import views
from .runtime.expected import Array
from .runtime.layout import data_of
from .sources import SpentNode
from .tracer.saved import Plan
from .tracer.storage import Storage, View
from .tracer.tensor import Tensor

MADE_ANEW = {"edges", "place", "sequence"}
STAYS = (NoneType, bool, int, float, str, Plan, TensorType)


def pattern(binding: Any, maker: Any, shared: dict[Any, int]) -> views.View | None:
    """How the view that `maker` makes is made natively, if it is; `shared` numbers nodes."""
    position, dtype = binding.executor.results[maker.number]
    expected = binding.fresh_at(position)
    base = Tensor._wrap(np.zeros(expected.shape, expected.dtype), dtype)
    if state.inference:
        base._mark = "inference"
    top = None
    if binding.linked and maker.number in binding.function.differentiable:
        top = base._node = SpentNode()
        base._nr, base._requires_grad = maker.number, True
    value = maker.of(base)
    nodes = nodes_of(value, top, maker, shared)
    if type(value) is not Tensor or nodes is None or not seen_through(value, base):
        return None
    array = value._array
    facts = {slot: getattr(value, slot) for slot in Tensor.__slots__ if not slot.startswith("__")}
    for slot in ("_array", "_storage", *["_node"] * bool(nodes), *["_view"] * bool(value._view)):
        del facts[slot]
    if facts["_grad"] is not None or facts["_leaf"] is not None or (
            facts["_mark"] != base._mark):  # fmt: skip
        return None
    like = Array(array.dtype, array.shape, array.strides, holder=Tensor, slot="_array",
                 facts=tuple(facts.items()))  # fmt: skip
    seen = [(slot, getattr(value._view, slot)) for slot in ("chain", "origin", "seen")
            if value._view is not None]  # fmt: skip
    return views.View(EAGER, like, data_of(array) - data_of(base._array),
                      (("version", 0), ("written", None)), View if seen else None, seen,
                      nodes)  # fmt: skip


def seen_through(value: Tensor, base: Tensor) -> bool:
    """Does a view refer to its base as usual?"""
    storage, view, array = value._storage, value._view, value._array
    if type(storage) is not Storage or storage is not base._storage or storage.version:
        return False
    if storage.root is not base._array or array is base._array or array.base is not base._array:
        return False
    return view is None or (type(view) is View and view.base is base)


def nodes_of(value: Tensor, top: Any, maker: Any, shared: dict[Any, int]) -> Any:
    """The nodes from that of the result to that of its view; None where one is not usual."""
    found: list[views.Node] = []
    node, number = value._node, value._nr
    chain = [(op, repr(attrs), position) for op, attrs, position in maker.chain]
    if node is None:
        return found  # it was cut off, or has none
    for step in range(len(chain) - 1, -1, -1):
        if node is None or node is top or len(node.edges) != 1 or not is_still(node):
            return None
        op, attrs, _ = chain[step]
        place = -1
        if op.multi_view:  # its results have one node
            key = (maker.number, *chain[:step], op, attrs)
            place = shared.setdefault(key, len(shared))
        slots = [(slot, getattr(node, slot)) for slot in slots_of(node) if slot not in MADE_ANEW]
        found.insert(0, views.Node(type(node), slots, number, place))
        node, number = node.edges[0]
    return found if node is top else None


def slots_of(node: Any) -> list[str]:
    return [slot for cls in type(node).__mro__ for slot in getattr(cls, "__slots__", ())
            if slot != "__weakref__"]  # fmt: skip


def is_still(node: Any) -> bool:
    """Does a node hold nothing of its call but what is made anew?"""
    return not hasattr(node, "__dict__") and all(
        hasattr(node, slot) and (slot in MADE_ANEW or stays(getattr(node, slot)))
        for slot in slots_of(node))  # fmt: skip


def stays(value: Any) -> bool:
    """Is a value the same at each call?"""
    if isinstance(value, tuple | list) and not isinstance(value, TensorType):
        return all(map(stays, value))
    if isinstance(value, dict):
        return all(map(stays, value.values()))
    return isinstance(value, STAYS)
