"""What a report shows of native code: times, LLVM text and assembly, tied to kernel lines.

Note [Lines of native code]
    Generated LLVM text ends a line with `; %n` where it belongs to instruction n of its kernel. For
    a report the comments are made debug locations; LLVM keeps those through optimisation, vectors
    and inlining, and prints them, so that a line of assembly knows its instruction too.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np

from .runtime import jit
from .tracer.random import default_generator

RUNS = 5
MARK = re.compile(r"\s*; %(\d+)$")


# --- times ---------------------------------------------------------------------------------------


def sample(type_: Any) -> np.ndarray:
    """An array to measure with: ones, but zeros where values may be indices."""
    if type_.dtype.name == "bfloat16" and type_.dtype.storage == np.uint16:
        return np.full(type_.shape, 0x3F80, np.uint16)
    one = type_.dtype.is_floating_point or type_.dtype.is_complex or type_.dtype.name == "bool"
    return np.full(type_.shape, 1 if one else 0, type_.dtype.storage)


def measure(native: Any, runs: int = RUNS) -> list[float | None]:
    """Nanoseconds of each step, the least of several runs on arrays of our own."""
    runnable, before = native.runnable, default_generator.state()
    native.profile(True)
    found = []
    try:
        arrays = [sample(t) for t in runnable.program.inputs]
        native.last_times()
        for _ in range(runs):
            runnable.call(*arrays)
            found.append(native.last_times())
    except Exception:  # ones are not in every op's domain; a report without times is still one
        return [None] * len(runnable.program.steps)
    finally:
        native.profile(False)
        default_generator.restore(before)
    return [float(min(times)) for times in zip(*found)]


# --- texts ---------------------------------------------------------------------------------------


def modules_of(natives: list[Any]) -> list[dict[str, Any]]:
    """Each module once: its texts at three stages, lines as [text, instruction of its kernel]."""
    found: dict[str, dict[str, Any]] = {}
    for native in natives:
        for module in native.program.modules:
            if module.symbols[0] not in found:
                found[module.symbols[0]] = module_data(module)
    return list(found.values())


def module_data(module: Any) -> dict[str, Any]:
    options = jit.LIGHT if module.light else jit.DEFAULT
    located = with_locations(module.text)
    optimised, assembly = jit.stages(located, options=options)
    llvm = [[MARK.sub("", line), mark_of(line)] for line in module.text.splitlines()]
    return {
        "name": module.symbols[0], "imports": list(module.imports), "shared": module.shared,
        "llvm": llvm, "llvm-opt": optimised_lines(optimised), "asm": assembly_lines(assembly),
        "vector": width(optimised, assembly),
    }  # fmt: skip


def mark_of(line: str) -> int | None:
    found = MARK.search(line)
    return int(found[1]) if found else None


def with_locations(text: str) -> str:
    """LLVM text whose `; %n` comments are debug locations; see Note [Lines of native code]."""
    if "; %" not in text:
        return text
    base = 1 + max([int(n) for n in re.findall(r"^!(\d+) =", text, re.M)], default=-1)
    unit, file, flags, kind = (f"!{base + k}" for k in range(4))
    lines, extra, fresh = [], [], base + 4
    scope, start = "", 0
    places: dict[int, int] = {}
    for line in text.splitlines():
        if line.startswith("define"):
            scope, start, places = "", len(lines), {}
        mark = mark_of(line)
        if mark is not None and not scope:  # the first of a function: now it needs a scope
            scope = f"!{fresh}"
            extra.append(f'{scope} = distinct !DISubprogram(name: "k", scope: {file}, '
                         f"file: {file}, line: 1, type: {kind}, unit: {unit}, "
                         "spFlags: DISPFlagDefinition)")  # fmt: skip
            fresh += 1
            lines[start] = re.sub(r" \{$", f" !dbg {scope} {{", lines[start])
        if mark is not None:
            if mark not in places:
                places[mark] = fresh
                extra.append(f"!{fresh} = !DILocation(line: {mark + 2}, scope: {scope})")
                fresh += 1
            line = f"{MARK.sub('', line)}, !dbg !{places[mark]}"
        lines.append(line)
    if not extra:
        return text
    extra += [
        f'{file} = !DIFile(filename: "kernel", directory: "")',
        f"{unit} = distinct !DICompileUnit(language: DW_LANG_C, file: {file}, "
        "emissionKind: LineTablesOnly)",
        f'{flags} = !{{i32 2, !"Debug Info Version", i32 3}}',
        f"{kind} = !DISubroutineType(types: !{{}})",
        f"!llvm.module.flags = !{{{flags}}}", f"!llvm.dbg.cu = !{{{unit}}}",
    ]  # fmt: skip
    return "\n".join([*lines, *extra]) + "\n"


def optimised_lines(text: str) -> list[list[Any]]:
    """Optimised text without debug data, lines with their instruction."""
    at = {int(n): int(k) - 2 for n, k in
          re.findall(r"^!(\d+) = !DILocation\(line: (\d+)", text, re.M)}  # fmt: skip
    lines = []
    for line in text.splitlines():
        if re.match(r"!\d+ = .*(!DI|Debug Info)|!llvm\.(dbg|module)|source_filename|; ModuleID",
                    line):  # fmt: skip
            continue
        found = re.search(r",? !dbg !(\d+)", line)
        plain = re.sub(r",? !dbg !\d+", "", line)
        mark = at.get(int(found[1])) if found else None
        lines.append([plain, mark if mark is None or mark >= 0 else None])
    return lines


DIRECTIVES = re.compile(r"\s+\.(file|loc|cfi_|section|ident|p2align|type|size|globl|text|addrsig)")


def assembly_lines(text: str) -> list[list[Any]]:
    """Assembly without directives, lines with their instruction."""
    text = text.split(".debug_abbrev")[0]
    lines: list[list[Any]] = []
    current: int | None = None
    for line in text.splitlines():
        found = re.match(r"\s+\.loc\s+\d+ (\d+)", line)
        if found:
            current = int(found[1]) - 2 if int(found[1]) > 1 else None
            continue
        if DIRECTIVES.match(line) or re.match(r"\.L(func|tmp|debug)\w*:", line):
            continue
        if line.endswith(":") and not line.startswith("."):
            current = None
        if line.strip():
            instruction = line.startswith("\t") and not line.startswith("\t.")
            lines.append([line.rstrip(), current if instruction else None])
    return lines


PACKED = re.compile(r"\tv?(?:add|sub|mul|div|fn?m\w+|max|min|sqrt)p([sd])\s.*%([xyz])mm")
ARITHMETIC = re.compile(
    r"= (?:tail )?(?:f(?:add|sub|mul|div)|call)\b[^<\n]*<(\d+) x (?:float|double)>")  # fmt: skip
BITS = {"x": 128, "y": 256, "z": 512, "s": 32, "d": 64}


def width(optimised: str, assembly: str) -> int:
    """How many floats most vector arithmetic computes at once; 1 if none.

    Assembly tells where it is x86's; optimised text elsewhere.
    """
    found = [BITS[m] // BITS[e] for e, m in PACKED.findall(assembly)]
    found = found or [int(n) for n in ARITHMETIC.findall(optimised)]
    return Counter(found).most_common(1)[0][0] if found else 1


def vector_note(kernel: dict[str, Any], module: dict[str, Any] | None) -> str:
    """'vectorised x8', or why not."""
    if kernel["kind"] == "host":
        return "runs in Python: this op has no kernel"
    if module is None:
        return "copies memory"
    if module["vector"] > 1:
        return f"vectorised x{module['vector']}"
    if any(name.startswith("wengert_gemm") for name in module["imports"]):
        return "vectorised: tiles of the shared product kernel"
    if any(re.search(r"\tv?movup[sd]\s.*%[yz]mm", line) for line, _ in module["asm"]):
        return "moves memory in vectors"
    sizes = [int(n) for n in re.findall(r"i\d+<(\d+)", kernel["lines"][0][0])]
    if sizes and max(sizes) < 8:
        return "not vectorised: no loop has 8 turns"
    if any("*%" in line[0] for line in kernel["lines"]):
        return "not vectorised: addresses come from an index tensor"
    text = "\n".join(line for line, _ in module["llvm-opt"])
    called = re.search(r"call (?:float|double) @(?!llvm)(\w+)", text)
    if called:
        return f"not vectorised: it calls {called[1]}"
    if not re.search(r"\b(float|double)\b", text):
        return "not vectorised: integers only"
    return "not vectorised: LLVM saw no gain, or the loop carries a value"
