"""`torch.save` and `torch.load`: torch's own files, read without running anything in them."""

from __future__ import annotations

import io
import os
import pickle
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .archive import STORAGE_OF, STORAGES, Reader, Writer, tensor_of, write_file
from .ir.types import BY_NAME, DType
from .nn.parameter import Parameter
from .tracer.convert import escape
from .tracer.copying import INTERNAL, own_attributes
from .tracer.creation import as_tensor
from .tracer.strided import layout
from .tracer.tensor import Size, Tensor, device, require_cpu
from .unpickling import DataUnpickler

# --- writing ---------------------------------------------------------------------------------


class Named:
    """A name to be written as it stands: `torch._utils _rebuild_tensor_v2`."""

    def __init__(self, module: str, name: str):
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> Any:
        raise TypeError("a name has no value here")


_TENSOR = Named("torch._utils", "_rebuild_tensor_v2")
_TENSOR_V3 = Named("torch._utils", "_rebuild_tensor_v3")
_SPARSE = Named("torch._utils", "_rebuild_sparse_tensor")
_LAYOUT = Named("torch.serialization", "_get_layout")
_PARAMETER = Named("torch._utils", "_rebuild_parameter")
_PARAMETER_WITH_STATE = Named("torch._utils", "_rebuild_parameter_with_state")
_TORCH = {name: Named("torch", name) for name in (*STORAGE_OF.values(), *BY_NAME, "Size", "device")}
_UNTYPED = Named("torch.storage", "UntypedStorage")


class _Reference:
    """A storage in the file, on its way to the pickle's persistent id."""

    def __init__(self, facts: tuple[Any, ...]):
        self.facts = facts


class Pickler(pickle._Pickler):  # type: ignore[name-defined]
    """Writes tensors as torch does. Pure Python, since it names things that can't be imported."""

    dispatch = pickle._Pickler.dispatch.copy()  # type: ignore[attr-defined]

    def __init__(self, file: Any, writer: Writer):
        super().__init__(file, protocol=2)
        self.writer = writer

    def save_named(self, obj: Named) -> None:
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    dispatch[Named] = save_named

    def persistent_id(self, obj: Any) -> Any:
        return obj.facts if isinstance(obj, _Reference) else None

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor):
            return self.reduce_tensor(obj)
        if isinstance(obj, Size):
            return _TORCH["Size"], (tuple(obj),)
        if isinstance(obj, device):
            return _TORCH["device"], (str(obj),)
        if isinstance(obj, layout):
            return _LAYOUT, (f"torch.{obj.name}",)
        return NotImplemented

    def save(self, obj: Any, save_persistent_id: bool = True) -> Any:
        if isinstance(obj, DType):
            obj = _TORCH[obj.name]
        return super().save(obj, save_persistent_id)

    def reduce_tensor(self, tensor: Tensor) -> Any:
        if tensor.is_sparse:
            parts = tensor._indices(), tensor._values(), tensor.shape, tensor.is_coalesced()
            return _SPARSE, (tensor.layout, parts)
        escape(tensor, "save()")
        tensor._array  # noqa: B018 - what is pending has its own class only then
        if type(tensor) is Parameter:
            state = own_attributes(tensor)
            facts = (tensor.data, tensor.requires_grad, OrderedDict())
            return (_PARAMETER_WITH_STATE, (*facts, state)) if state else (_PARAMETER, facts)
        if type(tensor) is not Tensor:
            return NotImplemented
        key, count, offset = self.writer.place(tensor)
        size, stride = tuple(tensor.shape), tuple(tensor.stride())
        facts = (offset, size, stride, tensor.requires_grad, OrderedDict())
        name = STORAGE_OF.get(tensor.dtype.name)
        if name is None:  # dtypes newer than typed storages
            reference = _Reference(("storage", _UNTYPED, key, "cpu", count * tensor.element_size()))
            return _TENSOR_V3, (reference, *facts, tensor.dtype)
        return _TENSOR, (_Reference(("storage", _TORCH[name], key, "cpu", count)), *facts)


def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2,
         _use_new_zipfile_serialization: bool = True,
         _disable_byteorder_record: bool = False) -> None:  # fmt: skip
    """save(obj, f): writes `obj` to a path (as a whole or not at all) or a file object."""
    if not isinstance(f, str | os.PathLike) and not hasattr(f, "write"):
        raise AttributeError(f"expected 'f' to be string, path, or a file-like object with a "
                             f"'write' attribute, but got {type(f)}")  # fmt: skip
    writer, pickled = Writer(), io.BytesIO()
    Pickler(pickled, writer).dump(obj)
    write_file(f, pickled.getvalue(), writer)


# --- reading ---------------------------------------------------------------------------------


