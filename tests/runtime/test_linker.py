"""Shared libraries made here load, run, and say what is missing."""

import ctypes
import platform
import shutil
import subprocess
import sys

import pytest
from wengert.runtime import jit, linker, threads
from wengert.runtime.elf import LinkError

pytestmark = pytest.mark.skipif(
    not (sys.platform == "linux" and platform.machine() == "x86_64"),
    reason="links x86-64 ELF objects",
)

FIRST = """
@counter = global i64 5
@zeros = global [1000 x i64] zeroinitializer, align 64
@table = constant [2 x ptr] [ptr @counter, ptr @twice]
@words = private unnamed_addr constant [3 x i8] c"ab\\00"
@far = external global i64
declare i64 @elsewhere(i64)
declare double @cos(double)
declare i64 @strlen(ptr)

define i64 @twice(i64 %x) {
  %y = shl i64 %x, 1
  ret i64 %y
}
define i64 @bump() {
  %v = load i64, ptr @counter
  %w = add i64 %v, 1
  store i64 %w, ptr @counter
  ret i64 %w
}
define i64 @through_the_table(i64 %x) {
  %p = getelementptr [2 x ptr], ptr @table, i64 0, i64 1
  %f = load volatile ptr, ptr %p
  %r = call i64 %f(i64 %x)
  ret i64 %r
}
define i64 @across(i64 %x) {
  %v = load i64, ptr @far
  %s = add i64 %v, %x
  %r = call i64 @elsewhere(i64 %s)
  ret i64 %r
}
define double @cosine(double %x) {
  %r = call double @cos(double %x)
  ret double %r
}
define i64 @length() {
  %p = getelementptr i8, ptr @words, i64 0
  %r = call i64 @strlen(ptr %p)
  ret i64 %r
}
define i64 @sum_of_zeros() {
  %p = getelementptr [1000 x i64], ptr @zeros, i64 0, i64 999
  %v = load volatile i64, ptr %p
  ret i64 %v
}
define hidden i64 @hidden() {
  ret i64 1
}
"""
SECOND = """
@far = global i64 40
declare hidden i64 @hidden()
define i64 @elsewhere(i64 %x) {
  %h = call i64 @hidden()
  %r = add i64 %x, %h
  ret i64 %r
}
"""


def compiled(text):
    return jit.compile_text(text, options=jit.LIGHT)


@pytest.fixture(scope="module")
def objects():
    return [compiled(FIRST), compiled(SECOND)]


def opened(path, data):
    path.write_bytes(data)
    return ctypes.CDLL(str(path))


def test_it_loads_and_runs(objects, tmp_path):
    library = opened(tmp_path / "libboth.so", linker.link(objects, soname="libboth.so"))
    assert library.twice(21) == 42
    assert [library.bump(), library.bump()] == [6, 7]
    assert ctypes.c_int64.in_dll(library, "counter").value == 7
    assert library.through_the_table(4) == 8
    assert library.across(1) == 42
    assert library.length() == 2
    assert library.sum_of_zeros() == 0
    library.cosine.restype, library.cosine.argtypes = ctypes.c_double, [ctypes.c_double]
    assert library.cosine(0.0) == 1.0


def test_the_same_input_gives_the_same_bytes(objects):
    assert linker.link(objects) == linker.link(objects)


def test_exports_are_limited(objects, tmp_path):
    library = opened(tmp_path / "libone.so", linker.link(objects, exports=["across"]))
    assert library.across(1) == 42
    for name in ("twice", "counter", "elsewhere"):
        with pytest.raises(AttributeError):
            getattr(library, name)


def test_hidden_symbols_stay_inside(objects, tmp_path):
    library = opened(tmp_path / "libhidden.so", linker.link(objects))
    with pytest.raises(AttributeError):
        _ = library.hidden


def test_the_pool_runs_from_a_library(tmp_path):
    text = """
    declare void @wengert_parallel(ptr, ptr, i64)
    define internal void @mark(ptr %counts, i64 %chunk) {
      %p = getelementptr i64, ptr %counts, i64 %chunk
      %old = atomicrmw add ptr %p, i64 1 seq_cst
      ret void
    }
    define void @run(ptr %counts, i64 %n) {
      call void @wengert_parallel(ptr @mark, ptr %counts, i64 %n)
      ret void
    }
    """
    pool = jit.compile_text(threads.pool_text(threads.sleep_kind()))
    library = opened(tmp_path / "libpool.so", linker.link([pool, compiled(text)]))
    library.wengert_pool_reset()
    library.wengert_pool_resize(2)
    counts = (ctypes.c_int64 * 64)()
    for _ in range(10):
        library.run(counts, ctypes.c_int64(64))
    assert list(counts) == [10] * 64
    assert library.wengert_pool_running() == 2
    library.wengert_pool_resize(0)


def test_it_runs_without_llvmlite(objects, tmp_path):
    path = tmp_path / "libalone.so"
    path.write_bytes(linker.link(objects))
    code = (
        f"import ctypes, sys; library = ctypes.CDLL({str(path)!r})\n"
        "sys.exit(library.across(1) != 42 or 'llvmlite' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-S", "-c", code]).returncode == 0


def test_many_symbols_are_found(tmp_path):
    text = "\n".join(f"define i64 @f{i}() {{\n  ret i64 {i}\n}}" for i in range(300))
    library = opened(tmp_path / "libmany.so", linker.link([compiled(text)]))
    assert [getattr(library, f"f{i}")() for i in range(300)] == list(range(300))


def test_errors_name_what_is_wrong(objects):
    with pytest.raises(LinkError, match="two objects define elsewhere"):
        linker.link([objects[1], objects[1]])
    with pytest.raises(LinkError, match="no object defines backward"):
        linker.link(objects, exports=["across", "backward"])
    with pytest.raises(LinkError, match="not an x86-64 ELF object"):
        linker.link([b"MZ" + bytes(100)])
    constructor = """
    @llvm.global_ctors = appending global [1 x { i32, ptr, ptr }]
      [{ i32, ptr, ptr } { i32 1, ptr @f, ptr null }]
    define void @f() {
      ret void
    }
    """
    with pytest.raises(LinkError, match="constructors are not supported"):
        linker.link([compiled(constructor)])


def test_what_is_missing_is_the_loaders_to_say(tmp_path):
    text = "declare i64 @nowhere()\ndefine i64 @f() {\n  %r = call i64 @nowhere()\n  ret i64 %r\n}"
    with pytest.raises(OSError, match="nowhere"):
        opened(tmp_path / "libmissing.so", linker.link([compiled(text)]))


def test_a_c_program_links_against_it(objects, tmp_path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler, which wengert itself never does")
    (tmp_path / "libboth.so").write_bytes(linker.link(objects, soname="libboth.so"))
    (tmp_path / "main.c").write_text(
        "long across(long); int main(void) { return across(1) == 42 ? 0 : 1; }"
    )
    subprocess.run(
        [compiler, "main.c", "-o", "main", "-L.", "-lboth", "-Wl,-rpath,$ORIGIN"],
        cwd=tmp_path,
        check=True,
    )
    assert subprocess.run([str(tmp_path / "main")]).returncode == 0
