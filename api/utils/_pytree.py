"""`torch.utils._pytree`: nested containers taken apart and put together."""

from __future__ import annotations

from typing import Any

from ..func.trees import leaves_of, rebuild, tree_map

__all__ = ["tree_flatten", "tree_leaves", "tree_map", "tree_unflatten"]


def tree_flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves of a nested container, and its structure."""
    return leaves_of(tree)


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves alone."""
    return leaves_of(tree)[0]


def tree_unflatten(leaves: Any, treespec: Any) -> Any:
    """The container of that structure with these leaves."""
    return rebuild(treespec, leaves)
