"""`torch.functional`: where torch keeps the functions that it writes in Python."""

from __future__ import annotations

import sys
from typing import Any

NAMES = (
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes",
    "broadcast_tensors", "cartesian_prod", "cdist", "chain_matmul", "einsum", "istft", "lu",
    "meshgrid", "norm", "pca_lowrank", "split", "stft", "svd_lowrank", "tensordot", "unique",
    "unique_consecutive", "unravel_index",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in NAMES:
        return getattr(sys.modules[__package__ or ""], name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
