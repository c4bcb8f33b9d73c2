"""`torch.masked`: reductions and normalizations of the elements where a mask is True.

What a mask hides is replaced by the element that changes nothing, as 0 is in a sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .facts import iinfo
from .ir.types import float32, int64
from .linalg import vector_norm  # type: ignore[attr-defined]
from .tracer.creation import ones, tensor
from .tracer.tensor import Tensor

__all__ = ["amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp",
           "logsumexp", "mean", "median", "norm", "normalize", "prod", "softmax", "softmin",
           "std", "sum", "var"]  # fmt: skip


def _dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """The dimensions as sorted numbers from 0; None and () stand for all."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    count, dims = max(ndim, 1), []
    for d in (dim,) if isinstance(dim, int) else dim:
        if d in dims:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if not -count <= d < count:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, "
                             f"{count - 1}], but got {d})")  # fmt: skip
        dims.append(d % count)
    return tuple(sorted(dims))


def _whole_mask(input: Tensor, mask: Tensor) -> Tensor:
    if mask.ndim > input.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher "
                         "than of the input)")  # fmt: skip
    return mask.bool().broadcast_to(input.shape)


def _hidden(input: Tensor, mask: Tensor | None, value: float) -> Tensor:
    """The input with `value`, or the end of an integer's range, where the mask is False."""
    if mask is None:
        return input
    filler: Any = value
    if math.isinf(value) and not (input.is_floating_point() or input.is_complex()):
        bounds = iinfo(input.dtype)
        filler = bounds.max if value > 0 else bounds.min
    return input.where(_whole_mask(input, mask), tensor(filler, dtype=input.dtype))


def _wide(input: Tensor, dtype: Any) -> Any:
    exact = input.is_floating_point() or input.is_complex()
    return dtype or (input.dtype if exact else int64)


