"""Gradients of which some rows are there: those of embeddings with `sparse=True`.

Note [Sparse gradients]
    The gradient of a table is as long as the table, though a batch looks up few rows. With
    `sparse=True` it is a sparse tensor, with a position for each index that was looked up. It goes
    where dense ones go: the engine adds it, hooks see it, `.grad` keeps it. Only eager backward
    makes it; recordings refuse (`ir/ops/nn_embedding.py`), and transforms have dense gradients.
"""

from __future__ import annotations

from typing import Any

from ..ir.bind import notify
from ..ir.ops import nn_embedding
from .tensor import Tensor


def sparse_rows(rows: Any, indices: Any, weight_type: Any, padding_idx: int) -> Any:
    """A sparse gradient with `rows` at `indices`; None where it has to be dense."""
    from .batching import BatchedTensor

    notify("value_asked")  # no written code for this rule: it makes what is no op's result
    if not isinstance(rows, Tensor) or isinstance(rows, BatchedTensor):
        return None
    from .sparse_forms import SparseTensor  # with all that can be done with it

    places, values = indices.reshape(-1), rows.reshape(-1, weight_type.shape[-1])
    if padding_idx >= 0:
        kept = (places != padding_idx).nonzero().squeeze(1)
        places, values = places[kept], values[kept]
    return SparseTensor(places.long().unsqueeze(0), values, weight_type.shape)


nn_embedding.sparse_rows = sparse_rows
