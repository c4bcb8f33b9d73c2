"""Functions over lists of tensors: `torch._foreach_add_(averages, params)` and its kin.

Each is its op, for one tensor after the other; compiled functions make few kernels of them. Lists
beside the first go along with it, other operands go to each. Functions whose name ends in `_` write
to the tensors and return the list; others return a tuple.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import linalg
from .tracer.tensor import Tensor

ALONE = (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor",
    "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt",
    "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
WITH_OTHERS = ("add", "addcdiv", "addcmul", "clamp_max", "clamp_min", "div", "lerp", "maximum",
               "minimum", "mul", "pow", "sub")  # fmt: skip
ONLY_WRITING, ONLY_NEW = ("copy_", "zero_"), ("clone", "max", "mm", "norm", "powsum")
# The same of a number, or of tensors
OF_NUMBERS = {"maximum": "clamp_min", "minimum": "clamp_max"}
OF_TENSORS = {name: other for other, name in OF_NUMBERS.items()}
PREFIX = "_foreach_"


def checked(name: str, tensors: Any) -> None:
    """Raises unless there is a list of tensors."""
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(t, Tensor) for t in tensors):
        raise TypeError(f"{PREFIX}{name}(): argument 'self' (position 1) must be tuple of Tensors, "
                        f"not {type(tensors).__name__}; give it a list of tensors")  # fmt: skip
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")


def spread(operand: Any, count: int) -> list[Any]:
    """An operand for each tensor."""
    if not isinstance(operand, (list, tuple)):
        return [operand] * count
    if len(operand) == count:
        return list(operand)
    if all(isinstance(value, Tensor) for value in operand):
        raise RuntimeError("Tensor lists must have the same number of tensors, got "
                           f"{count} and {len(operand)}")  # fmt: skip
    raise RuntimeError("Tensor list must have same number of elements as scalar list.")


def one(name: str, tensor: Any, *others: Any, **options: Any) -> Any:
    """What is done with one tensor and its operands."""
    bare = name.rstrip("_")
    if bare in ("addcdiv", "addcmul"):
        *others, value = others if len(others) == 3 else (*others, options.pop("value", 1))
        return getattr(tensor, name)(*others, value=value)
    if bare in ("norm", "powsum"):
        order = (*others, options.pop("ord", 2))[0]
        if bare == "norm":
            return linalg.vector_norm(tensor, order, **options)
        return (tensor.abs() ** order).sum(**options)
    if others and bare in (*OF_NUMBERS, *OF_TENSORS):
        table = OF_TENSORS if isinstance(others[0], Tensor) else OF_NUMBERS
        name = table.get(bare, bare) + "_" * name.endswith("_")
        if not hasattr(tensor, name):  # maximum_ and minimum_ are no methods
            return tensor.copy_(getattr(tensor, name[:-1])(*others))
    return getattr(tensor, name)(*others, **options)


def named(name: str) -> Callable[..., Any]:
    """The function over lists for an op."""

    def function(tensors: Any, *others: Any, **options: Any) -> Any:
        if name == "pow" and isinstance(tensors, (int, float, complex)):  # a number to powers
            (exponents,) = others
            checked(name, exponents)
            return tuple(tensors**exponent for exponent in exponents)
        checked(name, tensors)
        if name.rstrip("_") in ("addcdiv", "addcmul") and len(others) == 3:
            *others, values = others
            listed = values.tolist() if isinstance(values, Tensor) and values.ndim else values
            others = (*others, listed)
        rows = zip(tensors, *(spread(operand, len(tensors)) for operand in others))
        results = [one(name, *row, **options) for row in rows]
        return tensors if name.endswith("_") else tuple(results)

    function.__name__ = function.__qualname__ = PREFIX + name
    function.__doc__ = f"{PREFIX}{name}(tensors, ...): {name} of each tensor of a list."
    return function


for _name in (*ALONE, *WITH_OTHERS, *(f"{n}_" for n in (*ALONE, *WITH_OTHERS)), *ONLY_WRITING,
              *ONLY_NEW):  # fmt: skip
    globals()[PREFIX + _name] = named(_name)
