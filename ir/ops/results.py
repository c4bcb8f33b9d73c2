"""Named results, torch's `return_types`: tuples with fields, e.g. `.values` and `.indices`."""

from __future__ import annotations

import operator
from typing import Any


class NamedResult(tuple[Any, ...]):
    """A tuple whose members have names; prints as torch's do."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    _title = ""

    def __repr__(self) -> str:
        lines = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self))
        return f"torch.return_types.{self._title}(\n{lines})"

    def __reduce__(self) -> Any:
        return named_result, (self._title, tuple(self))


_VALUES = "max min sort topk kthvalue median nanmedian mode cummax cummin"
FIELDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_VALUES.split(), ("values", "indices")),
    "aminmax": ("min", "max"),
    "histogram": ("hist", "bin_edges"),
    "histogramdd": ("hist", "bin_edges"),
}
FIELDS.update(
    _lu_with_info=("LU", "pivots", "info"),
    geqrf=("a", "tau"),
    linalg_cholesky_ex=("L", "info"),
    linalg_eig=("eigenvalues", "eigenvectors"),
    linalg_eigh=("eigenvalues", "eigenvectors"),
    linalg_inv_ex=("inverse", "info"),
    linalg_ldl_factor=("LD", "pivots"),
    linalg_ldl_factor_ex=("LD", "pivots", "info"),
    linalg_lstsq=("solution", "residuals", "rank", "singular_values"),
    linalg_lu=("P", "L", "U"),
    linalg_lu_factor=("LU", "pivots"),
    linalg_lu_factor_ex=("LU", "pivots", "info"),
    linalg_qr=("Q", "R"),
    linalg_slogdet=("sign", "logabsdet"),
    linalg_solve_ex=("result", "info"),
    linalg_svd=("U", "S", "Vh"),
    lu_unpack=("P", "L", "U"),
    qr=("Q", "R"),
    slogdet=("sign", "logabsdet"),
    svd=("U", "S", "V"),
    triangular_solve=("solution", "cloned_coefficient"),
)
_CLASSES: dict[str, type] = {}


def result_class(title: str) -> type:
    """The class of `title`'s results, e.g. torch.return_types.max."""
    found = _CLASSES.get(title)
    if found is None:
        fields = FIELDS[title]
        body: dict[str, Any] = {"__slots__": (), "_fields": fields, "_title": title}
        for position, name in enumerate(fields):
            body[name] = property(operator.itemgetter(position))
        found = _CLASSES[title] = type(title, (NamedResult,), body)
    return found


def named_result(title: str, values: Any) -> Any:
    return result_class(title)(values)
