"""Writes whose memory overlaps: with what they read, which is refused, or with itself.

Views such as overlapping windows show one element several times. torch runs an in-place op element
after element, so one that is shown k times is changed k times. Here the op runs on the whole view
once per turn, and each turn keeps the elements whose it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..ir.bind import state
from .tensor import Tensor

_PARTIAL = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
    "single memory location. Please clone() the tensor before performing the operation."
)
_MAY_OVERLAP = {"as_strided", "unfold"}


def check_operands(function: Any, target: Tensor, args: Iterable[Any]) -> None:
    """Refuses writes that would change elements which are still to be read; see `public`."""
    allowed = getattr(function, "overlap", "copied")
    if allowed == "copied":
        return
    for value in args:
        if isinstance(value, Tensor):
            if refused(target, value, allowed):
                raise RuntimeError(_PARTIAL)
        elif isinstance(value, tuple | list):
            check_operands(function, target, value)


def refused(target: Tensor, value: Tensor, allowed: str) -> bool:
    """Is `value` in the way of a write to `target`? As in torch, only blocks without gaps count."""
    if value is target:
        return allowed == "apart"
    a, b = target._array, value._array
    if not np.may_share_memory(a, b):
        return False
    same = a.strides == b.strides and a.shape == b.shape and a.ctypes.data == b.ctypes.data
    return (allowed == "apart" or not same) and is_block(a) and is_block(b)


def is_block(array: np.ndarray) -> bool:
    """Are the elements one block of memory, in any order of dimensions?"""
    expected = array.itemsize
    for step, size in sorted((s, n) for s, n in zip(array.strides, array.shape) if n != 1):
        if step != expected:
            return False
        expected *= size
    return True


def shows_twice(target: Tensor) -> bool:
    """May two elements share memory, of a view or of what `as_strided_` made? Others that do are
    refused before."""
    view = target._view
    if view is None:
        if not folds(target._array):
            return False
    elif not any(op.name in _MAY_OVERLAP for op, _, _ in view.chain):
        return False
    places = addresses(target._array)
    return np.unique(places).size < places.size


def folds(array: np.ndarray) -> bool:
    """Does a step along a dimension lead to memory that faster ones reach?"""
    reached = 0
    for stride, size in sorted(zip(array.strides, array.shape)):
        if size > 1:
            if stride <= reached:
                return True
            reached += (size - 1) * stride
    return False


def lies_in_expanded(target: Tensor) -> bool:
    """Is it a view of an expanded view? A write to it has no functional form."""
    view = target._view
    if view is None:
        return False
    whole = view.base._array  # one that was detached from an expanded tensor is no view itself
    return any(op.name == "expand" for op, _, _ in view.chain) or 0 in whole.strides


def addresses(array: np.ndarray) -> np.ndarray:
    """Where each element lies, in bytes from the first."""
    total = np.zeros(array.shape, np.int64)
    for k, (n, step) in enumerate(zip(array.shape, array.strides)):
        total += (np.arange(n) * step).reshape((n,) + (1,) * (array.ndim - k - 1))
    return total


def turns(array: np.ndarray) -> np.ndarray:
    """For each element, how many before it share its memory."""
    places = addresses(array).reshape(-1)
    order = np.argsort(places, kind="stable")
    steps = np.arange(places.size)
    starts = np.ones(places.size, np.bool_)
    starts[1:] = places[order][1:] != places[order][:-1]
    turn = np.empty(places.size, np.int64)
    turn[order] = steps - np.maximum.accumulate(np.where(starts, steps, 0))
    return turn.reshape(array.shape)


def run_in_turns(function: Any, target: Tensor, before: Tensor, args: Any, kwargs: Any) -> Tensor:
    """`function(target, ...)` as torch computes it in place; the history is that of one run."""
    watcher = getattr(state.top, "escaped", None)
    if watcher is not None:  # a recorded graph has no order of elements
        watcher(target, "an in-place write to overlapping elements")
    array, turn = target._array, turns(target._array)
    before._array = array.copy()
    result = function(before, *args, **kwargs)
    if result._array.shape != array.shape or result.dtype is not target.dtype:
        return result  # will be refused or cast
    np.copyto(array, result._array, where=turn == 0)
    kept, state.grad_enabled = state.grad_enabled, False
    try:
        for k in range(1, int(turn.max()) + 1):
            now = function(Tensor._wrap(array.copy(), target.dtype), *args, **kwargs)
            np.copyto(array, now._array, where=turn == k)
    finally:
        state.grad_enabled = kept
    result._array = array.copy()
    return result
