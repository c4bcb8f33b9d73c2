"""Locks and `fork`: a child has only the thread that forked, so what others held stays locked.

Locks that are held for moments are taken before a fork and given back after it, on both sides
(`hold`). Those that may be held for long are made anew in the child (`renew`).
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

_held: list[Any] = []
_busy: list[Callable[[], bool]] = []
TRIES, PAUSE = 400, 0.005  # until modules are loaded


def wait_while(is_busy: Callable[[], bool]) -> None:
    """Forks wait while `is_busy()`, for two seconds at most."""
    _busy.append(is_busy)


def hold(lock: Any) -> Any:
    """`lock`, which nobody will have when the process forks."""
    _held.append(lock)
    return lock


def renew(in_child: Callable[[], None]) -> None:
    """Calls `in_child` in every child."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=in_child)


# ours, and what we load when it is first needed
LOADED_LATE = {__name__.partition(".")[0], "jinja2", "markupsafe", "llvmlite", "numpy"}
TEMPLATES = "_jinja2_module_templates"  # what jinja2 calls the packages of compiled ones


def _is_ours(name: str) -> bool:
    root = name.partition(".")[0]
    return root in LOADED_LATE or root.startswith(TEMPLATES)


def _is_importing() -> bool:
    """Is such a module half loaded, or looked for by another thread?

    A child would wait for the thread that loads it.
    """
    for name in filter(_is_ours, list(sys.modules)):
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if getattr(spec, "_initializing", False):
            return True
    return any(map(_is_ours, _locked_elsewhere()))


def _locked_elsewhere() -> list[str]:
    """Modules whose locks other threads hold, as from when they are looked for on."""
    locks = getattr(importlib._bootstrap, "_module_locks", {})  # type: ignore[attr-defined]
    held = [(name, lock()) for name, lock in list(locks.items())]
    return [name for name, lock in held
            if getattr(lock, "owner", None) not in (None, threading.get_ident())]  # fmt: skip


wait_while(_is_importing)


def _take() -> None:
    for _ in range(TRIES):
        for lock in _held:
            lock.__enter__()
        if not any(is_busy() for is_busy in _busy):
            return
        _give()
        time.sleep(PAUSE)
    for lock in _held:  # this thread itself forks while it imports
        lock.__enter__()


def _give() -> None:
    for lock in reversed(_held):
        lock.__exit__(None, None, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take, after_in_parent=_give, after_in_child=_give)
