"""Object code by content: compiled once per process, and once per machine.

`build` is the door to the JIT for everyone else: text in, loaded library out. In front of LLVM
stand a table of this process and a directory shared by all processes of the user.

Invariants:
- A key covers all that object code depends on: text, options, versions, triple, CPU, features.
  Where writing the text takes long, an identity may stand for it: the caller vouches that one
  identity has one text, in all versions of its own code.
- Two processes may compile the same text: nobody waits for another, and either code will do.

The directory is `store.py`'s.
"""

from __future__ import annotations

import contextlib
import hashlib
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from functools import cache as once
from typing import Any

from ..ir.events import log
from . import forking, jit, store

FORMAT = 1
MEMORY_LIMIT = 64 << 20

_lock = forking.hold(threading.Lock())
_memory: OrderedDict[bytes, bytes] = OrderedDict()
_memory_bytes = 0
_compiling: dict[bytes, threading.Lock] = {}
forking.renew(_compiling.clear)


@dataclass(frozen=True)
class Unwritten:
    """A text that is written only if it must be compiled; `identity` stands for it."""

    identity: str
    write: Callable[[], str]


def build(
    text: str | Unwritten,
    symbols: Iterable[str],
    imports: Mapping[str, int] | None = None,
    *,
    options: jit.Options = jit.DEFAULT,
) -> jit.Library:
    """Loads `text`, compiled at need.

    >>> library = build("define i64 @two() { ret i64 2 }", ["two"])
    """
    symbols = tuple(symbols)
    try:
        return jit.load(object_code(text, options=options), symbols, imports)
    except jit.JitError:
        # The checksum fitted but LLVM refused it. Compile afresh once: if the text itself or an
        # import is at fault, the same error comes again and is the caller's to see.
        return jit.load(_compile(key_of(text, options), text, options), symbols, imports)


def object_code(text: str | Unwritten, *, options: jit.Options = jit.DEFAULT) -> bytes:
    """Object code of `text`: from this process, from the directory, or from LLVM."""
    key = key_of(text, options)
    code = _recall(key)
    if code is not None:
        log("cache", lambda: f"{key.hex()[:12]} found in this process")
        return code
    with _alone_with(key):
        code = _found(key)
        if code is None:
            log("cache", lambda: f"{key.hex()[:12]} not found: compiling")
            code = _compile(key, text, options)
        return code


def find(text: str | Unwritten, *, options: jit.Options = jit.DEFAULT) -> bytes | None:
    """Object code of `text`, if there is any; nothing is compiled."""
    return _found(key_of(text, options))


def _found(key: bytes) -> bytes | None:
    """From this process or from the directory."""
    code = _recall(key)
    if code is None:
        code = store.get(key)
        if code is not None:
            log("cache", lambda: f"{key.hex()[:12]} found on disk")
            _remember(key, code)
    return code


def key_of(text: str | Unwritten, options: jit.Options) -> bytes:
    """The content address of `text` compiled here."""
    content = ("text", text) if isinstance(text, str) else ("identity", text.identity)
    digest = _digest(jit.host(), options).copy()
    _add(digest, content)
    return digest.digest()


@once
def _digest(host: jit.Host, options: jit.Options) -> Any:
    """What all keys for this machine and these options begin with."""
    digest = hashlib.sha256()
    _add(digest, (str(FORMAT), *astuple(host), repr(options)))
    return digest


def _add(digest: Any, parts: Iterable[str]) -> None:
    for part in parts:
        data = part.encode()
        # Lengths too, or moving a letter from one part to the next would give the same key.
        digest.update(struct.pack("<Q", len(data)))
        digest.update(data)


def clear() -> int:
    """Forgets all code, here and in the directory; returns how many entries were removed.

    Loaded libraries keep working: they have their own copy.
    """
    global _memory_bytes
    with _lock:
        _memory.clear()
        _memory_bytes = 0
    return store.clear()


def _compile(key: bytes, text: str | Unwritten, options: jit.Options) -> bytes:
    written = text if isinstance(text, str) else text.write()
    code = jit.compile_text(written, options=options)
    _remember(key, code)
    store.put(key, code)
    return code


# This process


@contextlib.contextmanager
def _alone_with(key: bytes) -> Iterator[None]:
    """Threads that want the same code wait for the first of them; others do not wait."""
    with _lock:
        lock = _compiling.setdefault(key, threading.Lock())
    try:
        with lock:
            yield
    finally:
        with _lock:
            _compiling.pop(key, None)


def _recall(key: bytes) -> bytes | None:
    with _lock:
        code = _memory.get(key)
        if code is not None:
            _memory.move_to_end(key)
        return code


def _remember(key: bytes, code: bytes) -> None:
    global _memory_bytes
    with _lock:
        _memory_bytes += len(code) - len(_memory.get(key, b""))
        _memory[key] = code
        _memory.move_to_end(key)
        while _memory_bytes > MEMORY_LIMIT:
            _, dropped = _memory.popitem(last=False)
            _memory_bytes -= len(dropped)
