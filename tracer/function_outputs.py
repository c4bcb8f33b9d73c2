"""The outputs of a custom Function: their place in the graph, and what is saved."""

from __future__ import annotations

from typing import Any

from ..ir.bind import notify
from ..ir.op import TABLE
from ..ir.types import FLOAT
from .eager import history
from .hooks import active
from .inplace import bump, rebase_view, take_history
from .saved import OWN, PackedSaved, SavedOutput
from .storage import View
from .tensor import Tensor


def attach(node: Any, args: Any, outputs: list[Any], recording: bool, enabled: bool) -> list[Any]:
    """Gives the outputs their place in the graph; inputs returned as they are become views."""
    dirty = {id(t) for t in node.dirty_tensors or ()}
    missing = dirty - {id(out) for out in outputs}
    if missing:
        raise RuntimeError("Some elements marked as dirty during the forward method were not "
                           "returned as output. The inputs that are modified inplace must all be "
                           "outputs of the Function.")  # fmt: skip
    inputs = {id(a) for a in args if isinstance(a, Tensor)}
    excluded = {id(t) for t in node.non_differentiable or ()}
    results = []
    for number, out in enumerate(outputs):
        if not isinstance(out, Tensor):
            node._types.append(None)
            results.append(out)
            continue
        node._types.append(out.type_)
        differentiable = recording and id(out) not in excluded and out.dtype.category >= FLOAT
        if id(out) in dirty:
            results.append(dirty_output(node, out, number, differentiable, len(outputs)))
        elif id(out) in inputs:
            keep = enabled and id(out) not in excluded
            results.append(returned_input(node, out, number, differentiable, keep))
        else:
            results.append(fresh_output(node, out, number, differentiable, id(out) in excluded))
    views = [r for r in results if isinstance(r, Tensor) and r._view is not None
             and id(r) not in dirty]  # fmt: skip
    several = sum(isinstance(r, Tensor) and r._node is node for r in results) > 1
    for tensor in views:
        tensor._view.origin = "multi" if several else "custom"
        tensor._view.seen = tensor._storage.version
    if recording:
        save(node, outputs, results)
    node.to_save = None
    return results


def dirty_output(node: Any, out: Tensor, number: int, differentiable: bool, count: int) -> Tensor:
    """An input that forward wrote: it takes this node as its history."""
    bump(out.storage_)
    notify("marked_dirty", out)
    if not differentiable:
        return out
    if out._view is None:
        if out._requires_grad and out._node is None:
            raise RuntimeError(
                "a leaf Variable that requires grad has been used in an in-place operation."
            )
        take_history(out, (node, number))
        return out
    if count > 1:
        raise RuntimeError(
            "If your Function modifies inplace an input that is a view of another Tensor, your "
            "Function cannot return more than one Tensor. This is not supported by the current "
            "autograd engine. You should either make sure the input is not a view (using .clone() "
            "for example) or make your Function only return one Tensor (potentially splitting it "
            "into two Functions: one doing the inplace that returns a single Tensor and a second "
            "one that does the other operations)."
        )
    rebase_view(out, node)
    return out


def returned_input(node: Any, out: Tensor, number: int, differentiable: bool, keep: bool) -> Tensor:
    """An input returned as it is: a view of it, so that it can have a history of its own."""
    if not keep:
        return out.detach()
    fresh = out._twin()
    base, chain = (out, ()) if out._view is None else (out._view.base, out._view.chain)
    chain = (*chain, (TABLE["alias"], {}, 0))
    fresh._view = View(base, chain, fresh._storage.version, "custom")
    notify("returned", out, fresh)
    if differentiable:
        fresh._node, fresh._nr, fresh._requires_grad = node, number, True
    return fresh


def fresh_output(node: Any, out: Tensor, number: int, differentiable: bool, cut: bool) -> Tensor:
    if differentiable:
        out._node, out._nr, out._requires_grad = node, number, True
    elif cut and out._view is None:
        out._node, out._nr, out._requires_grad = None, 0, False
    return out


def save(node: Any, outputs: list[Any], results: list[Any]) -> None:
    """Keeps what `save_for_backward` named: outputs without a cycle, the rest as it is."""
    numbers = {id(out): k for k, out in enumerate(outputs)}
    numbers.update({id(out): k for k, out in enumerate(results)})
    saved: list[Any] = []
    for position, tensor in enumerate(node.to_save or ()):
        if tensor is None:
            saved.append((None, 0, None))
            continue
        if not isinstance(tensor, Tensor):
            raise TypeError(f"save_for_backward can only save variables, but argument {position} "
                            f"is of type {type(tensor).__name__}")  # fmt: skip
        number = numbers.get(id(tensor))
        own = number is not None and results[number]._node is node and tensor._node is node
        number = number if own else None
        entry: Any = tensor
        if active.saved:
            entry = PackedSaved(active.saved[-1], tensor, OWN if own else history(tensor))
        elif own:
            entry = SavedOutput(tensor)
        saved.append((entry, 0 if tensor._mark == "inference" else tensor._version, number))
    node._saved = saved
