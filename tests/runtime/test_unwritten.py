"""Texts that are written only if they must be compiled: an identity stands for them."""

import os
import subprocess
import sys

import pytest
import wengert as torch
from wengert import graph_function
from wengert.runtime import cache, jit

TEXT = "define i64 @{name}() {{ ret i64 {value} }}"

PROGRAM = """
import sys
import wengert as torch

x, w = torch.randn(64, 48), torch.randn(96, 48, requires_grad=True)
step = torch.compile(lambda x: torch.softmax(torch.relu(x @ w.T), -1).cumsum(0).sum())
step(x).backward()
step(x)
print(*(name in sys.modules for name in ("llvmlite", "jinja2", "wengert.codegen.assemble")))
"""


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv("WENGERT_CACHE", "1")
    monkeypatch.setenv("WENGERT_CACHE_DIR", str(tmp_path / "objects"))
    return tmp_path


def test_written_once_then_found(directory):
    written = []

    def write():
        written.append(1)
        return TEXT.format(name="unwritten_one", value=7)

    text = cache.Unwritten("identity of unwritten_one", write)
    code = cache.object_code(text)
    assert cache.object_code(text) == code and len(written) == 1
    cache._memory.clear()  # as a new process would
    assert cache.object_code(text) == code and len(written) == 1


def test_an_identity_is_never_taken_for_a_text():
    text = TEXT.format(name="unwritten_two", value=2)
    unwritten = cache.Unwritten(text, lambda: text)
    assert cache.key_of(text, jit.DEFAULT) != cache.key_of(unwritten, jit.DEFAULT)


def test_a_process_that_finds_its_programs_generates_nothing(directory):
    def run():
        found = subprocess.run([sys.executable, "-c", PROGRAM], env=dict(os.environ), cwd=directory,
                               capture_output=True, text=True, check=True)  # fmt: skip
        return found.stdout.strip()

    assert [run(), run()] == ["True True True", "False False False"]


def body(x):
    return torch.softmax(torch.relu(x * 2 + 1), -1).sum(0)


def test_a_program_that_was_made_of_this_recording_needs_no_passes(directory, monkeypatch):
    monkeypatch.delenv("WENGERT_CHECK", raising=False)
    x = torch.randn(5, 7)
    first = torch.compile(body)
    wanted = first(x), first(x)
    with monkeypatch.context() as patched:
        patched.setattr(graph_function, "optimise", None)
        again = torch.compile(body)
        assert all(torch.equal(again(x), value) for value in wanted)
        with pytest.raises(TypeError):
            again.dump("passes")
    for stage in ("passes", "forward", "kernels", "llvm"):
        assert again.dump(stage) == first.dump(stage)


def test_checked_passes_run_though_the_program_is_found(directory, monkeypatch):
    x = torch.randn(3, 4)
    torch.compile(body)(x)
    monkeypatch.setenv("WENGERT_CHECK", "1")
    monkeypatch.setenv("WENGERT_STRICT", "1")
    monkeypatch.setattr(graph_function, "optimise", None)
    with pytest.raises(TypeError):
        torch.compile(body)(x)
