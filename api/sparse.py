"""Makers of sparse tensors, which are not there: they say so."""

from __future__ import annotations

from typing import Any


def _refusing(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{name}(): sparse tensors are not supported; tensors are dense, make "
                           "one of zeros and assign to its elements")  # fmt: skip

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Raises: tensors are dense."
    return refuse


NAMES = ("sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor",
         "sparse_csc_tensor", "sparse_csr_tensor")  # fmt: skip
globals().update({name: _refusing(name) for name in NAMES})
