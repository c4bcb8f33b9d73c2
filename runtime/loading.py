"""The native code of Programs: what all of them need, and their own modules, loaded once."""

from __future__ import annotations

import os
import string
import sys
import threading
import weakref
from collections.abc import Iterable
from functools import cache as once
from pathlib import Path
from typing import Any

from ..ir.program import Program
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


@once
def runner() -> jit.Library:
    """The code that walks launch tables."""
    return cache.build(runner_text(), ["wengert_run", "wengert_copy"],
                       {"wengert_parallel": threads.address()}, options=jit.LIGHT)  # fmt: skip


# Note [Compiling ahead]
# The call that records a function has its results from the recording, so it need not wait for LLVM:
# modules are compiled in threads of their own while the caller goes on, and whoever loads a program
# waits for what is left of them. A fork waits too, for a child would not have these threads.
_compiling: list[threading.Thread] = []


def ahead(work: Iterable[cache.Work], workers: int) -> None:
    """Begins to compile; see Note [Compiling ahead]."""
    _compiling[:] = [thread for thread in _compiling if thread.is_alive()]
    _compiling.extend(cache.prepare(work, workers))


def settle() -> None:
    """Waits for all that is being compiled ahead."""
    for thread in list(_compiling):
        thread.join()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=settle)


@once
def start() -> None:
    """Begins to compile what every program needs."""
    texts = [fastcall.text(), threads.pool_text(threads.sleep_kind()), runner_text(), ENTRY,
             memory.ARENA]  # fmt: skip
    ahead([(text, jit.LIGHT) for text in texts], 1)


def begin(program: Program) -> None:
    """Begins to compile the modules of a program."""
    with _lock:
        absent = [m for m in program.modules if (m.identity, m.light) not in _libraries]
    ahead(map(unwritten, absent), _compilers())


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