class StorageKind:
    """A storage class in a pickle: which dtype its elements have."""

    def __init__(self, dtype: DType):
        self.dtype = dtype


class Loaded:
    """A storage of the file: its root array."""

    def __init__(self, root: Any, dtype: DType):
        self.root, self.dtype = root, dtype


def _rebuild_tensor_v2(storage: Any, offset: int, size: Any, stride: Any,
                       requires_grad: bool = False, backward_hooks: Any = None,
                       metadata: Any = None) -> Tensor:  # fmt: skip
    if not isinstance(storage, Loaded):
        raise pickle.UnpicklingError("a tensor in the file has no storage")
    tensor = tensor_of(storage.root, storage.dtype, offset, size, stride)
    if requires_grad:
        tensor.requires_grad_()
    return tensor


def _rebuild_tensor_v3(
    storage: Any,
    offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    if not isinstance(storage, Loaded) or not isinstance(dtype, DType):
        raise pickle.UnpicklingError("a tensor in the file has no storage")
    if storage.root.size % dtype.itemsize:
        raise pickle.UnpicklingError(f"a storage is no whole number of {dtype.name}")
    typed = Loaded(storage.root.view(dtype.storage), dtype)
    return _rebuild_tensor_v2(typed, offset, size, stride, requires_grad)


def _get_layout(name: str) -> layout:
    if name not in ("torch.strided", "torch.sparse_coo"):
        raise pickle.UnpicklingError(f"the layout {name} is not supported")
    return layout(name.removeprefix("torch."))


def _rebuild_sparse_tensor(kind: layout, data: Any) -> Tensor:
    from .tracer.sparse_forms import SparseTensor

    indices, values, size, *coalesced = data
    given = isinstance(indices, Tensor) and isinstance(values, Tensor) and isinstance(size, Size)
    if not given or indices.ndim != 2 or indices.dtype is not BY_NAME["int64"] or (
            indices.shape[1] != values.shape[:1].numel()):  # fmt: skip
        raise pickle.UnpicklingError("a sparse tensor in the file has no indices or values")
    inside = (indices >= 0) & (indices < as_tensor(size[: len(indices)]).unsqueeze(1))
    if len(indices) + values.ndim - 1 != len(size) or not inside.all():
        raise pickle.UnpicklingError("indices of a sparse tensor in the file are out of range")
    return SparseTensor(indices, values, size, bool(coalesced and coalesced[0]))


def _rebuild_parameter(
    data: Any, requires_grad: bool, backward_hooks: Any = None, state: Any = None
) -> Parameter:
    if not isinstance(data, Tensor):
        raise pickle.UnpicklingError("a parameter in the file is not a tensor")
    parameter = Parameter(data.detach(), bool(requires_grad))
    if isinstance(state, dict):
        parameter.__dict__.update({k: v for k, v in state.items() if k not in INTERNAL})
    return parameter


def _encode(text: str, encoding: str = "latin1") -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"text of encoding {encoding} is refused")
    return text.encode("latin1")


def _bytearray(*args: Any) -> bytearray:
    if args and not isinstance(args[0], str | bytes):  # a number would ask for that much memory
        raise pickle.UnpicklingError(f"a bytearray of {type(args[0]).__name__} is refused")
    return bytearray(*args)


ALLOWED: dict[str, Any] = {
    "collections.OrderedDict": OrderedDict, "collections.Counter": Counter,
    "torch.Size": Size, "torch.device": device, "_codecs.encode": _encode,
    "builtins.set": set, "builtins.bytearray": _bytearray, "builtins.complex": complex,
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor_v2,
    "torch._utils._rebuild_tensor": _rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": _rebuild_tensor_v3,
    "torch._utils._rebuild_sparse_tensor": _rebuild_sparse_tensor,
    "torch.serialization._get_layout": _get_layout,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _rebuild_parameter,
    "torch.nn.parameter.Parameter": Parameter,
    **{f"torch.{name}": dtype for name, dtype in BY_NAME.items()},
    **{f"torch.{name}": StorageKind(BY_NAME[dtype]) for name, dtype in STORAGES.items()},
    "torch.storage.UntypedStorage": StorageKind(BY_NAME["uint8"]),
}  # fmt: skip
for _name, _dtype in STORAGES.items():
    ALLOWED[f"torch.cuda.{_name}"] = StorageKind(BY_NAME[_dtype])

_safe_globals: list[Any] = []


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Classes and functions that `load(weights_only=True)` may use from now on."""
    _safe_globals.extend(safe_globals)


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` has added."""
    return list(_safe_globals)


def clear_safe_globals() -> None:
    """Forgets what `add_safe_globals` has added."""
    _safe_globals.clear()


