"""Bool masks as indices: what they may look like, and when their elements need not be counted."""

from __future__ import annotations

from typing import Any

from ..types import bool_


def check_mask(value: Any, mask: Any, dim: int) -> None:
    for k, n in enumerate(mask.shape):
        if n != value.shape[dim + k]:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {k} does not match the shape "
                f"of the indexed tensor {list(value.shape)} at index {dim + k}"
            )


def one_mask(viewed: Any, indices: list[Any]) -> Any:
    """The mask if the index is a single one, with ones for the dimensions before it; else None."""
    places = [k for k, index in enumerate(indices) if index is not None]
    mask = indices[places[0]]
    if len(places) > 1 or mask.dtype is not bool_ or not mask.ndim:
        return None
    check_mask(viewed, mask, places[0])
    return mask.reshape((1,) * places[0] + tuple(mask.shape)) if places[0] else mask


def fits_behind(mask: Any, viewed: Any, value: Any) -> bool:
    """Is what a masked element gets the same whichever elements the mask has?"""
    behind = tuple(viewed.shape)[mask.ndim :]
    if not value.ndim:
        return True
    if value.dtype is not viewed.dtype or value.ndim > len(behind) + 1:
        return False
    sizes = (*behind[::-1], 1)
    return all(n in (1, size) for n, size in zip(value.shape[::-1], sizes))
