"""The benchmarks: every system computes the same, and what was measured is shown in full."""

import ast
import importlib.util
import json
import math
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace

import pytest
from wengert.cli import main

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"
SMALL = {"pointwise": "size=8", "softmax_cross_entropy": "rows=8,classes=5", "matmul": "size=8",
         "layer_norm": "rows=4,width=8", "mlp_mnist": "batch=2", "lenet": "batch=2",
         "resnet_block": "batch=2,channels=4,size=6", "gradient_penalty": "batch=4,width=8",
         "transformer_block": "batch=1,length=4,width=16,depth=2", "lstm": "length=3,batch=2",
         "gru": "length=3,batch=2", "mlp_deep": "depth=3", "chain": "layers=3"}  # fmt: skip


@pytest.fixture(scope="module")
def scripts():
    """The modules of the folder, which import each other by their bare names."""
    before = set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    import cases
    import first_calls
    import memory
    import peers_numpy
    import run
    import scaling
    import systems
    import tables

    yield SimpleNamespace(cases=cases, run=run, systems=systems, tables=tables, scaling=scaling,
                          numpy=peers_numpy, first_calls=first_calls, memory=memory)  # fmt: skip
    sys.path.remove(str(FOLDER))
    for name in set(sys.modules) - before:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def functions_of(module):
    tree = ast.parse((FOLDER / f"{module}.py").read_text())
    return {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}


def names():
    found = functions_of("workloads") | functions_of("models")
    return sorted(found - {"tensor", "pure", "fill", "training", "mlp", "recurrent"})


def test_a_workload_is_a_name_with_sizes(scripts):
    assert scripts.cases.parsed("lstm:length=5,batch=2") == ("lstm", {"length": 5, "batch": 2})
    assert scripts.cases.parsed("dispatch") == ("dispatch", {})


@pytest.mark.parametrize("name", names())
def test_every_workload_steps_to_the_same_loss_in_every_system(name, scripts, monkeypatch):
    # Adam makes of a gradient that is 0 but for rounding (a key's bias) a step of either sign:
    # passes then agree in the loss, but not in every output
    monkeypatch.setenv("WENGERT_CHECK", "0")
    spec = f"{name}:{SMALL.get(name, '')}"
    losses = []
    for system in ("wengert-eager", "wengert-compile", "numpy"):
        if system == "numpy" and not hasattr(scripts.numpy, name):
            continue
        case = scripts.systems.SYSTEMS[system].build(spec)
        for _ in range(3):
            case.step()
        losses.append(case.loss())
    assert math.isfinite(losses[0])
    assert losses == pytest.approx([losses[0]] * len(losses), rel=1e-4)


def test_jax_has_a_version_of_all_that_are_listed(scripts):
    listed = {scripts.cases.parsed(spec)[0] for spec in scripts.run.WORKLOADS}
    assert listed <= functions_of("peers_jax")
    assert listed <= set(names())


def test_a_run_writes_all_that_was_measured(tmp_path):
    out = tmp_path / "found"
    code = main(["bench", "--systems", "numpy,wengert-compile", "--workloads", "mlp_small",
                 "--rounds", "1", "--burst", "0.01", "--out", str(out)])  # fmt: skip
    assert code == 0
    found = json.loads(out.with_suffix(".json").read_text())
    rows = found["workloads"]["mlp_small"]
    for row in rows.values():
        assert 0 < row["minimum"] <= row["median"]
        assert min(row[what] for what in ("cold", "warm", "peak", "installed")) > 0
        assert row["import"] > 0.001  # NumPy was not there before
    assert rows["wengert-compile"]["graph"]["modules"] > 0
    assert "geometric mean" in out.with_suffix(".md").read_text()
    ElementTree.fromstring(out.with_suffix(".svg").read_text())


@pytest.mark.skipif(importlib.util.find_spec("jax") is not None, reason="it is there")
def test_a_system_that_is_not_there_is_left_out(tmp_path, capfd):
    code = main(["bench", "--systems", "jax", "--peer-python", sys.executable, "--workloads",
                 "dispatch", "--out", str(tmp_path / "found")])  # fmt: skip
    assert code == 0
    assert "-\n" in capfd.readouterr().out


