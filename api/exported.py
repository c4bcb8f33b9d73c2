"""`load_exported(dir)`: runs what `fn.export(dir)` wrote; needs neither llvmlite nor jinja2."""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import json
import platform
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .ir.types import BY_NAME
from .tracer.tensor import Tensor

VERSION = 1
WATCHED = ("avx", "avx2", "fma", "avx512f", "avx512vl", "avx512bw", "avx512dq", "bmi2")


class Stage:
    """Forward or backward as a function of arrays."""

    def __init__(self, library: Any, facts: dict[str, Any]):
        self.inputs, self.outputs = facts["inputs"], facts["outputs"]
        self.arena, self.errors, self.symbol = facts["arena"], facts["errors"], facts["symbol"]
        self.function = getattr(library, facts["symbol"])
        self.function.restype = ctypes.c_int64
        self.function.argtypes = [ctypes.c_void_p] * 3

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """The outputs; inputs that are written are changed in place."""
        if len(arrays) != len(self.inputs):
            raise TypeError(f"{self.symbol} takes {len(self.inputs)} arrays, got {len(arrays)}")
        fitted = [self.fit(k, array) for k, array in enumerate(arrays)]
        made = [np.empty(o["shape"], o["storage"]) for o in self.outputs]
        scratch = np.empty(self.arena + 64, np.uint8)
        start = -(-scratch.ctypes.data // 64) * 64
        status = self.function(pointers(fitted), pointers(made), start)
        if status:
            name, message = self.errors[status - 1]
            raise getattr(builtins, name)(message)
        for array, used, facts in zip(arrays, fitted, self.inputs):
            if facts["written"] and used is not array:
                np.copyto(array, used)
        return made

    def fit(self, k: int, array: Any) -> np.ndarray:
        facts = self.inputs[k]
        array = np.asarray(array)
        if list(array.shape) != facts["shape"] or array.dtype != np.dtype(facts["storage"]):
            raise TypeError(f"{self.symbol}: input {k} {facts['name']!r} must be {facts['type']}, "
                            f"got {array.dtype}{list(array.shape)}")  # fmt: skip
        return np.ascontiguousarray(array)


def pointers(arrays: list[np.ndarray]) -> Any:
    return (ctypes.c_void_p * (len(arrays) + 1))(*[a.ctypes.data for a in arrays])


@contextlib.contextmanager
def reading(home: Path) -> Iterator[None]:
    """Says that the folder is damaged, where something in it is not as it was written."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OSError, EOFError, MemoryError,
            zipfile.BadZipFile) as error:  # fmt: skip
        raise RuntimeError(
            f"{home} is no exported function, or is damaged: {type(error).__name__}: {error}; call "
            "export() again"
        ) from None


def check_stage(facts: dict[str, Any]) -> None:
    """What a stage says must be numbers and names of the kinds that `export` writes."""
    for array in (*facts["inputs"], *facts["outputs"]):
        if np.dtype(array["storage"]).kind not in "biufc":
            raise ValueError(f"dtype {array['storage']!r}")
        if not all(type(n) is int and n >= 0 for n in array["shape"]):
            raise ValueError(f"shape {array['shape']!r}")
    if type(facts["arena"]) is not int or facts["arena"] < 0:
        raise ValueError(f"arena {facts['arena']!r}")
    for name, message in facts["errors"]:
        kind = getattr(builtins, name)
        if not (isinstance(kind, type) and issubclass(kind, Exception) and type(message) is str):
            raise ValueError(f"error {name!r}")


class Exported:
    """An exported function: call it with its arguments, or its stages with arrays.

    >>> model = wengert.load_exported("model")
    >>> y = model(x)
    """

    def __init__(self, folder: Any):
        home = Path(folder)
        self.manifest = json.loads((home / "manifest.json").read_text())
        with reading(home):
            self.read(home)

    def read(self, home: Path) -> None:
        manifest = self.manifest
        if manifest["version"] != VERSION:
            raise RuntimeError(f"{home} has format {manifest['version']}; this version reads "
                               f"{VERSION}; call export() again")  # fmt: skip
        check_machine(manifest)
        name, stages = manifest["library"], manifest["stages"]
        for facts in stages.values():
            check_stage(facts)
        if Path(name).name != name:
            raise ValueError(f"the library {name!r} is not in the folder")
        library = ctypes.CDLL(str(home / name))
        self.forward = Stage(library, stages["forward"])
        self.backward = Stage(library, stages["backward"]) if "backward" in stages else None
        path = home / "weights.npz"
        with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            self.weights = {int(key[5:]): kept[key].copy() for key in kept.files}

    def arrays(self, arguments: Any) -> list[np.ndarray]:
        """All inputs of forward: arguments by place, the rest as it was at export."""
        found = []
        for k, facts in enumerate(self.forward.inputs):
            place = facts["argument"]
            if place is not None:
                value = arguments[place]
                storage = np.dtype(facts["storage"])
                found.append(value._array if isinstance(value, Tensor)
                             else np.asarray(value, storage))  # fmt: skip
            elif k in self.weights:
                found.append(self.weights[k])
            else:
                raise TypeError(f"input {facts['name']!r} has no value: it was not there at export")
        return found

    def __call__(self, *arguments: Any) -> Any:
        """The results as tensors without history; one alone, several as a tuple."""
        return self.results(self.forward(*self.arrays(arguments)))

    def results(self, made: list[np.ndarray]) -> Any:
        """Those outputs of forward that the function returns."""
        found = tuple(
            Tensor._wrap(array, BY_NAME[facts["dtype"]])
            for array, facts in zip(made, self.forward.outputs) if facts["kind"] == "result"
        )  # fmt: skip
        return found[0] if len(found) == 1 else found

    def value_and_grads(self, *arguments: Any, grads: Any = None) -> tuple[Any, list[Tensor]]:
        """Results, and the gradients backward gives for `grads` (default: ones)."""
        if self.backward is None:
            raise RuntimeError("no backward was exported: nothing required grad; call the function "
                               "with something that does before export()")  # fmt: skip
        inputs = self.arrays(arguments)
        made = self.forward(*inputs)
        kinds = [facts["kind"] for facts in self.forward.outputs]
        saved = [a for a, kind in zip(made, kinds) if kind == "saved"]
        saved += [inputs[k] for k in self.manifest["saved_inputs"]]
        seeds = self.backward.inputs[len(saved) :]
        given = grads or [np.ones(s["shape"], s["storage"]) for s in seeds]
        given = [g._array if isinstance(g, Tensor) else g for g in given]
        found = self.backward(*saved, *given)
        wrapped = [Tensor._wrap(a, BY_NAME[f["dtype"]])
                   for a, f in zip(found, self.backward.outputs)]  # fmt: skip
        return self.results(made), wrapped


def check_machine(manifest: dict[str, Any]) -> None:
    """Code for another machine must not run: it would stop the process."""
    made_for = manifest["triple"].split("-")[0]
    here = {"amd64": "x86_64", "arm64": "aarch64"}.get(
        platform.machine().lower(), platform.machine().lower())  # fmt: skip
    if made_for.replace("arm64", "aarch64") != here:
        raise RuntimeError(f"exported for {made_for}, this machine is {here}")
    cpu = Path("/proc/cpuinfo")
    if here == "x86_64" and cpu.exists():
        flags = next(
            (line for line in cpu.read_text().splitlines() if line.startswith("flags")), ""
        )
        missing = [f for f in WATCHED if f in manifest["features"] and f not in flags.split()]
        if missing:
            raise RuntimeError(f"exported for a CPU with {', '.join(missing)}, which is missing "
                               "here; export it on this machine")  # fmt: skip


def load_exported(folder: Any) -> Exported:
    """Loads what `fn.export(folder)` wrote."""
    return Exported(folder)
