"""The native code of Programs: what all of them need, and their own modules, loaded once."""

from __future__ import annotations

import os
import string
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache as once
from functools import partial
from pathlib import Path
from typing import Any

from ..ir.program import Module, Program
from . import cache, calling, fastcall, forking, jit, memory, threads
from .improving import Improving

ENTRY = """
@wengert_table = external global i64
declare i64 @wengert_run(ptr, ptr, ptr)
define i64 @entry(ptr %pointers, ptr %arena) nounwind {
  %status = call i64 @wengert_run(ptr @wengert_table, ptr %pointers, ptr %arena)
  ret i64 %status
}
"""

_libraries: weakref.WeakValueDictionary[tuple[str, bool], jit.Library] = (
    weakref.WeakValueDictionary())  # fmt: skip
_lock = forking.hold(threading.Lock())


@once
def runner_text() -> str:
    text = string.Template(Path(__file__).with_name("run.ll").read_text())
    return text.substitute(CLOCK=6 if sys.platform == "darwin" else 1)


@jit.kept
def runner() -> jit.Library:
    """The code that walks launch tables."""
    return cache.build(runner_text(), ["wengert_run", "wengert_copy"],
                       {"wengert_parallel": threads.address()}, options=jit.LIGHT)  # fmt: skip


# Note [Compiling ahead]
# The call that records a function has its results from the recording, so it need not wait for LLVM.
# Modules are compiled in a few threads as soon as they are known, while others are still being
# planned and while the caller goes on; whoever loads a program waits for what is under way, and
# compiles itself what is not. A fork waits too, for a child would not have these threads; so does
# the end of the process. Both wait for what is under way only: other threads may go on and on.
_Work = tuple[str | cache.Unwritten, jit.Options]
_waiting: deque[_Work] = deque()
_compiling: set[threading.Thread] = set()
_improving: set[threading.Thread] = set()
_forks = 0  # that wait
_told: set[tuple[str, bool]] = set()  # modules that wait or are being compiled, as in `_libraries`


def _may_begin() -> bool:
    return not _forks and threading.main_thread().is_alive()


def ahead(work: Iterable[_Work]) -> None:
    """Begins to compile; see Note [Compiling ahead]."""
    with _lock:
        if not _may_begin():
            return  # who loads it compiles it
        _waiting.extend(work)
        for _ in range(min(threads.available_cpus() - len(_compiling), len(_waiting))):
            if not _begun(_compile, _compiling):
                return


def _begun(target: Callable[[], None], among: set[threading.Thread]) -> bool:
    """Starts a thread, which is one of these until it ends."""
    thread = threading.Thread(target=target)
    try:
        thread.start()
    except RuntimeError:  # too many, or the process is ending: who loads it compiles it
        return False
    among.add(thread)
    return True


def _compile() -> None:
    while True:
        with _lock:
            if not (_waiting and _may_begin()):
                _compiling.discard(threading.current_thread())
                return
            text, options = _waiting.popleft()
        with suppress(Exception):  # whoever loads it meets the error again
            cache.object_code(text, options=options)
        if isinstance(text, cache.Unwritten):
            with _lock:
                _told.discard((text.identity, options.light))


def settle() -> None:
    """Waits for what is being compiled ahead."""
    _before_fork()
    _after_fork()


def _before_fork() -> None:
    """Waits for what is being compiled ahead; nothing new begins until `_after_fork`."""
    global _forks
    with _lock:
        _forks += 1
        under_way = [*_compiling, *_improving]
    for thread in under_way:
        thread.join()


def _after_fork() -> None:
    global _forks
    with _lock:
        _forks -= 1


def _in_child() -> None:
    """What waits has no thread here, and forks of other threads are none of this process."""
    global _forks
    _forks = 0
    for some in (_waiting, _compiling, _improving, _told):
        some.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)


@once
def start() -> None:
    """Begins to compile what every program needs."""
    ahead([fastcall.calls.work(), (threads.pool_text(threads.sleep_kind()), jit.BRIEF),
           (runner_text(), jit.LIGHT), (ENTRY, jit.LIGHT), (memory.ARENA, jit.BRIEF),
           (calling.text(), jit.LIGHT)])  # fmt: skip


@once
def start_backward() -> None:
    """Begins to compile what backward needs where it is a call of its own."""
    ahead([fastcall.backward.work()])


def improve() -> None:
    """Begins to compile better code for native calls; see Note [Brief first]."""
    if not _may_begin():
        return
    # before the lock is taken, for they have one, too
    briefs = [code for code in (fastcall.calls, fastcall.backward) if code.may_improve()]
    if briefs:
        with _lock:
            if _may_begin():
                _begun(partial(_improve, briefs), _improving)


def _improve(briefs: list[Improving]) -> None:
    with suppress(Exception):  # what there is goes on to serve
        for code in briefs:
            code.improve()
    with _lock:
        _improving.discard(threading.current_thread())


def begin(module: Module) -> None:
    """Begins to compile a module of a program, unless that was done."""
    key = module.identity, module.light
    with _lock:
        known = key in _libraries or key in _told or not _may_begin()
        if not known:
            _told.add(key)
    ahead([] if known else [unwritten(module)])


def unwritten(module: Any) -> tuple[cache.Unwritten, jit.Options]:
    """A module as `cache.build` takes it."""
    options = jit.LIGHT if module.light else jit.DEFAULT
    return cache.Unwritten(module.identity, lambda: module.text), options


class Code:
    """The loaded functions of a program, by symbol."""

    def __init__(self, program: Program) -> None:
        self.libraries: list[jit.Library] = [runner()]
        self.symbols = {"wengert_parallel": threads.address(),
                        "wengert_copy": runner().address("wengert_copy")}  # fmt: skip
        # those that others import come first
        for module in sorted(program.modules, key=lambda m: not m.shared):
            self.load(module)

    def load(self, module: Any) -> None:
        key = module.identity, module.light
        with _lock:
            library = _libraries.get(key)
        if library is None:
            imports = {name: self.symbols[name] for name in module.imports}
            text, options = unwritten(module)
            library = cache.build(text, module.symbols, imports, options=options)
            with _lock:
                _libraries[key] = library
        self.libraries.append(library)
        for name in module.symbols:
            self.symbols[name] = library.address(name)
