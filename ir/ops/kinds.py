"""Constructors per kind of op: they fill the regular parts of an entry.

`pointwise`, `reduction`, `view` return the Op; unary and binary pointwise ops are published
(method, function, in-place twin) at once, since nothing about them is special.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arguments import must_be, plain_scalar
from ..op import TABLE, Op, Reduce, Scalar, View, define
from ..types import (
    BOOL,
    FLOAT,
    DType,
    TensorType,
    bool_,
    broadcast_shapes,
    default_dtype,
    from_numpy_dtype,
    int64,
    no_kernel,
    result_type,
    scalar_dtype,
)
from ..value import Value, public
from .layouts import row_major


def to_float(operands: Any) -> DType:
    """Common dtype; integers become the default float."""
    dtype = result_type(operands)
    return dtype if dtype.category >= FLOAT else default_dtype()


PROMOTIONS: dict[str, Callable[[Any], DType]] = {
    "common": result_type,
    "float": to_float,
    "compare": result_type,
}


def pointwise(
    name: str,
    signature: str,
    *,
    numpy: Callable[..., Any],
    scalar: Callable[..., Any] | None = None,
    vjp: dict[str, Callable[..., Any]] | None = None,
    promote: str = "common",
    publish: bool = True,
    inplace: bool = True,
    spaces: str = "torch",
    names: tuple[str, ...] = (),
    method: bool = True,
    numbers: str = "self other",
    lower: Any = None,
    out: str = "",
    **facts: Any,
) -> Op:
    """An elementwise op with broadcasting; `promote` is "common", "float" or "compare".

    `numbers` lists the inputs that may be Python numbers in the public function. `out=` tensors of
    ops that promote may be of another dtype, those of ops that keep their input's may not.
    """
    common = PROMOTIONS[promote]

    def infer(*types: Any, **attrs: Any) -> TensorType:
        present = [t for t in types if t is not None]
        dtype = bool_ if promote == "compare" else common(present)
        return TensorType(dtype, broadcast_shapes(*(t.shape for t in present)))

    op = define(
        name,
        signature,
        numpy=numpy,
        infer=infer,
        vjp=vjp,
        lower=lower or (Scalar(scalar) if scalar else None),
        promote=common,
        kind="pointwise",
        **facts,
    )
    if publish and len(op.inputs) <= 2 and not op.attributes:
        function = unary(op) if len(op.inputs) == 1 else binary(op, numbers)
        promotes = len(op.inputs) > 1 or promote == "float"
        public(name, *names, spaces=spaces, method=method, inplace=inplace,
               out=out or ("cast" if promotes else "exact"))(function)  # fmt: skip
    return op


def unary(op: Op) -> Callable[..., Any]:
    """The public function of an op of one input."""

    def function(input: Any) -> Any:
        require_value(op.name, input)
        return op(input)

    function.op = op  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = f"{op.name}(input): elementwise {op.name.replace('_', ' ')}."
    return function


def binary(op: Op, numbers: str) -> Callable[..., Any]:
    """The public function of an op of two inputs; `numbers` lists those that may be numbers.

    With the word "alone" there, both may be.
    """
    alone = "alone" in numbers.split()
    strict = [(k, word) for k, (name, word) in enumerate(zip(op.inputs, ("input", "other")))
              if name not in numbers.split()]  # fmt: skip

    def function(input: Any, other: Any) -> Any:
        for position, word in strict:
            require_value(op.name, (input, other)[position], word, position)
        return op(*operands(op.name, input, other, alone=alone))

    function.op = op  # type: ignore[attr-defined]
    function.strict = bool(strict)  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = f"{op.name}(input, other): elementwise, with broadcasting and promotion."
    return function


def refuse(name: str, kinds: str, *arrays: Any) -> None:
    """torch's error for dtypes a kernel lacks; `kinds` are NumPy's letters, e.g. "cb"."""
    for array in arrays:
        dtype = getattr(array, "dtype", None)
        if dtype is not None and dtype.kind in kinds:
            raise no_kernel(f"{name}_cpu", from_numpy_dtype(dtype))


def refusing(name: str, kinds: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of arrays, for all dtypes but those whose letter is in `kinds`."""

    def evaluate(*arrays: Any) -> Any:
        refuse(name, kinds, *arrays)
        return function(*arrays)

    return evaluate


