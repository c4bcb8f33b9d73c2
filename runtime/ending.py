"""The end of the process waits for threads that are in LLVM.

LLVM's own objects go when the process exits, under the feet of a thread that compiles: it would
abort. Threads of ours are waited for by Python. Daemon threads of users, which may compile as well,
are not; so those that are inside are waited for here, and no other one enters.
"""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from . import forking

LONGEST = 60.0  # seconds: what takes longer is stuck

_changed = threading.Condition()
_inside = 0
_ending = False


@contextmanager
def in_llvm() -> Iterator[None]:
    """While this thread is in LLVM."""
    global _inside
    with _changed:
        if _ending and threading.current_thread() is not threading.main_thread():
            sys.exit()  # as Python ends such threads a moment later
        _inside += 1
    try:
        yield
    finally:
        with _changed:
            _inside -= 1
            _changed.notify_all()


@atexit.register
def _wait() -> None:
    global _ending
    with _changed:
        _ending = True
        _changed.wait_for(lambda: not _inside, LONGEST)


def _in_child() -> None:
    """Threads that were inside are not here."""
    global _changed, _inside
    _changed, _inside = threading.Condition(), 0


forking.renew(_in_child)
forking.wait_while(lambda: _inside > 0)  # a child would wait for what they hold in LLVM
