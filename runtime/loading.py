"""The native code of Programs: what all of them need, and their own modules, loaded once."""

from __future__ import annotations

import os
import string
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from functools import cache as once
from pathlib import Path
from typing import Any

from ..ir.program import Module, Program
from . import cache, fastcall, forking, jit, memory, threads

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
_forks = 0  # that wait


def _may_begin() -> bool:
    return not _forks and threading.main_thread().is_alive()


def ahead(work: Iterable[_Work]) -> None:
    """Begins to compile; see Note [Compiling ahead]."""
    with _lock:
        if not _may_begin():
            return  # who loads it compiles it
        _waiting.extend(work)
        for _ in range(min(_compilers() - len(_compiling), len(_waiting))):
            thread = threading.Thread(target=_compile)
            try:
                thread.start()
            except RuntimeError:  # too many, or the process is ending: who loads it compiles it
                return
            _compiling.add(thread)


def _compile() -> None:
    while True:
        with _lock:
            if not (_waiting and _may_begin()):
                _compiling.discard(threading.current_thread())
                return
            text, options = _waiting.popleft()
        with suppress(Exception):  # whoever loads it meets the error again
            cache.object_code(text, options=options)


def settle() -> None:
    """Waits for what is being compiled ahead."""
    global _forks
    with _lock:
        _forks += 1
        under_way = list(_compiling)
    for thread in under_way:
        thread.join()
    with _lock:
        _forks -= 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=settle)


@once
def start() -> None:
    """Begins to compile what every program needs."""
    ahead([(fastcall.text(), jit.LIGHT), (threads.pool_text(threads.sleep_kind()), jit.BRIEF),
           (runner_text(), jit.LIGHT), (ENTRY, jit.LIGHT), (memory.ARENA, jit.BRIEF)])  # fmt: skip


@once
def start_backward() -> None:
    """Begins to compile what backward needs where it is a call of its own."""
    ahead([(fastcall.text(fastcall.BACKWARD), jit.LIGHT)])


def begin(module: Module) -> None:
    """Begins to compile a module of a program."""
    with _lock:
        known = (module.identity, module.light) in _libraries
    if not known:
        ahead([unwritten(module)])


def unwritten(module: Any) -> tuple[cache.Unwritten, jit.Options]:
    """A module as `cache.build` takes it."""
    options = jit.LIGHT if module.light else jit.DEFAULT
    return cache.Unwritten(module.identity, lambda: module.text), options


@once
def _compilers() -> int:
    """How many threads compile; asked once, because the answer lies in several files."""
    return threads.available_cpus()


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
