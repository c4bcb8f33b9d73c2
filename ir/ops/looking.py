"""What ops that may raise look at: pairs of an operand and what its elements must be.

See Note [Unread checks] in `passes/dead_code.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..types import FLOAT

Looks = list[tuple[Any, Any]]
# with a size: an index of [0, size); one that may count from the end; or a divisor
BELOW, WITHIN, NOT_ZERO = "below", "within", ("not", 0)


def along_dim(node: Any) -> Looks:
    """An index along `dim` of the first operand."""
    source, index = node.inputs[:2]
    return [(index, (BELOW, source.shape[node.attributes["dim"]] if source.shape else 1))]


def of_rows(node: Any) -> Looks:
    """An index of the rows of the first operand."""
    source, index = node.inputs[:2]
    return [(index, (BELOW, source.shape[0]))]


def of_count(node: Any) -> Looks:
    """An index of `count` rows that are made."""
    return [(node.inputs[1], (BELOW, node.attributes["count"]))]


def from_either_end(first: int) -> Callable[[Any], Looks]:
    """Indices, from operand `first` on, of the dimensions that `spec` names."""

    def looks(node: Any) -> Looks:
        shape = node.inputs[0].shape
        sizes = [shape[d] for d, used in enumerate(node.attributes["spec"]) if used]
        return [(index, (WITHIN, n)) for index, n in zip(node.inputs[first:], sizes)]

    return looks


def sorter(node: Any) -> Looks:
    """The order of a sequence, if one is given."""
    sequence, _, order = node.inputs
    return [] if order is None else [(order, (WITHIN, sequence.shape[-1]))]


def divisor(node: Any) -> Looks:
    """Integers can't be divided by 0."""
    return [] if node.outputs[0].dtype.category >= FLOAT else [(node.inputs[1], NOT_ZERO)]
