"""Locks and `fork`: a child has only the thread that forked, so what others held stays locked.

Locks that are held for moments are taken before a fork and given back after it, on both sides
(`hold`). Those that may be held for long are made anew in the child (`renew`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

_held: list[Any] = []


def hold(lock: Any) -> Any:
    """`lock`, which nobody will have when the process forks."""
    _held.append(lock)
    return lock


def renew(in_child: Callable[[], None]) -> None:
    """Calls `in_child` in every child."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=in_child)


def _take() -> None:
    for lock in _held:
        lock.__enter__()


def _give() -> None:
    for lock in reversed(_held):
        lock.__exit__(None, None, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take, after_in_parent=_give, after_in_child=_give)
