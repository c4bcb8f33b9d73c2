"""`torch.utils._pytree`: nested containers taken apart and put together.

Tuples, named tuples, lists, dicts, ordered and default dicts, deques and sizes are containers, and
classes that users register; everything else is a leaf, None included.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..tracer.facts import Size

__all__ = ["LeafSpec", "MappingKey", "SequenceKey", "TreeSpec", "keystr", "register_pytree_node",
           "tree_all", "tree_all_only", "tree_any", "tree_any_only", "tree_flatten",
           "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves", "tree_map",
           "tree_map_", "tree_map_only", "tree_map_only_", "tree_map_with_path", "tree_structure",
           "tree_unflatten"]  # fmt: skip


class Container(NamedTuple):
    """How instances of a class are taken apart, (members, context), and made again."""

    flatten: Callable[[Any], tuple[Any, Any]]
    unflatten: Callable[[Any, Any], Any]


class SequenceKey(NamedTuple):
    """The place of a member of a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


class MappingKey(NamedTuple):
    """The place of a member of a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class _NamedTuple:
    """Stands for all classes of named tuples."""


_KNOWN: dict[type, Container] = {
    tuple: Container(lambda v: (list(v), None), lambda m, c: tuple(m)),
    list: Container(lambda v: (v, None), lambda m, c: list(m)),
    Size: Container(lambda v: (list(v), None), lambda m, c: tuple(m)),
    deque: Container(lambda v: (list(v), v.maxlen), lambda m, c: deque(m, c)),
    dict: Container(lambda v: (list(v.values()), list(v)), lambda m, c: dict(zip(c, m))),
    OrderedDict: Container(
        lambda v: (list(v.values()), list(v)), lambda m, c: OrderedDict(zip(c, m))
    ),
    defaultdict: Container(
        lambda v: (list(v.values()), [v.default_factory, list(v)]),
        lambda m, c: defaultdict(c[0], zip(c[1], m)),
    ),
    _NamedTuple: Container(lambda v: (list(v), type(v)), lambda m, c: c(*m)),
}


def register_pytree_node(
    cls: type, flatten_fn: Any, unflatten_fn: Any, **names_for_serialisation: Any
) -> None:
    """register_pytree_node(cls, flatten_fn, unflatten_fn): instances are containers from now on."""
    if cls in _KNOWN:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _KNOWN[cls] = Container(flatten_fn, unflatten_fn)


_register_pytree_node = register_pytree_node


def _kind_of(tree: Any) -> Any:
    """Under which class a container is known; None for leaves."""
    kind = type(tree)
    if kind in _KNOWN:
        return kind
    is_named = isinstance(tree, tuple) and hasattr(kind, "_fields") and hasattr(kind, "_make")
    return _NamedTuple if is_named else None


@dataclasses.dataclass(frozen=True)
class TreeSpec:
    """The structure of a nested container; of a leaf, if `type` is None."""

    type: Any
    context: Any
    children_specs: list[TreeSpec]
    num_leaves: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        inner = sum(child.num_leaves for child in self.children_specs)
        object.__setattr__(self, "num_leaves", 1 if self.type is None else inner)

    @property
    def num_nodes(self) -> int:
        return 1 + sum(child.num_nodes for child in self.children_specs)

    @property
    def num_children(self) -> int:
        return len(self.children_specs)

    def is_leaf(self) -> bool:
        """Does it describe a leaf?"""
        return self.type is None

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        name = "namedtuple" if self.type is _NamedTuple else self.type.__name__
        inner = ",\n".join(" " * (indent + 2) * (k > 0) + child.__repr__(indent + 2)
                           for k, child in enumerate(self.children_specs))  # fmt: skip
        return f"TreeSpec({name}, {self.context}, [{inner}])"

    def unflatten(self, leaves: Any) -> Any:
        """The container of this structure with these leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but "
                             f"the spec refers to a pytree that holds {self.num_leaves} items "
                             f"({self}).")  # fmt: skip
        return self._filled(iter(leaves))

    def _filled(self, leaves: Iterator[Any]) -> Any:
        if self.type is None:
            return next(leaves)
        members = [child._filled(leaves) for child in self.children_specs]
        return _KNOWN[self.type].unflatten(members, self.context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of `tree` that stand where this structure has leaves."""
        if self.type is None:
            return [tree]
        kind = _kind_of(tree)
        if kind is not self.type:
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        members, context = _KNOWN[kind].flatten(tree)
        if len(members) != len(self.children_specs):
            raise ValueError(f"Node arity mismatch; expected {len(self.children_specs)}, but got "
                             f"{len(members)}.")  # fmt: skip
        if isinstance(tree, dict) and context != self.context:  # other keys, or another order
            keys = self.context[1] if kind is defaultdict else self.context
            if set(keys) != set(tree):
                raise ValueError(f"Node keys mismatch; expected {keys}, but got {[*tree]}.")
            members = [tree[key] for key in keys]
        return [leaf for child, member in zip(self.children_specs, members)
                for leaf in child.flatten_up_to(member)]  # fmt: skip


def LeafSpec() -> TreeSpec:
    """The structure of a leaf."""
    return TreeSpec(None, None, [])


# --- taking apart --------------------------------------------------------------------------------


def _walk(tree: Any, path: tuple[Any, ...], found: list[Any], is_leaf: Any) -> TreeSpec:
    """Appends (path, leaf) of all leaves to `found`."""
    kind = None if is_leaf is not None and is_leaf(tree) else _kind_of(tree)
    if kind is None:
        found.append((path, tree))
        return LeafSpec()
    members, context = _KNOWN[kind].flatten(tree)
    keys = [MappingKey(k) for k in tree] if isinstance(tree, dict) else map(SequenceKey,
            range(len(members)))  # fmt: skip
    specs = [_walk(m, (*path, key), found, is_leaf) for key, m in zip(keys, members)]
    return TreeSpec(kind, context, specs)


def tree_flatten_with_path(tree: Any, is_leaf: Any = None) -> tuple[list[Any], TreeSpec]:
    """The leaves with their paths, and the structure."""
    found: list[Any] = []
    spec = _walk(tree, (), found, is_leaf)
    return found, spec


def tree_flatten(tree: Any, is_leaf: Any = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a nested container, and its structure."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    return [leaf for _, leaf in found], spec


def tree_unflatten(leaves: Any, treespec: TreeSpec) -> Any:
    """The container of that structure with these leaves."""
    return treespec.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: Any = None) -> list[Any]:
    """The leaves alone."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: Any, is_leaf: Any = None) -> Iterator[Any]:
    """The leaves, one after the other."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: Any = None) -> TreeSpec:
    """The structure alone."""
    return tree_flatten(tree, is_leaf)[1]


def tree_is_leaf(tree: Any, is_leaf: Any = None) -> bool:
    """Is it no container?"""
    return (is_leaf is not None and is_leaf(tree)) or _kind_of(tree) is None


def keystr(path: Any) -> str:
    """A path as it is written in Python: "['a'][1]"."""
    return "".join(map(str, path))


# --- functions of leaves -------------------------------------------------------------------------


def tree_map(func: Any, tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """tree_map(func, tree, *rests): the results of all leaves, in the tree's structure."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def tree_map_with_path(func: Any, tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """As tree_map; the function gets each leaf's path first."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(map(func, *zip(*found), *others) if found else ())


def tree_map_(func: Any, tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """Calls the function of all leaves and returns the tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _only(kind: Any, func: Any) -> Any:
    """`func` of instances of a class, or where a predicate holds; others as they are."""
    holds = kind if callable(kind) and not isinstance(kind, type) else (
        lambda leaf: isinstance(leaf, kind))  # fmt: skip
    return lambda leaf: func(leaf) if holds(leaf) else leaf


def tree_map_only(kind: Any, func: Any, tree: Any, is_leaf: Any = None) -> Any:
    """As tree_map, of leaves of one class."""
    return tree_map(_only(kind, func), tree, is_leaf=is_leaf)


def tree_map_only_(kind: Any, func: Any, tree: Any, is_leaf: Any = None) -> Any:
    """As tree_map_, of leaves of one class."""
    return tree_map_(_only(kind, func), tree, is_leaf=is_leaf)


def tree_all(pred: Any, tree: Any, is_leaf: Any = None) -> bool:
    """Does it hold for all leaves?"""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Any, tree: Any, is_leaf: Any = None) -> bool:
    """Does it hold for one leaf?"""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(kind: Any, pred: Any, tree: Any, is_leaf: Any = None) -> bool:
    """Does it hold for all leaves of a class?"""
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, kind))


def tree_any_only(kind: Any, pred: Any, tree: Any, is_leaf: Any = None) -> bool:
    """Does it hold for one leaf of a class?"""
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, kind))