def test_an_unknown_system_is_wrong_usage(capfd):
    assert main(["bench", "--systems", "abacus"]) == 2
    assert "no system 'abacus'; there are numpy, torch-eager" in capfd.readouterr().err


def test_different_losses_stop_the_run(scripts):
    workers = [SimpleNamespace(system=name, facts={"loss": loss})
               for name, loss in (("a", 1.0), ("b", 1.1))]  # fmt: skip
    with pytest.raises(SystemExit, match=r"b computes 1\.1, others 1\.0"):
        scripts.run.check_losses("w", workers)


def test_tables_compare_with_the_best_peer(scripts):
    row = {"minimum": 4e-6, "median": 5e-6, "cold": 2.0, "warm": 1.0, "import": 0.5, "peak": 1e8,
           "installed": 1e7, "version": "1"}  # fmt: skip
    rows = {"torch-eager": row, "jax": {**row, "minimum": 3e-6},
            "wengert-compile": {**row, "minimum": 2e-6}}  # fmt: skip
    found = {"machine": {"threads": 2}, "workloads": {"w": rows}}
    text = scripts.tables.report(found, list(rows))
    assert "| w | 4.0 (5.0) | 3.0 (5.0) | 2.0 (5.0) | 1.50x |" in text
    assert "geometric mean 1.50x, least 1.50x" in text
    assert "| jax | 1 | 0.50 | 100 to 100 | 10 |" in text


def test_curves_are_charts_with_a_line_per_system(scripts):
    curve = scripts.scaling.CURVES["batch"]
    rows = [{"size": s, "jax": 2e-6 * s, "wengert-compile": 1e-6 * s} for s in (1, 4, 16)]
    chart = ElementTree.fromstring(scripts.scaling.chart(curve, rows))
    lines = [e for e in chart.iter() if e.tag.endswith("polyline")]
    assert len(lines) == 2
    assert "| 16 | 32.00 | 16.00 |" in scripts.scaling.table(curve, rows)


def test_layers_that_repeat_share_their_kernels(scripts):
    """The number of compiled modules does not grow with depth."""
    modules = []
    for depth in (4, 8):
        case = scripts.systems.SYSTEMS["wengert-compile"].build(f"mlp_deep:depth={depth}")
        case.step()
        case.step()
        natives = [e.native for s in case.compiled.newest().segments()
                   for e in s.function.ready(s.wanted(case.compiled.newest().history))]  # fmt: skip
        modules.append(len({m.symbols[0] for n in natives for m in n.program.modules}))
    assert modules[0] == modules[1]


def test_scripts_say_what_they_do():
    for script in ("run.py", "scaling.py"):
        done = subprocess.run([sys.executable, str(FOLDER / script), "--help"], text=True,
                              capture_output=True)  # fmt: skip
        assert done.returncode == 0
        assert "--peer-python" in done.stdout


@pytest.mark.parametrize("script, case", [("kernels", "add 4"), ("gemm", "1x10x512"),
                                          ("convolutions", "1-6 28 5x5 batch 1")])  # fmt: skip
def test_kernels_are_measured_in_turns(script, case):
    command = [sys.executable, str(FOLDER / f"{script}.py"), "--threads", "1", "--only", case]
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert case in done.stdout.splitlines()[-1]


def test_first_calls_are_those_of_a_new_process(scripts, tmp_path):
    cache, bytecode = tmp_path / "cache", tmp_path / "bytecode"
    clock, busy = scripts.first_calls.measured("Adam", str(cache), str(bytecode))
    assert clock > 0 and busy > 0
    assert any(cache.iterdir())  # so the next process finds its code
    assert any(bytecode.rglob("assemble*.pyc"))  # and its modules


def test_memory_at_the_peak_is_that_of_a_process_of_its_own(scripts):
    grown, peak = scripts.memory.peak(sys.executable, "wengert-compile", "mlp_mnist:batch=256")
    assert 0 < grown < peak < 2000
