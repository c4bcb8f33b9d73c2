"""Functions that torch took away and still answers to: errors that name the successor."""

from __future__ import annotations

from typing import Any

__all__ = ["eig", "lstsq", "matrix_rank", "solve", "symeig"]

_GONE = "This function was deprecated since version 1.9 and is now removed. "


def _removed(name: str, advice: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(_GONE + advice)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(): removed. {advice}"
    return function


symeig = _removed(
    "symeig",
    "The default behavior has changed from using the upper triangular portion of the matrix by "
    "default to using the lower triangular portion. L, V = torch.symeig(A, eigenvectors=True) "
    "should be replaced with L, V = torch.linalg.eigh(A, UPLO='U').",
)
eig = _removed(
    "eig",
    "`torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real "
    "tensors mimicking complex tensors. L, V = torch.eig(A, eigenvectors=True) should be replaced "
    "with L, V = torch.linalg.eig(A).",
)
lstsq = _removed(
    "lstsq",
    "`torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`, which has reversed arguments: X "
    "= torch.linalg.lstsq(A, B).solution.",
)
solve = _removed(
    "solve",
    "`torch.solve` is deprecated in favor of `torch.linalg.solve`. `torch.linalg.solve` has its "
    "arguments reversed and does not return the LU factorization: X = torch.linalg.solve(A, B).",
)
matrix_rank = _removed(
    "matrix_rank",
    "Please use the `torch.linalg.matrix_rank` function instead, whose parameter 'hermitian' was "
    "named 'symmetric'.",
)
