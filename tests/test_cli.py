"""The command line."""

import numpy as np
from wengert.cli import main

GRAPH = 'graph @g(%0: f32[3] "x") {\n  %1: f32[3] = mul %0, %0\n  return %1\n}\n'


def test_no_command_shows_help(capsys):
    assert main([]) == 2
    assert "demo" in capsys.readouterr().out


def test_run_ir(tmp_path, capsys):
    (tmp_path / "g.ir").write_text(GRAPH)
    np.savez(tmp_path / "x.npz", x=np.array([1, 2, 3], np.float32))
    assert main(["run-ir", str(tmp_path / "g.ir"), "--inputs", str(tmp_path / "x.npz")]) == 0
    assert capsys.readouterr().out == "tensor([1., 4., 9.])\n"


def test_missing_input_is_one_line(tmp_path, capsys):
    (tmp_path / "g.ir").write_text(GRAPH)
    assert main(["run-ir", str(tmp_path / "g.ir")]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "no array for input 0 'x'" in error


def test_coverage_lists_every_op(capsys):
    assert main(["coverage"]) == 0
    out = capsys.readouterr().out
    assert "tanh" in out
    assert "fused" in out
