"""`Optimizer`: parameter groups, state, hooks; `stepping.py` has the walk of a step."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from ..ir.types import default_dtype, float32, float64
from ..nn.modules._names import typename
from ..nn.modules.module import clear_grad
from ..tracer.creation import full, zeros_like
from ..tracer.hooks import RemovableHandle
from ..tracer.modes import enable_grad, set_grad_enabled
from ..tracer.quiet import quiet, restore
from ..tracer.tensor import Tensor
from ..unwritten import unwritten
from .stepping import step_group, update_one


class _Required:
    """Marks a hyper-parameter without default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()
ParamsT = params_t = Iterable[Any]  # annotations of copied optimizers
StateDict = dict[str, Any]


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """`step` of a copied optimizer, without history unless it is to be differentiated."""

    @functools.wraps(func)
    def stepping(*args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(args[0].defaults["differentiable"]):
            return func(*args, **kwargs)

    return stepping


def _default_to_fused_or_foreach(
    params: Any, differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether `fused` and `foreach` are the default: not on the CPU."""
    return False, False


STEP_HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
_HOOKS = (
    *STEP_HOOKS, "_optimizer_state_dict_pre_hooks", "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks", "_optimizer_load_state_dict_post_hooks",
)  # fmt: skip
_global_pre_hooks: dict[int, Any] = OrderedDict()
_global_post_hooks: dict[int, Any] = OrderedDict()
global_hooks = (_global_pre_hooks, _global_post_hooks)


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(optimizer, args, kwargs)` before the step of every optimizer."""
    return RemovableHandle(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(optimizer, args, kwargs)` after the step of every optimizer."""
    return RemovableHandle(_global_post_hooks, hook)


def counter(start: float = 0.0) -> Tensor:
    """A step counter as torch keeps it: a 0-d float tensor."""
    return full((), start, dtype=float64 if default_dtype() is float64 else float32)


class Optimizer:
    """Base of all optimizers: Optimizer(params, defaults).

    Ours give `_wengert_start` (the state of a parameter) and `_wengert_update` (the formula, on
    buffers), names that users will not choose for methods of theirs; the user's may override
    `step` itself.
    """

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in _HOOKS:
            setattr(self, name, OrderedDict())
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError("params argument given to the optimizer should be an iterable of "
                            f"Tensors or dicts, but got {typename(params)}")  # fmt: skip
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for k, group in enumerate(self.param_groups):
            names = sorted(name for name in group if name != "params")
            listed = "".join(f"    {name}: {group[name]}\n" for name in names)
            text += f"\nParameter Group {k}\n{listed}"
        return text + ")"

    # --- the step ---

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """step(closure=None): updates every parameter that has a gradient."""
        if type(self)._wengert_update is Optimizer._wengert_update:
            raise unwritten(self, "step")
        loss = None
        with set_grad_enabled(bool(self.defaults.get("differentiable", False))):
            if closure is not None:
                with enable_grad():
                    loss = closure()
            token = quiet()
            try:
                for group in self.param_groups:
                    step_group(self, group)
            finally:
                restore(token)
        return loss

    def _wengert_update_one(
        self, settings: Any, maximize: bool, parameter: Any, grad: Any, kept: Any
    ) -> None:
        """Updates one parameter and its state."""
        update_one(self, settings, maximize, parameter, grad, kept)

    def _wengert_require_sparse(self, group: dict[str, Any]) -> None:
        """Raises unless gradients may be sparse; see Note [Sparse gradients]."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    def _wengert_update_sparse(self, settings: Any, param: Any, grad: Any, kept: Any) -> None:
        raise NotImplementedError

    def _wengert_kept(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        """The state of a parameter, empty before its first step."""
        return self.state[parameter]

    def _wengert_settings(self, group: dict[str, Any]) -> Any:
        """The hyper-parameters of a group, read once per step."""
        return None

    def _wengert_needed(self, settings: Any) -> tuple[str, ...]:
        """Names of state without which nothing of a group is updated."""
        return ()

    def _wengert_start(self, group: Any, parameter: Tensor, grad: Tensor, kept: Any) -> None:
        """Makes the state of a parameter."""

    def _wengert_update(self, settings: Any, param: Any, grad: Any, kept: Any) -> None:
        """The formula: changes `param` and `kept` in place."""
        raise NotImplementedError

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """`func` between the hooks of the step."""

        @functools.wraps(func)
        def hooked_step(*args: Any, **kwargs: Any) -> Any:
            self = args[0]
            for hook in chain(_global_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
                result = hook(self, args, kwargs)
                if result is not None:
                    if not (isinstance(result, tuple) and len(result) == 2):
                        raise RuntimeError(f"{func} must return None or a tuple of (new_args, "
                                           f"new_kwargs), but got {result}.")  # fmt: skip
                    args, kwargs = result
            out = func(*args, **kwargs)
            for hook in chain(self._optimizer_step_post_hooks.values(),
                              _global_post_hooks.values()):  # fmt: skip
                hook(self, args, kwargs)
            return out

        hooked_step.hooked = True  # type: ignore[attr-defined]
        return hooked_step

    def _patch_step_function(self) -> None:
        cls = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = self.profile_hook_step(cls.step)  # type: ignore[method-assign]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes (or zeroes) the gradients of all parameters."""
        for group in self.param_groups:
            for parameter in group["params"]:
                clear_grad(parameter, set_to_none)

    # --- groups ---

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters with their own hyper-parameters."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        _list_parameters(param_group)
        for parameter in param_group["params"]:
            if not isinstance(parameter, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is "
                                f"{typename(parameter)}")  # fmt: skip
            leaf = parameter.is_leaf or parameter.retains_grad
            if not self.defaults.get("differentiable") and not leaf:
                raise ValueError("can't optimize a non-leaf Tensor; use a Parameter or detach() it")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError("parameter group didn't specify a value of required optimization "
                                 f"parameter {name}")  # fmt: skip
            param_group.setdefault(name, default)
        parameters = param_group["params"]
        if len(parameters) != len(set(parameters)):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
                stacklevel=3,
            )
        known: set[Any] = set()
        for group in self.param_groups:
            known.update(group["params"])
            if ("param_names" in param_group) != ("param_names" in group):
                word = "with names" if "param_names" in param_group else "without names"
                raise ValueError("all optimizer param groups should be with/without names. cannot "
                                 f"add param group {word} to the optimizer")  # fmt: skip
        if not known.isdisjoint(parameters):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    # --- hooks ---

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(optimizer, args, kwargs)` before each step."""
        return RemovableHandle(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(optimizer, args, kwargs)` after each step."""
        return RemovableHandle(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """`hook(optimizer)` before `state_dict()`."""
        return _add(self, "_optimizer_state_dict_pre_hooks", hook, prepend)

    def register_state_dict_post_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """`hook(optimizer, state_dict)` after `state_dict()`; it may return another."""
        return _add(self, "_optimizer_state_dict_post_hooks", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Any, prepend: bool = False) -> Any:
        """`hook(optimizer, state_dict)` before loading; it may return another."""
        return _add(self, "_optimizer_load_state_dict_pre_hooks", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Any, prepend: bool = False) -> Any:
        """`hook(optimizer)` after loading."""
        return _add(self, "_optimizer_load_state_dict_post_hooks", hook, prepend)

    # --- state ---

    def state_dict(self) -> dict[str, Any]:
        """State and groups, with parameters as numbers."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        start = 0
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            for k, parameter in enumerate(group["params"], start):
                numbers.setdefault(id(parameter), k)
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            start += len(packed["params"])
            groups.append(packed)
        kept = {numbers[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        result = {"state": kept, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            result = hook(self, result) or result
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what `state_dict()` gave; tensors are cast to their parameter's dtype."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            state_dict = hook(self, state_dict) or state_dict
        saved = deepcopy(state_dict["param_groups"])
        groups = self.param_groups
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(groups, saved)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the "
                             "size of optimizer's group")  # fmt: skip
        owners = dict(zip(chain.from_iterable(g["params"] for g in saved),
                          chain.from_iterable(g["params"] for g in groups)))  # fmt: skip
        kept: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            owner = owners.get(key)
            kept[key if owner is None else owner] = value if owner is None else cast(owner, value)
        for group, new in zip(groups, saved):
            new["params"] = group["params"]
            if "param_names" in group:
                new.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": kept, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)


def _list_parameters(group: dict[str, Any]) -> None:
    """`group["params"]` as a list of tensors; (name, tensor) pairs give `param_names`."""
    given = group["params"]
    if isinstance(given, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of "
            "tensors in sets will change between runs. Please use a list instead."
        )
    listed = [given] if isinstance(given, Tensor) else list(given)
    names = [item[0] for item in listed if isinstance(item, tuple)]
    if names:
        if len(names) != len(listed):
            raise ValueError("all optimizer params should be with/without names. Some param names "
                             "are missing")  # fmt: skip
        group["param_names"] = names
        listed = [item[1] for item in listed]
    group["params"] = listed


def cast(parameter: Tensor, value: Any, key: Any = None) -> Any:
    """Loaded state in the parameter's dtype; step counters stay as they are."""
    if isinstance(value, Tensor):
        if key == "step" or not parameter.is_floating_point():
            return value
        return value.to(parameter.dtype)
    if isinstance(value, dict):
        return {k: cast(parameter, v, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return type(value)(cast(parameter, v) for v in value)  # type: ignore[call-arg]
    return value


def zeros_for(parameter: Tensor) -> Tensor:
    """State of the parameter's shape and dtype."""
    return zeros_like(parameter)


def _add(optimizer: Any, table: str, hook: Any, prepend: bool) -> RemovableHandle:
    handle = RemovableHandle(getattr(optimizer, table), hook)
    if prepend:
        getattr(optimizer, table).move_to_end(handle.id, last=False)
    return handle
