"""Bodies that call installed packages: how far the recorder looks into them."""

import importlib
import sys

import pytest
import wengert as torch
from wengert.reach import MAX_INSTALLED, Reach


@pytest.fixture
def package(tmp_path, monkeypatch):
    """package(name, text): a module of an installed package."""

    def install(name, text):
        folder = tmp_path / "site-packages"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(text)
        return importlib.import_module(name)

    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    before = set(sys.modules)
    yield install
    for name in set(sys.modules) - before:
        del sys.modules[name]


def chain(count, first=""):
    """Functions that call each other."""
    lines = [first, "SCALE = 2.0", "def f0(x):\n    return x * SCALE"]
    lines += [f"def f{k}(x):\n    return f{k - 1}(x) if x is None else f0(x)"
              for k in range(1, count)]  # fmt: skip
    return "\n".join(lines)


def test_small_packages_are_looked_through(package):
    small = package("small_package", chain(50))
    body = torch.compile(lambda x: small.f49(x) + 1)
    assert [body(torch.ones(2)).tolist() for _ in range(3)] == [[3.0, 3.0]] * 3
    assert "replayed 2 times" in body.explain()
    small.SCALE = 5.0
    assert body(torch.ones(2)).tolist() == [6.0, 6.0]


def test_large_packages_are_not(package):
    """Of so much code nearly always something keeps a body in Python."""
    large = package("large_package", chain(2 * MAX_INSTALLED))
    last = getattr(large, f"f{2 * MAX_INSTALLED - 1}")
    body = torch.compile(lambda x: last(x) + 1)
    for scale in (2.0, 2.0, 5.0):
        large.SCALE = scale
        assert body(torch.ones(2)).tolist() == [scale + 1] * 2
    assert "functions of packages" in body.explain() and "large_package.py" in body.explain()
    assert "[R135]" in body.explain()


def test_functions_that_call_each_other_a_thousand_deep(tmp_path):
    space = {}
    exec(chain(1000), space)
    body = torch.compile(lambda x: space["f999"](x) + 1)
    assert [body(torch.ones(2)).tolist() for _ in range(3)] == [[3.0, 3.0]] * 3
    space["SCALE"] = 5.0
    assert body(torch.ones(2)).tolist() == [6.0, 6.0]


def test_what_keeps_a_body_in_python_ends_the_search(package):
    first = "import time\ndef now():\n    return time.time()"
    clock = package("clock_package", chain(1000, first))

    def body(x):
        clock.now()
        return clock.f999(x)

    reach = Reach(body, [])
    assert reach.installed < 100 and "asks for the time" in reach.problems[0]
    compiled = torch.compile(body)
    assert [compiled(torch.ones(1)).item() for _ in range(3)] == [2.0] * 3
    assert "asks for the time" in compiled.explain()
