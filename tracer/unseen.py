"""Bases of views that are made when somebody asks for them.

Note [Late bases]
    Many compiled functions end in a view that shows all of a tensor which nobody else sees. To make
    that tensor, the view of it and the node between them would take as long as a short call does,
    and nobody looks. So the result is handed out as a tensor of its own, with the shape of the base
    in `_unseen`: that it is a view is all that can be told without the base. Whoever asks for that
    gets it made, and with it what eager has: a base, a view of it, and a node between them. Views
    that were made of the result meanwhile become views of the base.

    In nearly all tensors `_unseen` is not set at all.
"""

from __future__ import annotations

from typing import Any

from ..ir.bind import state
from ..ir.ops.views import view_op
from .eager import run
from .referrers import referrers
from .storage import View
from .tensor import Tensor


def is_seen_as_view(tensor: Tensor) -> bool:
    """Is it a view in eager?"""
    return tensor._view is not None or hasattr(tensor, "_unseen")


def base_of(tensor: Tensor) -> Tensor | None:
    """What eager has it as a view of."""
    if hasattr(tensor, "_unseen"):
        make_base(tensor)
    view = tensor._view
    if view is not None and hasattr(view.base, "_unseen"):
        make_base(view.base)
    return None if view is None else view.base


def make_base(tensor: Tensor) -> None:
    """The tensor becomes a view of another, which has its history until now."""
    may_have_views = tensor._storage is not None
    steps = [(view_op, {"size": size}, 0) for size in (tensor._unseen, tuple(tensor._array.shape))]
    del tensor._unseen
    top, mode, inference = state.top, state.grad_enabled, state.inference
    state.top, state.grad_enabled, state.inference = run, True, False
    try:
        source = tensor if tensor._node is not None else tensor.detach()  # flags are the view's own
        base: Any = view_op(source, **steps[0][1])
        base._view, base._mark = None, tensor._mark
        seen: Any = view_op(base, **steps[1][1])
    finally:
        state.top, state.grad_enabled, state.inference = top, mode, inference
    if may_have_views:
        for view in referrers([tensor]):
            if type(view) is View and view.base is tensor:
                view.base, view.chain = base, (steps[1], *view.chain)
    tensor._view = View(base, (steps[1],), tensor.storage_.version)
    if tensor._node is not None:
        tensor._node, tensor._nr = seen._node, seen._nr


def forget_base(tensor: Tensor) -> None:
    """It shows other memory from now on."""
    if hasattr(tensor, "_unseen"):
        del tensor._unseen
