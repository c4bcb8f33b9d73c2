"""LLVM text becomes code that runs, says what is wrong with it, and goes away when dropped."""

import ctypes
import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest
from wengert.runtime import jit, machine

ADD = """
define i64 @add(i64 %a, i64 %b) {
  %s = add i64 %a, %b
  ret i64 %s
}
"""

SAXPY = """
define void @saxpy(ptr noalias %x, ptr noalias %y, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %px = getelementptr float, ptr %x, i64 %i
  %py = getelementptr float, ptr %y, i64 %i
  %a = load float, ptr %px
  %b = load float, ptr %py
  %m = fmul float %a, 2.0
  %s = fadd float %m, %b
  store float %s, ptr %py
  %i1 = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %i1, %n
  br i1 %done, label %exit, label %loop
exit:
  ret void
}
"""


def function(library, name, *kinds, result=ctypes.c_int64):
    return ctypes.CFUNCTYPE(result, *kinds)(library.address(name))


def resident_kilobytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def test_text_becomes_a_function():
    library = jit.load(jit.compile_text(ADD), ["add"])
    assert function(library, "add", ctypes.c_int64, ctypes.c_int64)(40, 2) == 42


@pytest.mark.parametrize(
    "options",
    [
        jit.DEFAULT,
        jit.LIGHT,
        jit.Options(level=0, codegen_level=0),
        jit.Options(level=3, codegen_level=3, slp=True),
    ],
)
def test_every_pipeline_gives_the_same_answer(options):
    library = jit.load(jit.compile_text(SAXPY, options=options), ["saxpy"])
    x = (ctypes.c_float * 37)(*range(37))
    y = (ctypes.c_float * 37)(*[1.0] * 37)
    function(library, "saxpy", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, result=None)(
        ctypes.addressof(x), ctypes.addressof(y), 37
    )
    assert list(y) == [2.0 * i + 1 for i in range(37)]


def test_loops_are_vectorised_unless_told_otherwise():
    vectors = jit.optimised_text(SAXPY)
    scalars = jit.optimised_text(SAXPY, options=jit.Options(loop_vectorize=False))
    assert " x float>" in vectors
    assert " x float>" not in scalars
    assert "saxpy" in jit.assembly(SAXPY)


def test_imports_reach_functions_and_data():
    text = """
    @number = external global i64
    declare i64 @callback(i64)
    declare double @cos(double)
    define i64 @go(i64 %x) {
      %n = load i64, ptr @number
      %s = add i64 %n, %x
      %r = call i64 @callback(i64 %s)
      ret i64 %r
    }
    define double @c(double %x) {
      %r = call double @cos(double %x)
      ret double %r
    }
    """
    number = ctypes.c_int64(40)
    callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: x * 10)
    library = jit.load(
        jit.compile_text(text),
        ["go", "c"],
        {
            "number": ctypes.addressof(number),
            "callback": ctypes.cast(callback, ctypes.c_void_p).value,
        },
    )
    assert function(library, "go", ctypes.c_int64)(2) == 420
    assert function(library, "c", ctypes.c_double, result=ctypes.c_double)(0.0) == 1.0


def test_parse_error_shows_the_line():
    bad = ADD.replace("add i64 %a", "fadd i64 %a")
    with pytest.raises(jit.JitError) as caught:
        jit.compile_text(bad)
    assert "3 |   %s = fadd i64 %a, %b" in str(caught.value)
    assert "invalid operand type" in str(caught.value)


def test_verifier_error_shows_the_lines():
    bad = """
define i32 @f(i32 %x) {
  %y = add   i32 %z, 1
  %z = add   i32 %y, 2
  ret i32 %z
}
"""
    with pytest.raises(jit.JitError) as caught:
        jit.compile_text(bad)
    assert "does not dominate" in str(caught.value)
    assert "3 |   %y = add   i32 %z, 1" in str(caught.value)


