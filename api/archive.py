"""torch's file format: a zip with one pickle and one raw file per storage."""

from __future__ import annotations

import io
import os
import struct
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from .ir.types import DType
from .tracer.storage import Storage
from .tracer.tensor import Tensor

STORAGES = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32",
    "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
    "UntypedStorage": "uint8",
}  # fmt: skip
STORAGE_OF = {dtype: name for name, dtype in STORAGES.items() if name != "UntypedStorage"}

_CORRUPT = ("If you are seeing this error, there is a high likelihood that your checkpoint file is "
            "corrupted. This can happen if the checkpoint was not saved properly, was transferred "
            "incorrectly, or the file was modified after saving.")  # fmt: skip

# What zipfile raises on damaged archives.
ZIP_FAULTS = (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError, struct.error)


def damaged(what: str) -> RuntimeError:
    return RuntimeError(f"PytorchStreamReader failed reading zip archive: {what}. {_CORRUPT}")


class Reader:
    """The records of a file; storages are read once, so that views of one stay views of one."""

    def __init__(self, file: Any) -> None:
        try:
            self.zip = zipfile.ZipFile(file)
            self.prefix = self._find_prefix()
        except ZIP_FAULTS as error:
            raise damaged(f"failed finding central directory ({error})") from None
        self.roots: dict[str, np.ndarray] = {}
        order = self.record("byteorder", b"little")
        if order != b"little":
            raise RuntimeError(f"the file has {order.decode(errors='replace')}-endian data; only "
                               "little-endian files can be read")  # fmt: skip

    def _find_prefix(self) -> str:
        for name in self.zip.namelist():
            if name.endswith("/data.pkl") and name.count("/") == 1:
                return name[: -len("data.pkl")]
        if any(name.endswith("/constants.pkl") for name in self.zip.namelist()):
            raise RuntimeError("the file holds a TorchScript program, which can't be loaded: save "
                               "the state_dict instead")  # fmt: skip
        raise damaged("file not found: data.pkl")

    def record(self, name: str, default: bytes | None = None) -> bytes:
        """The bytes of a record."""
        try:
            info = self.zip.getinfo(self.prefix + name)
        except KeyError:
            if default is not None:
                return default
            raise damaged(f"file not found: {name}") from None
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise damaged(f"record {name} is compressed, which torch never does")
        try:
            return self.zip.read(info)
        except (*ZIP_FAULTS, RuntimeError) as error:
            raise damaged(f"record {name}: {error}") from None

    def storage(self, key: str, count: int, dtype: DType) -> np.ndarray:
        """The root array of a storage."""
        if key not in self.roots:
            name = f"data/{key}"
            info = self.zip.NameToInfo.get(self.prefix + name)
            if info is not None and info.file_size != count * dtype.itemsize:
                raise damaged(f"record {name} has {info.file_size} bytes where {count} elements of "
                              f"{dtype.name} need {count * dtype.itemsize}")  # fmt: skip
            data = self.record(name)
            self.roots[key] = np.frombuffer(bytearray(data), dtype.storage)
        return self.roots[key]


def tensor_of(root: np.ndarray, dtype: DType, offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor on a root array, with the given layout in elements; its bounds are checked."""
    numbers = (offset, *size, *stride)
    if any(not isinstance(n, int) or isinstance(n, bool) or n < 0 for n in numbers) or (
        len(size) != len(stride)
    ):
        raise damaged(f"a tensor has an impossible layout: offset {offset}, size {size}, stride "
                      f"{stride}")  # fmt: skip
    if 0 not in size:
        last = offset + sum((n - 1) * step for n, step in zip(size, stride))
        if last >= root.size:
            raise damaged(f"a tensor reaches element {last} of a storage of {root.size}")
    try:
        if 0 in size:
            array = np.empty(tuple(size), root.dtype)
        else:
            strides = tuple(step * root.itemsize for step in stride)
            array = np.lib.stride_tricks.as_strided(root[offset:], tuple(size), strides)
    except (ValueError, OverflowError, MemoryError) as error:
        raise damaged(f"a tensor of size {tuple(size)} can't be made: {error}") from None
    tensor = Tensor._wrap(array, dtype)
    tensor._storage = Storage(root)
    return tensor


class Writer:
    """Collects storages, then writes all records at once."""

    def __init__(self) -> None:
        self.keys: dict[int, tuple[str, DType]] = {}
        self.blocks: list[Any] = []

    def place(self, tensor: Tensor) -> tuple[str, int, int]:
        """Key and length of the tensor's storage, and its offset in it."""
        array = tensor._array
        root = tensor.storage_.root
        block = memory_of(root)
        whole = block is not None and array.size > 0 and _lies_in(array, block)
        if not whole:
            block = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            return self._new(block, tensor.dtype), array.size, 0
        address = block.__array_interface__["data"][0]
        known = self.keys.get(address)
        if known is None:
            key = self._new(block, tensor.dtype)
            self.keys[address] = (key, tensor.dtype)
        elif known[1] is not tensor.dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different "
                "types; clone() one of them"
            )
        key = self.keys[address][0]
        start = array.__array_interface__["data"][0] - address
        return key, block.size // array.itemsize, start // array.itemsize

    def _new(self, block: Any, dtype: DType) -> str:
        self.blocks.append(block)
        return str(len(self.blocks) - 1)

    def write(self, file: Any, pickled: bytes, name: str) -> None:
        """Writes the archive to a file object."""
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_entry(f"{name}/data.pkl"), pickled)
            archive.writestr(_entry(f"{name}/byteorder"), b"little")
            for key, block in enumerate(self.blocks):
                archive.writestr(_entry(f"{name}/data/{key}"), memoryview(block).tobytes())
            archive.writestr(_entry(f"{name}/version"), b"3\n")


def _entry(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name)  # with a fixed date: the same data gives the same file


def memory_of(root: np.ndarray) -> np.ndarray | None:
    """The bytes of an array that owns one block, else None."""
    if not (root.flags.c_contiguous or root.flags.f_contiguous):
        return None
    return root.reshape(-1, order="A").view(np.uint8)


def _lies_in(array: np.ndarray, block: np.ndarray) -> bool:
    """Is every element of `array` inside `block`, on a whole number of elements, going forward?"""
    start = array.__array_interface__["data"][0] - block.__array_interface__["data"][0]
    if start < 0 or start % array.itemsize or block.size % array.itemsize:
        return False
    steps = list(zip(array.shape, array.strides))
    if any(step < 0 or step % array.itemsize for size, step in steps if size > 1):
        return False
    last = start + sum((size - 1) * step for size, step in steps) + array.itemsize
    return last <= block.size


def write_file(f: Any, pickled: bytes, writer: Writer) -> None:
    """Writes to a path, as a whole or not at all, or to a file object."""
    if not isinstance(f, str | os.PathLike):
        whole = io.BytesIO()
        writer.write(whole, pickled, "archive")
        f.write(whole.getvalue())
        return
    path = Path(f)
    folder = path.parent
    if not folder.is_dir():
        raise RuntimeError(f"Parent directory {folder} does not exist. Make it first.")
    handle, draft = tempfile.mkstemp(dir=folder, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            writer.write(file, pickled, path.stem or "archive")
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask())
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