def sum(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
        mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """sum(input, dim=None, *, keepdim=False, dtype=None, mask=None)."""
    dims = _dims(dim, input.ndim)
    return _hidden(input, mask, 0).sum(dims, bool(keepdim), dtype=_wide(input, dtype))


def prod(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
         mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """prod(input, dim=None, *, keepdim=False, dtype=None, mask=None)."""
    result = _hidden(input, mask, 1).to(_wide(input, dtype))
    for d in reversed(_dims(dim, input.ndim)):
        result = result.prod(d, bool(keepdim))
    return result


def _extreme(name: str, hidden: float) -> Callable[..., Tensor]:
    def function(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
                 mask: Tensor | None = None) -> Tensor:  # fmt: skip
        seen = _hidden(input, mask, hidden)
        dims = dim if name.startswith("arg") else _dims(dim, input.ndim)
        result: Tensor = getattr(seen, name)(dims, bool(keepdim))
        return result.to(dtype or input.dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(input, dim=None, *, keepdim=False, dtype=None, mask=None)."
    return function


amax, argmax = _extreme("amax", -math.inf), _extreme("argmax", -math.inf)
amin, argmin = _extreme("amin", math.inf), _extreme("argmin", math.inf)
logsumexp = _extreme("logsumexp", -math.inf)


def _count(input: Tensor, dim: Any, keepdim: bool, mask: Tensor | None) -> Tensor:
    if mask is None:
        return sum(ones(input.shape, dtype=int64), dim, keepdim=keepdim)
    return _whole_mask(input, mask).sum(_dims(dim, input.ndim), keepdim)


def mean(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
         mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """mean(input, dim=None, *, keepdim=False, dtype=None, mask=None)."""
    wanted = dtype or input.dtype
    if not (wanted.is_floating_point or wanted.is_complex):
        source = "Input" if dtype is None else "Optional"
        raise ValueError(f"mean(): Could not infer output dtype. {source} dtype must be either a "
                         f"floating point or complex dtype. Got: {wanted}")  # fmt: skip
    total = sum(input, dim, keepdim=keepdim, dtype=wanted, mask=mask)
    return total / _count(input, dim, bool(keepdim), mask)


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None,
           mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """median(input, dim=-1, *, keepdim=False, dtype=None, mask=None)."""
    exact = input.is_floating_point()
    floats = input if exact else input.to(float32)
    (d,) = _dims(dim, input.ndim)[:1]
    result: Tensor = _hidden(floats, mask, math.nan).nanmedian(d, keepdim).values
    if exact:
        return result
    if result.isnan().any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating "
                         "point")  # fmt: skip
    return result.to(dtype or input.dtype)


def norm(input: Tensor, ord: float | None = 2.0, dim: Any = None, *, keepdim: bool = False,
         dtype: Any = None, mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None)."""
    seen = _hidden(input, mask, math.inf if ord == -math.inf else 0)
    dims, wanted = _dims(dim, input.ndim), dtype or input.dtype
    result: Tensor = vector_norm(seen, ord, dims, bool(keepdim), dtype=wanted)
    return result


def _spread(input: Tensor, dim: Any, correction: float, keepdim: bool, dtype: Any,
            mask: Tensor | None) -> Tensor:  # fmt: skip
    exact = input.is_floating_point() or input.is_complex()
    dtype = dtype or (input.dtype if exact else float32)
    wide = dtype if dtype.is_floating_point or dtype.is_complex else float32
    count = _count(input, dim, True, mask)
    centred = input - sum(input, dim, keepdim=True, dtype=dtype, mask=mask) / count
    total = sum(centred * centred.conj(), dim, keepdim=keepdim, dtype=wide, mask=mask)
    count = count if keepdim else count.reshape(total.shape)
    if correction:
        count = (count.to(wide.to_real()) - correction).clamp(min=0)
    return (total / count).to(dtype)


def _correction(unbiased: bool | None, correction: float | None) -> float:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    return float(correction if correction is not None else unbiased is not False)


def var(input: Tensor, dim: Any = None, unbiased: bool | None = None, *,
        correction: float | None = None, keepdim: bool = False, dtype: Any = None,
        mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """var(input, dim=None, unbiased=None, *, correction=1, keepdim=False, mask=None)."""
    degrees = _correction(unbiased, correction)
    return _spread(input, dim, degrees, bool(keepdim), dtype, mask)


def std(input: Tensor, dim: Any = None, unbiased: bool | None = None, *,
        correction: float | None = None, keepdim: bool = False, dtype: Any = None,
        mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """std(input, dim=None, unbiased=None, *, correction=1, keepdim=False, mask=None)."""
    degrees = _correction(unbiased, correction)
    return _spread(input, dim, degrees, bool(keepdim), dtype, mask).sqrt()


# --- of all elements -----------------------------------------------------------------------------


def _along(name: str, hidden: float, method: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def function(
        input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None
    ) -> Tensor:
        (d,) = _dims(dim, input.ndim)[:1]
        return method(_hidden(input, mask, hidden), d, dtype=dtype or input.dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(input, dim, *, dtype=None, mask=None)."
    return function


cumsum = _along("cumsum", 0, Tensor.cumsum)
cumprod = _along("cumprod", 1, Tensor.cumprod)
softmax = _along("softmax", -math.inf, Tensor.softmax)
log_softmax = _along("log_softmax", -math.inf, Tensor.log_softmax)
softmin = _along("softmin", math.inf, lambda x, dim, dtype: (-x).softmax(dim, dtype=dtype))


def normalize(input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None,
              mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None)."""
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _hidden(input, mask, 0) / length.maximum(length.new_full((), eps))


def logaddexp(input: Tensor, other: Tensor, *, dtype: Any = None,
              input_mask: Tensor | None = None,
              other_mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None)."""
    seen = (_hidden(input, input_mask, -math.inf), _hidden(other, other_mask, -math.inf))
    return seen[0].logaddexp(seen[1]).to(dtype or input.dtype)
