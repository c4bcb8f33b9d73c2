"""Switches and checks of torch that change nothing here, and arithmetic on sizes.

Sizes are plain numbers, so `sym_int` and its kin are Python's own arithmetic.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

from .facts import _Settings, are_deterministic_algorithms_enabled, use_deterministic_algorithms
from .ir.arguments import repeating

_DEBUG_MODES = ("default", "warn", "error")


def set_warn_always(b: bool) -> None:
    """set_warn_always(b): are warnings that are said once said every time?"""
    repeating[0] = bool(b)


def is_warn_always_enabled() -> bool:
    """is_warn_always_enabled(): what `set_warn_always` was given."""
    return repeating[0]


def set_deterministic_debug_mode(debug_mode: builtins.int | str) -> None:
    """set_deterministic_debug_mode(debug_mode): "default", "warn" or "error", or 0, 1 or 2."""
    if not isinstance(debug_mode, builtins.int | str):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    text, modes = isinstance(debug_mode, str), [*_DEBUG_MODES, *range(3)]
    if debug_mode not in modes:
        expected = "one of `default`, `warn`, `error`" if text else "0, 1, or 2"
        raise RuntimeError(
            f"invalid value of debug_mode, expected {expected}, but got {debug_mode}"
        )
    level = modes.index(debug_mode) % 3
    use_deterministic_algorithms(level > 0, warn_only=level == 1)


def get_deterministic_debug_mode() -> builtins.int:
    """get_deterministic_debug_mode(): 0, 1 or 2; every algorithm here is deterministic."""
    if not are_deterministic_algorithms_enabled():
        return 0
    return 1 if is_deterministic_algorithms_warn_only_enabled() else 2


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """is_deterministic_algorithms_warn_only_enabled()."""
    return _Settings.warn_only


def set_flush_denormal(mode: bool) -> bool:
    """set_flush_denormal(mode): False, denormal numbers are always kept."""
    return not mode


def _assert(condition: Any, message: str) -> None:
    """_assert(condition, message): Python's assert, as a function."""
    assert condition, message


def sym_int(a: Any) -> builtins.int:
    """sym_int(a): towards zero."""
    return math.trunc(a)


def sym_float(a: Any) -> builtins.float:
    """sym_float(a)."""
    return builtins.float(a)


def sym_not(a: Any) -> bool:
    """sym_not(a)."""
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """sym_max(a, b): a float if one of them is."""
    return type(a + b)(max(a, b))


def sym_min(a: Any, b: Any) -> Any:
    """sym_min(a, b): a float if one of them is."""
    return type(a + b)(min(a, b))


def sym_sum(args: Any) -> Any:
    """sym_sum(args)."""
    return sum(args)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """sym_ite(b, t, f): `t` if `b`, else `f`."""
    return t if b else f
