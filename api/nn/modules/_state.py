"""`state_dict` and `load_state_dict`. A base of `Module`."""

from __future__ import annotations

import itertools
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import Any

from ...tracer.hooks import RemovableHandle
from ...tracer.modes import no_grad
from ...tracer.tensor import Tensor
from ..parameter import Parameter
from ._hooks import WrappedHook

_EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class State:
    """A module's parameters and persistent buffers as a dictionary, and back."""

    _version: int = 1

    def get_extra_state(self) -> Any:
        """Override to put more than tensors into the state_dict."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be "
                           "called.")  # fmt: skip

    def set_extra_state(self, state: Any) -> None:
        """Override to take back what `get_extra_state` gave."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be "
                           "called.")  # fmt: skip

    # --- saving ---

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        persistent = ((k, v) for k, v in self._buffers.items()
                      if k not in self._non_persistent_buffers_set)  # fmt: skip
        for name, value in itertools.chain(self._parameters.items(), persistent):
            if value is not None:
                destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not State.get_extra_state:
            destination[prefix + _EXTRA_STATE] = self.get_extra_state()

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """state_dict(): every parameter and persistent buffer under its dotted name."""
        if args:
            warnings.warn("Positional args are being deprecated, use kwargs instead. Refer to "
                          "https://pytorch.org/docs/main/generated/torch.nn.Module.html"
                          "#torch.nn.Module.state_dict for details.",
                          FutureWarning, stacklevel=2)  # fmt: skip
            given = (destination, prefix, keep_vars)
            destination, prefix, keep_vars = (*args, *given[len(args) :])
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.",
                                  keep_vars=keep_vars)  # fmt: skip
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if result is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = result
        return destination

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously "
                "registered via register_state_dict_post_hook"
            )
        return RemovableHandle(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(module, state_dict, prefix, local_metadata)` runs after `state_dict()`."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return RemovableHandle(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(module, prefix, keep_vars)` runs before `state_dict()`."""
        return RemovableHandle(self._state_dict_pre_hooks, hook)

    # --- loading ---

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        wrapped = WrappedHook(hook, self if with_module else None)
        return RemovableHandle(self._load_state_dict_pre_hooks, wrapped)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(module, state_dict, prefix, ...)` runs before this module takes its values."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(module, incompatible_keys)` runs after; it may change the keys in place."""
        return RemovableHandle(self._load_state_dict_post_hooks, hook)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Copies the values of this module, not of its children, and collects what is wrong."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                 error_msgs)  # fmt: skip
        local = {k: v for k, v in self._parameters.items() if v is not None}
        local.update({k: v for k, v in self._buffers.items()
                      if v is not None and k not in self._non_persistent_buffers_set})  # fmt: skip
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, current in local.items():
            key = prefix + name
            if key in state_dict:
                problem = _take(self, name, key, current, state_dict[key], assign)
                if problem is not None:
                    error_msgs.append(problem)
            elif strict:
                missing_keys.append(key)
        _take_extra_state(self, state_dict, prefix + _EXTRA_STATE, strict, missing_keys,
                               unexpected_keys)  # fmt: skip
        if not strict:
            return
        for key in state_dict:
            if key.startswith(prefix) and key != prefix + _EXTRA_STATE:
                head, dot, _ = key[len(prefix) :].partition(".")
                if head not in (self._modules if dot else local):
                    unexpected_keys.append(key)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copies values by name into parameters and buffers; `assign` puts the tensors in place."""
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        keys = _IncompatibleKeys([], [])
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        values = OrderedDict(state_dict)  # hooks may change it
        if metadata is not None:
            values._metadata = metadata  # type: ignore[attr-defined]
        _load(self, values, "", metadata or {}, assign, keys, errors)
        if strict:
            for words, names in (
                ("Unexpected", keys.unexpected_keys),
                ("Missing", keys.missing_keys),
            ):
                if names:
                    listed = ", ".join(f'"{k}"' for k in names)
                    errors.insert(0, f"{words} key(s) in state_dict: {listed}. ")
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}"
            )
        return keys


def _load(
    module: Any, values: Any, prefix: str, metadata: Any, assign: bool, keys: Any, errors: list[str]
) -> None:
    local_metadata = metadata.get(prefix[:-1], {})
    if assign:
        local_metadata["assign_to_params_buffers"] = assign
    module._load_from_state_dict(values, prefix, local_metadata, True, keys.missing_keys,
                                 keys.unexpected_keys, errors)  # fmt: skip
    for name, child in module._modules.items():
        if child is not None:
            below = f"{prefix}{name}."
            inside = {k: v for k, v in values.items() if k.startswith(below)}
            _load(child, inside, below, metadata, assign, keys, errors)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to "
                "return new values, if incompatible_keys need to be modified, it should be done "
                "inplace."
            )


def _take(module: Any, name: str, key: str, current: Any, value: Any, assign: bool) -> str | None:
    """Copies (or assigns) one value; returns what is wrong, if anything."""
    if not isinstance(value, Tensor):
        return (f'While copying the parameter named "{key}", expected torch.Tensor or '
                f"Tensor-like object from checkpoint but received {type(value)}")  # fmt: skip
    if current.ndim == 0 and tuple(value.shape) == (1,):  # torch 0.3 kept scalars so
        value = value[0]
    if value.shape != current.shape:
        return (f"size mismatch for {key}: copying a param with shape {value.shape} from "
                f"checkpoint, the shape in current model is {current.shape}.")  # fmt: skip
    try:
        with no_grad():
            if not assign:
                current.copy_(value)
            else:
                if isinstance(value, Parameter):
                    value.requires_grad_(current.requires_grad)
                elif isinstance(current, Parameter):
                    value = Parameter(value, requires_grad=current.requires_grad)
                setattr(module, name, value)
    except Exception as error:
        return (f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{current.size()} and whose dimensions in the checkpoint are {value.size()}, "
                f"an exception occurred : {error.args}.")  # fmt: skip
    return None


def _take_extra_state(
    module: Any, state_dict: Any, key: str, strict: bool, missing: list[str], unexpected: list[str]
) -> None:
    if type(module).set_extra_state is not State.set_extra_state:
        if key in state_dict:
            module.set_extra_state(state_dict[key])
        elif strict:
            missing.append(key)
    elif strict and key in state_dict:
        unexpected.append(key)
