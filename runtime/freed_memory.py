"""Keeps the memory of dropped arrays in the process: see docs/decisions/0010.

A training step drops as much as it makes. glibc hands large blocks back to the system when they
are freed, and the next step gets them anew, a page fault for every 4 KB: a third of the time of
large pointwise ops. Told so once, it keeps what was freed, up to a limit, and uses it again.
"""

from __future__ import annotations

import ctypes
import os
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_BLOCK = 32 << 20  # the most that glibc takes from the part of memory it keeps
MOST_KEPT = 1 << 30
SET_BY_USER = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES", "LD_PRELOAD")


def keep() -> bool:
    """Asks glibc to keep freed memory, unless the user has settings of his own.

    `WENGERT_KEEP_MEMORY` is how many bytes at most; 0 changes nothing.
    """
    if not sys.platform.startswith("linux") or any(name in os.environ for name in SET_BY_USER):
        return False
    limit = int(os.environ.get("WENGERT_KEEP_MEMORY", default_limit()))
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or limit <= 0:
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGEST_BLOCK) and mallopt(
        M_TRIM_THRESHOLD, min(limit, 2**31 - 1)))  # fmt: skip


def give_back() -> None:
    """Hands what is kept back to the system: it was needed for what does not come again."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def default_limit() -> int:
    """An eighth of the machine's memory, and at most `MOST_KEPT`."""
    try:
        return min(MOST_KEPT, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8)
    except (ValueError, OSError):
        return MOST_KEPT
