"""docs/tour.md shows what really comes out."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "tour.md").read_text()
STAGES = ("trace", "backward", "kernels", "llvm", "listing")


def block(name):
    return re.search(rf"```{name}\n(.*?)```", PAGE, re.S)[1]


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """The dumps of the page's function, with names that depend on the machine left out."""
    home = tmp_path_factory.mktemp("tour")
    script = home / "tour.py"
    lines = [f"print({'=' * 20 + stage!r}); print(g.dump({stage!r}))" for stage in STAGES]
    script.write_text(block("python").lstrip() + "\n" + "\n".join(lines) + "\n")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WENGERT_")}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True,
                          env=environment)  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = done.stdout.replace(f"{home}{os.sep}", "")
    parts = re.split(r"={20}(\w+)\n", text)[1:]
    return dict(zip(parts[::2], parts[1::2]))


@pytest.mark.parametrize("stage", ["trace", "backward"])
def test_graphs(dumps, stage):
    assert dumps[stage].strip() == block(stage).strip()


def test_kernels(dumps):
    found = re.sub(r"row k\w+", "row NAME", dumps["kernels"])
    assert found.startswith(block("kernels"))


def test_llvm_lines_say_what_they_are_for(dumps):
    assert re.search(r"call .*w_tanh_\w+.* ; %3\n", dumps["llvm"])
    assert re.search(r"= fmul .* ; %2\n", dumps["llvm"])


def test_listing_names_the_lines_of_python(dumps):
    for header in re.findall(r"^# .*$", block("asm"), re.M):
        assert header in dumps["listing"]


def test_every_page_and_method_it_names_exists():
    for name in re.findall(r"\]\((\w+\.md)\)", PAGE):
        assert (ROOT / "docs" / name).exists(), name


def test_the_reference_has_every_op():
    from wengert.ir.op import TABLE
    from wengert.reference import reference

    text = reference()
    assert [name for name in TABLE if f"| `{name}` " not in text] == []
    assert "| `tanh` self -> result |  | self: result | fused |" in text


def test_the_stored_reference_is_current():
    """If not: python -m wengert coverage --reference > docs/ops.md"""
    from wengert.reference import reference

    assert (ROOT / "docs" / "ops.md").read_text().strip() == reference().strip()
