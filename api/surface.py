"""What every public name of a tensor is made of: class, ops, derivative, native code.

Nothing is listed by hand: a name leads to the function published under it, and that function's
code to the ops it names, or, where it names none, to those of the functions it calls. Whether
gradients flow is tried.
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterator
from typing import Any

from .codegen.coverage import HOST, how
from .ir.op import TABLE, Op
from .ir.types import int64
from .ir.value import FUNCTIONS
from .quiet_code import codes_in
from .tracer.creation import ones, zeros
from .tracer.ranges import arange
from .tracer.tensor import Tensor

# The class of what is defined in a file, by how the file's name begins; the rest is "core".
_CLASSES = (("absent", "out"), ("linalg_addends", "core"), ("linalg", "linalg"),
            ("gamma", "special"), ("bessel", "special"), ("special", "special"),
            ("error_functions", "special"),
            ("complexes", "complex"), ("stft", "complex"), ("strided", "storage/strided"),
            ("memory", "storage/strided"), ("reshaping", "storage/strided"),
            ("random", "random"))  # fmt: skip
_DEPTH = 4  # calls of calls that are followed


def rows() -> list[tuple[str, str, str, str]]:
    """(name, class, differentiable, how it is compiled) of each public name of Tensor."""
    return [row(name) for name in dir(Tensor) if not name.startswith("_")]


def row(name: str) -> tuple[str, str, str, str]:
    """The facts of one name; "-" where no op is run."""
    function = function_of(name)
    ops = ops_of(function) if function else set()
    return name, class_of(name, function), differentiable(name, ops), compiled(ops)


def differentiable(name: str, ops: set[Op]) -> str:
    """Does it pass gradients on? It is tried; where no trial call fits it, its ops say so."""
    plain = name[:-1] if name.endswith("_") else name
    found = gradient_flows(plain if plain in FUNCTIONS else name)
    if not ops and (not found or plain != name):
        return "-"
    if found is None:
        found = any(op.differentiable for op in ops)
    return "yes" if found else "no"


def gradient_flows(name: str) -> bool | None:
    """Called on a tensor with history, does a gradient come back? None: no trial call fits."""
    for needed in (True, False):
        for arguments in _TRIALS:
            x = ones(3, 3, requires_grad=needed) * 0.5
            try:
                found = tried(x, name, arguments(x))
            except Exception:  # this trial does not fit
                continue
            return needed and comes_back(found)
    return None


def tried(x: Tensor, name: str, arguments: Any) -> tuple[Any, ...]:
    """What a name gives: an attribute, or the results of a call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = getattr(x, name)
        if callable(getattr(Tensor, name)):
            found = found(*arguments)
    return found if isinstance(found, tuple) else (found,)


def comes_back(results: tuple[Any, ...]) -> bool:
    """Can one of the results be differentiated?"""
    outputs = [t for t in results if isinstance(t, Tensor) and t.requires_grad]
    try:
        for output in outputs:
            output.sum().abs().backward(retain_graph=True)
    except (RuntimeError, NotImplementedError):  # torch records it, but has no formula
        return False
    return bool(outputs)


# The arguments of trial calls on a matrix: nothing, a tensor, a dimension, a size, an index ...
_TRIALS: tuple[Any, ...] = (
    lambda x: (), lambda x: (x,), lambda x: (0,), lambda x: (x, x), lambda x: (0, 1),
    lambda x: ((3, 3),), lambda x: (0, zeros(3, 3, dtype=int64)), lambda x: (0, arange(3)),
    lambda x: (0, zeros(3, 3, dtype=int64), x), lambda x: (0, arange(3), x),
    lambda x: (x > 0,), lambda x: (x > 0, 1.0), lambda x: (x > 0, x), lambda x: (x[0],),
    lambda x: (x[0], x[0]), lambda x: (0, 0, 3), lambda x: (0, 0, 1, 1),
    lambda x: ((arange(3),), x), lambda x: (2, 0, 1.0), lambda x: (x[None], x[None]),
    lambda x: (0, arange(3), 1.0), lambda x: (float,), lambda x: (x, max), lambda x: (x, x, max),
    lambda x: (x[0], x), lambda x: ((3, 3), (3, 1)),
)  # fmt: skip


def compiled(ops: set[Op]) -> str:
    """How these ops run in a compiled graph."""
    ways = {how(op) == HOST for op in ops}
    return "-" if not ways else "native" if ways == {False} else (
        "fallback" if ways == {True} else "native and fallback")  # fmt: skip


def function_of(name: str) -> Any:
    """The function behind a name, without what publishing wraps around it."""
    plain = name[:-1] if name.endswith("_") and name[:-1] in FUNCTIONS else name
    if plain in FUNCTIONS and (plain == name or FUNCTIONS[plain].inplace):
        return FUNCTIONS[plain].call
    found = getattr(Tensor, name)
    return found.fget if isinstance(found, property) else found


def class_of(name: str, function: Any) -> str:
    """alias, linalg, special, complex, storage/strided, random, core; out: it only explains."""
    same = [other for other, entry in FUNCTIONS.items() if entry.call is function]
    if same and name not in (same[0], same[0] + "_"):
        return "alias"
    ops = ops_of(function) if isinstance(function, types.FunctionType) else set()
    if any(op.random for op in ops):
        return "random"
    stem = getattr(function, "__module__", "").rpartition(".")[2]
    if hasattr(function, "op"):  # made by the constructor of its kind, elsewhere
        stem = _file_of(function.op)
    return next((kind for start, kind in _CLASSES if stem.startswith(start)), "core")


def _file_of(op: Op) -> str:
    """The file that defines an op, read off a function of its entry."""
    makers = [op.numpy, *(rule.function for rule in op.rules.values())]
    modules = [getattr(maker, "__module__", None) or "" for maker in makers]
    return next((m.rpartition(".")[2] for m in modules if ".ir.ops." in m), "")


def ops_of(function: Any, depth: int = _DEPTH, seen: set[int] | None = None) -> set[Op]:
    """The ops that a function's code names, or else those of what it calls."""
    seen = set() if seen is None else seen
    if not isinstance(function, types.FunctionType) or id(function) in seen:
        return set()
    seen.add(id(function))
    if isinstance(getattr(function, "op", None), Op):
        return {function.op}
    named = list(_named(function))
    ops = {value for value in named if isinstance(value, Op)}
    if not ops and depth:
        for value in named:
            ops |= ops_of(value, depth - 1, seen)
    return ops


def _named(function: types.FunctionType) -> Iterator[Any]:
    """Ops and functions that a function refers to: globals, closures, methods, table entries.

    Of functions those of the catalogue and of its own file count: others are machinery.
    """
    for cell in function.__closure__ or ():
        if isinstance(cell.cell_contents, Op | types.FunctionType):
            yield cell.cell_contents
    for code in codes_in(function.__code__):
        for word in code.co_names:
            value = function.__globals__.get(word)
            if isinstance(value, Op) or _near(value, function):
                yield value
            elif value is None and word in FUNCTIONS:
                yield FUNCTIONS[word].call
        if "TABLE" in code.co_names:
            yield from (TABLE[c] for c in code.co_consts if isinstance(c, str) and c in TABLE)


def _near(value: Any, function: types.FunctionType) -> bool:
    """Is it a function of the catalogue, or of the same file?"""
    return isinstance(value, types.FunctionType) and (
        ".ir.ops." in value.__module__ or value.__module__ == function.__module__
    )
