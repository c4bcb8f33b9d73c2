"""Attributes of tensors that say where they are and how they are stored: on the CPU, densely."""

from __future__ import annotations

from typing import Any

from .tracer.tensor import Tensor

_FALSE = ("is_cuda", "is_xpu", "is_mps", "is_ipu", "is_hpu", "is_mtia", "is_meta", "is_sparse",
          "is_sparse_csr", "is_quantized", "is_nested", "is_mkldnn", "is_vulkan", "is_xla",
          "is_maia")  # fmt: skip


def _itself(self: Tensor) -> Tensor:
    """The tensor itself: threads share memory anyway."""
    return self


ATTRIBUTES: dict[str, Any] = {
    **dict.fromkeys(_FALSE, property(lambda self: False)),
    "is_cpu": property(lambda self: True),
    "itemsize": property(lambda self: self.dtype.itemsize),
    "nbytes": property(lambda self: self.numel() * self.dtype.itemsize),
    "get_device": lambda self: -1,
    "is_pinned": lambda self, device=None: False,
    "is_shared": lambda self: False,
    "share_memory_": _itself,
}
for _name, _value in ATTRIBUTES.items():
    if not hasattr(Tensor, _name):
        setattr(Tensor, _name, _value)
