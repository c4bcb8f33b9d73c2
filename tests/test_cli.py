"""The command line: what each command prints, its exit codes, errors in one line."""

import json
import runpy
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from wengert import cli, surface
from wengert.cli import main

GRAPH = 'graph @g(%0: f32[3] "x") {\n  %1: f32[3] = mul %0, %0\n  return %1\n}\n'
SCRIPT = """
import wengert as torch
import neighbour

def plain(x):
    return (x.tanh() * neighbour.FACTOR).sum()

@torch.compile
def step(x):
    return plain(x)

if __name__ == "__main__":
    step(torch.ones(3, requires_grad=True)).backward()
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "neighbour.py").write_text("FACTOR = 2.0\n")
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    yield str(path)
    sys.modules.pop("neighbour", None)


def commands():
    parser = cli.make_parser()
    action = next(a for a in parser._actions if hasattr(a, "choices") and a.choices)
    return sorted(action.choices)


# --- help, errors, exit codes ---


def test_no_command_shows_help(capsys):
    assert main([]) == 2
    assert "demo" in capsys.readouterr().out


@pytest.mark.parametrize("name", [c for c in commands() if c != "fuzz"])
def test_every_command_has_help_with_examples(name, capfd):
    if name == "bench":  # a script of its own answers
        assert main([name, "--help"]) == 0
    else:
        with pytest.raises(SystemExit) as stop:
            main([name, "--help"])
        assert stop.value.code == 0
    out = capfd.readouterr().out
    assert f"wengert {name}" in out
    assert "examples:" in out or "python benchmarks/run.py" in out


def test_wrong_usage_is_told_apart():
    for arguments in (["explain", "--bogus"], ["cache", "burn"], ["nonsense"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2


def test_errors_are_one_line_unless_debugged(tmp_path, capsys):
    (tmp_path / "bad.ir").write_text(GRAPH.replace("%0, %0", "%0, %9"))
    arguments = ["run-ir", str(tmp_path / "bad.ir")]
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "line 2, column 24: %9 is used before it is defined" in error
    for debugged in (["--debug", *arguments], [*arguments, "--debug"]):
        with pytest.raises(Exception, match="used before"):
            main(debugged)


def test_a_reader_that_has_seen_enough_is_no_error():
    code = "from wengert.cli import main; raise SystemExit(main(['coverage']))"
    writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)  # fmt: skip
    writer.stdout.readline()
    writer.stdout.close()
    assert writer.stderr.read() == b""
    writer.stderr.close()
    assert writer.wait() == 0


# --- graphs ---


def test_run_ir(tmp_path, capsys):
    (tmp_path / "g.ir").write_text(GRAPH)
    np.savez(tmp_path / "x.npz", x=np.array([1, 2, 3], np.float32))
    assert main(["run-ir", str(tmp_path / "g.ir"), "--inputs", str(tmp_path / "x.npz")]) == 0
    assert capsys.readouterr().out == "tensor([1., 4., 9.])\n"
    out = str(tmp_path / "y.npz")
    main(["run-ir", str(tmp_path / "g.ir"), "--inputs", str(tmp_path / "x.npz"), "--out", out])
    assert np.load(out)["arr_0"].tolist() == [1, 4, 9]


def test_missing_input_is_one_line(tmp_path, capsys):
    (tmp_path / "g.ir").write_text(GRAPH)
    assert main(["run-ir", str(tmp_path / "g.ir")]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "no array for input 0 'x'" in error


def test_a_dump_of_a_script_runs_again(script, tmp_path, capsys):
    assert main(["dump", f"{script}:step", "--stage", "backward"]) == 0
    text = capsys.readouterr().out
    assert "^tanh.0" in text and "\x1b" not in text
    (tmp_path / "back.ir").write_text(text)
    np.savez(tmp_path / "in.npz", np.ones(3, np.float32), np.float32(1))
    assert main(["run-ir", str(tmp_path / "back.ir"), "--inputs", str(tmp_path / "in.npz")]) == 0
    assert "0.8399" in capsys.readouterr().out


def test_any_function_can_be_called_and_reported(script, tmp_path, capsys):
    page = tmp_path / "page.html"
    call = ["--call", "torch.ones(4, requires_grad=True)"]
    assert main(["report", f"{script}:plain", *call, "--out", str(page)]) == 0
    assert "plain - wengert report" in page.read_text()
    assert main(["dump", f"{script}:plain", *call, "--stage", "backward"]) == 0
    assert "f32[4] = tanh" in capsys.readouterr().out


@pytest.mark.parametrize("target, message", [
    ("step", "not of the form script.py:function"),
    ("{script}:missing", "has no 'missing'; it has plain, step"),
    ("{script}:plain", "does not call plain; give arguments with --call"),
    ("nowhere.py:f", "no script at nowhere.py"),
])  # fmt: skip
def test_what_is_wrong_with_a_target_is_said(target, message, script, capsys):
    assert main(["dump", target.format(script=script)]) == 1
    assert message in capsys.readouterr().err


# --- the rest ---


def test_coverage_lists_every_op(capsys):
    assert main(["coverage", "--ops"]) == 0
    out = capsys.readouterr().out
    assert "tanh" in out
    assert "fused" in out


def test_coverage_says_through_what_gradients_flow():
    flows = {name: answer for name, _, answer, _ in surface.rows()}
    for name in (
        "add",
        "add_",
        "floor",
        "matmul",
        "index_select",
        "masked_fill_",
        "double",
        "positive",
    ):
        assert flows[name] == "yes", name
    for name in ("eq", "eq_", "isclose", "allclose", "long", "count_nonzero", "argmax", "heaviside",
                 "unique", "is_contiguous", "apply_", "resize_"):  # fmt: skip
        assert flows[name] == "no", name
    assert flows["shape"] == flows["requires_grad_"] == "-"


def test_explain_knows_codes_and_words(capsys):
    assert main(["explain", "R101"]) == 0
    assert "What to do" in capsys.readouterr().out
    assert main(["explain", "no such thing"]) == 1


def test_cache_is_shown_and_cleared(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WENGERT_CACHE_DIR", str(tmp_path))
    assert main(["cache"]) == 0
    assert str(tmp_path) in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert "removed 0 entries" in capsys.readouterr().out


def test_doctor_finds_this_machine_well(monkeypatch, capsys):
    monkeypatch.setattr("wengert.cli.doctor.BENCHMARK_SECONDS", 0.02)
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for word in ("llvmlite", "features", "threads", "layout", "compile    ok", "eager", "compiled"):
        assert f"\n{word}" in out


def test_demo_trains_shows_and_writes(tmp_path, capsys):
    folder = tmp_path / "demo"
    assert main(["demo", "--steps", "4", "--out", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "speed-up" in out and "steps/s" in out
    assert "^tanh.0 @" in out and "train.py:36" in out
    assert out.count("o") > 50  # the data on the map
    plot = ElementTree.fromstring((folder / "loss.svg").read_text())
    assert len([e for e in plot.iter() if e.tag.endswith("polyline")]) == 2
    assert "step - wengert report" in (folder / "step.html").read_text()


def test_the_demo_s_program_runs_by_itself(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(cli.__path__[0] + "/spirals.py", run_name="__main__")
    losses = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()]
    assert losses[-1] < 0.1 < losses[0]
    assert (tmp_path / "step.html").exists()


def test_the_demo_refuses_no_steps(capsys, tmp_path):
    assert main(["demo", "--steps", "0", "--out", str(tmp_path)]) == 1
    assert "--steps must be at least 1" in capsys.readouterr().err


def test_the_manifest_of_dumps_is_json(tmp_path, monkeypatch, script):
    monkeypatch.setenv("WENGERT_DUMP", str(tmp_path / "dumps"))
    assert main(["dump", f"{script}:step"]) == 0
    (home,) = (tmp_path / "dumps").iterdir()
    assert json.loads((home / "manifest.json").read_text())["version"] == 1
