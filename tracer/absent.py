"""Names torch has for other layouts and devices, on a library of dense CPU tensors.

Questions have their constant answer; conversions of what cannot exist here raise and say why. Names
torch has removed do not exist.
"""

from __future__ import annotations

import sys
from typing import Any

from ..ir.arguments import must_be
from ..ir.bind import notify
from ..ir.value import Value
from .convert import method
from .tensor import Tensor

# --- questions with one answer -------------------------------------------------------------------

for _name in (
    "is_cuda", "is_cpu", "is_ipu", "is_xpu", "is_xla", "is_hpu", "is_mps", "is_mtia", "is_maia",
    "is_meta", "is_mkldnn", "is_vulkan", "is_quantized", "is_sparse", "is_sparse_csr", "is_nested",
):  # fmt: skip
    setattr(Value, _name, property(lambda self, answer=_name == "is_cpu": answer))
Tensor.name = property(lambda self: None)  # type: ignore[attr-defined]
Tensor.volatile = property(lambda self: False)  # type: ignore[attr-defined]
Value.itemsize = property(lambda self: self.dtype.itemsize)  # type: ignore[attr-defined]
Value.nbytes = property(lambda self: self.numel() * self.dtype.itemsize)  # type: ignore[attr-defined]


@method
def get_device(self: Tensor) -> int:
    """-1: the tensor is on the CPU."""
    return -1


@method
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """False: there is no accelerator to pin memory for."""
    return False


@method
def is_shared(self: Tensor) -> bool:
    """False: memory is not shared between processes."""
    return False


@method
def is_distributed(self: Tensor) -> bool:
    """False: tensors live in one process."""
    return False


@method
def dense_dim(self: Tensor) -> int:
    """All dimensions are dense."""
    return self.ndim


@method
def sparse_dim(self: Tensor) -> int:
    """0: no dimension is sparse."""
    return 0


@method
def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: Any = None) -> Any:
    """The tensor itself: it is dense."""
    return self if dtype is None else self.to(dtype)


@method
def to_sparse(self: Tensor, sparse_dim: int | None = None, *, layout: Any = None) -> Any:
    """The elements that are not zero, in coordinate form."""
    from . import sparse_forms  # what can be done with it

    return sparse_forms.to_sparse(self, sparse_dim)


Tensor.to_sparse_coo = Tensor.to_sparse  # type: ignore[attr-defined]


@method
def sparse_mask(self: Tensor, mask: Any) -> Any:
    """The elements at the positions of a sparse tensor."""
    if not isinstance(mask, Tensor):
        raise must_be("sparse_mask", "mask", "Tensor", mask, 1)
    if not mask.is_sparse:
        raise NotImplementedError("Could not run 'aten::sparse_mask' with a strided mask; make it "
                                  "sparse by to_sparse()")  # fmt: skip
    return mask.like(self[tuple(mask._indices())])


@method
def dequantize(self: Tensor) -> Any:
    """The tensor in float32: it is not quantized."""
    return self.float()


# --- what cannot be asked of a dense CPU tensor --------------------------------------------------

_SPARSE = "it is asked of a dense tensor; sparse ones are in coordinate form, see to_sparse()"
_QUANTIZED = "quantized tensors are not supported"
_REMOVED = "This function was deprecated since version 1.9 and is now removed."
_REASONS: dict[str, tuple[type, str]] = {
    **dict.fromkeys(
        ("indices", "values", "coalesce", "is_coalesced", "col_indices", "crow_indices",
         "ccol_indices", "row_indices"),
        (RuntimeError, "expected sparse tensor layout but got Strided: " + _SPARSE)),
    **dict.fromkeys(
        ("sparse_resize_", "sparse_resize_and_clear_", "smm", "sspaddmm", "to_sparse_csr",
         "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc"),
        (RuntimeError, _SPARSE)),
    **dict.fromkeys(
        ("int_repr", "q_scale", "q_zero_point", "q_per_channel_axis", "q_per_channel_scales",
         "q_per_channel_zero_points", "qscheme"),
        (NotImplementedError, _QUANTIZED)),
    "to_mkldnn": (RuntimeError, "the mkldnn layout is not supported"),
    "record_stream": (RuntimeError, "streams belong to CUDA devices; tensors live on the CPU"),
    "pin_memory": (RuntimeError, "Cannot access accelerator device when none is available. "
                                  "Leave it out: memory of the CPU needs no pinning."),
    "share_memory_": (RuntimeError, "sharing memory between processes is not supported; send a "
                                    "copy, or share a numpy array and use from_numpy()"),
    "xpu": (AssertionError, "Torch not compiled with XPU enabled; leave it out: tensors live on "
                             "the CPU"),
    "eig": (RuntimeError, f"{_REMOVED} Use torch.linalg.eig."),
    "solve": (RuntimeError, f"{_REMOVED} Use torch.linalg.solve."),
    "lstsq": (RuntimeError, f"{_REMOVED} Use torch.linalg.lstsq."),
    "symeig": (RuntimeError, f"{_REMOVED} Use torch.linalg.eigh."),
    "reinforce": (RuntimeError, "reinforce() was removed. Use torch.distributions instead."),
}  # fmt: skip


def _refusing(name: str, error: type, reason: str) -> Any:
    def refuse(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        raise error(f"{name}(): {reason}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Raises {error.__name__}: {reason}"
    return refuse


for _name, (_error, _reason) in _REASONS.items():
    setattr(Tensor, _name, _refusing(_name, _error, _reason))


# --- names that users may put on tensors ---------------------------------------------------------


@method
def __getattr__(self: Tensor, name: str) -> Any:
    """A name that this tensor has not: a recording is told, for another tensor may have it."""
    if name[:2] != "__":
        notify("attribute_missed", sys._getframe(1).f_code.co_filename)
    raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name,
                         obj=self)  # fmt: skip
