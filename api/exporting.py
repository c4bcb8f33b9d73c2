"""`fn.export(dir)`: a compiled function as a shared library for C and for Python without LLVM.

The folder gets: lib<name>.so, objects/*.o, llvm/*.ll, <name>.h, example.c, weights.npz (values of
parameters and other captured tensors) and manifest.json, which says all of it in data.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from .codegen.render import render
from .ir.graph import SAVED
from .runtime import export as native
from .runtime import jit
from .sources import Argument

VERSION = 1
C_TYPES = {"f32": "float", "f64": "double", "b1": "uint8_t", "f16": "uint16_t", "bf16": "uint16_t",
           "c64": "float", "c128": "double"}  # fmt: skip


def export(function: Any, folder: Any) -> str:
    """Writes the newest trace of a compiled function; returns the folder."""
    segment, executors = exportable(function)
    name = re.sub(r"\W+", "_", function.name).strip("_") or "function"
    stages = dict(zip(("forward", "backward"), executors))
    programs = {f"{name}_{stage}": e.native.program for stage, e in stages.items()}
    texts = native.texts_of(programs)
    objects = native.objects_of(texts)
    home = Path(folder)
    for inner in ("", "objects", "llvm"):
        (home / inner).mkdir(parents=True, exist_ok=True)
    for key, code in objects.items():
        (home / "objects" / f"{key}.o").write_bytes(code)
        (home / "llvm" / f"{key}.ll").write_text(texts[key][0])
    library = f"lib{name}.so"
    exports = [*programs, "wengert_set_parallel"]
    (home / library).write_bytes(native.shared_library(objects, exports, library))
    manifest = manifest_of(name, library, stages, segment)
    (home / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    (home / f"{name}.h").write_text(render("export.h.j2", export=manifest))
    (home / "example.c").write_text(render("export_example.c.j2", export=manifest))
    np.savez(home / "weights.npz", **weights_of(segment))
    return str(home)


def exportable(function: Any) -> tuple[Any, Any]:
    """The one segment of the newest trace, and its compiled graphs."""
    trace = function.latest(whole=True)
    segments = trace.segments()
    if len(segments) > 1:
        places = {str(s.place) for s in segments if s.place is not None}
        raise native.ExportError(
            f"{function.name} cannot be exported: it branches on values in Python "
            f"({', '.join(sorted(places))}); use where() for both outcomes, or export the parts"
        )
    (segment,) = segments
    executors = trace.ready(segment)
    if any(e.native is None for e in executors):
        raise native.ExportError(
            f"{function.name} runs in the interpreter: there is no native code"
        )
    return segment, executors


def weights_of(segment: Any) -> dict[str, np.ndarray]:
    """Values of inputs that are not arguments, as they are now."""
    return {f"input{k}": source(())._array for k, source in enumerate(segment.sources)
            if not isinstance(source, Argument) and source_is_free(source)}  # fmt: skip


def source_is_free(source: Any) -> bool:
    """Can it be read without the arguments of a call?"""
    try:
        return source(()) is not None
    except (IndexError, TypeError):
        return False


# --- the manifest --------------------------------------------------------------------------------


def manifest_of(name: str, library: str, stages: dict[str, Any], segment: Any) -> dict[str, Any]:
    host = jit.host()
    return {
        "version": VERSION, "name": name, "library": library, "triple": host.triple,
        "cpu": host.cpu, "features": [f[1:] for f in host.features.split(",") if f[:1] == "+"],
        "stages": {stage: stage_of(f"{name}_{stage}", stage, e, segment)
                   for stage, e in stages.items()},
        "saved_inputs": list(segment.function.saved_inputs(stages)),
    }  # fmt: skip


def stage_of(symbol: str, stage: str, executor: Any, segment: Any) -> dict[str, Any]:
    program, graph = executor.native.program, executor.graph
    taken: set[str] = set()
    inputs = []
    for k, item in enumerate(graph.inputs):
        source = segment.sources[k] if stage == "forward" else None
        place = source.place if isinstance(source, Argument) else None
        prefix = {"saved": "saved", "gradient": "grad_out"}.get(item.kind, "in")
        label = item.name or f"{prefix}{k}"
        inputs.append({**value_of(item.var.type, label, taken), "kind": item.kind,
                       "argument": place, "written": k in program.written})  # fmt: skip
    outputs = []
    for output, result in zip(graph.outputs, program.results):
        if result.target is None:
            label = "saved" if output.kind == SAVED else "out" if stage == "forward" else "grad"
            outputs.append({**value_of(result.type, f"{label}{len(outputs)}", taken),
                            "kind": output.kind})  # fmt: skip
    arena = max(64, -(-executor.native.runnable.plan.total // 64) * 64)
    return {"symbol": symbol, "inputs": inputs, "outputs": outputs, "arena": arena,
            "errors": [[e.__name__, text] for e, text in program.errors]}  # fmt: skip


def value_of(type_: Any, name: str, taken: set[str]) -> dict[str, Any]:
    """A value's description; names are C identifiers, each used once."""
    word = re.sub(r"\W+", "_", name).strip("_") or "value"
    word = f"v{word}" if word[0].isdigit() else word
    while word in taken:
        word += "_"
    taken.add(word)
    short = type_.dtype.short
    bits = re.fullmatch(r"([iu])(\d+)", short)
    c_type = f"{'u' if bits[1] == 'u' else ''}int{bits[2]}_t" if bits else C_TYPES[short]
    return {"name": word, "type": str(type_), "dtype": type_.dtype.name,
            "storage": np.dtype(type_.dtype.storage).str, "shape": list(type_.shape),
            "bytes": type_.nbytes, "c": c_type}  # fmt: skip