@contextmanager
def _safe(added: list[Any]) -> Iterator[None]:
    before = list(_safe_globals)
    add_safe_globals(added)
    try:
        yield
    finally:
        _safe_globals[:] = before


class safe_globals:
    """safe_globals(list): `add_safe_globals` for the length of a block."""

    def __init__(self, safe_globals: list[Any]):
        self.block = _safe(safe_globals)

    def __enter__(self) -> None:
        self.block.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.block.__exit__(*error)


def _qualified(item: Any) -> tuple[str, Any]:
    if isinstance(item, tuple):
        return item[1], item[0]
    return f"{item.__module__}.{item.__qualname__}", item


def _allowed(module: str, name: str) -> Any:
    full = f"{'builtins' if module == '__builtin__' else module}.{name}"
    if full in ALLOWED:
        return ALLOWED[full]
    for known, item in map(_qualified, _safe_globals):
        if full == known or full == known.replace(__package__, "torch", 1):
            return item
    raise pickle.UnpicklingError(
        f"Unsupported global: GLOBAL {full} was not an allowed global by default. Please use "
        f"`torch.serialization.add_safe_globals([{name}])` or the "
        f"`torch.serialization.safe_globals([{name}])` context manager to allowlist this global if "
        "you trust this class/function."
    )


class _FullUnpickler(pickle.Unpickler):
    """Unpickles anything, for `weights_only=False`; names of torch are looked up here."""

    def __init__(self, file: Any, persistent_load: Any):
        super().__init__(file, encoding="utf-8")
        self.persistent_load = persistent_load  # type: ignore[method-assign]

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        if full in ALLOWED:
            return ALLOWED[full]
        if module == "torch" or module.startswith("torch."):
            module = __package__ + module[len("torch") :]
        return super().find_class(module, name)


_REFUSED = (
    "Weights only load failed. This file can still be loaded, to do so you have two options, do "
    "those steps only if you trust the source of the checkpoint. \n\t(1) In PyTorch 2.6, we "
    "changed the default value of the `weights_only` argument in `torch.load` from `False` to "
    "`True`. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but "
    "it can result in arbitrary code execution. Do it only if you got the file from a trusted "
    "source.\n\t(2) Alternatively, to load with `weights_only=True` please check the recommended "
    "steps in the following error message.\n\tWeightsUnpickler error: "
)


def _map_location(map_location: Any, tag: str) -> None:
    """Tensors stay on the CPU; a location that is not it is refused."""
    if isinstance(map_location, dict):
        map_location = map_location.get(tag, "cpu")
    if isinstance(map_location, str | device):
        require_cpu(map_location)


def load(f: Any, map_location: Any = None, pickle_module: Any = None, *,
         weights_only: bool | None = None, mmap: bool | None = None,
         **pickle_load_args: Any) -> Any:  # fmt: skip
    """load(f, weights_only=True): reads a file of `save`, here or in torch."""
    weights_only = pickle_module is None if weights_only is None else weights_only
    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as file:
            return _load(file, map_location, weights_only)
    if not hasattr(f, "read"):
        raise AttributeError(f"'{type(f).__name__}' object has no attribute 'read'. You can only "
                             "torch.load from a file that is seekable.")  # fmt: skip
    return _load(io.BytesIO(f.read()), map_location, weights_only)


def _load(file: Any, map_location: Any, weights_only: bool) -> Any:
    start = file.read(4)
    file.seek(0)
    if not start:
        raise EOFError("the file is empty")
    if start[:2] != b"PK":
        raise pickle.UnpicklingError(
            f"{_REFUSED if weights_only else ''}the file is not a zip archive: it is damaged, not "
            "a checkpoint, or was written by torch before 1.6 (load and save it again with torch)"
        )
    reader = Reader(file)

    def storage(facts: Any) -> Loaded:
        if not isinstance(facts, tuple) or len(facts) != 5 or facts[0] != "storage":
            raise pickle.UnpicklingError(f"unknown reference {facts!r} in the file")
        _, kind, key, where, count = facts
        if (
            not isinstance(kind, StorageKind)
            or not isinstance(key, str)
            or (not isinstance(count, int))
        ):
            raise pickle.UnpicklingError(f"unknown storage {facts!r} in the file")
        _map_location(map_location, where)
        return Loaded(reader.storage(key, count, kind.dtype), kind.dtype)

    pickled = reader.record("data.pkl")
    if not weights_only:
        return _FullUnpickler(io.BytesIO(pickled), storage).load()
    safe = tuple(item for _, item in map(_qualified, _safe_globals) if isinstance(item, type))
    try:
        return DataUnpickler(pickled, _allowed, storage, safe).load()
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(f"{_REFUSED}{error}") from None
