"""Hooks of modules: the global tables, full backward hooks, and hooks with their module."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ...ir.bind import state
from ...tracer.function import Function
from ...tracer.hooks import RemovableHandle
from ...tracer.tensor import Tensor


class _Global:
    """Hooks that hold for every module."""

    def __init__(self) -> None:
        self.forward_pre: dict[int, Any] = OrderedDict()
        self.forward: dict[int, Any] = OrderedDict()
        self.forward_always: dict[int, bool] = {}
        self.forward_with_kwargs: dict[int, bool] = {}
        self.backward_pre: dict[int, Any] = OrderedDict()
        self.backward: dict[int, Any] = OrderedDict()
        self.backward_is_full: bool | None = None
        self.buffer_registration: dict[int, Any] = OrderedDict()
        self.module_registration: dict[int, Any] = OrderedDict()
        self.parameter_registration: dict[int, Any] = OrderedDict()


Global = _Global()


def registered(table: dict[int, Any], module: Any, name: str, value: Any) -> Any:
    """`value` after the registration hooks of `table` have seen it."""
    for hook in table.values():
        output = hook(module, name, value)
        if output is not None:
            value = output
    return value


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(module, args)` before the forward of every module."""
    return RemovableHandle(Global.forward_pre, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """`hook(module, args, output)` after the forward of every module."""
    handle = RemovableHandle(Global.forward, hook)
    if with_kwargs:
        Global.forward_with_kwargs[handle.id] = True
    if always_call:
        Global.forward_always[handle.id] = True
    return handle


_BOTH = ("Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
         "Please use only one of them.")  # fmt: skip


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """The old kind of backward hook, for every module."""
    if Global.backward_is_full is True:
        raise RuntimeError(_BOTH)
    Global.backward_is_full = False
    return RemovableHandle(Global.backward, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(module, grad_input, grad_output)` in the backward of every module."""
    if Global.backward_is_full is False:
        raise RuntimeError(_BOTH)
    Global.backward_is_full = True
    return RemovableHandle(Global.backward, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(module, grad_output)` before the backward of every module."""
    return RemovableHandle(Global.backward_pre, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(module, name, buffer)` at every `register_buffer`."""
    return RemovableHandle(Global.buffer_registration, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(module, name, submodule)` at every `add_module`."""
    return RemovableHandle(Global.module_registration, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(module, name, param)` at every `register_parameter`."""
    return RemovableHandle(Global.parameter_registration, hook)


class WrappedHook:
    """A hook that is called with its module, held weakly."""

    def __init__(self, hook: Callable[..., Any], module: Any = None):
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        self.module = None if module is None else weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.module is None:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {"hook": self.hook, "module": None if self.module is None else self.module()}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__init__(kept["hook"], kept["module"])  # type: ignore[misc]


class BackwardHookFunction(Function):
    """The identity: its node is where a module's gradients are seen."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        return args


class BackwardHook:
    """Full backward hooks of one call: identity nodes around the module collect its gradients."""

    def __init__(self, module: Any, hooks: list[Any], pre_hooks: list[Any]):
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs: tuple[Any, ...] | None = None
        self.inputs: tuple[int, list[int] | None] = (-1, None)
        self.outputs: tuple[int, list[int] | None] = (-1, None)

    def wrap_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        result, places = self._pass_through(args, self._at_inputs)
        self.inputs = (len(args), places)
        return result

    def wrap_outputs(self, result: Any) -> Any:
        single = not isinstance(result, tuple)
        args = (result,) if single else result
        wrapped, places = self._pass_through(args, self._at_outputs)
        self.outputs = (len(args), places)
        return wrapped[0] if single else wrapped

    def _pass_through(self, args: Any, hook: Any) -> tuple[Any, list[int] | None]:
        places = [k for k, arg in enumerate(args) if isinstance(arg, Tensor)]
        tensors = [args[k] for k in places]
        if not (state.grad_enabled and any(t.requires_grad for t in tensors)):
            return args, None
        passed = BackwardHookFunction.apply(*tensors)
        next(t.grad_fn for t in passed if t.grad_fn is not None).register_hook(hook)
        listed = list(args)
        for place, tensor in zip(places, passed):
            listed[place] = tensor
        return (tuple(listed) if type(args) is tuple else type(args)(*listed)), places

    def _at_inputs(self, grad_input: Any, _: Any) -> Any:
        """Both gradients are known: calls the user's hooks, which may replace those of inputs."""
        if self.grad_outputs is None:  # the gradient did not come through the module's output
            return None
        count, places = self.inputs
        result = spread(places or [], grad_input, count)
        for hook in self.hooks:
            out = hook(self.module, result, self.grad_outputs)
            if out is None:
                continue
            out = out if isinstance(out, tuple | list) else (out,)
            if len(out) != len(result):
                raise RuntimeError("Backward hook returned an invalid number of grad_input, got "
                                   f"{len(out)}, but expected {len(result)}")  # fmt: skip
            result = out
        self.grad_outputs = None
        return tuple(result[k] for k in places or [])

    def _at_outputs(self, _: Any, grad_output: Any) -> Any:
        count, places = self.outputs
        self.grad_outputs = spread(places or [], grad_output, count)
        for hook in self.pre_hooks:
            out = hook(self.module, self.grad_outputs)
            if out is None:
                continue
            out = out if isinstance(out, tuple | list) else (out,)
            if len(out) != count:
                raise RuntimeError("Backward pre hook returned an invalid number of grad_output, "
                                   f"got {len(out)}, but expected {count}")  # fmt: skip
            self.grad_outputs = tuple(out)
        current = self.grad_outputs
        if self.inputs[1] is None:
            self._without_inputs()
        return tuple(current[k] for k in places or [])

    def _without_inputs(self) -> None:
        """No input requires a gradient: the hooks run as soon as those of the outputs are known."""
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module "
            "outputs since no inputs require gradients. See https://docs.pytorch.org/docs/main/"
            "generated/torch.nn.Module.html#torch.nn.Module.register_full_backward_hook for more "
            "details.",
            stacklevel=5,
        )
        nothing = spread([], (), self.inputs[0])
        for hook in self.hooks:
            out = hook(self.module, nothing, self.grad_outputs)
            if out is not None and not (isinstance(out, tuple) and all(e is None for e in out)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )
        self.grad_outputs = None


def spread(places: list[int], values: Any, count: int) -> tuple[Any, ...]:
    """`values` at `places` of a tuple of `count`, None elsewhere."""
    result = [None] * count
    for place, value in zip(places, values):
        result[place] = value
    return tuple(result)
