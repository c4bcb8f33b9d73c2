"""Dumps: passes as diffs, colour on terminals only, folders with manifests, events."""

import io
import json

import pytest
import wengert as torch
from wengert.dumps import show
from wengert.ir.parser import parse


def make(name="f"):
    def function(x):
        return (x.tanh() * 2).sum()

    function.__name__ = name
    return torch.compile(function)


@pytest.fixture
def compiled():
    function = make()
    function(torch.ones(3, requires_grad=True))
    return function


def test_passes_are_diffs_with_steady_names(compiled):
    text = compiled.dump("passes")
    assert "+++ f/joint after canonical" in text
    changed = [line for line in text.splitlines() if line[0] in "+-" and line[:3] not in
               ("+++", "---")]  # fmt: skip
    assert changed
    assert not any("= tanh" in line for line in changed)  # no pass touches it


def test_colour_is_for_terminals():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    text = "  %1: f32[3] = tanh %0 ^tanh.0 @a.py:3\n"
    plain, painted = io.StringIO(), Terminal()
    show(text, plain)
    show(text, painted)
    assert plain.getvalue() == text
    assert "\x1b[" in painted.getvalue()


def test_no_color_is_honoured(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    stream = io.StringIO()
    stream.isatty = lambda: True
    show("+ added\n", stream)
    assert stream.getvalue() == "+ added\n"


def test_a_folder_gets_every_stage_and_a_manifest(tmp_path, monkeypatch):
    monkeypatch.setenv("WENGERT_DUMP", str(tmp_path))
    function = make("dumped")
    function(torch.ones(3, requires_grad=True))
    (home,) = tmp_path.iterdir()
    manifest = json.loads((home / "manifest.json").read_text())
    assert manifest["version"] == 1
    assert set(manifest["files"]) == set(function.stages)
    assert parse((home / "backward.ir").read_text()) == function.graph("backward")
    assert manifest["segments"][0]["units"][1]["kernels"][0]["nodes"]


def test_a_folder_says_why_a_function_runs_eagerly(tmp_path, monkeypatch):
    monkeypatch.setenv("WENGERT_DUMP", str(tmp_path))
    function = torch.compile(lambda x: x * abs(x.sum().item()))
    function(torch.ones(3))
    (home,) = tmp_path.iterdir()
    manifest = json.loads((home / "manifest.json").read_text())
    assert manifest["status"] == "eager"
    assert "item" in manifest["reason"]
    assert "sum" in (home / "trace.ir").read_text()


def test_segments_are_dumped_one_by_one(tmp_path, monkeypatch):
    monkeypatch.setenv("WENGERT_DUMP", str(tmp_path))
    function = torch.compile(lambda x: x + 1 if x.sum() > 0 else x - 1)
    function(torch.ones(3))
    (home,) = tmp_path.iterdir()
    assert parse((home / "forward.0.ir").read_text()).nodes
    assert parse((home / "forward.1.ir").read_text()).nodes


def test_events_are_one_line_each(monkeypatch, capsys):
    monkeypatch.setenv("WENGERT_LOG", "compile,guards,cache,kernels")
    scale = [2.0]
    function = torch.compile(lambda x: x.exp().tan().erf() * scale[0])
    function(torch.ones(3))
    scale[0] = 3.0
    for _ in range(2):
        function(torch.ones(3))  # the call that replays waits for LLVM, whose threads say so
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith("wengert ") for line in lines)
    text = "\n".join(lines)
    assert "guards: <lambda>: the first call" in text
    assert "item 0 of a list changed" in text
    assert "compile: <lambda>: recorded" in text
    assert "kernels: <lambda>: forward 1 steps (map)" in text
    assert "cache: " in text


def test_silence_is_the_default(monkeypatch, capsys):
    monkeypatch.delenv("WENGERT_LOG", raising=False)
    make()(torch.ones(3))
    assert capsys.readouterr().err == ""


def test_any_dump_parses_compiles_and_runs(compiled):
    again = torch.ir.parse(compiled.dump("backward")).compile()
    inputs = [torch.ones(tuple(i.var.shape)) for i in again.trace.inputs]
    wanted = compiled.graph("backward").compile()(*inputs)
    assert again(*inputs).tolist() == wanted.tolist()


# --- assembly ------------------------------------------------------------------------------------


def step(x, w, b):
    hidden = x @ w
    made = torch.tanh(hidden + b)
    return made.cumsum(1)


def assembly(*shapes):
    function = torch.compile(step)
    function(*(torch.randn(*s, requires_grad=s == shapes[1]) for s in shapes)).sum().backward()
    return function.dump("asm").splitlines()


def line_of(text):
    first = step.__code__.co_firstlineno
    with open(__file__) as file:
        return next(k for k, line in enumerate(file, 1) if text in line and k > first)


def labels(lines):
    return {line.rsplit("# ", 1)[1] for line in lines if not line.startswith("#") and "# " in line}


@pytest.mark.parametrize("size", [12, 200])
def test_assembly_names_ops_and_lines(size):
    """Of products too, direct or by the shared core, and of derivatives."""
    lines = assembly((size, size), (size, size), (size,))
    here = "test_dumps.py:"
    tanh, product = line_of("torch.tanh(hidden"), line_of("hidden = x @")
    wanted = {f"mm, {here}{product}", f"mm, derivative of mm, {here}{product}",
              f"tanh, {here}{tanh}", f"cumsum, {here}{line_of('made.cumsum')}"}  # fmt: skip
    assert wanted <= labels(lines)
    mnemonics = [line.split()[0] for line in lines if f"# mm, {here}{product}" in line]
    assert any("fmadd" in m or "mul" in m or "fmla" in m for m in mnemonics)


def test_launches_that_share_a_module_are_all_named():
    function = torch.compile(lambda x, y: (
        x.sort(0).indices,
        y.sort(0).indices,
    ))  # fmt: skip
    function(torch.randn(5, 3), torch.randn(7))
    (shared,) = [line for line in function.dump("asm").splitlines() if line.startswith("#")]
    assert "step 0, 1: " in shared
    (label,) = labels(function.dump("asm").splitlines())
    assert label.count("sort, test_dumps.py:") == 2
