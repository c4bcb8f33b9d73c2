"""Tensors on the device "meta": a shape, a dtype and strides, but no values.

Note [Meta tensors]
    Their memory is zeros that nobody writes, so that the system never hands it out. They are of a
    class that is asked what functions do (Note [Asked arguments]): functions run as on zeros, so
    that shapes, dtypes, history and errors are those of any tensor; writes are left out; what
    would show values to Python raises. Tensors of numbers go with both devices, others do not.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..ir.bind import state
from ..ir.overriding import ASKED, UNASKED, among, unasked
from ..ir.types import default_dtype
from .facts import device
from .placing import is_meta
from .random import default_generator, set_rng_state, state_of
from .subclasses import asked_class
from .tensor import Tensor

META = device("meta")
NO_DATA = "Cannot copy out of meta tensor; no data!"
_FACTS = {"requires_grad_", "detach_", "retain_grad_", "t_", "transpose_", "squeeze_",
          "unsqueeze_", "swapaxes_", "swapdims_"}  # fmt: skip
_READ_BY_PYTHON = {"item", "__bool__", "__float__", "__int__", "__index__", "__complex__"}
_BY_VALUES = {"nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "equal",
              "allclose", "bincount"}  # fmt: skip


@functools.cache
def meta_class() -> Any:
    """The class of meta tensors, made when there is the first one."""
    space: dict[str, Any] = {
        "__slots__": (), "__module__": Tensor.__module__, "__doc__": Tensor.__doc__,
        "__torch_function__": classmethod(answer), "device": property(lambda self: META),
        "is_meta": property(lambda self: True), "is_cpu": property(lambda self: False),
        "__repr__": as_text, "__str__": as_text, "__array__": refuse_array,
        "__deepcopy__": copy_deeply, "data_ptr": lambda self: 0, "__hash__": Tensor.__hash__,
    }  # fmt: skip
    made = type.__new__(type(Tensor), "Tensor", (asked_class(),), space)
    ASKED.add(made)
    return made


def made_without_values(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What a function that makes tensors gives, on the device "meta"; nothing is drawn."""
    before = state_of(default_generator) if "rand" in function.__name__ else None
    with unasked():
        result = function(*args, **kwargs)
    if before is not None:
        set_rng_state(before)
    return without_values(result)


def without_values(tensor: Tensor) -> Tensor:
    """A meta tensor like this one, with its strides and without history."""
    array = tensor._array
    order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
    memory = np.zeros([array.shape[d] for d in order], array.dtype)
    made = Tensor._wrap(memory.transpose(np.argsort(order)) if order else memory, tensor.dtype)
    made.__class__ = meta_class()
    with unasked():
        return made.requires_grad_() if tensor.requires_grad else made


# --- what functions do with them -----------------------------------------------------------------


def answer(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """`__torch_function__` of meta tensors; see Note [Meta tensors]."""
    kwargs = dict(kwargs or {})
    name = getattr(func, "__name__", "")
    if name == "__set__" or (name == "__setitem__" and isinstance(args[0], cls)):
        return set_something(name, func, args)
    if name != "__get__":
        refuse(name, args)
        written = written_tensor(name, args)
        if written is not UNASKED:
            return written
        check_devices(cls, args)
    wanted = device_asked_for(name, args, kwargs)
    with unasked():
        result = func(*args, **kwargs)
        if wanted is not None and not is_meta(wanted):
            if name.startswith(("to", "cpu")):
                raise NotImplementedError(NO_DATA)
            return result
        return on_meta(cls, result, args)


def set_something(name: str, func: Any, args: Any) -> None:
    """Sets an attribute; elements are left as they are."""
    if name == "__set__":
        with unasked():
            func(*args)


def written_tensor(name: str, args: Any) -> Any:
    """The tensor that a function in place would write, which it leaves as it is."""
    if not name.endswith("_") or name.endswith("__") or name in _FACTS:
        return UNASKED
    target = args[0]
    if not isinstance(target, meta_class()):
        raise NotImplementedError(NO_DATA)
    if state.grad_enabled and target.is_leaf and target.requires_grad:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place "
                           "operation.")  # fmt: skip
    return target


def refuse(name: str, args: Any) -> None:
    """Raises where Python would see values."""
    if name in _READ_BY_PYTHON:
        if args[0].numel() != 1:
            raise RuntimeError(f"a Tensor with {args[0].numel()} elements cannot be converted to "
                               "Scalar")  # fmt: skip
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")
    if name == "numpy":
        refuse_array(args[0])
    if name in ("tolist", "cpu", "copy"):  # the last is the op that writes to another tensor
        raise NotImplementedError(NO_DATA)
    by_mask = name == "__getitem__" and any(
        isinstance(index, Tensor) and index.dtype.name == "bool"
        for index in among((args[1],)))  # fmt: skip
    if name in _BY_VALUES or by_mask:
        raise NotImplementedError(f"{'index' if by_mask else name}() depends on values, and meta "
                                  "tensors have none; use a tensor of the CPU")  # fmt: skip


def check_devices(cls: Any, args: Any) -> None:
    """Refuses tensors with values beside those without, but for single numbers."""
    tensors = [value for value in among(args) if isinstance(value, Tensor)]
    here = [isinstance(value, cls) for value in tensors if value.ndim or isinstance(value, cls)]
    if not all(here):
        first, other = ("meta", "cpu") if here[0] else ("cpu", "meta")
        raise RuntimeError(f"Tensor on device {other} is not on the expected device {first}!")


def device_asked_for(name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """The device that a call names, which is taken out of its arguments."""
    if name == "to" and len(args) > 1 and isinstance(args[1], str | device):
        wanted = args[1]
        if not is_meta(wanted):
            raise NotImplementedError(NO_DATA)
    return kwargs.pop("device", None)


def on_meta(cls: Any, result: Any, args: Any) -> Any:
    """The new tensors of a result as meta tensors."""
    if isinstance(result, tuple | list):
        items = [on_meta(cls, item, args) for item in result]
        make = getattr(type(result), "_make", type(result))
        return make(items)
    if isinstance(result, Tensor) and not any(result is value for value in among(args)):
        _ = result._array  # a pending tensor has its own class once it was read
        if type(result) is Tensor:
            result.__class__ = cls
    return result


# --- what they are without values ----------------------------------------------------------------


def as_text(self: Any, **_: Any) -> str:
    """torch's form: the size in the place of the values."""
    facts = [f"size={tuple(self.shape)}"]
    if self.dtype is not default_dtype():
        facts.append(f"dtype={self.dtype!r}")
    if self.grad_fn is not None:
        facts.append(f"grad_fn=<{type(self.grad_fn).__name__}>")
    elif self.requires_grad:
        facts.append("requires_grad=True")
    text = f"tensor(..., device='meta', {', '.join(facts)})"
    return f"Parameter containing:\n{text}" if self.__dict__.get("_is_param") else text


def refuse_array(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Raises: there is nothing to convert."""
    raise TypeError("can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the "
                    "tensor to host memory first.")  # fmt: skip


def copy_deeply(self: Any, memo: dict[int, Any]) -> Any:
    """Another meta tensor, with the attributes of this one."""
    if id(self) not in memo:
        made = without_values(self)
        made.__dict__.update(self.__dict__)
        memo[id(self)] = made
    return memo[id(self)]
