"""`Value`: what ops work on, eager or in IR; and the table of public functions.

Tensors (eager) and Vars (IR) are Values. Methods and operators come from `FUNCTIONS`, which the
files in `ir/ops` fill through `@public`; so a function is written once and serves `torch.f(x)`,
`x.f()`, derivative rules and IR building alike.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .overriding import ASKED, UNASKED, among, answer, ask, in_order, turn
from .signatures import parameter_names, positional_names
from .types import DType, TensorType, same_shape


class Value:
    """Base of Tensor and Var. Subclasses have `dtype` and `shape`; methods are attached below."""

    __slots__ = ()

    dtype: DType
    shape: Any
    if TYPE_CHECKING:  # methods are attached at import

        def __getattr__(self, name: str) -> Any: ...

    @property
    def type_(self) -> TensorType:
        """The value's IR type."""
        return TensorType(self.dtype, tuple(self.shape))

    def _has_type(self, wanted: Any) -> bool:
        """Are dtype and shape those of `wanted`?"""
        dtype, shape = wanted
        return self.dtype is dtype and same_shape(tuple(self.shape), shape)

    def _beside(self, made: Any) -> Any:
        """A new value made after this one (`zeros_like`), where both may stand for several."""
        return made

    @property
    def ndim(self) -> int:
        return len(self.shape)


@dataclass(frozen=True)
class Function:
    """A public function: where it is found, and whether it has an in-place twin."""

    name: str
    call: Callable[..., Any]
    spaces: tuple[str, ...]  # "torch", "nn.functional", "linalg", "special", "fft"
    method: bool
    inplace: bool | str  # "resizing": the twin gives the tensor the result's shape
    short: Callable[..., Any] | None = None  # what to call for Values, all given by position


FUNCTIONS: dict[str, Function] = {}
MISSING = object()  # what short ways hand on in the place of an argument that was not given

# Installed by the tracer: how an in-place twin runs (`x.add_(y)`), and `out=`.
run_inplace: Callable[..., Any] | None = None
write_out: Callable[..., Any] | None = None
# Installed by the tracer: a function with the code of familiar calls before it.
recalled: Callable[..., Callable[..., Any]] | None = None


