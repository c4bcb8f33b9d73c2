"""Templates that were compiled beforehand give the same text."""

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


def test_those_of_another_jinja2_are_not(compiled):
    (compiled / render.VERSION).write_text("0.1")
    render.environment.cache_clear()
    name = render.environment().get_template("loops.ll.j2").root_render_func.__code__.co_filename
    assert not name.startswith(str(compiled))
    assert {p.stem for p in compiled.glob("tmpl_*.py")}
