"""`torch.overrides`: functions of one's own that ask `__torch_function__` of their arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from .ir.bind import state
from .ir.overriding import answer, in_order, is_asked
from .tracer.function_modes import BaseTorchFunctionMode, TorchFunctionMode
from .tracer.subclasses import default_nowrap_functions
from .tracer.tensor import Tensor

__all__ = ["BaseTorchFunctionMode", "TorchFunctionMode", "get_default_nowrap_functions",
           "handle_torch_function", "has_torch_function", "has_torch_function_unary",
           "has_torch_function_variadic", "is_tensor_like",
           "is_tensor_method_or_property", "resolve_name", "wrap_torch_function"]  # fmt: skip


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """has_torch_function(args): does the class of one of them define `__torch_function__`?"""
    return state.asking and (bool(state.modes) or any(is_asked(type(a)) for a in relevant_args))


def has_torch_function_unary(arg: Any) -> bool:
    """`has_torch_function((arg,))`."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function(args)`."""
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """handle_torch_function(function, relevant_args, *args): what the first of them answers."""
    if not callable(public_api):
        raise TypeError("handle_torch_function(): argument 'public_api' must be a function, not "
                        f"{type(public_api).__name__}")  # fmt: skip
    return answer(public_api, in_order(relevant_args), args, kwargs)


def get_default_nowrap_functions() -> set[Any]:
    """get_default_nowrap_functions(): what gives plain tensors, of whatever class it is asked."""
    return set(default_nowrap_functions())


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Any:
    """wrap_torch_function(dispatcher)(fn): `fn`, where none of dispatcher(*args) overrides it."""

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return wrap


def is_tensor_like(inp: Any) -> bool:
    """is_tensor_like(x): a tensor, or an object that defines `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """is_tensor_method_or_property(function): is it found on Tensor?"""
    if func.__name__ in ("__get__", "__set__"):
        return True
    return getattr(Tensor, func.__name__, None) in (func, getattr(func, "__wrapped__", func))


def resolve_name(f: Any) -> str:
    """resolve_name(torch.Tensor.add) is "torch.Tensor.add"."""
    if f.__name__ in ("__get__", "__set__"):
        return f"torch.Tensor.{f.__self__.fget.__name__}.{f.__name__}"
    if is_tensor_method_or_property(f):
        return f"torch.Tensor.{f.__name__}"
    module = f.__module__.partition(".")
    return ".".join(part for part in ("torch", module[2], f.__name__) if part)