def cast_number(value: Any, dtype: Any) -> Any:
    """A Python number in an array's dtype, wrapped or cut off as C does."""
    return np.asarray(value).astype(dtype)[()]


def no_derivative(message: str) -> Callable[..., Any]:
    """A rule for an input that torch records but cannot differentiate.

    The error has a mark: to make such a derivative is no fault of the compiler's.
    """

    def rule(grad: Any) -> Any:
        # torch's engine says "derivative for aten::f ...", a generated rule "the derivative ..."
        kind = RuntimeError if message.startswith("derivative") else NotImplementedError
        error = kind(f"{message}; use no_grad() or detach() around it")
        error.no_derivative = True  # type: ignore[attr-defined]
        raise error

    return rule


def require_value(name: str, value: Any, word: str = "input", position: int = 0) -> None:
    """torch's TypeError for an argument that must be a tensor."""
    if not isinstance(value, Value):
        raise must_be(name, word, "Tensor", value, position + 1)


NUMBERS = (int, float, complex)


def operands(name: str, *values: Any, alone: bool = False) -> tuple[Any, ...]:
    """Checks that operands are Values or numbers, with one Value at least unless `alone`."""
    found = False
    for position, value in enumerate(values):
        if isinstance(value, Value):
            found = True
        elif not isinstance(value, NUMBERS):
            values = _from_foreign(name, values, position)
            found = found or isinstance(values[position], Value)
    if not found:
        if alone:
            full = TABLE["full"]
            return tuple(full(size=(), fill_value=v, dtype=scalar_dtype(v)) for v in values)
        raise must_be(name, "input", "Tensor", values[0], 1)
    return values


def _from_foreign(name: str, values: tuple[Any, ...], position: int) -> tuple[Any, ...]:
    """NumPy scalars count as numbers; anything else is refused."""
    value = values[position]
    if isinstance(value, np.generic):
        return (*values[:position], plain_scalar(value), *values[position + 1 :])
    word = "input" if position == 0 else "other"
    raise must_be(name, word, "Tensor", value, position + 1)


def reduced_shape(shape: tuple[int, ...], dim: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    for d in dim:
        if not 0 <= d < len(shape):
            raise IndexError(f"dimension {d} is not one of {len(shape)}")
    if keepdim:
        return tuple(1 if k in dim else size for k, size in enumerate(shape))
    return tuple(size for k, size in enumerate(shape) if k not in dim)


def reduction(
    name: str,
    signature: str,
    *,
    numpy: Callable[..., Any],
    combine: Callable[..., Any] | None = None,
    start: Any = None,
    dtype: DType | None = None,
    lower: Any = None,
    **facts: Any,
) -> Op:
    """A reduction over `dim` (sorted, non-negative); `dtype` is the result's if not the input's."""

    def infer(self: TensorType, *, dim: tuple[int, ...], keepdim: bool = False, **_: Any) -> Any:
        return TensorType(dtype or self.dtype, reduced_shape(self.shape, dim, keepdim))

    if lower is None and combine is not None:
        lower = Reduce(combine, start)
    return define(name, signature, numpy=row_major(numpy), infer=infer, lower=lower,
                  kind="reduction", **facts)  # fmt: skip


def view(name: str, signature: str, **facts: Any) -> Op:
    """Data movement without arithmetic whose result shares memory with its first input."""
    facts.setdefault("lower", View())
    facts.setdefault("is_view", True)
    return define(name, signature, moves_data=True, kind="view", **facts)


def accumulate_type(dtype: DType) -> DType:
    """What torch sums integers and bools in."""
    return int64 if dtype.category < FLOAT else dtype


def is_number(value: Any) -> bool:
    return isinstance(value, NUMBERS)


__all__ = ["BOOL", "accumulate_type", "is_number", "operands", "pointwise", "reduced_shape",
           "reduction", "to_float", "view"]  # fmt: skip
