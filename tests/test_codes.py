"""Codes: each is said somewhere in the sources, documented, and explained on the command line."""

import re
from pathlib import Path

import pytest
import wengert as torch
from wengert import codes
from wengert.cli import main

ROOT = Path(__file__).resolve().parent.parent


def literals():
    """All text of the sources, with adjacent literals joined."""
    files = [p for room in ("api", "tracer", "runtime") for p in (ROOT / room).rglob("*.py")]
    text = " ".join(p.read_text() for p in sorted(files) if p.name != "codes.py")
    text = re.sub(r'"\s*\n?\s*f?"', "", text)
    return " ".join(text.split())


def test_every_code_is_said_somewhere():
    text = literals()
    assert [code.code for code in codes.CODES if code.words not in text] == []


def test_codes_are_unique_and_in_order():
    found = [code.code for code in codes.CODES]
    assert len(set(found)) == len(found)


def test_the_page_is_up_to_date():
    assert (ROOT / "docs" / "errors.md").read_text() == codes.markdown()


def test_explain_names_the_code():
    function = torch.compile(lambda x: x * float(x.sum()))
    function(torch.ones(3))
    assert "[R101]" in function.explain()


@pytest.mark.parametrize("query", ["R101", "r101", "[R101]", "x.item() hands a value to Python"])
def test_command_line(query, capsys):
    assert main(["explain", query]) == 0
    assert "Return the tensor" in capsys.readouterr().out


def test_unknown_codes_are_one_line(capsys):
    assert main(["explain", "Q999"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_report_command(tmp_path, capsys):
    script = tmp_path / "script.py"
    script.write_text("import wengert as torch\nf = torch.compile(lambda x: x.exp() + 1)\n"
                      "f(torch.ones(3))\n")  # fmt: skip
    out = tmp_path / "page.html"
    assert main(["report", f"{script}:f", "--out", str(out)]) == 0
    assert "<!DOCTYPE html>" in out.read_text(encoding="utf-8")
    assert "wrote" in capsys.readouterr().out
