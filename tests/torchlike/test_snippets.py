"""Snippets with what torch 2.13 printed for them.

A file holds `### name`, code, `--- prints`, output. Addresses are masked; a line that reports an
error need only begin with torch's words: ours say more.
"""

import contextlib
import importlib
import io
import re
import sys
import warnings
from pathlib import Path

import pytest
import wengert

HERE = Path(__file__).parent
PRELUDE = (HERE / "prelude.py").read_text()


def snippets():
    for path in sorted(HERE.glob("*.txt")):
        parts = re.split(r"^### (.*)\n", path.read_text(), flags=re.M)
        for name, text in zip(parts[1::2], parts[2::2]):
            code, _, printed = text.partition("--- prints\n")
            yield pytest.param(code, printed, id=f"{path.stem}-{name}")


@pytest.fixture
def torch_name(monkeypatch):
    """`import torch` and its submodules reach the library."""
    for name in ("autograd", "autograd.function", "autograd.functional", "autograd.graph",
                 "autograd.forward_ad", "func", "nn", "nn.functional", "nn.utils", "nn.utils.prune",
                 "nn.attention", "nn.modules", "nn.modules.utils", "compiler", "futures",
                 "profiler", "testing", "distributions"):  # fmt: skip
        monkeypatch.setitem(
            sys.modules, f"torch.{name}", importlib.import_module(f"wengert.{name}")
        )
    monkeypatch.setitem(sys.modules, "torch", wengert)


@pytest.mark.parametrize(("code", "printed"), list(snippets()))
def test_prints_what_torch_prints(code, printed, torch_name):
    space = {"__name__": "snippet"}
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(PRELUDE, "prelude", "exec"), space)
        exec(compile(code, "snippet", "exec"), space)
    got = re.sub(r"0x[0-9a-f]+", "0xADDR", out.getvalue()).replace("wengert.", "torch.")
    assert shortened(got.rstrip("\n"), printed.rstrip("\n")) == printed.rstrip("\n")


def shortened(got, printed):
    """`got` with what our errors say beyond torch's words taken away."""
    ours, theirs = got.split("\n"), printed.split("\n")
    for k, (one, other) in enumerate(zip(ours, theirs)):
        if re.match(r"\w+(Error|Exception) ", other) and one.startswith(other):
            ours[k] = other
    return "\n".join(ours)
