"""Programs as code for others: objects, a shared library and the entry that C calls.

An entry is `int64_t name(void *const *inputs, void *const *outputs, void *arena)`. It fills the
argument block of each launch and calls it, chunk by chunk; `wengert_parallel`, which kernels use
among themselves, runs chunks one after another unless the host program sets another way.

Invariants:
- The text depends on the program alone: same program, same library.
- An arena is 64-byte aligned and of the size the memory plan says; calls at once need one each.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..ir.program import INPUT, STATUS, TEMPORARY, HostCall, Launch, Program, Word
from . import cache, jit, linker
from .launch import can_fail, plan_memory

SUPPORT = """
@parallel = internal global ptr null, align 8

define void @wengert_set_parallel(ptr %function) nounwind {
  store ptr %function, ptr @parallel, align 8
  ret void
}

define void @wengert_parallel(ptr %function, ptr %context, i64 %count) nounwind {
entry:
  %other = load ptr, ptr @parallel, align 8
  %none = icmp eq ptr %other, null
  br i1 %none, label %head, label %given
given:
  call void %other(ptr %function, ptr %context, i64 %count)
  ret void
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %out
body:
  call void %function(ptr %context, i64 %i)
  %next = add i64 %i, 1
  br label %head
out:
  ret void
}

define void @wengert_copy(ptr %args, i64 %chunk) nounwind {
  %to = load ptr, ptr %args, align 8
  %from.p = getelementptr i64, ptr %args, i64 1
  %from = load ptr, ptr %from.p, align 8
  %bytes.p = getelementptr i64, ptr %args, i64 2
  %bytes = load i64, ptr %bytes.p, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  ret void
}
"""
SUPPORT_SYMBOLS = ("wengert_set_parallel", "wengert_parallel", "wengert_copy")


class ExportError(RuntimeError):
    """What was asked cannot be exported; the message says why."""


def entry_text(program: Program, name: str) -> str:
    """LLVM text of the entry of a program."""
    hosts = sorted({s.op.name for s in program.steps if isinstance(s, HostCall)})
    if hosts:
        raise ExportError(f"{name} cannot be exported: {', '.join(hosts)} would run in Python, as "
                          "there is no native kernel")  # fmt: skip
    if any(kernel.kind == "draw" for kernel in program.kernels):
        raise ExportError(f"{name} cannot be exported: it draws random numbers from a generator of "
                          "this process; pass them in")  # fmt: skip
    launches = [s for s in program.steps if isinstance(s, Launch) and s.chunks]
    offsets = plan_memory(program).offsets
    most = max([1, *(len(s.words) for s in launches)])
    lines = [f"declare void @{symbol}(ptr, i64)" for symbol in
             dict.fromkeys(s.symbol for s in launches)]  # fmt: skip
    lines += ["declare void @wengert_parallel(ptr, ptr, i64)",
              f"define i64 @{name}(ptr %inputs, ptr %outputs, ptr %arena) nounwind {{",
              f"  %block = alloca [{most} x i64], align 16", "  %status = alloca i64, align 8",
              "  store i64 0, ptr %status, align 8"]  # fmt: skip
    for number, step in enumerate(launches):
        for k, word in enumerate(step.words):
            lines += word_lines(program, word, offsets, f"{number}.{k}")
            lines += [f"  %s{number}.{k} = getelementptr i64, ptr %block, i64 {k}",
                      f"  store i64 %w{number}.{k}, ptr %s{number}.{k}, align 8"]  # fmt: skip
        if step.chunks == 1:
            lines.append(f"  call void @{step.symbol}(ptr %block, i64 0)")
        else:
            lines.append(f"  call void @wengert_parallel(ptr @{step.symbol}, ptr %block, "
                         f"i64 {step.chunks})")  # fmt: skip
        if can_fail(step):  # what follows relies on its checks
            lines += [f"  %status.{number} = load i64, ptr %status, align 8",
                      f"  %failed.{number} = icmp ne i64 %status.{number}, 0",
                      f"  br i1 %failed.{number}, label %end, label %after.{number}",
                      f"after.{number}:"]  # fmt: skip
    lines += ["  br label %end", "end:",
              "  %result = load i64, ptr %status, align 8", "  ret i64 %result", "}"]  # fmt: skip
    return "\n".join(lines) + "\n"


def word_lines(program: Program, word: Word, offsets: dict[str, int], name: str) -> list[str]:
    """Lines that compute `%w<name>`, a word of an argument block."""
    if word.buffer is None:
        return [f"  %w{name} = add i64 0, {word.value}"]
    if word.buffer == STATUS:
        source, offset, lines = "%status", word.value, []
    else:
        buffer = program.buffers[word.buffer]
        if buffer.kind == TEMPORARY:
            source, offset, lines = "%arena", word.value + offsets[buffer.name], []
        else:
            table = "%inputs" if buffer.kind == INPUT else "%outputs"
            source, offset = f"%p{name}", word.value
            lines = [f"  %q{name} = getelementptr ptr, ptr {table}, i64 {buffer.index}",
                     f"  %p{name} = load ptr, ptr %q{name}, align 8"]  # fmt: skip
    return [*lines, f"  %a{name} = ptrtoint ptr {source} to i64",
            f"  %w{name} = add i64 %a{name}, {offset}"]  # fmt: skip


def texts_of(programs: dict[str, Program]) -> dict[str, tuple[str, jit.Options]]:
    """LLVM text by name: kernels, entries and support."""
    texts: dict[str, tuple[str, jit.Options]] = {"support": (SUPPORT, jit.LIGHT)}
    for name, program in programs.items():
        for module in program.modules:
            options = jit.LIGHT if module.light else jit.DEFAULT
            texts[module.symbols[0]] = (module.text, options)
        texts[name] = (entry_text(program, name), jit.LIGHT)
    return texts


def objects_of(texts: dict[str, tuple[str, jit.Options]]) -> dict[str, bytes]:
    return {name: cache.object_code(text, options=options)
            for name, (text, options) in texts.items()}  # fmt: skip


def shared_library(objects: dict[str, bytes], exports: Sequence[str], soname: str) -> bytes:
    """A shared library: by our own linker on x86-64 Linux, by `cc` elsewhere."""
    if sys.platform == "linux" and platform.machine() == "x86_64":
        return linker.link(objects.values(), exports=exports, soname=soname)
    compiler = shutil.which("cc")
    if compiler is None:
        raise ExportError("a shared library needs `cc` on this machine; there is none")
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for k, code in enumerate(objects.values()):
            paths.append(Path(folder) / f"{k}.o")
            paths[-1].write_bytes(code)
        out = Path(folder) / soname
        subprocess.run([compiler, "-shared", "-o", str(out), *map(str, paths), "-lm"], check=True)
        return out.read_bytes()
