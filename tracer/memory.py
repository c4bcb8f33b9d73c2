"""Storages as users see them: `tensor.untyped_storage()` is bytes, `tensor.storage()` elements."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..ir.arguments import must_be
from ..ir.types import BY_NAME, DType, bfloat16, from_bfloat16, to_bfloat16
from .convert import escape, method, type_name
from .facts import CPU
from .readers import expose
from .storage import Storage, owner_of
from .tensor import Tensor


def flat_memory(storage: Storage, dtype: np.dtype) -> np.ndarray:
    """The storage's memory as a flat array of `dtype` that shares it."""
    root = storage.root
    flat = root.ravel(order="K")
    if root.size and not np.may_share_memory(flat, root):  # gaps: take all of the owner's memory
        flat = owner_of(root).ravel(order="K")
    if flat.dtype == dtype:
        return flat
    data = flat.view(np.uint8)
    return data[: data.size - data.size % dtype.itemsize].view(dtype)


class UntypedStorage:
    """The bytes behind tensors; tensors that share memory have storages of equal `data_ptr`."""

    __slots__ = ("_storage",)
    __module__ = "torch.storage"

    def __init__(self, size: Any = 0):
        self._storage = size if isinstance(size, Storage) else Storage(np.zeros(size, np.uint8))

    def _bytes(self) -> np.ndarray:
        return flat_memory(self._storage, np.dtype(np.uint8))

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._storage.pointer

    def nbytes(self) -> int:
        """How many bytes."""
        return int(self._bytes().size)

    size = nbytes
    __len__ = nbytes

    def element_size(self) -> int:
        """1: the elements are bytes."""
        return 1

    @property
    def device(self) -> Any:
        return CPU

    def is_shared(self) -> bool:
        """False: memory is not shared between processes."""
        return False

    def is_pinned(self, device: Any = None) -> bool:
        """False: there is no accelerator to pin memory for."""
        return False

    def __getitem__(self, index: Any) -> Any:
        found = self._bytes()[index]
        return int(found) if isinstance(index, int) else UntypedStorage(Storage(found))

    def __setitem__(self, index: Any, value: Any) -> None:
        self._bytes()[index] = value

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        """The bytes as ints."""
        return self._bytes().tolist()

    def clone(self) -> UntypedStorage:
        """A copy."""
        return UntypedStorage(Storage(self._bytes().copy()))

    def copy_(self, source: Any, non_blocking: bool = False) -> UntypedStorage:
        """Copies the bytes of another storage."""
        if not isinstance(source, UntypedStorage):
            raise must_be("copy_", "src", "torch.Storage", source, 1)
        self._bytes()[...] = source._bytes()
        return self

    def fill_(self, value: int) -> UntypedStorage:
        """Sets every byte."""
        self._bytes()[...] = value
        return self

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, UntypedStorage) and self.data_ptr() == other.data_ptr()

    def __hash__(self) -> int:
        return hash(self.data_ptr())

    def __repr__(self) -> str:
        lines = "".join(f" {value}\n" for value in self.tolist())
        return f"{lines}[torch.storage.UntypedStorage(device=cpu) of size {self.nbytes()}]"


class TypedStorage:
    """The elements behind a tensor, in the order of memory."""

    __slots__ = ("_storage", "dtype")
    __module__ = "torch.storage"

    def __init__(self, storage: Storage, dtype: DType):
        self._storage, self.dtype = storage, dtype

    def _elements(self) -> np.ndarray:
        return flat_memory(self._storage, self.dtype.storage)

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return UntypedStorage(self._storage)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._storage.pointer

    def __len__(self) -> int:
        return int(self._elements().size)

    size = __len__

    def nbytes(self) -> int:
        """How many bytes."""
        return int(self._elements().nbytes)

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def device(self) -> Any:
        return CPU

    def is_shared(self) -> bool:
        """False: memory is not shared between processes."""
        return False

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        elements = self._elements()
        return (from_bfloat16(elements) if self.dtype is bfloat16 else elements).tolist()

    def __getitem__(self, index: Any) -> Any:
        return self.tolist()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.dtype is bfloat16:
            value = to_bfloat16(np.asarray(value, np.float32))
        self._elements()[index] = value

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def __repr__(self) -> str:
        lines = "".join(f" {value}\n" for value in self.tolist())
        return (f"{lines}[torch.storage.TypedStorage(dtype={self.dtype!r}, device=cpu) of size "
                f"{len(self)}]")  # fmt: skip


@method
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The bytes behind this tensor, shared with its views."""
    escape(self, "untyped_storage()")
    expose(self._array)
    return UntypedStorage(self.storage_)


@method
def storage(self: Tensor) -> TypedStorage:
    """The elements behind this tensor, shared with its views (deprecated)."""
    warnings.warn(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be "
        "the only storage class. This should only matter to you if you are using storages "
        "directly.  To access UntypedStorage directly, use tensor.untyped_storage() instead of "
        "tensor.storage()",
        UserWarning,
        stacklevel=2,
    )
    escape(self, "storage()")
    expose(self._array)
    return TypedStorage(self.storage_, self.dtype)


# torch.FloatStorage and its kin: only what `storage_type()` and isinstance() need
STORAGE_CLASSES: dict[str, type] = {
    name: type(type_name(dtype).replace("Tensor", "Storage"), (TypedStorage,),
               {"__slots__": (), "__module__": "torch"})
    for name, dtype in BY_NAME.items()
}  # fmt: skip


@method
def storage_type(self: Tensor) -> type:
    """The old class of this tensor's storage, e.g. torch.FloatStorage."""
    return STORAGE_CLASSES[self.dtype.name]
