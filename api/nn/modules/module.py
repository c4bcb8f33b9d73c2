"""`Module`: the base of all layers and models."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from ...ir.bind import epoch
from ...tracer.tensor import Tensor
from ..parameter import Buffer, Parameter
from ._calling import Calling
from ._conversion import Conversion
from ._hooks import (
    Global,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    registered,
)
from ._names import indented, typename
from ._state import State, _IncompatibleKeys

__all__ = [
    "Module",
    "_IncompatibleKeys",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

# What every module has about hooks, in the order of torch's.
_TABLES = (
    "_backward_pre_hooks", "_backward_hooks", "_is_full_backward_hook", "_forward_hooks",
    "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs", "_state_dict_hooks", "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip

_addindent = indented  # its name in torch, which programs import


class Module(Calling, State, Conversion):
    """Base of all layers and models: registers what is assigned to it."""

    dump_patches: bool = False
    training: bool
    call_super_init: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        if not self.call_super_init and kwargs:
            raise TypeError(f"{name}.__init__() got an unexpected keyword argument "
                            f"'{next(iter(kwargs))}'")  # fmt: skip
        if not self.call_super_init and args:
            raise TypeError(f"{name}.__init__() takes 1 positional argument but {len(args) + 1} "
                            "were given")  # fmt: skip
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent_buffers_set"] = set()
        for table in _TABLES:
            own[table] = OrderedDict() if table != "_is_full_backward_hook" else None
        own["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # --- registration ---

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """register_buffer(name, tensor, persistent=True): state that is not a parameter."""
        _check_name(self, "buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch "
                            "Tensor or None required)")  # fmt: skip
        self._buffers[name] = registered(Global.buffer_registration, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """register_parameter(name, param)."""
        _check_name(self, "parameter", name, "_parameters")
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{typename(param)}' object to parameter '{name}' "
                            "(torch.nn.Parameter or None required)")  # fmt: skip
        if param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                f"created explicitly. To express '{name}' as a function of another Tensor, compute "
                "the value in the forward() method."
            )
        self._parameters[name] = registered(Global.parameter_registration, self, name, param)

    def add_module(self, name: str, module: Module | None) -> None:
        """add_module(name, module): a child under a name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {typename(name)}")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = registered(Global.module_registration, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """add_module(name, module)."""
        self.add_module(name, module)

    # --- attributes ---

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            try:
                return own[table][name]
            except KeyError:  # also where Module.__init__ has not run
                continue
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        epoch.advance()  # compiled traces look at their modules again
        own = self.__dict__
        parameters = own.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            _forget(self, name, own, own["_buffers"], own["_modules"])
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(f"cannot assign '{typename(value)}' as parameter '{name}' "
                                "(torch.nn.Parameter or None expected)")  # fmt: skip
            self.register_parameter(name, value)
        elif isinstance(value, Module) or name in (own.get("_modules") or ()):
            _set_module(self, name, value)
        elif isinstance(value, Buffer) or name in (own.get("_buffers") or ()):
            _set_buffer(self, name, value)
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        epoch.advance()
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            object.__delattr__(self, name)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for table in _TABLES:  # absent from files of old versions
            self.__dict__.setdefault(table, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    def __dir__(self) -> list[str]:
        keys = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted(key for key in keys if not key[0].isdigit())

    # --- members ---

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in modules if recurse else [(prefix, self)]:
            for name, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield f"{path}.{name}" if path else name, value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Every parameter once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Every parameter with its dotted name."""
        yield from self._named_members(lambda module: module._parameters.items(), prefix, recurse,
                                       remove_duplicate)  # fmt: skip

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Every buffer once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Every buffer with its dotted name."""
        yield from self._named_members(lambda module: module._buffers.items(), prefix, recurse,
                                       remove_duplicate)  # fmt: skip

    def children(self) -> Iterator[Module]:
        """The direct submodules."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct submodules with their names."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it with their dotted names."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    # --- modes ---

    def train(self, mode: bool = True) -> Any:
        """train(mode=True): sets `training` here and below."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Any:
        """train(False)."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Sets `requires_grad` of all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes (or zeroes) the gradients of all parameters."""
        for parameter in self.parameters():
            clear_grad(parameter, set_to_none)

    # --- text ---

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What the printed form says between the parentheses."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {indented(repr(child))}" for name, child in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        if lines or children:
            inside = "\n  ".join(lines + children)
            return f"{self._get_name()}(\n  {inside}\n)"
        return f"{self._get_name()}()"


def clear_grad(parameter: Tensor, set_to_none: bool) -> None:
    """`parameter.grad = None`, or zeros in place without history."""
    if set_to_none:
        parameter.grad = None  # unread: a compiled step need not care whether there was one
        return
    grad = parameter.grad
    if grad is None:
        return
    if grad.grad_fn is not None:
        grad.detach_()
    else:
        grad.requires_grad_(False)
    grad.zero_()


def _check_name(module: Any, what: str, name: Any, table: str) -> None:
    if table not in module.__dict__:
        raise AttributeError(f"cannot assign {what} before Module.__init__() call")
    if not isinstance(name, str):
        raise TypeError(f"{what} name should be a string. Got {typename(name)}")
    if "." in name:
        raise KeyError(f'{what} name can\'t contain "."')
    if name == "":
        raise KeyError(f'{what} name can\'t be empty string ""')
    if hasattr(module, name) and name not in module.__dict__[table]:
        raise KeyError(f"attribute '{name}' already exists")


def _forget(module: Any, name: str, *tables: dict[str, Any]) -> None:
    for table in tables:
        table.pop(name, None)
    module._non_persistent_buffers_set.discard(name)


def _set_module(module: Any, name: str, value: Any) -> None:
    own = module.__dict__
    modules = own.get("_modules")
    if modules is None:
        raise AttributeError("cannot assign module before Module.__init__() call")
    if isinstance(value, Module):
        _forget(module, name, own, own["_parameters"], own["_buffers"])
    elif value is not None:
        raise TypeError(f"cannot assign '{typename(value)}' as child module '{name}' "
                        "(torch.nn.Module or None expected)")  # fmt: skip
    modules[name] = registered(Global.module_registration, module, name, value)


def _set_buffer(module: Any, name: str, value: Any) -> None:
    if value is not None and not isinstance(value, Tensor):
        raise TypeError(f"cannot assign '{typename(value)}' as buffer '{name}' "
                        "(torch.nn.Buffer, torch.Tensor or None expected)")  # fmt: skip
    if isinstance(value, Buffer):
        persistent = value.persistent
    else:
        persistent = name not in module._non_persistent_buffers_set
    module.register_buffer(name, value, persistent)
