"""Modules that hold modules: Sequential, ModuleList, ModuleDict. See also `parameter_container`."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain
from typing import Any

from ...naming import found_in
from ._names import indented
from .module import Module
from .parameter_container import ParameterDict, ParameterList

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class Container(Module):
    """The old name of a plain Module with children."""

    def __init__(self, **kwargs: Any) -> None:
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented "
            "in `nn.Module`. Subclass that instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Sequence(Module):
    """Children in order."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def _renumber(self) -> None:
        self._modules = {str(k): module for k, module in enumerate(self._modules.values())}

    def _name_at(self, index: Any) -> str:
        index, size = operator.index(index), len(self)
        if not -size <= index < size:
            raise IndexError(f"index {index} is out of range")
        return list(self._modules)[index]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)[index] if isinstance(index, slice) else [self._name_at(index)]
        for name in names:
            delattr(self, name)
        self._renumber()

    def append(self, module: Module) -> Any:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Removes a module and returns it."""
        module = self[key]
        del self[key]
        return module


class Sequential(_Sequence):
    """Sequential(*modules) or Sequential(OrderedDict): each gets the last one's output."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named = args[0].items()
        else:
            named = ((str(k), module) for k, module in enumerate(args))
        for name, module in named:
            self.add_module(name, module)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name_at(index)]

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self, *_sequential(other))

    def __iadd__(self, other: Any) -> Any:
        offset = len(self)
        for k, module in enumerate(_sequential(other)):
            self.add_module(str(k + offset), module)
        return self

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*(module for _ in range(self._times(other)) for module in self))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Any:
        modules = list(self)
        for _ in range(self._times(other) - 1):
            for module in modules:
                self.append(module)
        return self

    def _times(self, other: Any) -> int:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}; "
                            "use an int")  # fmt: skip
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}; use at "
                             "least 1")  # fmt: skip
        return other

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def insert(self, index: int, module: Module) -> Any:
        """Puts a module before the one at `index`."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index, module)
        self._modules.update({str(k): m for k, m in enumerate(modules)})
        return self

    def extend(self, sequential: Iterable[Module]) -> Any:
        """Adds modules at the end."""
        for module in sequential:
            self.append(module)
        return self


def _sequential(other: Any) -> Sequential:
    if not isinstance(other, Sequential):
        raise ValueError("add operator supports only objects of Sequential class, but "
                         f"{type(other)} is given.")  # fmt: skip
    return other


class ModuleList(_Sequence):
    """ModuleList(modules=None): a list whose modules are registered."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._name_at(index)]

    def __iadd__(self, modules: Iterable[Module]) -> Any:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        if not len(self):
            return f"{self._get_name()}()"
        runs: list[list[Any]] = []  # equal neighbours print once, with their count
        for k, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = k
            else:
                runs.append([k, k, text])
        lines = []
        for first, last, text in runs:
            head = f"({first}): " if first == last else f"({first}-{last}): {last - first + 1} x "
            lines.append(indented(head + text))
        inside = "\n  ".join(lines)
        return f"{self._get_name()}(\n  {inside}\n)"

    def insert(self, index: int, module: Module) -> None:
        """Puts a module before the one at `index`."""
        modules = list(self)
        modules.insert(index, module)
        self._modules.update({str(k): m for k, m in enumerate(modules)})

    def extend(self, modules: Iterable[Module]) -> Any:
        """Adds modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError("ModuleList.extend should be called with an iterable, but got "
                            f"{type(modules).__name__}")  # fmt: skip
        offset = len(self)
        for k, module in enumerate(modules):
            self.add_module(str(offset + k), module)
        return self


class ModuleDict(Module):
    """ModuleDict(modules=None): a dictionary whose modules are registered."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Removes all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Removes a module and returns it."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Any]:
        """Names and modules."""
        return self._modules.items()

    def values(self) -> ValuesView[Any]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds modules of a mapping or of pairs, over those of the same name."""
        for key, module in pairs_of("ModuleDict", modules, Mapping | ModuleDict):
            self[key] = module


def pairs_of(name: str, values: Any, mappings: Any) -> Iterator[tuple[str, Any]]:
    """Keys and values of a mapping or of an iterable of pairs."""
    if not isinstance(values, Iterable):
        raise TypeError(f"{name}.update should be called with an iterable of key/value pairs, but "
                        f"got {type(values).__name__}")  # fmt: skip
    if isinstance(values, mappings):
        yield from values.items()
        return
    for place, pair in enumerate(values):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{name} update sequence element #{place} should be Iterable; is"
                            f"{type(pair).__name__}")  # fmt: skip
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(f"{name} update sequence element #{place} has length {len(pair)}; 2 "
                             "is required")  # fmt: skip
        yield pair


found_in(__name__, ParameterDict, ParameterList)
