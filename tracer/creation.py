"""Making tensors from data and constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.arguments import as_dtype, fill_number, format_order, kind_of
from ..ir.bind import notify
from ..ir.op import TABLE
from ..ir.ops.creation import filled, shape_in, shape_of
from ..ir.ops.kinds import require_value
from ..ir.ops.layouts import like_order_of
from ..ir.overriding import asking
from ..ir.types import FLOAT, DType, default_dtype
from .data import check_array, infer_dtype
from .number_data import tensor_of
from .placing import is_meta, placed
from .scalars import is_tensor
from .tensor import Tensor, require_cpu


def finish(result: Tensor, requires_grad: bool) -> Tensor:
    """A new tensor with its flag."""
    notify("made", result)
    if not isinstance(requires_grad, bool):
        raise TypeError("argument 'requires_grad' must be bool, not "
                        f"{type(requires_grad).__name__}")  # fmt: skip
    if requires_grad and result.dtype.category < FLOAT:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return result.requires_grad_() if requires_grad else result


def deliver(result: Tensor, requires_grad: bool, out: Any, name: str) -> Tensor:
    """The result with its flag, or written to `out`."""
    if out is None:
        return finish(result, requires_grad)
    from .outputs import copy_out, refuse_history

    refuse_history(f"aten::{name}", [out])
    copy_out(result, out, name, "any")
    return out


@placed
def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new tensor with a copy of `data`."""
    require_cpu(device, pin_memory)
    if is_tensor(data):
        import warnings

        warnings.warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than "
            "torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        fresh = data.detach().clone()
        return finish(fresh if dtype is None else fresh.to(dtype), requires_grad)
    return finish(tensor_of(data, as_dtype(dtype, "tensor")), requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of `data`, sharing memory with tensors and arrays where it can."""
    require_cpu(device)
    dtype = as_dtype(dtype, "as_tensor")
    if is_tensor(data):
        return data if dtype is None else data.to(dtype)
    if isinstance(data, np.ndarray):
        shared = from_numpy(data)
        return shared if dtype is None else shared.to(dtype)
    return tensor_of(data, dtype)


def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: Any = None,
            requires_grad: bool = False) -> Tensor:  # fmt: skip
    """A tensor of `obj`; `copy=True` never shares memory."""
    result = tensor(obj, dtype=dtype) if copy and not isinstance(obj, Tensor) else as_tensor(
        obj, dtype)  # fmt: skip
    if copy and isinstance(obj, Tensor):
        result = result.clone()
    return finish(result, requires_grad)


def from_numpy(array: Any) -> Tensor:
    """A tensor on the array's own memory."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {kind_of(array)})")
    result = Tensor._wrap(array.view(np.ndarray), check_array(array))
    notify("from_array")
    from .readers import expose
    from .storage import Storage, owner_of

    result._storage = Storage(owner_of(array))
    expose(array)
    return result


class _CapsuleHolder:
    """A bare DLPack capsule as an object that speaks the protocol."""

    def __init__(self, capsule: Any):
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the CPU


def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor on the memory of any object that speaks DLPack, or of a capsule."""
    if isinstance(ext_tensor, Tensor):
        return ext_tensor.detach()
    if not hasattr(ext_tensor, "__dlpack__"):
        ext_tensor = _CapsuleHolder(ext_tensor)
    return from_numpy(np.from_dlpack(ext_tensor))


# --- constants -----------------------------------------------------------------------------------


def _filled(name: str, value: int) -> Any:
    def function(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
                 layout: Any = None, pin_memory: bool = False, out: Any = None,
                 **named: Any) -> Tensor:  # fmt: skip
        require_cpu(device, pin_memory)
        memory_format = named.pop("memory_format", None) if name == "empty" else None
        shape = shape_of(name, size_given(name, size, named))
        wanted = as_dtype(dtype, name) or (default_dtype() if out is None else out.dtype)
        result = TABLE["full"](size=shape, fill_value=value, dtype=wanted)
        if memory_format is not None:
            format_order(memory_format, len(shape), name)
            result = result.contiguous(memory_format=memory_format)
        return deliver(result, requires_grad, out, name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(*size, dtype=None, requires_grad=False)."
    return function


def size_given(name: str, size: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """What a factory was called with for `size`: positionally or by name, but not both."""
    if "size" in named:
        if size:
            raise TypeError(f"{name}() got multiple values for argument 'size'; give one")
        size = (named.pop("size"),)
    if named:
        raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(named))}'")
    if not size:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    return size


zeros = placed(_filled("zeros", 0))
ones = placed(_filled("ones", 1))
empty = placed(_filled("empty", 0))


@placed
def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None,
         requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
         out: Any = None) -> Tensor:  # fmt: skip
    """full(size, fill_value): the dtype is the value's unless given."""
    require_cpu(device, pin_memory)
    shape = shape_in("full", size)
    value = fill_number("full", fill_value)
    wanted = as_dtype(dtype, "full") or (infer_fill(value) if out is None else out.dtype)
    return deliver(filled("full", shape, value, wanted), requires_grad, out, "full")


def infer_fill(value: Any) -> DType:
    """The dtype that `full` takes from its value."""
    if isinstance(value, Tensor):
        return default_dtype() if getattr(value, "wrapped", False) else value.dtype
    return infer_dtype(value)


def _like(name: str, value: int) -> Any:
    def function(input: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
                 layout: Any = None, memory_format: Any = None,
                 pin_memory: bool = False) -> Tensor:  # fmt: skip
        require_value(name, input)
        if is_meta(device):
            return without_values(input, as_dtype(dtype, name), requires_grad)
        require_cpu(device, pin_memory)
        return full_like(input, value, dtype=dtype, requires_grad=requires_grad,
                         memory_format=memory_format)  # fmt: skip

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(input): of the input's shape and dtype."
    return asking(function)


zeros_like = _like("zeros_like", 0)
ones_like = _like("ones_like", 1)
empty_like = _like("empty_like", 0)


def without_values(input: Tensor, dtype: Any, requires_grad: bool) -> Tensor:
    """A tensor like this one on the device "meta"; see Note [Meta tensors]."""
    from .meta import without_values

    plain = input.detach()
    made = without_values(plain if dtype is None else plain.to(dtype))
    return finish(made, requires_grad)


@asking
def full_like(input: Any, fill_value: Any, *, dtype: Any = None, device: Any = None,
              requires_grad: bool = False, layout: Any = None, memory_format: Any = None,
              pin_memory: bool = False) -> Tensor:  # fmt: skip
    """full_like(input, fill_value)."""
    require_value("full_like", input)
    require_cpu(device, pin_memory)
    wanted = as_dtype(dtype, "full_like") or input.dtype
    order = format_order(memory_format, input.ndim, "full_like")
    if memory_format is None or memory_format.name == "preserve_format":
        order = like_order_of(input)
    made = filled("full_like", tuple(input.shape), fill_value, wanted, order)
    return finish(input._beside(made), requires_grad)


# --- the legacy constructor ----------------------------------------------------------------------


def legacy_tensor(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`torch.Tensor(2, 3)` is uninitialised memory, `torch.Tensor([2, 3])` holds data."""
    require_cpu(kwargs.get("device"))
    dtype = getattr(cls, "legacy_dtype", None) or default_dtype()
    if not args:
        made = zeros(0, dtype=dtype)
    elif all(isinstance(a, int) and not isinstance(a, bool) for a in args):
        made = zeros(*args, dtype=dtype)
    elif len(args) == 1 and is_tensor(args[0]):
        made = args[0].detach()
        made = made if made.dtype is dtype or cls is not Tensor else made.to(dtype)
    elif len(args) == 1 and type(args[0]).__name__ == "Size":
        made = zeros(*args[0], dtype=dtype)
    else:
        made = tensor_of(args[0], dtype)
    if cls is Tensor or hasattr(cls, "legacy_dtype"):
        return made
    return Tensor._make_subclass(cls, made)
