"""Paths to members, and dtype and device changes. A base of `Module`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ...ir.arguments import as_dtype
from ...ir.types import BY_NAME, DType
from ...tracer.creation import empty_like
from ...tracer.modes import no_grad
from ...tracer.placing import is_meta
from ...tracer.tensor import Tensor, device, require_cpu
from ..parameter import Parameter


class Conversion:
    """Members by dotted path; `to`, `float`, `apply` and the like."""

    def get_submodule(self, target: str) -> Any:
        """get_submodule("layers.0.attention")."""
        from .module import Module

        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Replaces (or adds, unless strict) the module at a dotted path."""
        from .module import Module

        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """get_parameter("layers.0.weight")."""
        _, name, value = _member(self, target)
        if not isinstance(value, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return value

    def get_buffer(self, target: str) -> Tensor:
        """get_buffer("norm.running_mean")."""
        module, name, value = _member(self, target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return value

    def apply(self, fn: Callable[[Any], Any]) -> Any:
        """Calls `fn` on every module below and on this one; children first."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Replaces the data of every parameter, gradient and buffer by `fn` of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is None:
                continue
            with no_grad():
                changed = fn(parameter)
            if changed is not parameter:
                if changed.device != parameter.device:
                    self._parameters[name] = Parameter(changed, parameter.requires_grad)
                    continue
                parameter.data = changed
            if parameter.grad is not None:
                with no_grad():
                    grad = fn(parameter.grad)
                if grad is not parameter.grad:
                    parameter.grad.data = grad
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def cpu(self) -> Any:
        """The module itself: it is on the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Any:
        """Raises, as torch without CUDA does."""
        return self._apply(lambda t: t.cuda(device))

    def xpu(self, device: Any = None) -> Any:
        """Raises, as torch without XPU does."""
        return self._apply(lambda t: t.xpu(device))

    def type(self, dst_type: Any) -> Any:
        """Casts parameters and buffers."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Any:
        """Floating-point parameters and buffers become float32."""
        return _cast(self, "float32")

    def double(self) -> Any:
        """Floating-point parameters and buffers become float64."""
        return _cast(self, "float64")

    def half(self) -> Any:
        """Floating-point parameters and buffers become float16."""
        return _cast(self, "float16")

    def bfloat16(self) -> Any:
        """Floating-point parameters and buffers become bfloat16."""
        return _cast(self, "bfloat16")

    def to_empty(self, *, device: Any, recurse: bool = True) -> Any:
        """Same shapes, new memory."""
        return self._apply(lambda t: empty_like(t, device=device), recurse=recurse)

    def share_memory(self) -> Any:
        """The module itself: threads share memory anyway."""
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """to(device), to(dtype), to(device, dtype), to(tensor)."""
        dtype, where = parse_to(args, kwargs)
        if is_meta(where):
            return self._apply(lambda t: t.to(where, dtype if t.is_floating_point() else None))
        require_cpu(where)
        if where is not None:
            refuse_meta(self)
        if dtype is None:
            return self._apply(lambda t: t)
        if not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError("nn.Module.to only accepts floating point or complex dtypes, but got "
                            f"desired dtype={dtype}")  # fmt: skip
        if dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may "
                "change, and some modules might not work as expected when using complex tensors as "
                "parameters or buffers.",
                stacklevel=2,
            )
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() or t.is_complex() else t)


def refuse_meta(module: Any) -> None:
    """Raises torch's error where values would be made out of nothing."""
    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.is_meta:
            raise NotImplementedError(
                "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() "
                "instead of torch.nn.Module.to() when moving module from meta to a different "
                "device."
            )


def parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[DType | None, Any]:
    """The dtype and the device that arguments of `to` name."""
    dtype, where = kwargs.get("dtype"), kwargs.get("device")
    other = kwargs.get("tensor")
    for value in (*args, other):
        if isinstance(value, Tensor):
            dtype, where = value.dtype, value.device
        elif isinstance(value, DType) or value in (float, int, bool, complex):
            dtype = as_dtype(value)
        elif isinstance(value, str | device) or (
            isinstance(value, int) and not isinstance(value, bool)
        ):
            where = value
        elif value is not None and not isinstance(value, bool):
            raise TypeError("to() received an invalid combination of arguments - got "
                            f"({type(value).__name__}); use a dtype, a device or a "
                            "Tensor")  # fmt: skip
    return as_dtype(dtype), where


def _member(module: Any, target: str) -> tuple[Any, str, Any]:
    """The module, the last name and the value of a dotted path."""
    path, _, name = target.rpartition(".")
    module = module.get_submodule(path)
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return module, name, getattr(module, name)


def _cast(module: Any, dtype: str) -> Any:
    wanted = BY_NAME[dtype]
    return module._apply(lambda t: t.to(wanted) if t.is_floating_point() else t)
