"""Calling a module: forward between its hooks. A base of `Module`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ...tracer.hooks import RemovableHandle
from ...tracer.tensor import Tensor
from ._hooks import BackwardHook, Global, WrappedHook

_BOTH = ("Cannot use both regular backward hooks and full backward hooks on a single Module. "
         "Please use only one of them.")  # fmt: skip


def _forward_unimplemented(self: Any, *input: Any) -> None:
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


class Calling:
    """`module(x)`, and the registration of hooks around it."""

    forward: Callable[..., Any] = _forward_unimplemented
    _compiled_call_impl: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs `forward` between the hooks."""
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        own = self.__dict__
        if not (own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"]
                or own["_backward_pre_hooks"] or Global.forward or Global.forward_pre
                or Global.backward or Global.backward_pre):  # fmt: skip
            return self.forward(*args, **kwargs)
        return _call_with_hooks(self, args, kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return _call_with_hooks(self, args, kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Calls of this module run compiled from now on."""
        from ... import compile

        self._compiled_call_impl = compile(self._call_impl, *args, **kwargs)

    # --- registration ---

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """`hook(module, args)` runs before forward and may return new args."""
        handle = _add(self._forward_pre_hooks, hook, prepend)
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        return handle

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """`hook(module, args, output)` runs after forward and may return another output."""
        handle = _add(self._forward_hooks, hook, prepend)
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        return handle

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """`hook(module, grad_output)` runs before the module's backward."""
        return _add(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """`hook(module, grad_input, grad_output)`; it may return other grad_input."""
        if self._is_full_backward_hook is False:
            raise RuntimeError(_BOTH)
        self._is_full_backward_hook = True
        return _add(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The old kind: a hook on the node of the output. Prefer the full backward hook."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(_BOTH)
        self._is_full_backward_hook = False
        return RemovableHandle(self._backward_hooks, hook)


def _add(table: Any, hook: Callable[..., Any], prepend: bool) -> RemovableHandle:
    handle = RemovableHandle(table, hook)
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


class HookedCall:
    """One call of a module that has hooks."""

    def __init__(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]):
        self.module, self.args, self.kwargs = module, args, kwargs
        self.result: Any = None
        self.called: set[int] = set()

    def run(self) -> Any:
        module = self.module
        self.before()
        full = self.backward_hooks(full=True)
        pre = [*Global.backward_pre.values(), *module._backward_pre_hooks.values()]
        backward = BackwardHook(module, full, pre) if full or pre else None
        if backward is not None:
            self.args = backward.wrap_inputs(self.args)
        self.result = module.forward(*self.args, **self.kwargs)
        for number, hook in (*Global.forward.items(), *module._forward_hooks.items()):
            self.called.add(number)
            self.after(number, hook)
        if backward is not None:
            if not isinstance(self.result, Tensor | tuple):
                warnings.warn("For backward hooks to be called, module output should be a Tensor "
                              f"or a tuple of Tensors but received {type(self.result)}",
                              stacklevel=4)  # fmt: skip
            else:
                self.result = backward.wrap_outputs(self.result)
        self.hook_output_node()
        return self.result

    def before(self) -> None:
        module = self.module
        for number, hook in (*Global.forward_pre.items(), *module._forward_pre_hooks.items()):
            if number in module._forward_pre_hooks_with_kwargs:
                out = hook(module, self.args, self.kwargs)
                if out is None:
                    continue
                if not (isinstance(out, tuple) and len(out) == 2):
                    raise RuntimeError("forward pre-hook must return None or a tuple of (new_args, "
                                       f"new_kwargs), but got {out}.")  # fmt: skip
                self.args, self.kwargs = out
            else:
                out = hook(module, self.args)
                if out is not None:
                    self.args = out if isinstance(out, tuple) else (out,)

    def after(self, number: int, hook: Any) -> None:
        module = self.module
        if number in module._forward_hooks_with_kwargs or number in Global.forward_with_kwargs:
            out = hook(module, self.args, self.kwargs, self.result)
        else:
            out = hook(module, self.args, self.result)
        if out is not None:
            self.result = out

    def run_always_called(self) -> None:
        """forward failed: hooks registered with `always_call` run nevertheless."""
        always = {**Global.forward_always, **self.module._forward_hooks_always_called}
        for number, hook in (*Global.forward.items(), *self.module._forward_hooks.items()):
            if number not in always or number in self.called:
                continue
            try:
                self.after(number, hook)
            except Exception as error:
                warnings.warn("module forward hook with ``always_call=True`` raised an exception "
                              f"that was silenced as another error was raised in forward: {error}",
                              stacklevel=4)  # fmt: skip

    def backward_hooks(self, full: bool) -> list[Any]:
        module, hooks = self.module, []
        if Global.backward_is_full is full:
            hooks += Global.backward.values()
        if module._is_full_backward_hook is full:
            hooks += module._backward_hooks.values()
        return hooks

    def hook_output_node(self) -> None:
        """The old kind of backward hook sits on the node of the (first) output."""
        hooks = self.backward_hooks(full=False)
        if not hooks:
            return
        first = self.result
        while not isinstance(first, Tensor):
            if isinstance(first, dict):
                first = next(v for v in first.values() if isinstance(v, Tensor))
            else:
                first = first[0]
        if first.grad_fn is not None:
            for hook in hooks:
                first.grad_fn.register_hook(WrappedHook(hook, self.module))


def _call_with_hooks(module: Any, args: Any, kwargs: Any) -> Any:
    call = HookedCall(module, args, kwargs)
    try:
        return call.run()
    except Exception:
        call.run_always_called()
        raise
