"""Programs as bytes, and the keys under which they are kept."""

from dataclasses import replace

import pytest
from graphs import build
from wengert import backend
from wengert.ir import packing, passes
from wengert.ir.graph import Place
from wengert.ir.op import TABLE
from wengert.ir.program import Module
from wengert.ir.types import TensorType, float32

F = "float32"


def softmax(x):
    return TABLE["softmax"](x, dim=1) * 2.0


def key(function=softmax, *types, circumstances=("here",)):
    graph = passes.optimise(build(function, *(types or [(F, 3, 4)])))
    return packing.key_of(graph, *circumstances)


def test_keys_tell_apart_what_makes_other_programs():
    keys = {
        key(),
        key(lambda x: TABLE["softmax"](x, dim=0) * 2.0),
        key(lambda x: TABLE["softmax"](x, dim=1) * 3.0),
        key(softmax, (F, 3, 5)),
        key(circumstances=("there",)),
    }
    assert len(keys) == 5
    assert key() in keys


def test_places_in_the_source_do_not_count():
    graph = passes.optimise(build(softmax, (F, 3, 4)))
    moved = graph.replace(nodes=tuple(replace(n, place=Place("x.py", 7)) for n in graph.nodes))
    assert packing.key_of(graph) == packing.key_of(moved)


@pytest.mark.parametrize("value", [0.0, -0.0, 1, True, None, "dim", (1, (2.5, float32)), 1j])
def test_attributes_come_back(value):
    assert repr(packing.value_of(packing.plain(value))) == repr(value)


def test_what_is_not_plain_is_refused():
    with pytest.raises(packing.Unpackable):
        packing.plain(object())
    with pytest.raises(packing.Unpackable):
        packing.plain_type(TensorType(float32, (object(),)))


def test_ops_that_a_program_adds_have_no_key(monkeypatch):
    monkeypatch.setattr(packing, "CATALOGUE", frozenset({"mul"}))
    with pytest.raises(packing.Unpackable):
        key()


def test_a_program_is_found_without_its_texts_until_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setenv("WENGERT_CACHE", "1")
    monkeypatch.setenv("WENGERT_CACHE_DIR", str(tmp_path / "objects"))
    graph = passes.optimise(build(softmax, (F, 30, 40)))
    made, again = backend.Made(graph), backend.Made(graph)
    assert made.found() is made.program
    found = again.found()
    assert "program" not in vars(again)
    assert [m.text for m in found.modules] == [m.text for m in made.program.modules]


def test_modules_are_equal_by_what_is_said_of_them():
    one = Module(lambda: "a", "m", ("f",), light=True)
    two = Module(lambda: "b", "m", ("f",), light=True)
    assert one == two and len({one, two}) == 1  # the identity stands for the text
    assert one != Module(one.write, "m", ("f",)) and one != "m"
    assert "'m', ('f',)" in repr(one)
    assert (one.text, two.text) == ("a", "b")
