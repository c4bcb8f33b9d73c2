"""Classes of tensors that users write, and the `__torch_function__` they inherit.

Note [Subclasses]
    A class that inherits from Tensor is given `Asked` as its base in between: the same methods,
    operators and properties, each of which asks `__torch_function__` first; see
    Note [Asked arguments]. The inherited answer runs the function as for plain tensors and makes
    its results tensors of the class, as views of them. Parameters are never asked. What functions
    written in Python do to such tensors is asked op by op, in `eager.run`. Backward asks nobody.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from ..ir.arguments import must_be
from ..ir.bind import state
from ..ir.op import TABLE, Op
from ..ir.overriding import ASKED, UNASKED, Unanswered, among, ask, in_order, turn, unasked
from ..ir.value import Value
from .tensor import Tensor, _TensorMeta

# operators under the names that torch hands to `__torch_function__`
_SHOWN = {
    "__add__": "add", "__sub__": "sub", "__mul__": "mul", "__truediv__": "div",
    "__mod__": "remainder", "__pow__": "pow", "__matmul__": "matmul", "__neg__": "neg",
    "__abs__": "abs", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge",
    "__iadd__": "add_", "__isub__": "sub_", "__imul__": "mul_", "__itruediv__": "div_",
    "__radd__": "add", "__rmul__": "mul", "__rtruediv__": "__rdiv__",
}  # fmt: skip
_SPECIAL = {
    *_SHOWN, "__floordiv__", "__eq__", "__ne__", "__and__", "__or__", "__xor__", "__invert__",
    "__lshift__", "__rshift__", "__rsub__", "__rpow__", "__rmatmul__", "__rfloordiv__", "__rmod__",
    "__getitem__", "__setitem__", "__len__", "__bool__", "__float__", "__int__", "__index__",
    "__contains__", "__repr__", "__format__", "__deepcopy__",
}  # fmt: skip
_OWN = {"as_subclass", "storage_", "type_"}  # nobody is asked of these


@functools.cache
def asked_class() -> Any:
    """`Asked`: made for the first class that inherits from Tensor, when all methods are there."""
    space: dict[str, Any] = {"__slots__": (), "__module__": Tensor.__module__,
                             "__doc__": Tensor.__doc__, "__hash__": Tensor.__hash__}  # fmt: skip
    for name in {**vars(Value), **vars(Tensor)}:
        if name in _OWN or (name[0] == "_" and name not in _SPECIAL):
            continue
        for kind in (Value, Tensor):  # the latter's hides the former's
            plain = vars(kind).get(name)
            if isinstance(plain, property):
                space[name] = asking_property(plain)
            elif isinstance(plain, types.FunctionType):
                if getattr(kind, plain.__name__, None) is not plain:
                    plain.__name__ = name  # the first name it is found by, which users are shown
                space[name] = asking_method(name, plain)
    return type.__new__(_TensorMeta, "Asked", (Tensor,), space)


def asking_method(name: str, plain: Any) -> Any:
    """A method that asks its arguments first."""
    shown = getattr(Tensor, _SHOWN.get(name, name), plain)
    forward = name.replace("__r", "__", 1) if name.startswith("__r") else ""
    forward = forward if forward in _SPECIAL else ""

    @functools.wraps(plain)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if forward and isinstance(args[0], Tensor):  # Python turns to the subclass first
            return getattr(asked_class(), forward)(args[0], self)
        if state.asking:
            called = shown
            if state.modes and (len(state.modes) > 1 or in_order(among((self, *args)))):
                called = getattr(asked_class(), shown.__name__, method)  # it asks the others
            try:
                answered = ask(called, (self, *args), kwargs)
            except Unanswered:
                if name in _SPECIAL and len(args) == 1:
                    return (
                        NotImplemented  # Python asks the other operand, and then says what is wrong
                    )
                raise
            if answered is not UNASKED:
                return answered
        return plain(self, *args, **kwargs)

    return method


def asking_property(plain: property) -> property:
    """A property that asks its tensor first."""

    def get(self: Any) -> Any:
        answered = ask(plain.__get__, (self,), {}) if state.asking else UNASKED
        return plain.__get__(self) if answered is UNASKED else answered

    def change(self: Any, value: Any) -> None:
        if not state.asking or ask(plain.__set__, (self, value), {}) is UNASKED:
            plain.__set__(self, value)

    return property(get, change if plain.fset else None, plain.fdel, plain.__doc__)


def bases_for(module: str, bases: tuple[Any, ...]) -> tuple[Any, ...]:
    """The bases of a new class: those of users inherit from Tensor by way of `Asked`."""
    if is_ours(module):
        return bases
    return tuple(asked_class() if base is Tensor else base for base in bases)


def admit(kind: Any) -> None:
    """A class was made: are its tensors to be asked?"""
    if not is_ours(kind.__module__) and (
        issubclass(kind, asked_class()) or turn(kind) == "first"
    ):  # fmt: skip
        ASKED.add(kind)


def is_ours(module: str) -> bool:
    return module.partition(".")[0] == __name__.partition(".")[0]


# --- the answer that classes inherit -------------------------------------------------------------


def torch_function(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Runs `func` as on plain tensors; its results become tensors of this class."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with unasked():
        result = func(*args, **(kwargs or {}))
        return result if func in default_nowrap_functions() else converted(result, cls)


def disabled(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Runs `func`, asking nobody; results are plain tensors."""
    with unasked():
        return func(*args, **(kwargs or {}))


@functools.cache
def default_nowrap_functions() -> frozenset[Any]:
    """What gives plain tensors, whatever class it is asked of."""
    return frozenset(getattr(Tensor, name).__get__ for name in ("_base", "grad"))


def converted(result: Any, cls: Any) -> Any:
    """The tensors of a result as tensors of class `cls`."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return as_subclass(result, cls)
    if isinstance(result, tuple | list):
        return type(result)(converted(item, cls) for item in result)
    return result


def as_subclass(self: Tensor, cls: Any) -> Any:
    """The same elements as a tensor of class `cls`, a view with history."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise must_be("as_subclass", "cls", "subclass of Tensor", cls, 1)
    with unasked():
        made = TABLE["alias"](self)
        _ = made._array  # a pending tensor has its own class once it was read
        made.__class__ = cls
    return made


@functools.cache
def function_of(op: Op) -> Any:
    """An op as the function that `__torch_function__` is given."""

    def function(*inputs: Any, **attrs: Any) -> Any:
        return op(*inputs, **attrs)

    function.__name__ = function.__qualname__ = op.name
    return function


for _answer in (torch_function, disabled):
    _answer.turn = "never"  # type: ignore[attr-defined]
Tensor.__torch_function__ = classmethod(torch_function)  # type: ignore[attr-defined]
Tensor.as_subclass = as_subclass  # type: ignore[attr-defined]
