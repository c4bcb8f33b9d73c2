"""`torch.nn.attention.bias`: causal masks that know their corner."""

from __future__ import annotations

import warnings
from enum import IntEnum, auto
from typing import Any

from ... import bool as bool_
from ... import ones
from ...tracer.tensor import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """Which corner of the matrix the triangle of a causal mask touches."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias(Tensor):
    """CausalBias(variant, seq_len_q, seq_len_kv): True where a query may look."""

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> Any:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        offset = seq_len_kv - seq_len_q if variant is CausalVariant.LOWER_RIGHT else 0
        if offset < 0:
            warnings.warn("Lower right causal bias will produce NaNs in the output when seq_len_q "
                          "> seq_len_kv!", stacklevel=3)  # fmt: skip
        mask = ones(seq_len_q, seq_len_kv, dtype=bool_).tril(offset)
        made = Tensor._make_subclass(cls, mask)
        made.variant, made.seq_len_q, made.seq_len_kv = variant, seq_len_q, seq_len_kv
        return made

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask as a plain tensor."""
        return self.detach()

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return repr(self._materialize())

    __str__ = __repr__


def causal_upper_left(*size: int) -> CausalBias:
    """causal_upper_left(q, kv): query i looks at keys up to i."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """causal_lower_right(q, kv): the last query looks at all keys."""
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
