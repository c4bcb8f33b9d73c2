"""The machine that code is for, and the LLVM that makes it.

Only LLVM can say how it sees a CPU, but importing it takes 40 ms. So its answer is kept, under
what can be seen from outside: how the system describes the CPU, and which file LLVM is.
"""

from __future__ import annotations

import hashlib
import importlib.util
import marshal
import sys
from dataclasses import astuple, dataclass
from pathlib import Path

from . import store

LIBRARY = "binding/libllvmlite.so"  # in llvmlite's folder
CPUINFO = Path("/proc/cpuinfo")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
# Its lines that say what a CPU can do; others are of one core, or of the moment.
TELLING = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags",
           "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision",
           "Features")  # fmt: skip


@dataclass(frozen=True)
class Host:
    """Object code is only valid for an equal one."""

    llvmlite: str
    llvm: str
    triple: str
    cpu: str
    features: str


def caches() -> tuple[int, int] | None:
    """Bytes of a core's caches for data, the first two; None where the system does not say."""
    found: dict[str, int] = {}
    try:
        for entry in sorted(CACHES.glob("index*")):
            level, kind, size = ((entry / name).read_text().strip()
                                 for name in ("level", "type", "size"))  # fmt: skip
            if kind != "Instruction" and size.endswith("K"):
                found[level] = int(size[:-1]) << 10
    except (OSError, ValueError):
        return None
    return (found["1"], found["2"]) if {"1", "2"} <= found.keys() else None


def recall() -> Host | None:
    """What LLVM said of this machine in another process; None where it is loaded here."""
    key = None if "llvmlite.binding" in sys.modules else _key()
    kept = None if key is None else store.get(key)
    return None if kept is None else Host(*marshal.loads(kept))


def keep(host: Host) -> None:
    """Keeps what LLVM said."""
    key = _key()
    if key is not None:
        store.put(key, marshal.dumps(astuple(host)))


def _key() -> bytes | None:
    """What stands for this machine and this LLVM; None where they can't be seen."""
    try:
        with CPUINFO.open() as file:
            first = file.read(1 << 13).split("\n\n")[0].splitlines()
        spec = importlib.util.find_spec("llvmlite")
        if spec is None or spec.origin is None:
            return None
        library = Path(spec.origin).parent / LIBRARY
        status = library.stat()
    except (OSError, ValueError):
        return None
    cpu = [line for line in first if line.split("\t")[0].strip() in TELLING]
    llvm = (str(library), status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return hashlib.sha256(repr(("host", cpu, llvm)).encode()).digest()
