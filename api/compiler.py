"""`torch.compiler`: questions and settings of compilation under torch's names."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .compile_options import get_default_backend, list_backends, set_default_backend
from .compiling import all_functions, compile, is_compiling
from .left_to_python import disable
from .pytree import flatten, unflatten
from .stances import set_stance
from .tracer.creation import as_tensor
from .tracer.tensor import Tensor

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin",
           "disable", "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting",
           "keep_portable_guards_unsafe", "keep_tensor_guards_unsafe", "list_backends",
           "nested_compile_region", "reset", "set_default_backend", "set_stance",
           "skip_all_guards_unsafe", "skip_guard_on_all_nn_modules_unsafe",
           "skip_guard_on_globals_unsafe", "skip_guard_on_inbuilt_nn_modules_unsafe",
           "substitute_in_graph", "wrap_numpy"]  # fmt: skip

is_dynamo_compiling = is_compiling


def allow_in_graph(fn: Any) -> Any:
    """allow_in_graph(fn): the function, or several: what they compute is recorded anyway."""
    several = fn if isinstance(fn, list | tuple) else [fn]
    if not all(map(callable, several)):
        raise AssertionError("allow_in_graph expects a callable")
    return [*fn] if isinstance(fn, list | tuple) else fn


def assume_constant_result(fn: Any) -> Any:
    """The function itself: what it reads is guarded anyway."""
    return fn


def substitute_in_graph(original_fn: Any, *, can_constant_fold_through: bool = False,
                        skip_signature_check: bool = False) -> Any:  # fmt: skip
    """substitute_in_graph(original)(fn): `fn`; the recorder follows the original itself."""
    return lambda fn: fn


def nested_compile_region(fn: Any = None, **options: Any) -> Any:
    """nested_compile_region(fn): the function: compiled callers make it part of their graph."""
    return (lambda function: function) if fn is None else fn


def reset() -> None:
    """reset(): forgets what all compiled functions recorded; their next calls record anew."""
    for function in all_functions():
        function.cache_clear()


def is_exporting() -> bool:
    """False: there is no `torch.export`."""
    return False


def cudagraph_mark_step_begin() -> None:
    """Nothing to do: there are no CUDA graphs, whose memory is used again at each step."""


def wrap_numpy(fn: Any) -> Any:
    """wrap_numpy(fn): a function of arrays as one of tensors; gradients do not flow through it."""

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given, made = [], []  # type: ignore[var-annotated]
        structure = flatten((args, kwargs), given)
        arrays = [leaf.numpy() if isinstance(leaf, Tensor) else leaf for leaf in given]
        args, kwargs = unflatten(structure, iter(arrays))
        structure = flatten(fn(*args, **kwargs), made)
        kinds = np.ndarray | np.generic
        tensors = [as_tensor(x) if isinstance(x, kinds) else x for x in made]
        return unflatten(structure, iter(tensors))

    return wrapped


def _all_guards(guard_entries: Any, *_: Any, **__: Any) -> list[bool]:
    """All guards are kept: without one, a compiled call could differ from the eager one."""
    return [True for _ in guard_entries]


skip_guard_on_inbuilt_nn_modules_unsafe = skip_guard_on_all_nn_modules_unsafe = _all_guards
keep_tensor_guards_unsafe = keep_portable_guards_unsafe = _all_guards
skip_guard_on_globals_unsafe = skip_all_guards_unsafe = _all_guards
