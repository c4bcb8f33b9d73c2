"""`torch.sparse`: tensors in coordinate form. Compressed layouts are not there, and say so."""

from __future__ import annotations

from typing import Any

from .tracer.sparse import SparseTensor, sparse_coo, sparse_coo_tensor
from .tracer.sparse_forms import addmm, log_softmax, product, softmax
from .tracer.sparse_forms import total as sum
from .tracer.strided import layout

__all__ = ["addmm", "log_softmax", "mm", "softmax", "sparse_coo", "sparse_coo_tensor", "sum"]
sparse_csr, sparse_csc = layout("sparse_csr"), layout("sparse_csc")
sparse_bsr, sparse_bsc = layout("sparse_bsr"), layout("sparse_bsc")


def mm(mat1: Any, mat2: Any) -> Any:
    """sparse.mm(mat1, mat2): a product of matrices of which one at least is sparse."""
    if not isinstance(mat1, SparseTensor) and not isinstance(mat2, SparseTensor):
        return mat1 @ mat2
    return product(mat1, mat2)


spmm = mm


def _refusing(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{name}(): compressed sparse layouts are not supported; use "
                           "sparse_coo_tensor()")  # fmt: skip

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Raises: sparse tensors are in coordinate form."
    return refuse


NAMES = ("sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_csc_tensor",
         "sparse_csr_tensor")  # fmt: skip
globals().update({name: _refusing(name) for name in NAMES})
