"""Object code by content: compiled once per process, and once per machine.

`build` is the door to the JIT for everyone else: text in, loaded library out. In front of LLVM
stand a table of this process and a directory shared by all processes of the user.

Invariants:
- A key covers all that object code depends on: text, options, versions, triple, CPU, features.
  Where writing the text takes long, an identity may stand for it: the caller vouches that one
  identity has one text, in all versions of its own code.
- An entry is believed only if its magic, version, key, length and checksum fit; otherwise it is
  a miss and is written anew. It is raw bytes, never a pickle: reading one runs nothing.
- The directory is ours alone (our user, no write permission for others), because what is in it
  will run. A directory that is not is left untouched, and nothing is cached.
- Entries appear by rename, so that a reader sees a whole entry or none. No locks: two processes
  may compile the same text, and either entry will do.
- Any error of the file system loses the cache, never the program.

Environment, read at every use: `WENGERT_CACHE=0` disables the directory, `WENGERT_CACHE_DIR`
moves it (default: `wengert` in the XDG cache directory), `WENGERT_CACHE_SIZE` limits it (bytes).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import stat
import struct
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from functools import cache as once
from pathlib import Path
from typing import Any

from ..ir.events import log
from . import forking, jit

FORMAT = 1
MAGIC = b"WENGERT\0"
HEADER = struct.Struct("<8sI32sQ32s")  # magic, format, key, length of the code, its sha256
SUFFIX = ".object"

DEFAULT_LIMIT = 512 << 20
MEMORY_LIMIT = 64 << 20
# Eviction stops below the limit, so that a full cache is not swept again at the next entry.
EVICT_TO = 0.8
# Between sweeps, so many entries are written on trust: a sweep reads the whole directory.
PUTS_PER_SWEEP = 64
ABANDONED_AFTER = 3600.0


@dataclass(frozen=True)
class Info:
    """What the directory holds, and why it is not in use when it is not."""

    directory: Path
    enabled: bool
    reason: str
    entries: int
    bytes: int
    limit: int


_lock = forking.hold(threading.Lock())
_memory: OrderedDict[bytes, bytes] = OrderedDict()
_memory_bytes = 0
_compiling: dict[bytes, threading.Lock] = {}
forking.renew(_compiling.clear)
# At random, because most processes write a few entries only: all of them together sweep as often.
_puts_to_sweep = random.Random().randrange(PUTS_PER_SWEEP)


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
        code = _recall(key)
        if code is None:
            code = _read(key)
            if code is None:
                log("cache", lambda: f"{key.hex()[:12]} not found: compiling")
                return _compile(key, text, options)
            log("cache", lambda: f"{key.hex()[:12]} found on disk")
            _remember(key, code)
        return code


def prepare(texts: Iterable[tuple[str | Unwritten, jit.Options]], workers: int) -> None:
    """Gets the object code of all texts, compiling several at a time; `build` then finds it.

    Errors are left to `build`, which meets them again.
    """
    waiting = [(t, o) for t, o in texts if _recall(key_of(t, o)) is None]
    if len(waiting) < 2:
        return

    def work() -> None:
        while waiting:
            with contextlib.suppress(IndexError, jit.JitError):
                text, options = waiting.pop(0)
                object_code(text, options=options)

    count = min(workers, len(waiting))
    others = [threading.Thread(target=work) for _ in range(count - 1)]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        thread.join()


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


class Kept:
    """Bytes kept in the directory under keys of the caller's, who vouches for what is put there
    and reads nothing else: the door for compiled templates."""

    def get(self, key: bytes) -> bytes | None:
        return _read(key)

    def put(self, key: bytes, code: bytes) -> None:
        _write(key, code)


def info() -> Info:
    """The state of the directory."""
    directory, reason = _directory(create=False)
    entries = list(_entries(directory)) if not reason else []
    return Info(
        directory, not reason, reason, len(entries), sum(size for _, size, _ in entries), _limit()
    )


def clear() -> int:
    """Forgets all code, here and in the directory; returns how many entries were removed.

    Loaded libraries keep working: they have their own copy.
    """
    global _memory_bytes
    with _lock:
        _memory.clear()
        _memory_bytes = 0
    directory, reason = _directory(create=False)
    if reason:
        return 0
    return sum(_remove(path) for path, _, _ in list(_entries(directory)))


def _compile(key: bytes, text: str | Unwritten, options: jit.Options) -> bytes:
    written = text if isinstance(text, str) else text.write()
    code = jit.compile_text(written, options=options)
    _remember(key, code)
    _write(key, code)
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


# The directory


def _directory(*, create: bool) -> tuple[Path, str]:
    """The directory, and the reason for not using it ("" when it is fine)."""
    path = _chosen_directory()
    if os.environ.get("WENGERT_CACHE", "1").lower() in ("0", "off", "false", "no"):
        return path, "disabled by WENGERT_CACHE"
    try:
        if create:
            path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                path.mkdir(mode=0o700)
        return path, _mistrust(path)
    except OSError as error:
        return path, f"not usable: {error.strerror or error}"


def _chosen_directory() -> Path:
    named = ("WENGERT_CACHE_DIR", "XDG_CACHE_HOME", "HOME")
    return _place(*(os.environ.get(name, "") for name in named))


@once
def _place(chosen: str, base: str, home: str) -> Path:
    """The directory that these variables name; relative to where the process was at first."""
    if chosen:
        return Path(chosen).expanduser().absolute()
    # The XDG specification tells programs to ignore relative paths.
    if Path(base).is_absolute():
        return Path(base) / "wengert"
    try:
        return Path.home() / ".cache" / "wengert"
    except RuntimeError:  # no home directory
        return Path("/nonexistent/wengert")


def _mistrust(path: Path) -> str:
    status = path.stat()
    if not stat.S_ISDIR(status.st_mode):
        return "not a directory"
    if hasattr(os, "getuid"):
        if status.st_uid != os.getuid():
            return f"owned by another user (uid {status.st_uid})"
        if status.st_mode & 0o022:
            return f"writable by others (mode {stat.S_IMODE(status.st_mode):04o}); chmod go-w it"
    return ""


def _limit() -> int:
    chosen = os.environ.get("WENGERT_CACHE_SIZE", "")
    return int(chosen) if chosen.isdigit() else DEFAULT_LIMIT


def _path(directory: Path, key: bytes) -> Path:
    return directory / (key.hex() + SUFFIX)


def _read(key: bytes) -> bytes | None:
    directory, reason = _directory(create=False)
    if reason:
        return None
    path = _path(directory, key)
    try:
        with path.open("rb") as file:
            owner, data = os.fstat(file.fileno()).st_uid, file.read()
    except OSError:
        return None
    reason = _fault(data, key) or _strangers(owner)
    if reason:
        log("cache", lambda: f"{key.hex()[:12]} {reason}: will be replaced")
        return None
    # Last use, for eviction. Not the access time: most systems do not keep it.
    with contextlib.suppress(OSError):
        os.utime(path)
    return data[HEADER.size :]


def _fault(data: bytes, key: bytes) -> str:
    """Why an entry is not to be believed; "" if it is."""
    if len(data) < HEADER.size:
        return "is cut off"
    magic, version, of, length, checksum = HEADER.unpack_from(data)
    code = memoryview(data)[HEADER.size :]
    if magic != MAGIC:
        return "is no entry of this cache"
    if version != FORMAT:
        return f"has format {version}, not {FORMAT}"
    if of != key:
        return "is the entry of another key"
    if length != len(code):
        return f"has {len(code)} bytes of code, not {length}"
    return "" if hashlib.sha256(code).digest() == checksum else "is damaged"


def _strangers(owner: int) -> str:
    ours = not hasattr(os, "getuid") or owner == os.getuid()
    return "" if ours else f"is owned by another user (uid {owner})"


def _write(key: bytes, code: bytes) -> None:
    global _puts_to_sweep
    directory, reason = _directory(create=True)
    if reason:
        return
    header = HEADER.pack(MAGIC, FORMAT, key, len(code), hashlib.sha256(code).digest())
    try:
        _write_whole(_path(directory, key), header + code)
        with _lock:
            _puts_to_sweep -= 1
            sweep = _puts_to_sweep < 0
            if sweep:
                _puts_to_sweep = PUTS_PER_SWEEP
        if sweep:
            _sweep(directory, _limit())
    except OSError:
        pass


def _write_whole(path: Path, data: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _entries(directory: Path) -> Iterator[tuple[Path, int, float]]:
    """Path, size and last use of each entry; strangers' files are not ours to count or remove."""
    with contextlib.suppress(OSError):
        for item in os.scandir(directory):
            # Another process may remove it between the listing and the question.
            with contextlib.suppress(OSError):
                if item.name.endswith(SUFFIX):
                    status = item.stat()
                    yield Path(item.path), status.st_size, status.st_mtime


def _sweep(directory: Path, limit: int) -> None:
    """Removes the least recently used entries of a full directory, and abandoned halves."""
    oldest_first = sorted(_entries(directory), key=lambda entry: entry[2])
    total = sum(size for _, size, _ in oldest_first)
    if total > limit:
        for path, size, _ in oldest_first:
            if total <= limit * EVICT_TO:
                break
            total -= size
            _remove(path)
    for half in directory.glob(".*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - half.stat().st_mtime > ABANDONED_AFTER:
                half.unlink()


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True
