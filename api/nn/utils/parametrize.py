"""Parametrisations: a tensor of a module is computed from other tensors by modules."""

from __future__ import annotations

import copyreg
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import Any

from ...tracer.modes import no_grad
from ...tracer.tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter


class _Cache:
    """Values computed once within `cached()`."""

    depth = 0
    values: dict[Any, Tensor] = {}  # noqa: RUF012


@contextmanager
def cached() -> Iterator[None]:
    """Within the block every parametrised tensor is computed once."""
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if not _Cache.depth:
            _Cache.values = {}


def _register(module: Module, name: str, value: Tensor) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _set(target: Tensor, value: Tensor) -> None:
    """`target` holds the memory of `value` from now on."""
    target.data = value.detach()


def _require(ok: bool, text: str) -> None:
    if not ok:
        raise ValueError(text)


class ParametrizationList(ModuleList):
    """The modules that compute one tensor, and the tensors they compute it from."""

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        _require(len(modules) > 0, "ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with no_grad():
            new: Any = original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):
                        new = module.right_inverse(new)
        _require(isinstance(new, Tensor | Sequence), "'right_inverse' must return a Tensor or a "
                 f"Sequence of tensors (list, tuple...). Got {type(new).__name__}")  # fmt: skip
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            _require(original.dtype is new.dtype, "When `right_inverse` outputs one tensor, it may "
                     f"not change the dtype.\noriginal.dtype: {original.dtype}\n"
                     f"right_inverse(original).dtype: {new.dtype}")  # fmt: skip
            if new is not original:
                _set(original, new)
            _register(self, "original", original)
        else:
            self._keep_several(new, original)
        if not unsafe:
            self._check_result(shape, dtype)

    def _keep_several(self, new: Sequence[Any], original: Tensor) -> None:
        for k, value in enumerate(new):
            _require(
                isinstance(value, Tensor),
                "'right_inverse' must return a Tensor or a Sequence "
                f"of tensors (list, tuple...). Got element {k} of the sequence with type "
                f"{type(value).__name__}.",
            )
            if isinstance(original, Parameter):
                value = Parameter(value, original.requires_grad)
            value.requires_grad_(original.requires_grad)
            _register(self, f"original{k}", value)

    def _check_result(self, shape: Any, dtype: Any) -> None:
        result = self()
        _require(isinstance(result, Tensor), "A parametrization must return a tensor. Got "
                 f"{type(result).__name__}.")  # fmt: skip
        for word, was, now in (("dtype", dtype, result.dtype), ("shape", shape, result.shape)):
            _require(was == now, f"Registering a parametrization may not change the {word} of the "
                     f"tensor, unless `unsafe` flag is enabled.\nunparametrized {word}: {was}\n"
                     f"parametrized {word}: {now}")  # fmt: skip

    def _originals(self) -> list[Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{k}") for k in range(self.ntensors)]

    def right_inverse(self, value: Any) -> None:
        """Sets the originals so that the tensor becomes `value`."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            values = [value] if self.is_tensor else value
            _require(isinstance(values, Sequence), "'right_inverse' must return a sequence of "
                     f"tensors. Got {type(value).__name__}.")  # fmt: skip
            _require(len(values) == self.ntensors, "'right_inverse' must return a sequence of "
                     f"tensors of length {self.ntensors}. Got a sequence of length "
                     f"{len(values)}.")  # fmt: skip
            for original, new in zip(self._originals(), values):
                _require(isinstance(new, Tensor), "`right_inverse` should return a tensor. Got "
                         f"{type(new).__name__}")  # fmt: skip
                _require(
                    new.dtype is original.dtype,
                    "The tensor returned by `right_inverse` has "
                    f"dtype {new.dtype} while `original` has dtype {original.dtype}",
                )
                _set(original, new)

    def forward(self) -> Tensor:
        first, *rest = self
        value = first(*self._originals())
        for module in rest:
            value = module(value)
        return value


def _inject_new_class(module: Module) -> None:
    """Gives the module a class of its own, to put properties on."""
    cls = type(module)

    def deep_copy(self: Any, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        replica = self.__new__(self.__class__)
        memo[id(self)] = replica
        replica.__dict__ = deepcopy(self.__dict__, memo)
        for slot in copyreg._slotnames(type(self)):  # type: ignore[attr-defined]
            if hasattr(self, slot):
                setattr(replica, slot, deepcopy(getattr(self, slot), memo))
        return replica

    def get_state(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    body: dict[str, Any] = {"__getstate__": get_state}
    if not hasattr(cls, "__deepcopy__"):
        body["__deepcopy__"] = deep_copy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), body)


def _inject_property(module: Module, tensor_name: str) -> None:
    def compute(self: Any) -> Tensor:
        parametrization = self.parametrizations[tensor_name]
        if not _Cache.depth:
            return parametrization()
        key = (id(self), tensor_name)
        if key not in _Cache.values:
            _Cache.values[key] = parametrization()
        return _Cache.values[key]

    def assign(self: Any, value: Tensor) -> None:
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(compute, assign))


def _check_addition(module: Module, name: str, parametrization: Module) -> None:
    """A further parametrisation may not change dtype or shape."""
    before = getattr(module, name)
    after = parametrization(before)
    _require(isinstance(after, Tensor), "A parametrization must return a tensor. Got "
             f"{type(after).__name__}.")  # fmt: skip
    for word, was, now in (("dtype", before.dtype, after.dtype),
                           ("shape", before.shape, after.shape)):  # fmt: skip
        _require(was == now, f"Registering a parametrization may not change the {word} of the "
                 f"tensor, unless the `unsafe` flag is enabled.\nmodule.{name}.{word}: {was}\n"
                 f"parametrization(module.{name}).{word}: {now}")  # fmt: skip


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """From now on `module.<tensor_name>` is computed by `parametrization`."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_addition(module, tensor_name, parametrization)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        listed = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations._modules[tensor_name] = listed
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized "
            f"element with name '{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Has the module (or this tensor of it) parametrisations?"""
    found = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Makes the tensor plain again, with its present value or the original's."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    listed = module.parametrizations[tensor_name]
    if listed.is_tensor:
        original = listed.original
        if leave_parametrized:
            with no_grad():
                _set(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The module's class without the one that parametrisation gave it."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Gives `to_module` the parametrisations of `from_module` and shares their originals."""
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        source = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for original in [key for key in source._parameters if key.startswith("original")]:
            setattr(target, original, getattr(source, original))
    return to_module