def test_damaged_object_and_missing_symbol_are_errors():
    code = jit.compile_text(ADD)
    with pytest.raises(jit.JitError):
        jit.load(code[: len(code) // 2], ["add"])
    with pytest.raises(jit.JitError):
        jit.load(code, ["subtract"])
    library = jit.load(code, ["add"])
    with pytest.raises(jit.JitError, match="not asked for"):
        library.address("other")
    library.close()
    library.close()
    with pytest.raises(jit.JitError, match="closed"):
        library.address("add")


def test_one_object_loads_many_times():
    code = jit.compile_text(ADD)
    libraries = [jit.load(code, ["add"]) for _ in range(5)]
    assert len({library.address("add") for library in libraries}) == 5


def test_threads_compile_at_once():
    answers = {}

    def work(i):
        text = ADD.replace("%a, %b", f"%a, {i}")
        library = jit.load(jit.compile_text(text), ["add"])
        answers[i] = function(library, "add", ctypes.c_int64, ctypes.c_int64)(100, 0)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {i: 100 + i for i in range(12)}


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_dropped_functions_give_their_memory_back():
    def make(i):
        library = jit.load(jit.compile_text(ADD.replace("%a, %b", f"%a, {i}")), ["add"])
        assert library.address("add")

    for i in range(50):
        make(i)
    gc.collect()
    before = resident_kilobytes()
    for i in range(200):
        make(i)
    gc.collect()
    # Kept, they would be 6 MB of pass managers, 2 MB of code and 2 MB of LLVM's own tables.
    assert resident_kilobytes() - before < 2000


def test_the_thousandth_module_is_not_slower():
    """Every run burdens its pass builder, so each builder serves only a few modules."""
    tools = jit._Tools()
    uses = 2 * jit.MODULES_PER_BUILDER
    served = [tools.builder(jit.DEFAULT) for _ in range(uses)]
    assert len(set(map(id, served))) == 2
    assert jit.MODULES_PER_BUILDER <= 32


def test_importing_the_module_does_not_import_llvmlite():
    code = "import sys, wengert, wengert.runtime.jit; sys.exit('llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_what_threads_race_to_is_kept():
    """All get the same code, and nobody's is unloaded: another may have taken an address of it."""
    together = threading.Barrier(4)
    alive = []

    @jit.kept
    def code():
        together.wait()  # all four are at work at once
        made = jit.load(jit.compile_text("define i64 @two() { ret i64 2 }"), ["two"])
        alive.append(weakref.ref(made))
        return made

    found = []
    workers = [threading.Thread(target=lambda: found.append(code())) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    gc.collect()
    assert len(set(map(id, found))) == 1 and code() is found[0]
    assert len(alive) == 4 and all(reference() is not None for reference in alive)


def test_brief_code_is_inlined_but_not_cleaned_up():
    text = """
    define internal i64 @same(i64 %x) alwaysinline {
      ret i64 %x
    }
    define i64 @f(i64 %x) {
      %y = call i64 @same(i64 %x)
      %z = add i64 %y, 0
      ret i64 %z
    }
    """
    brief, light = (jit.optimised_text(text, options=o) for o in (jit.BRIEF, jit.LIGHT))
    assert "call" not in brief + light
    assert "add i64" in brief and "add i64" not in light


def test_sizes_of_caches(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "CACHES", tmp_path)
    assert machine.caches() is None  # where the system does not say
    kinds = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2048K")]
    for number, facts in enumerate(kinds):
        (tmp_path / f"index{number}").mkdir()
        for name, text in zip(("level", "type", "size"), facts):
            (tmp_path / f"index{number}" / name).write_text(f"{text}\n")
    assert machine.caches() == (48 << 10, 2 << 20)
    (tmp_path / "index2" / "size").write_text("many")
    assert machine.caches() is None


def test_the_end_of_a_process_waits_for_threads_in_llvm():
    """A daemon thread that compiles when the process ends neither aborts it nor goes on."""
    code = """
import threading, time
from wengert.runtime import jit
text = "define i64 @f{0}(i64 %x) {{ %y = add i64 %x, {0} ret i64 %y }}"
def forever():
    number = 0
    while True:
        number += 1
        jit.compile_text(text.format(number))
for _ in range(4):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.5)
print("bye")
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "bye\n", "")
