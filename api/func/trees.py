"""Nested containers, as the transforms of `torch.func` walk them."""

from ..pytree import flatten, unflatten
from ..tracer.tensor import Tensor


def leaves_of(value):
    """(leaves, structure) of a nested container."""
    leaves = []
    structure = flatten(value, leaves)
    return leaves, structure


def rebuild(structure, leaves):
    """The container of that structure with these leaves."""
    return unflatten(structure, iter(leaves))


def tree_map(function, value):
    """`value` with every leaf replaced."""
    leaves, structure = leaves_of(value)
    return rebuild(structure, [function(leaf) for leaf in leaves])


def map_tensors(function, value):
    """`value` with every tensor in it replaced."""
    return tree_map(lambda leaf: function(leaf) if isinstance(leaf, Tensor) else leaf, value)


def spread(prefix, value):
    """One entry of `prefix` per leaf of `value`: an int or None stands for a whole subtree.

    Returns None where the structures do not match.
    """
    if prefix is None or isinstance(prefix, int):
        return [prefix] * len(leaves_of(value)[0])
    parts = children(value)
    given = children(prefix)
    if parts is None or given is None or len(parts) != len(given):
        return None if parts is not None or given is not None else [prefix]
    if isinstance(value, dict) and isinstance(prefix, dict):
        if set(value) != set(prefix):
            return None
        given = [prefix[key] for key in value]
    found = []
    for one, other in zip(given, parts):
        inner = spread(one, other)
        if inner is None:
            return None
        found.extend(inner)
    return found


def children(value):
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, tuple | list) else None
