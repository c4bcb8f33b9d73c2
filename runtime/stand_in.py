"""Callables with the answers of fastcall.py's, for where native code cannot read objects."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from .expected import Array, Call, Fixed, Float, Ignored


def stand_in(call: Call) -> Callable[..., Any]:
    """A Python closure that does what the native function does."""
    assert not (call.bound or call.watched or call.history or call.modes), "needs native code"
    assert call.counter is None and call.taking is None and call.failed is None
    kind = ctypes.CFUNCTYPE if call.release_gil else ctypes.PYFUNCTYPE
    entry = kind(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(call.entry)
    extents = [getattr(expected, "extent", (0, 0)) for expected in call.arguments]
    overlaps = [(i, j, *extents[i], *extents[j]) for i, j in call.pairs]

    def function(*args: object) -> Any:
        # `values` holds floats' boxes and holders' arrays until the entry is done with them.
        values = _unpacked(call, args)
        addresses = [_address(value) for value in values or ()]
        if (
            values is None
            or not _fit(call, addresses)
            or any(
                addresses[i] + i0 < addresses[j] + j1 and addresses[j] + j0 < addresses[i] + i1
                for i, j, i0, i1, j0, j1 in overlaps
            )
        ):
            return call.slow(*args) if call.slow else NotImplemented
        for k, expected in enumerate(call.arguments):
            if isinstance(expected, Array) and expected.copied:
                values[k] = values[k].copy(order="C")
                addresses[k] = _address(values[k])
        made = [np.empty(result.shape, result.dtype) for result in call.results]
        addresses += map(_address, made)
        pointers = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
        with call.arena.borrow(call.arena_size) if call.arena_size else nullcontext() as scratch:
            code = entry(ctypes.addressof(pointers), scratch)
        if call.status and code:
            return code
        made = [_held(*pair) for pair in zip(call.results, made)]
        if call.gives_tuple:
            return tuple(made)
        return made[0] if made else None

    function.__name__ = call.name
    return function


def _held(expected: Array, array: np.ndarray) -> Any:
    """The array, in its holder if it wants one."""
    if expected.holder is None:
        return array
    holder = expected.holder.__new__(expected.holder)
    for slot, value in ((expected.slot, array), *expected.facts):
        setattr(holder, slot, value)
    return holder


def _unpacked(call: Call, args: tuple[object, ...]) -> list[Any] | None:
    """The arrays, and floats in boxes; None if one is not as expected."""
    if len(args) != len(call.arguments):
        return None
    found: list[Any] = []
    for expected, value in zip(call.arguments, args):
        if isinstance(expected, Fixed | Ignored):
            if isinstance(expected, Fixed) and value is not expected.value:
                return None
            found.append(ctypes.c_double())
            continue
        if isinstance(expected, Float):
            if type(value) is not float:
                return None
            found.append(ctypes.c_double(value))
            continue
        if expected.holder is not None:
            if (
                type(value) is not expected.holder
                or any(getattr(value, slot, None) is not fact for slot, fact in expected.facts)
                or any(getattr(value, slot, None) is fact for slot, fact in expected.unlike)
            ):
                return None
            value = getattr(value, expected.slot, None)
        if type(value) is not np.ndarray or not _is(expected, value):
            return None
        found.append(value)
    return found


def _is(expected: Array, value: np.ndarray) -> bool:
    flags = value.flags
    return (
        value.dtype is expected.dtype
        and value.shape == expected.shape
        and flags.aligned
        and (flags.writeable or not expected.writeable)
        and (flags.c_contiguous if expected.strides is None else value.strides == expected.strides)
    )


def _fit(call: Call, addresses: list[int]) -> bool:
    return all(
        not isinstance(expected, Array) or address % expected.alignment == 0
        for expected, address in zip(call.arguments, addresses)
    )


def _address(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.__array_interface__["data"][0]
    return ctypes.addressof(value)
