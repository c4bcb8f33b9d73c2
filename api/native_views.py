"""How native code makes the views that a compiled function gives back (`runtime/views.ll`).

Note [Views by example]
    What eager makes of a tensor that is looked at through a chain of view ops is always the same
    for tensors of one layout, but for the objects that it refers to: the tensor, its storage with
    its version, its mark and its node. So a tensor is made up and looked at, and what comes of it
    is the pattern. Where it holds anything else that is not known to stay, native code asks Python.
    So it does for arguments that are views themselves.
"""

from __future__ import annotations

from types import NoneType
from typing import Any

import numpy as np

from .eager_graph import EAGER
from .ir.types import TensorType
from .runtime import views
from .runtime.expected import Array
from .runtime.layout import data_of
from .spent import SpentNode
from .tracer.saved import Plan
from .tracer.storage import Storage, View
from .tracer.tensor import PLAIN, Tensor

MADE_ANEW = {"edges", "place", "sequence"}
STAYS = (NoneType, bool, int, float, str, Plan, TensorType)
MARK = "as its base"


def of_result(binding: Any, maker: Any, shared: dict[Any, int]) -> views.View | None:
    """How the view that `maker` makes is made natively, if it is; `shared` numbers nodes."""
    position, dtype = binding.executor.results[maker.number]
    expected = binding.fresh_at(position)
    base = Tensor._wrap(np.zeros(expected.shape, expected.dtype), dtype)
    written = binding.function.versions.get(maker.number)
    if written is not None:
        base._storage = Storage(base._array, *written)
    if binding.linked and maker.number in binding.function.differentiable:
        base._nr, base._requires_grad = maker.number, True
    return pattern(base, maker, (), shared, maker.number)


def of_argument(tensor: Tensor, maker: Any, shared: dict[Any, int]) -> views.View | None:
    """The same for a view of a tensor that a call is given, or finds."""
    if type(tensor) not in PLAIN:
        return None
    base = Tensor._wrap(tensor._array, tensor.dtype)
    base._requires_grad = tensor._requires_grad
    facts = (("_view", None), ("_requires_grad", tensor._requires_grad))
    return pattern(base, maker, facts, shared, maker.source.identity)


def pattern(base: Tensor, maker: Any, facts: Any, shared: dict[Any, int],
            whose: Any) -> views.View | None:  # fmt: skip
    """What `maker` makes of such a tensor, where that has these facts."""
    base._mark = MARK
    version = 0 if base._storage is None else base._storage.version
    top = None
    if base._requires_grad:
        top = base._node = SpentNode()
    value = maker.of(base)
    nodes = nodes_of(value, top, maker, shared, whose)
    if type(value) is not Tensor or nodes is None or not seen_through(value, base, version):
        return None
    array = value._array
    slots = {slot: getattr(value, slot) for slot in Tensor.__slots__
             if not slot.startswith("__") and hasattr(value, slot)}  # fmt: skip
    if slots["_grad"] is not None or slots["_leaf"] is not None or (
            slots["_mark"] not in (None, MARK)):  # fmt: skip
        return None
    for slot in ("_array", "_mark", "_storage", *["_node"] * bool(nodes),
                 *["_view"] * bool(value._view)):  # fmt: skip
        del slots[slot]
    like = Array(array.dtype, array.shape, array.strides, holder=Tensor, slot="_array",
                 facts=tuple(slots.items()))  # fmt: skip
    seen = [(slot, getattr(value._view, slot)) for slot in ("chain", "origin")
            if value._view is not None]  # fmt: skip
    return views.View(EAGER, like, data_of(array) - data_of(base._array),
                      View if seen else None, seen, nodes, value._mark is MARK, facts,
                      maker.of)  # fmt: skip


def seen_through(value: Tensor, base: Tensor, version: int) -> bool:
    """Does a view refer to its base as usual?"""
    storage, view, array = value._storage, value._view, value._array
    if type(storage) is not Storage or storage is not base._storage or storage.version != version:
        return False
    if storage.root is not base._array or array is base._array:
        return False
    if array.base is not base._array and (array.base is None or array.base is not base._array.base):
        return False
    return view is None or (type(view) is View and view.base is base)


def nodes_of(value: Tensor, top: Any, maker: Any, shared: dict[Any, int], whose: Any) -> Any:
    """The nodes from that of a tensor to that of its view; None where one is not usual."""
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
            key = (whose, *chain[:step], op, attrs)
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
