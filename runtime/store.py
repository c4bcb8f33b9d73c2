"""The directory that keeps object code, and what else takes long to make, for all processes.

Invariants:
- An entry is believed only if its magic, version, key, length and checksum fit; otherwise it is
  a miss and is written anew. It is raw bytes, never a pickle: reading one runs nothing.
- The directory is ours alone (our user, no write permission for others), because what is in it
  will run. A directory that is not is left untouched, and nothing is kept.
- Entries appear by rename, so that a reader sees a whole entry or none. No locks: two processes
  may make the same entry, and either will do.
- Any error of the file system loses the entry, never the program.

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
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path

from ..ir.events import log
from . import forking

FORMAT = 1
MAGIC = b"WENGERT\0"
HEADER = struct.Struct("<8sI32sQ32s")  # magic, format, key, length of the code, its sha256
SUFFIX = ".object"

DEFAULT_LIMIT = 512 << 20
MOST_ENTRIES = 20_000
# Eviction stops below the limit, so that a full directory is not swept again at the next entry.
EVICT_TO = 0.8
# Between sweeps, so many entries are written on trust, and one for each 32 that there are: a sweep
# reads the whole directory.
PUTS_PER_SWEEP = 64
ABANDONED_AFTER = 3600.0

_lock = forking.hold(threading.Lock())
# At random, because most processes write a few entries only: all of them together sweep as often.
_puts_to_sweep = random.Random().randrange(PUTS_PER_SWEEP)


@dataclass(frozen=True)
class Info:
    """What the directory holds, and why it is not in use when it is not."""

    directory: Path
    enabled: bool
    reason: str
    entries: int
    bytes: int
    limit: int


def info() -> Info:
    """The state of the directory."""
    directory, reason = _directory(create=False)
    entries = list(_entries(directory)) if not reason else []
    return Info(
        directory, not reason, reason, len(entries), sum(size for _, size, _ in entries), _limit()
    )


def clear() -> int:
    """Removes all entries; returns how many."""
    directory, reason = _directory(create=False)
    if reason:
        return 0
    return sum(_remove(path) for path, _, _ in list(_entries(directory)))


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


def get(key: bytes) -> bytes | None:
    """The bytes that were put under `key` (32 bytes), if they are there and sound."""
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


def put(key: bytes, code: bytes) -> None:
    """Keeps bytes under `key`; the caller vouches for them."""
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
            left = _sweep(directory, _limit())
            _puts_to_sweep = max(PUTS_PER_SWEEP, left // 32)
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


def _sweep(directory: Path, limit: int) -> int:
    """Removes the least recently used entries of a full directory, and abandoned halves.

    Returns how many entries are left.
    """
    oldest_first = sorted(_entries(directory), key=lambda entry: entry[2])
    total, count = sum(size for _, size, _ in oldest_first), len(oldest_first)
    if total > limit or count > MOST_ENTRIES:
        for path, size, _ in oldest_first:
            if total <= limit * EVICT_TO and count <= MOST_ENTRIES * EVICT_TO:
                break
            total, count = total - size, count - 1
            _remove(path)
    for half in directory.glob(".*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - half.stat().st_mtime > ABANDONED_AFTER:
                half.unlink()
    return count


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True
