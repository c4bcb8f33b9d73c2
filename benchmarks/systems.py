"""The systems that are compared: how each is imported, kept to its threads, cached and asked."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cases import Case


@dataclass(frozen=True)
class System:
    """A library in one way of using it."""

    name: str
    library: str
    versions: str  # the module that holds its versions of the workloads
    compiled: bool | None = None  # None where the versions decide

    @property
    def ours(self) -> bool:
        return self.library == "wengert"

    def importable(self) -> bool:
        return importlib.util.find_spec(self.library) is not None

    def build(self, spec: str) -> Case:
        """The workload in this system; LookupError where it has no version."""
        from cases import parsed  # not before the library: its import is timed, NumPy included

        name, sizes = parsed(spec)
        found = getattr(importlib.import_module(self.versions), name, None)
        if found is None:
            raise LookupError(f"no {name} in {self.versions}.py")
        if self.compiled is None:
            return found(**sizes)
        return found(importlib.import_module(self.library), self.compiled, **sizes)


SYSTEMS = {
    system.name: system
    for system in (
        System("numpy", "numpy", "peers_numpy"),
        System("torch-eager", "torch", "workloads", False),
        System("torch-compile", "torch", "workloads", True),
        System("jax", "jax", "peers_jax"),
        System("wengert-eager", "wengert", "workloads", False),
        System("wengert-compile", "wengert", "workloads", True),
    )
}


def environment(threads: int, cache: str) -> dict[str, str]:
    """Variables for a worker: the same threads for all, compiled code kept in `cache`.

    Python keeps its bytecode, as it does of installed packages: compiling the source of a checkout
    takes longer than a first call.
    """
    count = str(threads)
    return {
        **os.environ, "PYTHONDONTWRITEBYTECODE": "",
        "OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count, "MKL_NUM_THREADS": count,
        "WENGERT_NUM_THREADS": count, "JAX_PLATFORMS": "cpu",
        "WENGERT_CACHE_DIR": cache, "TORCHINDUCTOR_CACHE_DIR": cache,
        "JAX_COMPILATION_CACHE_DIR": cache, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }  # fmt: skip


def keep_to(threads: int) -> None:
    """As many processors as threads: not every library has a number to set."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


# --- how much a library installs -----------------------------------------------------------------


def installed_size(library: str) -> int:
    """Bytes of a library and of all that it requires."""
    seen: set[str] = set()
    wanted, total = [library], 0
    while wanted:
        name = re.sub(r"[-_.]+", "-", wanted.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # an extra, or for another platform
        total += own_size(found)
        required = [r for r in found.requires or () if "extra ==" not in r]
        wanted += [re.match(r"[\w.-]+", r)[0] for r in required]  # type: ignore[index]
    return total


def own_size(found: Any) -> int:
    """Bytes of one distribution; an editable one is counted where its modules are."""
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        top = found.metadata["Name"]
        names = [n for n in sys.modules if n == top or n.startswith(top + ".")]
        homes = {Path(f).parent for n in names if (f := getattr(sys.modules[n], "__file__", None))}
        files = {
            f for home in homes for f in home.rglob("*.*") if f.suffix in (".py", ".j2", ".ll")
        }
    else:
        files = {Path(found.locate_file(f)) for f in found.files or ()}
    return sum(f.stat().st_size for f in files if f.exists())
