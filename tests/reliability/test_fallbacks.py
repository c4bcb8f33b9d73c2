"""Where something is missing, eager works and compile falls back, with a message that helps."""

from limits import limited

USE = """
import warnings
import wengert as torch
x = torch.ones(3, requires_grad=True)
y = (x.sin() * 2).sum()
y.backward()
eager = x.grad.clone()
f = torch.compile(lambda x: (x.sin() * 2).sum())
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for _ in range(3):
        x.grad = None
        z = f(x)
        z.backward()
assert torch.allclose(z, y) and torch.allclose(x.grad, eager)
print([str(w.message) for w in told])
print(f.explain())
"""


def test_without_llvmlite():
    done = limited("import sys; sys.modules['llvmlite'] = None\n" + USE)
    assert done.stdout.count("W002") == 1  # once, however often it is called
    assert "run in the reference interpreter" in done.stdout
    assert "llvmlite can't be used: ModuleNotFoundError" in done.stdout
    assert "replayed 2 times" in done.stdout
    assert done.stderr == ""


def test_with_a_broken_llvmlite():
    """As where its library does not load on this machine."""
    done = limited("""
import sys, types
class Broken(types.ModuleType):
    def __getattr__(self, name):
        raise OSError("libllvmlite.so: wrong ELF class")
import llvmlite
sys.modules["llvmlite.binding"] = Broken("llvmlite.binding")
llvmlite.binding = sys.modules["llvmlite.binding"]
""" + USE)  # fmt: skip
    assert "wrong ELF class" in done.stdout and done.stdout.count("W002") == 1


def test_doctor_says_what_is_missing():
    done = limited("""
sys.modules["llvmlite"] = None
from wengert.cli import main
sys.exit(main(["doctor"]))
""", check=False)  # fmt: skip
    assert done.returncode == 1
    assert "falls back to the interpreter" in done.stdout and "llvmlite" in done.stdout


def test_where_objects_are_laid_out_differently():
    """The self-test of object layouts fails: native code is entered through ctypes instead."""
    done = limited("""
from wengert.runtime import layout
layout._array_trouble = lambda: "ndarray.data: 0 where Python says 1"
""" + USE + """
from wengert.runtime import fastcall
print(fastcall.reason_for_fallback())
from wengert.cli import main
main(["doctor"])
""")  # fmt: skip
    assert done.stdout.startswith("[]\n"), done.stdout  # as fast as it gets, and right: no warning
    assert "ndarray.data: 0 where Python says 1" in done.stdout
    assert "calls go through ctypes" in done.stdout and done.stderr == ""


def test_fast_calls_switched_off():
    assert limited(USE, WENGERT_FASTCALL="0").stdout.startswith("[]\n")
