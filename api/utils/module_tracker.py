"""`torch.utils.module_tracker`: which modules run now, forward or backward."""

from __future__ import annotations

import weakref
from typing import Any

from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from ..tracer.engine import current
from ..tracer.hooks import register_multi_grad_hook
from ..tracer.tensor import Tensor
from ._pytree import tree_leaves

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """with ModuleTracker() as tracker: `tracker.parents` names the modules that run.

    "Global" is always among them. In backward a module runs from when gradients of its outputs are
    there to when those of its inputs are.
    """

    def __init__(self) -> None:
        self._forward = {"Global"}
        self._backward: tuple[Any, set[str]] = (None, set())  # the run, and its modules
        self._names: Any = weakref.WeakKeyDictionary()
        self._hooks: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """Does a backward run?"""
        return current.run is not None

    @property
    def parents(self) -> set[str]:
        """The modules that run now, by their path from the outermost one."""
        return {"Global", *self._in_backward()} if self.is_bw else self._forward

    def _in_backward(self) -> set[str]:
        if self._backward[0] is not current.run:
            self._backward = (current.run, set())
        return self._backward[1]

    def _name(self, module: Any) -> str:
        name = self._names.get(module)
        if name is None:
            name = self._names[module] = type(module).__name__
            for path, inner in module.named_modules():
                self._names[inner] = f"{name}.{path}" if path else name
        return name

    def _begin(self, module: Any, inputs: Any) -> None:
        name = self._name(module)
        self._forward.add(name)
        self._watch(inputs, lambda grads: self._in_backward().discard(name))

    def _end(self, module: Any, inputs: Any, outputs: Any) -> None:
        name = self._name(module)
        self._forward.discard(name)
        self._watch(outputs, lambda grads: self._in_backward().add(name))

    def _watch(self, values: Any, hook: Any) -> None:
        tensors = [v for v in tree_leaves(values) if isinstance(v, Tensor) and v.requires_grad]
        if tensors:
            self._hooks.append(register_multi_grad_hook(tensors, hook))

    def __enter__(self) -> ModuleTracker:
        self._handles = (register_module_forward_pre_hook(self._begin),
                         register_module_forward_hook(self._end))  # fmt: skip
        return self

    def __exit__(self, *error: Any) -> None:
        for handle in (*self._handles, *self._hooks):
            handle.remove()
        self._hooks.clear()
