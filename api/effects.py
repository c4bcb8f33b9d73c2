"""What a body does besides tensors: output, random numbers of Python's, the clock.

Replaying native code would leave these out, so a body that does them runs in Python at each call.
Output and draws are seen while recording; for the clock and files the code is looked at.
"""

from __future__ import annotations

import builtins
import dataclasses
import itertools
import random
import reprlib
import sys
import threading
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .quiet_code import codes_in, globals_read
from .tracer.recorded import place_text

CLOCKS = ("time", "datetime")  # modules whose answers differ at each call
REPORTS = ("warnings", "logging")
WORKERS = ("concurrent", "multiprocessing", "asyncio")
# of `threading`, beside its locks: what starts threads, or tells which one runs
STARTERS = {"Thread", "Timer", "start_new_thread", "current_thread", "get_ident", "get_native_id",
            "active_count", "enumerate"}  # fmt: skip
FILES = ("open", "input")
OUTSIDE = {"glob", "shutil", "subprocess", "socket", "tempfile", "urllib", "fileinput"}
SYSTEM = {"os", "posix", "nt", "posixpath", "ntpath", "genericpath", "pathlib"}
# what these tell of files and processes, beside names and the environment
TOLD = {"listdir", "scandir", "walk", "stat", "lstat", "access", "exists", "lexists", "isfile",
        "isdir", "islink", "getsize", "getmtime", "getatime", "getctime", "getcwd", "getpid",
        "getppid", "urandom", "popen", "system", "iterdir", "is_file", "is_dir", "read_text",
        "read_bytes", "rglob", "cwd"}  # fmt: skip
OF_PATHS = {"read_text", "read_bytes", "iterdir", "is_file", "is_dir", "rglob"}  # nobody else's

# code that uses id() and the thread to find an object inside itself, while it is printed: nothing
# depends on it
RECURSIONS = {dataclasses.__file__, reprlib.__file__}


class Effects:
    """Watches a recording; `problems` say what was seen."""

    def __init__(self, functions: list[types.FunctionType]):
        self.functions = functions
        self.problems: list[str] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        before, out, err = draws(), sys.stdout, sys.stderr
        mine = threading.get_ident()
        sys.stdout, sys.stderr = Watched(out, self, mine), Watched(err, self, mine)
        warn = warnings.warn
        warnings.warn = self.noting(warn, mine)
        try:
            yield
        finally:
            sys.stdout, sys.stderr = out, err
            warnings.warn = warn
        if draws() != before:
            self.problems.append("the body draws random numbers of Python's or NumPy's; draw with "
                                 "the library's random functions")  # fmt: skip
        for function in self.functions:
            self.problems += problems_in(function)

    def noting(self, warn: Any, thread: int) -> Any:
        """`warn`, which notes what one thread does: filters may hide it now, and not later."""

        def noted(message: Any, category: Any = None, stacklevel: int = 1, *more: Any,
                  **named: Any) -> None:  # fmt: skip
            if threading.get_ident() == thread and not self.problems:
                self.problems.append(f"a function that the body calls warns ({place_text()}); heed "
                                     "the warning, or call it outside")  # fmt: skip
            warn(message, category, stacklevel + 1, *more, **named)

        return noted


def problems_in(function: types.FunctionType) -> Iterator[str]:
    """What the code of a function does besides tensors."""
    closed = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    codes = codes_in(function.__code__)
    read = [globals_read(code) for code in codes]
    names = {name for code in codes for name in code.co_names}
    guards_recursion = function.__code__.co_filename in RECURSIONS
    where = f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"
    for name in itertools.chain(closed, *read):
        value = function.__globals__.get(name, getattr(builtins, name, None))
        if name in closed:
            value = getattr(closed[name], "cell_contents", None)
        if module_of(value) in CLOCKS:
            yield f"the body asks for the time ({where}); do so outside"
        elif module_of(value) in REPORTS:
            yield f"the body logs or warns ({where}); do so outside"
        elif is_worker(value, function.__code__) and not guards_recursion:
            yield (f"the body works with other threads ({where}), whose ops no recording sees; do "
                   "so outside")  # fmt: skip
        elif name == "id" and value is id and not guards_recursion:
            yield (f"the body asks for the id() of objects ({where}), which differ at each call; "
                   "pass what it decides by")  # fmt: skip
        elif name in FILES and value is getattr(builtins, name):
            yield f"the body uses open() or input() ({where}); do so outside"
        elif asks_the_system(value, names):
            yield (f"the body asks for files or processes ({where}), which may differ at each "
                   "call; do so outside")  # fmt: skip


class Watched:
    """A stream that notes what one thread writes."""

    def __init__(self, stream: Any, effects: Effects, thread: int):
        self.stream, self.effects, self.thread = stream, effects, thread

    def write(self, text: str) -> Any:
        if threading.get_ident() == self.thread and not self.effects.problems:
            self.effects.problems.append(f"the body prints ({place_text()}); print outside")
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def draws() -> Any:
    """The state of Python's and NumPy's generators."""
    kind, keys, *rest = np.random.get_state()
    return random.getstate(), kind, keys.tobytes(), *rest


def is_worker(value: Any, code: types.CodeType) -> bool:
    """May code that uses a value run some of the user's in other threads or processes?"""
    module = module_of(value).split(".")[0]
    if module in ("threading", "_thread"):
        started = getattr(value if callable(value) else type(value), "__name__", "")
        named = {name for part in codes_in(code) for name in part.co_names}
        return started in STARTERS or (isinstance(value, types.ModuleType)
                                       and not STARTERS.isdisjoint(named))  # fmt: skip
    return module in WORKERS


def asks_the_system(value: Any, names: set[str]) -> bool:
    """May code with these names be told of files or processes by a value?"""
    module = module_of(value).split(".")[0]
    if module in OUTSIDE or not OF_PATHS.isdisjoint(names):
        return True
    if isinstance(value, types.FunctionType | types.BuiltinFunctionType):
        names = {value.__name__}
    return module in SYSTEM and not TOLD.isdisjoint(names)


def module_of(value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return value.__name__
    return getattr(value if callable(value) else type(value), "__module__", None) or ""
