"""`torch.utils._pytree`: torch 2.13's answers."""

from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest
import wengert as torch
from wengert.utils import _pytree as pytree

Pair = namedtuple("Pair", "a b")
TREE = {"b": [1, (2, 3)], "a": Pair(4, OrderedDict(z=5)), "c": None,
        "d": defaultdict(list, k=[6]), "e": deque([7]), "f": torch.Size([1])}  # fmt: skip


def test_apart_and_together():
    leaves, spec = pytree.tree_flatten(TREE)
    assert leaves == [1, 2, 3, 4, 5, None, 6, 7, 1] and spec.num_leaves == 9
    again = pytree.tree_unflatten(leaves, spec)
    assert again == TREE and type(again["a"]) is Pair and again["d"].default_factory is list
    assert spec == pytree.tree_structure(dict(TREE)) and not spec.is_leaf()
    assert repr(pytree.tree_structure({"x": [1, (2, 3)]})) == (
        "TreeSpec(dict, ['x'], [TreeSpec(list, None, [*,\n"
        "    TreeSpec(tuple, None, [*,\n      *])])])"
    )
    assert pytree.tree_flatten(5) == ([5], pytree.LeafSpec()) and pytree.tree_is_leaf(None)
    with pytest.raises(ValueError, match="`leaves` has length 1 but the spec refers to a pytree"):
        pytree.tree_unflatten([1], spec)


def test_maps():
    assert pytree.tree_map(lambda a, b: (a, b), [1, 2], [3, 4]) == [(1, 3), (2, 4)]
    assert pytree.tree_map(lambda a, b: a + b, {"x": 1, "y": 2}, {"y": 20, "x": 10}) == {
        "x": 11, "y": 22}  # fmt: skip
    assert pytree.tree_map_only(str, str.upper, [1, "a"]) == [1, "A"]
    assert pytree.tree_map_only(torch.Tensor, torch.numel, [1, torch.ones(3)]) == [1, 3]
    seen = []
    assert pytree.tree_map_(seen.append, TREE) is TREE and len(seen) == 9
    assert pytree.tree_map_with_path(lambda p, x: (pytree.keystr(p), x), {"a": [1]}) == {
        "a": [("['a'][0]", 1)]}  # fmt: skip
    for bad, words in (([1, 2], "Node arity mismatch; expected 1, but got 2"), ((1,), "Type mism")):
        with pytest.raises(ValueError, match=words):
            pytree.tree_map(lambda a, b: 0, [1], bad)
    with pytest.raises(ValueError, match="Node keys mismatch"):
        pytree.tree_map(lambda a, b: 0, {"a": 1}, {"b": 1})


def test_questions():
    assert pytree.tree_all(bool, [1, (2,)]) and not pytree.tree_any(bool, [0, None])
    assert pytree.tree_any_only(int, bool, ["x", 1]) and pytree.tree_all_only(int, bool, ["", 1])
    assert list(pytree.tree_iter([1, {2: 3}], is_leaf=lambda x: isinstance(x, dict))) == [1, {2: 3}]


def test_classes_of_users():
    class Point:
        def __init__(self, x, y):
            self.x, self.y = x, y

    assert pytree.tree_is_leaf(Point(1, 2))
    pytree.register_pytree_node(Point, lambda p: ((p.x, p.y), None), lambda m, _: Point(*m))
    assert pytree.tree_map(lambda v: v * 10, Point(1, 2)).y == 20
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(Point, None, None)
