"""`torch.cond` and `torch.while_loop`: control flow by values, run as Python runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .tracer.tensor import Tensor


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any],
         operands: tuple[Any, ...] | list[Any] = ()) -> Any:  # fmt: skip
    """cond(pred, true_fn, false_fn, operands=()): one of two functions, chosen by a value."""
    if not isinstance(pred, bool | Tensor) or (isinstance(pred, Tensor) and pred.numel() != 1):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, tuple | list):
        raise RuntimeError("Expect operands to be a tuple of possibly nested dict/list/tuple that "
                           f"only consists of tensor leaves, but got {operands}.")  # fmt: skip
    return (true_fn if pred else false_fn)(*operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any],
               carried_inputs: tuple[Any, ...] | list[Any]) -> tuple[Any, ...]:  # fmt: skip
    """while_loop(cond_fn, body_fn, carried_inputs): the values that the last round carries on."""
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, tuple | list):
        raise RuntimeError("Expect carried_inputs to be a tuple or list, got "
                           f"{type(carried_inputs)}")  # fmt: skip
    carried = tuple(carried_inputs)
    while cond_fn(*carried):
        found = body_fn(*carried)
        carried = tuple(found) if isinstance(found, tuple | list) else (found,)
    return carried
