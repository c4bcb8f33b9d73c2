"""Marks on dimensions of tensors: which sizes a recording should keep symbolic, or plain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .tracer.tensor import Tensor

# torch's names of the attributes that carry the marks
DYNAMIC, WEAK, STATIC = (
    f"_dynamo_{word}_indices" for word in ("dynamic", "weak_dynamic", "static")
)


def marked(leaves: Sequence[Any], *attributes: str) -> set[tuple[int, int]]:
    """The (argument's place, dimension) that carry one of these marks."""
    return {
        (place, axis)
        for place, leaf in enumerate(leaves)
        if isinstance(leaf, Tensor)
        for name in attributes
        for axis in leaf.__dict__.get(name, ())
    }


def mark_dynamic(t: Any, index: Any, *, hint_override: int | None = None, min: int | None = None,
                 max: int | None = None, specialize_on: Any = None) -> None:  # fmt: skip
    """mark_dynamic(t, index): a call with `t` is recorded for all sizes of these dimensions.

    Sizes that the body needs as plain numbers specialise; `explain()` names the line.
    """
    _mark(t, index, DYNAMIC)


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """maybe_mark_dynamic(t, index): as `mark_dynamic`, which never insists here."""
    _mark(t, index, WEAK)


def mark_static(t: Any, index: Any = None) -> None:
    """mark_static(t, index=None): each size of these dimensions, or of all, is recorded apart."""
    if isinstance(t, type):
        return  # torch: the ints of modules of this class; they always specialise here
    _mark(t, range(_tensor(t).dim()) if index is None else index, STATIC)


def mark_static_address(t: Any, guard: bool = False) -> None:
    """mark_static_address(t): checked only; addresses are learnt and checked at each call."""
    _tensor(t)


def _mark(t: Any, index: Any, name: str) -> None:
    tensor = _tensor(t)
    for axis in index if isinstance(index, list | tuple | range) else (index,):
        if not -tensor.dim() <= axis < tensor.dim():
            raise IndexError(f"Dimension out of range (expected to be in range of "
                             f"[{-tensor.dim()}, {tensor.dim() - 1}], but got {axis})")  # fmt: skip
        tensor.__dict__.setdefault(name, set()).add(axis % tensor.dim())


def _tensor(value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"expected a Tensor, but got {type(value).__name__}")
    return value
