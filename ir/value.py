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

from .signatures import parameter_names
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


FUNCTIONS: dict[str, Function] = {}

# Installed by the tracer: how an in-place twin runs (`x.add_(y)`), and `out=`.
run_inplace: Callable[..., Any] | None = None
write_out: Callable[..., Any] | None = None


def public(
    *names: str,
    spaces: str = "torch",
    method: bool = True,
    inplace: bool | str = False,
    overlap: str = "",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Publishes a function under its own name and `names`: in namespaces, as method, as `name_`.

    `spaces` lists namespaces separated by blanks; "" publishes a method only. `overlap` says how
    memory that is written (in place, or `out=`) may overlap what is read: "aligned", where both are
    the same elements (the default of ops with an in-place twin), "apart", not at all, or "copied",
    in any way (the default of others).
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        op = getattr(function, "op", None)
        aligned = inplace if op is None else op.kind == "pointwise"
        function.overlap = overlap or ("aligned" if aligned else "copied")  # type: ignore[attr-defined]
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
        setattr(Value, function.name, _method(function.call))
    if function.inplace:
        setattr(Value, function.name + "_", _inplace_twin(function))


# numpy's spellings, which torch accepts as well
_SYNONYMS = {"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "x2": "other"}


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, accepting `axis=` and `keepdims=` where it has `dim` and `keepdim`, and refusing
    what is no tensor in torch's words."""
    parameters = parameter_names(function)
    if len(parameters) < 2 or hasattr(function, "op"):  # these have nothing to be translated
        return function

    @functools.wraps(function)
    def method(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            for name in kwargs.keys() & _SYNONYMS.keys():
                if name not in parameters:
                    kwargs[_SYNONYMS[name]] = kwargs.pop(name)
        try:
            return function(*args, **kwargs)
        except AttributeError as error:
            raise _not_a_tensor(function, args, kwargs, error) from None

    return method


def _inplace_twin(function: Function) -> Callable[..., Any]:
    call, resizing = function.call, function.inplace == "resizing"

    def twin(self: Any, *args: Any, **kwargs: Any) -> Any:
        assert run_inplace is not None
        try:
            return run_inplace(call, self, args, kwargs, resizing)
        except AttributeError as error:
            raise _not_a_tensor(call, (self, *args), kwargs, error) from None

    twin.__name__ = twin.__qualname__ = function.name + "_"
    twin.__doc__ = f"In-place version of `{function.name}`."
    return twin


def namespace(space: str) -> dict[str, Callable[..., Any]]:
    """All functions published in a namespace, ready to be put into a module."""
    found = {f.name: _named(_with_out(f.call), f, space)
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


def _with_out(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, with torch's `out=` argument and numpy's synonyms."""
    parameters = set(parameter_names(function))
    if "out" in parameters:
        return function
    synonyms = {k: v for k, v in _SYNONYMS.items() if v in parameters and k not in parameters}

    @functools.wraps(function)
    def with_out(*args: Any, **kwargs: Any) -> Any:
        try:
            if not kwargs:
                return function(*args)
            out = kwargs.pop("out", None)
            for name in kwargs.keys() & synonyms.keys():
                kwargs[synonyms[name]] = kwargs.pop(name)
            if out is None:
                return function(*args, **kwargs)
            assert write_out is not None
            return write_out(function, args, kwargs, out)
        except AttributeError as error:
            raise _not_a_tensor(function, args, kwargs, error) from None

    return with_out


def _not_a_tensor(function: Any, args: Any, kwargs: Any, error: AttributeError) -> Exception:
    """torch's TypeError, where it was an argument that lacked what all Values have."""
    if isinstance(error.obj, Value):
        return error
    names = parameter_names(function) or ["input"]
    given = [*((names[min(k, len(names) - 1)], v) for k, v in enumerate(args)), *kwargs.items()]
    for position, (name, value) in enumerate(given, 1):
        among = value if isinstance(value, list | tuple | str) else ()
        if value is error.obj or any(item is error.obj for item in among):
            return TypeError(f"{function.__name__}(): argument '{name}' (position {position}) must "
                             f"be Tensor, not {type(error.obj).__name__}")  # fmt: skip
    return error