def public(
    *names: str,
    spaces: str = "torch",
    method: bool = True,
    inplace: bool | str = False,
    overlap: str = "",
    out: str = "exact",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Publishes a function under its own name and `names`: in namespaces, as method, as `name_`.

    `spaces` lists namespaces separated by blanks; "" publishes a method only. `overlap` says how
    memory that is written (in place, or `out=`) may overlap what is read: "aligned", where both are
    the same elements (the default of ops with an in-place twin), "apart", not at all, or "copied",
    in any way (the default of others). `out` says of which dtype an `out=` tensor may be: "exact",
    the result's; "kind", one of the same category; "cast", one the result converts to without
    losing its category; "safe name results", the same in other words; "any"; "none", where torch
    has no `out=`.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        op = getattr(function, "op", None)
        aligned = inplace if op is None else op.kind == "pointwise"
        function.overlap = overlap or ("aligned" if aligned else "copied")  # type: ignore[attr-defined]
        function.out = out  # type: ignore[attr-defined]
        for name in names or (function.__name__.rstrip("_"),):
            _publish(Function(name, function, tuple(spaces.split()), method, inplace))
        return function

    return register


def _publish(function: Function) -> None:
    key = function.name if "torch" in function.spaces or function.method else (
        f"{function.spaces[0]}.{function.name}")  # fmt: skip
    if key in FUNCTIONS:
        raise ValueError(f"public function {key} is registered twice")
    FUNCTIONS[key] = function
    if function.method:
        setattr(Value, function.name, as_called(function.call, name=function.name))
    if function.inplace:
        setattr(Value, function.name + "_", _inplace_twin(function))


# numpy's spellings, which torch accepts as well
_SYNONYMS = {"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "x2": "other"}


def as_called(
    function: Callable[..., Any], first: int = 0, takes_out: bool = False, name: str = ""
) -> Callable[..., Any]:
    """`function` as users call it: with numpy's names, and with arguments of the kinds it declares.

    Only parameters annotated `bool` and `int` are looked at: torch takes nothing else for them.
    `first` is the position torch gives the first argument, 1 for functions and 0 for methods.
    With `takes_out`, results are written to the argument `out`, if there is one. Errors call the
    function `name`.
    """
    name = name or function.__name__.rstrip("_")
    names, known = positional_names(function), parameter_names(function)
    kinds = {name: kind for name, kind in function.__annotations__.items() if kind in _KINDS}
    if not first and (len(known) < 2 or hasattr(function, "op")):  # nothing to be checked
        return _refusing(function, name)
    wanted = tuple(kinds.get(name) for name in names)
    synonyms = {k: v for k, v in _SYNONYMS.items() if v in known and k not in known}

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if ASKED:
            answered = ask(public_form(called), args, kwargs)
            if answered is not UNASKED:
                return answered
        if kinds:
            for value, kind in zip(args, wanted):
                if kind is not None and value.__class__.__name__ != kind:
                    _check_kinds(function, name, first, names, kinds, args, kwargs)
        if kwargs:
            if takes_out and "out" in kwargs:
                out = kwargs.pop("out")
                if out is not None:
                    assert write_out is not None
                    return write_out(called, args, kwargs, out)
            for word in kwargs.keys() & synonyms.keys():
                kwargs[synonyms[word]] = kwargs.pop(word)
            if kinds:
                _check_kinds(function, name, first, names, kinds, args, kwargs)
        try:
            return function(*args, **kwargs)
        except (AttributeError, TypeError) as error:
            strangers = _overriding(args, error)
            if not strangers:
                raise _refusal(name, function, first, args, kwargs, error) from None
        return answer(public_form(called), strangers, args, kwargs)

    return called


def _refusing(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A method that has nothing to check, with torch's words where it cannot be called."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            raise _refusal(name, function, 0, args, kwargs, error) from None

    return called


def _refusal(*facts: Any) -> Exception:
    """See `refusals.refusal`, which builds on this file."""
    from .refusals import refusal

    return refusal(*facts)


def public_form(called: Callable[..., Any]) -> Callable[..., Any]:
    """The function that users know: short ways may lie before `called`."""
    return getattr(called, "public", called)


def _overriding(args: Any, error: Exception) -> list[Any]:
    """The arguments that define what the function does, by `__torch_function__`.

    They are looked for where a function has failed: those that take Values need not ask.
    """
    if isinstance(getattr(error, "obj", None), Value):
        return [error.obj] if turn(type(error.obj)) == "late" else []  # type: ignore[attr-defined]
    return in_order(among(args))


# What may stand for a bool or an int; bools are no ints here.
_KINDS: dict[str, Callable[[Any], bool]] = {
    "bool": lambda value: isinstance(value, bool | np.bool_),
    "int": lambda value: hasattr(value, "__index__") and not isinstance(value, bool | np.bool_),
}


def _check_kinds(function: Callable[..., Any], known: str, first: int, names: tuple[str, ...],
                 kinds: dict[str, str], args: Any, kwargs: dict[str, Any]) -> None:  # fmt: skip
    """torch's TypeError for the first argument of another kind than declared."""
    from .arguments import must_be

    for position, (name, value) in enumerate([*zip(names, args), *kwargs.items()], first):
        kind = kinds.get(name)
        if kind is not None and not _KINDS[kind](value):
            wrong = must_be(known, name, kind, value, position)
            raise _refusal(known, function, first, args, kwargs, wrong)


def _inplace_twin(function: Function) -> Callable[..., Any]:
    call, resizing = function.call, function.inplace == "resizing"

    def twin(self: Any, *args: Any, **kwargs: Any) -> Any:
        assert run_inplace is not None
        try:
            return run_inplace(call, self, args, kwargs, resizing)
        except (AttributeError, TypeError) as error:
            strangers = _overriding((self, *args), error)
            if not strangers:
                raise _refusal(twin.__name__, call, 0, (self, *args), kwargs, error) from None
        return self.copy_(answer(twin, strangers, (self, *args), kwargs))

    twin.__name__ = twin.__qualname__ = function.name + "_"
    twin.__doc__ = f"In-place version of `{function.name}`."
    return twin


def namespace(space: str) -> dict[str, Callable[..., Any]]:
    """All functions published in a namespace, ready to be put into a module."""
    found = {f.name: _named(_with_out(f), f, space)
             for f in FUNCTIONS.values() if space in f.spaces}  # fmt: skip
    if space == "torch":
        found.update({f.name + "_": getattr(Value, f.name + "_")
                      for f in FUNCTIONS.values() if f.inplace and space in f.spaces})  # fmt: skip
    return found


def _named(call: Callable[..., Any], function: Function, space: str) -> Callable[..., Any]:
    """`call` under its public name, which is where pickles look for it."""
    if call is not function.call:
        call.__name__ = call.__qualname__ = function.name
    if call.__name__ == function.name:
        root = __name__.partition(".")[0]
        call.__module__ = root if space == "torch" else f"{root}.{space}"
    return call


def _with_out(function: Function) -> Callable[..., Any]:
    """A public function as users call it, with torch's `out=` argument."""
    call, short = function.call, function.short
    if "out" in parameter_names(call):
        return call
    takes_out = call.out != "none"  # type: ignore[attr-defined]
    called = as_called(call, 1, takes_out, function.name if "torch" in function.spaces else "")
    called.__name__ = called.__qualname__ = function.name
    if short is None:
        called.public = made = called if recalled is None else recalled(called)  # type: ignore[attr-defined]
        return made
    count = len(positional_names(call))

    @functools.wraps(call)
    def briefly(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != count or ASKED or not isinstance(args[0], Value):
            return called(*args, **kwargs)
        try:
            return short(*args)
        except AttributeError:  # it says of whom, or asks that one
            return called(*args)

    called.public = briefly  # type: ignore[attr-defined]
    return briefly
