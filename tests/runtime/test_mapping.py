"""Object code in memory without LLVM, and LLVM's view of the machine without LLVM."""

import ctypes
import math
import platform
import sys

import pytest
from wengert.runtime import jit, machine
from wengert.runtime.elf import LinkError
from wengert.runtime.mapping import Mapped

pytestmark = pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64",
                                reason="elsewhere LLVM loads")  # fmt: skip

TEXT = """
@total = global i64 5
@table = internal constant [3 x i64] [i64 10, i64 20, i64 30]
@where = global ptr @total
@given = external global i64
declare double @cos(double)
declare i64 @abs(i64)
declare i64 @callback(i64)
define i64 @add(i64 %x) {
  %old = load i64, ptr @total
  %new = add i64 %old, %x
  store i64 %new, ptr @total
  ret i64 %new
}
define i64 @pick(i64 %i) {
  %p = getelementptr [3 x i64], ptr @table, i64 0, i64 %i
  %x = load i64, ptr %p
  ret i64 %x
}
define i64 @through() {
  %p = load ptr, ptr @where
  %x = load i64, ptr %p
  %y = load i64, ptr @given
  %z = add i64 %x, %y
  ret i64 %z
}
define i64 @call(i64 %x) {
  %a = call i64 @abs(i64 %x)
  %b = call i64 @callback(i64 %a)
  ret i64 %b
}
define double @cosine(double %x) {
  %y = call double @cos(double %x)
  ret double %y
}
"""
WHOLE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


@pytest.fixture
def mapped():
    callback = WHOLE(lambda x: 2 * x)
    given = ctypes.c_int64(1000)
    imports = {
        "callback": ctypes.cast(callback, ctypes.c_void_p).value,
        "given": ctypes.addressof(given),
    }
    code = jit.compile_text(TEXT)
    made = Mapped(code, ["add", "pick", "through", "call", "cosine"], imports)
    made.kept = callback, given
    yield made
    made.close()


def whole(mapped, name, *arguments):
    return WHOLE(mapped.addresses[name])(*arguments)


def test_data_calls_and_addresses(mapped):
    assert [whole(mapped, "add", 1), whole(mapped, "add", 1)] == [6, 7]
    assert [whole(mapped, "pick", i) for i in range(3)] == [10, 20, 30]
    assert whole(mapped, "through", 0) == 1007
    assert whole(mapped, "call", -21) == 42
    cosine = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(mapped.addresses["cosine"])
    assert cosine(0.5) == math.cos(0.5)


def rights_at(address):
    with open("/proc/self/maps") as lines:
        for line in lines:
            place, rights, *_ = line.split()
            start, end = (int(part, 16) for part in place.split("-"))
            if start <= address < end:
                return rights
    return None


def test_no_page_is_writable_and_executable(mapped):
    assert rights_at(mapped.addresses["add"]) == "r-xp"
    assert rights_at(mapped.start + mapped.fixed) == "rw-p"  # @total


def test_closing_gives_memory_back():
    mapped = Mapped(jit.compile_text("define i64 @one() { ret i64 1 }"), ["one"], {})
    address = mapped.addresses["one"]
    mapped.close()
    assert rights_at(address) != "r-xp"


@pytest.mark.parametrize("code, symbols, reason", [
    (b"\x7fELF\2\1\1", ["f"], "not an object file"),
    (b"no object", ["f"], "not an x86-64 ELF object"),
    ("define void @f() { ret void }", ["g"], "does not define g"),
    ("declare void @nowhere()\ndefine void @f() { call void @nowhere() ret void }", ["f"],
     "'nowhere' is not defined"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(code, symbols, reason):
    code = jit.compile_text(code) if isinstance(code, str) else code
    with pytest.raises(LinkError, match=reason):
        Mapped(code, symbols, {})
    with pytest.raises(jit.JitError):  # LLVM is asked, and refuses too
        jit.load(code, symbols)


@pytest.fixture
def own_store(tmp_path, monkeypatch):
    monkeypatch.setenv("WENGERT_CACHE", "1")
    monkeypatch.setenv("WENGERT_CACHE_DIR", str(tmp_path / "objects"))
    return tmp_path


def test_the_machine_is_known_by_its_description(own_store, monkeypatch):
    host = jit._asked()
    monkeypatch.delitem(sys.modules, "llvmlite.binding")
    assert machine.recall() is None
    machine.keep(host)
    assert machine.recall() == host == jit.host()
    other = own_store / "cpuinfo"
    other.write_text("processor\t: 0\nmodel name\t: another\nflags\t\t: fpu\n\n")
    monkeypatch.setattr(machine, "CPUINFO", other)
    assert machine.recall() is None
    machine.keep(host)
    other.write_text("processor\t: 1\nmodel name\t: another\nflags\t\t: fpu\n\nprocessor\t: 2\n")
    assert machine.recall() == host


def test_another_llvm_is_asked_again(own_store, monkeypatch):
    machine.keep(jit._asked())
    assert machine.recall() is None  # asking is no work once it is loaded
    monkeypatch.delitem(sys.modules, "llvmlite.binding")
    assert machine.recall() is not None
    monkeypatch.setattr(machine, "LIBRARY", "__init__.py")
    assert machine.recall() is None
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    assert machine._key() is None
