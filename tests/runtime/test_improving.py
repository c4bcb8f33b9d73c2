"""Native calls begin with code that is compiled soon; see Note [Brief first]."""

import ctypes
import gc
import os
import subprocess
import sys

import pytest
from wengert.runtime import cache, jit, layout
from wengert.runtime.fastcall import _new_function
from wengert.runtime.improving import Improving

pytestmark = pytest.mark.skipif(bool(layout.trouble()), reason="objects can't be read here")

# Gives an object that is imported. With `who`, BRIEF and LIGHT code can be told apart.
TEXT = """
@given = external global i8
@who = external global i64
declare void @Py_IncRef(ptr)
define ptr @give(ptr %self, ptr %args, i64 %nargs) {
  %n = load i64, ptr @who
  %m = add i64 %n, 1
  store i64 %m, ptr @who
  call void @Py_IncRef(ptr @given)
  ret ptr @given
}
"""


class Native:
    """A module that counts calls in a place of its own for each time that it was loaded."""

    def __init__(self, monkeypatch):
        monkeypatch.setenv("WENGERT_CACHE", "0")
        cache.clear()  # what this process knows, too
        self.object, self.counts = object(), []
        self.code = Improving(lambda: TEXT, ["give"], self.imports)
        self.table = object()

    def imports(self):
        self.counts.append(ctypes.c_int64(0))
        return {"given": id(self.object), "who": ctypes.addressof(self.counts[-1]),
                "Py_IncRef": layout.python_function("Py_IncRef")}  # fmt: skip

    def function(self):
        method = self.code.method("give", "give")
        return _new_function()(ctypes.addressof(method), self.table, None), method

    def called(self):
        return [count.value for count in self.counts]


def test_functions_that_there_are_get_the_better_code(monkeypatch):
    native = Native(monkeypatch)
    function, _keep = native.function()
    assert native.code.work()[1] == jit.BRIEF
    assert function() is native.object
    assert native.called() == [1]
    native.code.improve()
    assert function() is native.object and function() is native.object
    assert native.called() == [1, 2]
    later, _keep_too = native.function()
    assert later() is native.object
    assert native.called() == [1, 3]


def test_functions_that_are_gone_are_left_alone(monkeypatch):
    native = Native(monkeypatch)
    function, keep = native.function()
    del function, keep
    gc.collect()
    assert not dict(native.code.methods)
    native.code.improve()


def test_it_improves_once_and_only_what_serves(monkeypatch):
    native = Native(monkeypatch)
    assert not native.code.may_improve()  # nobody uses it
    native.code.library()
    assert native.code.may_improve()
    assert not native.code.may_improve()


def test_good_code_that_is_kept_serves_at_once(monkeypatch):
    native = Native(monkeypatch)
    cache.object_code(TEXT, options=jit.LIGHT)
    assert native.code.work()[1] == jit.LIGHT
    native.code.library()
    assert not native.code.may_improve()


SCRIPT = """
import os, sys
import wengert as torch
from wengert.runtime import fastcall, jit, loading

assert not fastcall.reason_for_fallback()
step = torch.compile(lambda x: x * 2 + 1)
x = torch.ones(3)
step(x), step(x)
if sys.argv[1] == "fork":
    child = os.fork()
    if not child:
        os._exit(0 if step(x).tolist() == [3.0] * 3 else 1)
    assert os.waitpid(child, 0)[1] == 0
elif sys.argv[1] == "wait":
    loading.settle()
    assert fastcall.calls.options == jit.LIGHT
assert step(x).tolist() == [3.0] * 3
print(len(fastcall.calls.loaded))
"""


@pytest.mark.parametrize("way", ["end", "wait", "fork"])
def test_a_second_process_finds_the_good_code(tmp_path, way):
    if way == "fork" and not hasattr(os, "fork"):
        pytest.skip("no fork")
    switches = {**os.environ, "WENGERT_CACHE": "1", "WENGERT_CACHE_DIR": str(tmp_path / "cache")}
    found = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT, way], env=switches,
                              capture_output=True, text=True)  # fmt: skip
        assert done.returncode == 0 and not done.stderr, done.stderr
        found.append(done.stdout.strip())
    assert found[1] == "1"
    assert found[0] == "2" or way == "end"
