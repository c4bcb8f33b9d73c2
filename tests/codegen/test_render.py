"""Templates: strict names, and compiled ones kept in a store."""

import jinja2
import pytest
from wengert.codegen import render


class Memory(dict):
    def put(self, key, code):
        self[key] = code


@pytest.fixture
def store():
    kept = Memory()
    render.keep_in(kept)
    yield kept
    render.keep_in(None)


def test_a_missing_field_is_an_error():
    with pytest.raises(jinja2.UndefinedError):
        render.render("gemm_pass.ll.j2", body="")


def test_compiled_templates_are_kept(store, monkeypatch):
    fields = {"kernel": {"c": (8, 1), "element": "float"}, "body": "", "rows": ("0", "2"),
              "columns": ("0", "8")}  # fmt: skip
    text = render.render("gemm_pass.ll.j2", **fields)
    assert len(store) == 2 and all(len(key) == 32 for key in store)  # itself and what it imports
    render.keep_in(store)  # as a new process would
    monkeypatch.setattr(jinja2.Environment, "_parse", None)  # compiling would fail
    assert render.render("gemm_pass.ll.j2", **fields) == text


def test_damaged_entries_are_compiled_anew(store):
    before = render.render("loops.ll.j2")
    for key in store:
        store[key] = store[key][:20]
    render.keep_in(store)
    assert render.render("loops.ll.j2") == before


def test_fingerprint_is_a_hash_of_the_package():
    assert len(render.fingerprint()) == 64
