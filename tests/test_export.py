"""fn.export: a library that C and Python can use, without LLVM."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import wengert as torch
from wengert.runtime.export import ExportError


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    torch.manual_seed(0)
    weight = torch.randn(3, 4, requires_grad=True)

    @torch.compile
    def layer(x):
        return torch.tanh(x @ weight.t()).sum(1)

    x = torch.randn(5, 4)
    for _ in range(2):
        y = layer(x)
    weight.grad = None
    y.sum().backward()
    folder = tmp_path_factory.mktemp("exported") / "layer"
    layer.export(folder)
    return folder, x, y.detach(), weight


def test_the_folder_holds_everything(exported):
    folder = exported[0]
    names = {path.name for path in folder.iterdir()}
    assert {"liblayer.so", "layer.h", "example.c", "manifest.json", "weights.npz"} <= names
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["version"] == 1
    forward = manifest["stages"]["forward"]
    assert [i["kind"] for i in forward["inputs"]] == ["argument", "captured"]
    assert forward["inputs"][0]["type"] == "f32[5,4]"
    assert any(path.suffix == ".o" for path in (folder / "objects").iterdir())
    assert any("define" in path.read_text() for path in (folder / "llvm").iterdir())


def test_loaded_results_are_the_compiled_ones(exported):
    folder, x, y, weight = exported
    model = torch.load_exported(folder)
    assert model(x).tolist() == y.tolist()
    value, grads = model.value_and_grads(x)
    assert isinstance(value, torch.Tensor) and value.tolist() == y.tolist()
    assert len(grads) == 1
    assert np.allclose(grads[0].numpy(), weight.grad.numpy())


def test_wrong_arguments_are_refused(exported):
    model = torch.load_exported(exported[0])
    with pytest.raises(TypeError, match=r"must be f32\[5,4\]"):
        model(torch.ones(2, 2))


def test_loading_needs_neither_llvmlite_nor_jinja2(exported):
    code = f"""
import sys
for name in ("llvmlite", "jinja2"):
    sys.modules[name] = None
import wengert as torch
print(torch.load_exported({str(exported[0])!r})(torch.ones(5, 4)).shape)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "torch.Size([5])" in done.stdout, done.stderr


def test_another_machine_is_refused(exported, tmp_path):
    folder = tmp_path / "other"
    shutil.copytree(exported[0], folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["triple"] = "riscv64-unknown-linux"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RuntimeError, match="exported for riscv64"):
        torch.load_exported(folder)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_c_example_runs(exported):
    folder = exported[0]
    build = ["cc", "-Wall", "-Werror", "example.c", "-L.", "-llayer", "-Wl,-rpath,.", "-o", "ex"]
    subprocess.run(build, cwd=folder, check=True)
    out = subprocess.run(["./ex"], cwd=folder, check=True, capture_output=True, text=True).stdout
    lines = dict(line.split(" ", 1) for line in out.splitlines())
    assert lines["forward"] == "0"
    assert lines["backward"] == "0"
    x, w = (0.01 * (np.arange(n) % 100).astype(np.float32) for n in (20, 12))
    wanted = np.tanh(x.reshape(5, 4) @ w.reshape(3, 4).T).sum()
    assert abs(float(lines["out0"]) - wanted) < 1e-4


def test_writes_happen_in_place(tmp_path):
    @torch.compile
    def add_to(x, y):
        x.add_(y)
        return x.sum()

    for _ in range(2):
        add_to(torch.ones(3), torch.ones(3))
    model = torch.load_exported(add_to.export(tmp_path / "writes"))
    x = torch.ones(3)
    assert float(model(x, torch.full((3,), 2.0))) == 9
    assert x.tolist() == [3, 3, 3]


def test_what_follows_a_bad_index_is_not_run(tmp_path):
    """It relies on the check before it."""

    @torch.compile
    def spread(x, index):
        return torch.zeros(5).scatter_add(0, index, x.gather(0, index).exp())

    for _ in range(2):
        spread(torch.ones(5), torch.arange(3))
    model = torch.load_exported(spread.export(tmp_path / "spread"))
    assert torch.allclose(model(torch.ones(5), torch.arange(3)).sum(), 3 * torch.ones(()).exp())
    with pytest.raises((RuntimeError, IndexError)):
        model(torch.ones(5), torch.full((3,), 10**12))


def test_branches_and_host_calls_are_refused_by_name(tmp_path):
    branching = torch.compile(lambda x: x + 1 if x.sum() > 0 else x)
    branching(torch.ones(3))
    with pytest.raises(ExportError, match="branches on values"):
        branching.export(tmp_path / "a")
    solving = torch.compile(lambda a: torch.linalg.svd(a)[1])
    solving(torch.eye(3))
    with pytest.raises(ExportError, match="svd"):
        solving.export(tmp_path / "b")
    noisy = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.5))
    noisy(torch.randn(3))
    with pytest.raises(ExportError, match="draws random numbers"):
        noisy.export(tmp_path)
