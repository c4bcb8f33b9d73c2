"""Calls that cannot be made, in the words of torch's argument parser.

Note [Overloads]
    torch's functions have one signature or several. With one, its parser says which argument is
    missing, too many, unknown or of the wrong class. With several, it does so where the number of
    arguments leaves one of them, and otherwise calls the whole combination invalid. So `OVERLOADS`
    tells how many arguments each signature takes; `out=` counts as one, which methods do not have.

Nothing here is asked before a call has failed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .arguments import kind_of, must_be
from .signatures import keyword_only, parameter_names, positional_names, unwrapped
from .value import MISSING, Value

# (fewest arguments)-(most), of each signature; "o": one of them is `out=`; "old": ones that torch
# still has, but tells nobody to use
_NAMES = {
    "2-3o 2-3o": "fmod eq ne not_equal lt less le less_equal gt greater ge greater_equal copysign "
                 "clamp_min clamp_max",
    "2-3o 2-2 2-3o": "remainder bitwise_and bitwise_or bitwise_xor bitwise_left_shift "
                     "bitwise_right_shift",
    "2-3o 2-3o 2-3o": "xlogy pow float_power",
    "2-2 2-2": "fill hsplit vsplit dsplit",
    "2-3 2-3": "rsub",
    "2-3 2-3 2-3": "tensor_split",
    "2-3 1-3": "trapezoid trapz cumulative_trapezoid",
    "2-3o 2-2": "multiply true_divide floor_divide",
    "2-3o 3-4o": "div mm bmm",
    "2-3o 3-4o 3-3 2-2": "divide",
    "2-4o 2-3": "subtract",
    "2-4o old": "add sub",
    "2-4 1-4 1-2": "var_mean std_mean",
    "2-5o 1-5 1-2": "var std",
    "2-5o 1-4o": "sort",
    "2-5 1-3": "argsort",
    "2-5 2-5 2-5": "histogramdd",
    "2-5o 1-6o": "histogram",
    "2-5o 2-5o 2-5o": "isin",
    "2-5o 2-4": "bucketize",
    "2-6o 2-6o": "quantile nanquantile",
    "2-7o 2-7o": "searchsorted",
    "2-7 2-7": "conv1d conv2d conv3d",
    "1-1 2-2 2-2": "squeeze",
    "1-1 2-4o": "median nanmedian",
    "1-1 3-4o 3-3 3-3 3-3": "where",
    "1-2 2-2": "count_nonzero",
    "1-2 2-5o": "sum prod",
    "1-2o 1-4o 2-4o": "any all",
    "1-2o 2-3o": "round",
    "1-2o 2-3o 2-4o": "max min",
    "1-2 2-4 2-4": "repeat_interleave",
    "1-3o 2-3": "bernoulli",
    "1-3o 2-2": "nonzero",
    "1-3o 2-5o": "mean",
    "1-3o 2-4o": "nuclear_norm",
    "1-4o 1-4o": "clamp clip",
    "3-3 3-3": "movedim moveaxis masked_fill",
    "3-4o 3-4o": "lerp",
    "3-5o old": "addcmul addcdiv",
    "4-4 4-4": "narrow index_fill",
    "3-6o 4-7o old": "addmm baddbmm",
    "3-6o old": "addmv addr addbmm",
    "5-5 5-5": "fake_quantize_per_tensor_affine",
    "5-6o 4-5o 5-6o 4-5o": "scatter",
}  # fmt: skip
OVERLOADS = {name: counts for counts, names in _NAMES.items() for name in names.split()}


def refusal(name: str, function: Callable[..., Any], first: int, args: Any, kwargs: Any,
            error: Exception) -> Exception:  # fmt: skip
    """torch's error for a call of `function`, known as `name`, that raised `error`.

    `first` is the position torch gives the first argument: 1 for functions and 0 for methods, whose
    first argument, the tensor, is not counted.
    """
    args = tuple(value for value in args if value is not MISSING)
    wrong = _unbound(name, function, first, args, kwargs) or _not_a_tensor(
        name, function, first, args, kwargs, error) or _not_a_dim(
        name, function, first, args, kwargs, error)  # fmt: skip
    if wrong is None and not hasattr(error, "wanted"):
        return error
    count = len(args) + len(kwargs) - (not first)
    if len(_that_take(name, first, count)) == 1:
        return wrong or error
    got = ", ".join([*map(_worded, args[not first :]),
                     *(f"{key}={_worded(value)}" for key, value in kwargs.items())])  # fmt: skip
    return TypeError(f"{name}() received an invalid combination of arguments - got ({got}), but "
                     f"expected one of the forms of {_form(name, function, first)}: "
                     f"{wrong or error}")  # fmt: skip


def _that_take(name: str, first: int, count: int) -> list[str]:
    """The signatures that take so many arguments; see Note [Overloads]."""
    overloads = OVERLOADS.get(name.removesuffix("_"), "").split()
    if len(overloads) < 2:
        return [""]
    taking = []
    for one in overloads:
        if one == "old":
            continue
        least, most = map(int, one.rstrip("o").split("-"))
        shift = 0 if first else 1
        if least - shift <= count <= most - shift - (shift and one.endswith("o")):
            taking.append(one)
    return taking


def _unbound(name: str, function: Any, first: int, args: Any, kwargs: Any) -> TypeError | None:
    """What is wrong with the number and the names of the arguments, in the order torch looks."""
    inner = unwrapped(function)
    names, optional = list(positional_names(function)), len(inner.__defaults__ or ())
    needed = names[: len(names) - optional]
    if inner.__code__.co_flags & 4:  # takes any number
        return None
    own = 0 if first else 1
    if len(args) > len(names):
        least, most = len(needed) - own, len(names) - own
        span = f"from {least} to {most}" if optional else str(most)
        return TypeError(f"{name}() takes {span} positional argument{'s' * (span != '1')} but "
                         f"{len(args) - own} were given")  # fmt: skip
    if (wrong := _misplaced(name, function, first, args)) is not None:
        return wrong
    missing = [n for n in needed[len(args) :] if n not in kwargs]
    words, defaults = keyword_only(function)
    missing += [word for word in words if word not in defaults and word not in kwargs]
    if missing:
        listed = ", ".join(f'"{n}"' for n in missing)
        return TypeError(f"{name}() missing {len(missing)} required positional arguments: {listed}")
    for key in () if inner.__code__.co_flags & 8 else kwargs:
        if key not in parameter_names(function):
            return TypeError(f"{name}() got an unexpected keyword argument '{key}'")
        if key in names[: len(args)]:
            return TypeError(f"{name}() got multiple values for argument '{key}'")
    return None


def _not_a_tensor(name: str, function: Any, first: int, args: Any, kwargs: Any,
                  error: Exception) -> Exception | None:  # fmt: skip
    """torch's error, where it was an argument that lacked what all Values have."""
    from .arguments import not_a_tensor

    if not isinstance(error, AttributeError) or isinstance(error.obj, Value):
        return None
    for argument, value, position in _given(function, first, args, kwargs):
        among = value if isinstance(value, list | tuple | str) else ()
        if value is error.obj or any(item is error.obj for item in among):
            return not_a_tensor(name, argument, error.obj, position)
    return None


