"""The call that records does not wait for LLVM; see Note [Compiling ahead]."""

import itertools
import threading

import pytest
import wengert as torch
from wengert.ir.program import Module
from wengert.runtime import jit, loading

pytestmark = pytest.mark.skipif(not torch.backend_available(), reason="needs LLVM")

_new = itertools.count(1)


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setenv("WENGERT_CACHE", "0")


def fresh_function():
    """One whose kernel this process has not compiled before."""
    number = next(_new) / 7
    return torch.compile(lambda x: (x * number).tanh().sum()), number


def check(result, x, number):
    assert torch.allclose(result, (x * number).tanh().sum())


def test_the_first_call_returns_while_llvm_works(monkeypatch):
    torch.compile(lambda x: x + 1)(torch.ones(2))  # what all programs need is there
    loading.settle()
    may_go_on, real = threading.Event(), jit.compile_text
    monkeypatch.setattr(jit, "compile_text", lambda *a, **k: may_go_on.wait() and real(*a, **k))
    function, number = fresh_function()
    x = torch.linspace(0.1, 1, 7)
    try:
        check(function(x), x, number)
        assert any(thread.is_alive() for thread in loading._compiling)
    finally:
        may_go_on.set()
    check(function(x), x, number)
    assert "replayed 1 times" in function.explain()


def test_a_module_is_compiled_once_however_often_it_is_told(monkeypatch):
    text = f"define i64 @f() {{ ret i64 {next(_new)} }}"
    module = Module(lambda: text, f"a test's {text}", ("f",))
    work = []
    with monkeypatch.context() as patched:
        patched.setattr(loading, "ahead", work.extend)
        for _ in range(3):
            loading.begin(module)
    assert len(work) == 1
    loading.ahead(work)
    for thread in list(loading._compiling):
        thread.join()
    assert (module.identity, module.light) not in loading._told


def refuse(text, *, options=jit.DEFAULT):
    raise jit.JitError("LLVM refused generated text")


def test_a_fault_of_llvm_is_told_at_the_next_call(monkeypatch):
    function, number = fresh_function()
    monkeypatch.setattr(jit, "compile_text", refuse)
    x = torch.linspace(0.1, 1, 7)
    check(function(x), x, number)
    with pytest.warns(RuntimeWarning, match="W001"):
        check(function(x), x, number)
    check(function(x), x, number)
    assert "LLVM refused generated text" in function.explain()


def test_a_strict_first_call_waits_for_it(monkeypatch):
    function, _ = fresh_function()
    monkeypatch.setenv("WENGERT_STRICT", "1")
    monkeypatch.setattr(jit, "compile_text", refuse)
    with pytest.raises(jit.JitError):
        function(torch.ones(7))
