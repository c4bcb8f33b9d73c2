"""The examples run: a few steps of each, its summary and its plot."""

import runpy
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "examples"
SHARED = ("plotting", "running", "glyphs")
PROGRAMS = sorted(p.stem for p in FOLDER.glob("*.py") if p.stem not in SHARED)


@pytest.fixture
def example(monkeypatch, tmp_path, capsys):
    """Runs a program as `python examples/name.py` would; gives what it printed and its plot."""
    monkeypatch.syspath_prepend(str(FOLDER))

    def run(name, *options):
        plot = tmp_path / f"{name}.svg"
        monkeypatch.setattr(sys, "argv", [name, "--plot", str(plot), *options])
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
        return capsys.readouterr(), ElementTree.fromstring(plot.read_text())

    yield run
    for name in SHARED:
        sys.modules.pop(name, None)


def test_there_are_five():
    assert len(PROGRAMS) == 5
    readme = (FOLDER / "README.md").read_text()
    assert all(f"`{name}.py`" in readme for name in (*PROGRAMS, *SHARED))


@pytest.mark.parametrize("name", PROGRAMS)
def test_examples_run(name, example):
    printed, plot = example(name, "--steps", "2", "--eager")
    assert f"{name}\n" in printed.out and "parameters" in printed.out
    assert "2/2" in printed.err
    lines = plot.findall("{http://www.w3.org/2000/svg}polyline")
    assert lines and len(lines[0].get("points").split()) == 2


def test_compiled_and_eager_runs_agree(example):
    def result(*options):
        printed, _ = example("heat", "--steps", "4", *options)
        return [line for line in printed.out.splitlines() if "loss" in line or "error" in line]

    assert result() == result("--eager")
    assert len(result("--eager")) == 2


def test_plots_hold_what_they_are_given(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import plotting

    axes = plotting.Axes("a < b", log=True).line([1, 10, 100], label="up").points([0, 2], [1, 50])
    path = plotting.save(tmp_path / "p.svg", axes, plotting.Images([[[0, 1], [1, 0]]], 1))
    text = path.read_text()
    assert "a &lt; b" in text and "1e2" in text and text.count("<circle") == 2
    assert text.count("#000000") == text.count("#ffffff") == 2
    assert plotting.smooth([1, 3, 5], 2) == [1, 2, 4]