def _not_a_dim(name: str, function: Any, first: int, args: Any, kwargs: Any,
               error: Exception) -> Exception | None:  # fmt: skip
    """torch's error, where Python found that a dimension is no number."""
    if "cannot be interpreted as an integer" not in (words := str(error)) and (
        "not supported between instances" not in words):  # fmt: skip
        return None
    for argument, value, position in _given(function, first, args, kwargs):
        if argument == "dim" and isinstance(value, str | float):
            return must_be(name, argument, "int", value, position)
    return None


def _given(function: Any, first: int, args: Any, kwargs: Any) -> list[tuple[str, Any, int]]:
    """The arguments: names, values and positions."""
    names = positional_names(function) or ("input",)
    given = [*((names[min(k, len(names) - 1)], v) for k, v in enumerate(args)), *kwargs.items()]
    return [(name, value, position) for position, (name, value) in enumerate(given, first)]


def _misplaced(name: str, function: Any, first: int, args: Any) -> TypeError | None:
    """torch's error for the first of `args` that cannot stand for a tensor, or for an int."""
    kinds = unwrapped(function).__annotations__
    for argument, value, position in _given(function, first, args, {}):
        if argument in ("input", "self"):
            if value is None or isinstance(value, str):
                return must_be(name, argument, "Tensor", value, position)
        elif kinds.get(argument) == "int":
            if not hasattr(value, "__index__") or _has_dims(value):
                return must_be(name, argument, "int", value, position)
        elif argument == "dim" and (isinstance(value, str) or _has_dims(value)):
            return must_be(name, argument, "int", value, position)
    return None


def _has_dims(value: Any) -> bool:
    """Is it a tensor or an array of several elements?"""
    return getattr(value, "shape", ()) != ()


def _worded(value: Any) -> str:
    """The class of an argument as torch's parser names it."""
    return "Tensor" if isinstance(value, Value) else kind_of(value)


def _form(name: str, function: Any, first: int) -> str:
    """The function as one writes its definition."""
    return f"{name}({', '.join(parameter_names(function)[not first :])})"
