"""Templates that were compiled beforehand give the same text."""

import sys
from types import SimpleNamespace

import pytest
from wengert.codegen import render


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    render.environment.cache_clear()
    render.precompile(tmp_path)
    monkeypatch.setattr(render, "COMPILED", tmp_path)
    render.environment.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    render.environment.cache_clear()


def test_compiled_templates_are_taken(compiled):
    assert (render.environment().get_template("loops.ll.j2").root_render_func.__code__.co_filename
            .startswith(str(compiled)))  # fmt: skip


def test_bytecode_beside_templates_is_none_of_them(tmp_path, monkeypatch):
    folder = tmp_path / "templates"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "one.ll.j2").write_text("{{ x }}")
    (folder / "__pycache__" / "one.ll.j2.pyc").write_bytes(b"\x97\x00")
    monkeypatch.setattr(render, "TEMPLATES", folder)
    render.precompile(tmp_path / "compiled")
    assert len(list((tmp_path / "compiled").glob("tmpl_*.py"))) == 1


def test_those_of_another_jinja2_are_not(compiled):
    (compiled / render.VERSION).write_text("0.1")
    render.environment.cache_clear()
    name = render.environment().get_template("loops.ll.j2").root_render_func.__code__.co_filename
    assert not name.startswith(str(compiled))
    assert {p.stem for p in compiled.glob("tmpl_*.py")}


def templates_compiled(monkeypatch):
    """How many templates a fresh environment compiles for one that imports others."""
    import jinja2

    compiled = []
    compile = jinja2.Environment.compile
    monkeypatch.setattr(jinja2.Environment, "compile",
                        lambda *given: compiled.append(given) or compile(*given))  # fmt: skip
    render.environment.cache_clear()
    render.environment().get_template("nest.ll.j2")
    return len(compiled)


def templates_in(folder):
    """What is kept of templates: another thread may import modules meanwhile."""
    return [path for path in folder.rglob("*.pyc") if "templates" in path.parts]


@pytest.fixture
def own_pycache(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(render, "COMPILED", tmp_path / "none")
    monkeypatch.setattr(render, "_store", None)
    yield tmp_path
    render.environment.cache_clear()


def test_compiled_templates_are_kept_as_compiled_modules_are(own_pycache, monkeypatch):
    assert templates_compiled(monkeypatch) == 1
    assert templates_compiled(monkeypatch) == 0
    (kept,) = templates_in(own_pycache)
    kept.write_bytes(b"damaged")
    assert templates_compiled(monkeypatch) == 1
    assert templates_compiled(monkeypatch) == 0


def test_the_store_keeps_what_python_would_not_write(own_pycache, monkeypatch):
    kept = {}
    monkeypatch.setattr(render, "_store", SimpleNamespace(get=kept.get, put=kept.__setitem__))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert templates_compiled(monkeypatch) == 1
    assert len(kept) == 1 and not templates_in(own_pycache)
    assert templates_compiled(monkeypatch) == 0
