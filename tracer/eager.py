"""Eager execution: runs an op's NumPy evaluation now and records its graph node.

This is the bottom interpreter of the stack in `ir/bind.py`.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..ir.arguments import must_be
from ..ir.bind import install_bottom, state
from ..ir.op import Op
from ..ir.ops import as_eager
from ..ir.ops.linalg_common import LinAlgError
from ..ir.overriding import ASKED, UNASKED, ask
from ..ir.types import (
    FLOAT,
    FROM_NUMPY,
    TensorType,
    bfloat16,
    float32,
    float64,
    no_kernel,
)
from .history import attach_views, history, input_type, record, refresh_view
from .large import Kernels, is_large, limit_of
from .plain import can_be as can_be_plain
from .plain import written
from .promotion import cast_array, common_dtype, convert_operand, round_to, widened_operand
from .quiet import quiet, restore
from .scalars import is_tensor
from .tensor import PLAIN, Tensor

ndarray = np.ndarray
_HALF = {"float16", "bfloat16"}
MANY_CALLS = 32  # of an op, before its short way is written: that takes as long as 70 calls gain


def run(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """Runs `op` on tensors, numbers and None; returns a Tensor or a tuple of them."""
    result = None
    if op.promote is not None:
        if not attrs:
            result = quick(op, inputs)
    else:
        plain = op.plain or first_plain(op)
        result = plain(inputs, attrs)
        if result is None:
            result = run_plain(op, inputs, attrs)
    if result is not None:
        return result
    if ASKED:
        result = ask_operands(op, inputs, attrs)
        if result is not UNASKED:
            return result
    needs_grad = half = False
    mark = None
    arrays = []
    for value in inputs:
        if isinstance(value, Tensor):
            if value._requires_grad or (value._view is not None and value.requires_grad):
                needs_grad = True
            elif value._mark is not None:
                mark = value._mark
            dtype = value.dtype
            if dtype.compute is not dtype.storage:
                half = True
            arrays.append(value._array)
        else:
            arrays.append(value)
    if attrs:
        dtype = attrs.get("dtype")
        if dtype is not None and dtype.compute is not dtype.storage:
            half = True
    if half and not op.moves_data:
        results = run_half(op, inputs, attrs)
    else:
        wanted = None if op.promote is None else common_dtype(op, inputs)
        if wanted is not None:
            arrays = [convert_operand(v, wanted) for v in inputs]
        results = evaluate(op, inputs, arrays, attrs)
    single = type(results) is not tuple
    outputs = [wrap(results)] if single else [wrap(result) for result in results]
    if half and op.moves_data:
        restore_dtypes(op, inputs, outputs, attrs)
    relate(op, inputs, outputs, attrs, needs_grad, mark)
    return outputs[0] if single else tuple(outputs)


def ask_operands(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """See Note [Subclasses]."""
    from .subclasses import function_of

    return ask(function_of(op), inputs, attrs) if state.asking else UNASKED


def first_plain(op: Op) -> Any:
    """What an op keeps as its short way until that is written; see Note [Plain tensors]."""
    op.plain = unwritten_plain(op) if can_be_plain(op) else lambda inputs, attrs: None
    return op.plain


def unwritten_plain(op: Op) -> Any:
    """Sends calls the general way, and when they were many writes the short one."""
    calls = iter(range(MANY_CALLS))

    def unwritten(inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        if next(calls, None) is None:
            op.plain = written(op)
        return None

    return unwritten


def relate(op: Op, inputs: Any, outputs: Any, attrs: Any, needs_grad: bool, mark: Any) -> None:
    """Makes results views of their source, with history or a note why they have none."""
    if op.is_view:
        attach_views(op, inputs[0], outputs, attrs)
    if needs_grad and state.grad_enabled:
        if op.rules or op.node == "NotImplemented":
            record(op, inputs, outputs, attrs)
    elif needs_grad or mark is not None or state.inference:
        set_marks(op, inputs, outputs, mark, needs_grad)


def plain_operands(inputs: tuple[Any, ...]) -> Any:
    """(dtype, arrays, which need gradients, mark) of plain operands, else None.

    Plain: tensors of one floating dtype (beside integers and None) without stale history and
    without notes that their results would need.
    """
    dtype = mark = None
    arrays, wanted = [], []
    for value in inputs:
        if value.__class__ in PLAIN:
            array, needs, view, kind = value._array, value._requires_grad, value._view, value.dtype
            if kind is not dtype:
                if dtype is None and (kind is float32 or kind is float64):
                    dtype = kind
                elif kind.category >= FLOAT:
                    return None
            if value._mark is not None:
                mark = value._mark
                if mark == "inference":
                    return None
            if view is not None and not needs and view.base._requires_grad:
                return None
            arrays.append(array)
            wanted.append(needs)
        elif value is None:
            arrays.append(None)
            wanted.append(False)
        else:
            return None
    return None if dtype is None else (dtype, arrays, wanted, mark)


def run_plain(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """The short way of ops that do not promote and whose floats are plain; None for other calls."""
    plain = plain_operands(inputs)
    if plain is None or state.inference or "dtype" in attrs or op.node == "NotImplemented":
        return None
    dtype, arrays, wanted, mark = plain
    result = evaluate(op, inputs, arrays, attrs)
    several = result.__class__ is tuple
    if result.__class__ is not ndarray and not several:
        result = np.asarray(result)  # a NumPy number
    if not several and result.dtype is dtype.storage:
        outputs: Any = (wrapped(result, dtype),)
    else:
        outputs = tuple(map(wrap, result if several else (result,)))
    if op.is_view:
        attach_views(op, inputs[0], outputs, attrs)
    if True in wanted:
        if state.grad_enabled:
            if op.rules:
                record(op, inputs, outputs, attrs, tuple(wanted))
            return outputs if several else outputs[0]
        mark = state.cut
    if mark is not None:
        for out in outputs:
            out._mark = mark
    return outputs if several else outputs[0]


wrapped = Tensor._wrap


# Classes whose tensors have nothing special about them; Parameter joins when it is defined.
PLAIN_CLASSES = PLAIN


def quick(op: Op, inputs: tuple[Any, ...]) -> Tensor | None:
    """The usual pointwise call: one or two plain float tensors, or one and a number.

    None where anything is out of the ordinary (views, other dtypes, errors): then `run` goes its
    general way, which says what is wrong where something is.
    """
    first = inputs[0]
    if first.__class__ not in PLAIN_CLASSES or len(inputs) > 2:
        return None
    dtype, inference = first.dtype, state.inference
    if (dtype is not float32 and dtype is not float64) or first._view or (
            first._mark and not inference):  # fmt: skip
        return None
    second = inputs[-1]
    kind = type(second)  # a run-time number says that it is a float
    if kind in PLAIN_CLASSES:
        if second.dtype is not dtype or second._view or (second._mark and not inference):
            return None
        wanted = (first._requires_grad, second._requires_grad)
        arrays = (first._array, second._array)
    elif kind is float or kind is int:
        wanted, arrays = (first._requires_grad, False), (first._array, second)
    else:
        return None
    limit = limit_of(op)
    if first._array.size >= limit or (kind in PLAIN_CLASSES and second._array.size >= limit):
        return None
    if len(inputs) == 1:
        wanted, arrays = wanted[:1], arrays[:1]  # type: ignore[assignment]
    needs_grad = True in wanted
    if needs_grad and not state.grad_enabled and not inference:
        return None
    token = quiet()
    try:
        array = op.numpy(*arrays)
    except Exception:
        return None
    finally:
        restore(token)
    if array.__class__ is ndarray and array.dtype is dtype.storage:
        result = Tensor._wrap(array, dtype)  # hashing a NumPy dtype costs as much as a small op
    else:
        result = wrap(array)
    if inference:
        result._mark = "inference"
    elif needs_grad and (op.rules or op.node == "NotImplemented"):
        record(op, inputs, [result], {}, wanted)
    return result


def set_marks(op: Op, inputs: Any, outputs: Any, mark: Any, needs_grad: bool) -> None:
    """Notes on results without history why they have none; see Tensor's `_mark`."""
    if state.inference:
        # a view of a normal tensor is a normal tensor
        if not op.is_view or inputs[0]._mark == "inference":
            mark = "inference"
    elif needs_grad:
        mark = state.cut
    elif mark == "inference" and not op.is_view:
        mark = ("inference_mode()", None)
    for tensor in outputs:
        tensor._mark = mark


def evaluate(op: Op, inputs: Any, arrays: Any, attrs: dict[str, Any]) -> Any:
    token = None if op.moves_data else quiet()  # moving data raises no floating-point errors
    try:
        if not op.moves_data and is_large(op, arrays):
            result = Kernels.forward(op, arrays, attrs)
            if result is not NotImplemented:
                return result
        return op.numpy(*arrays, **attrs)
    except Exception as error:
        raise explain_failure(op, inputs, attrs, error) from None
    finally:
        if token is not None:
            restore(token)


def offered(op: Op, arrays: Any, attrs: dict[str, Any]) -> Any:
    """`evaluate` of arrays alone."""
    return evaluate(op, arrays, arrays, attrs)


def explain_failure(op: Op, inputs: Any, attrs: dict[str, Any], error: Exception) -> Exception:
    """NumPy refused: inference says in torch's words what is wrong."""
    if isinstance(error, LinAlgError):  # it is about values, and in torch's words
        return error
    numbers = () if op.promote is None else (int, float, complex, np.generic)
    for position, (name, value) in enumerate(zip(op.inputs, inputs), 1):
        if value is not None and not isinstance(value, (Tensor, *numbers)):
            return must_be(op.name, name.replace("self", "input"), "Tensor", value, position)
    if any(is_too_big(value) for value in (*inputs, *attrs.values())):
        return OverflowError("int too big to convert")
    if isinstance(error, MemoryError):
        return RuntimeError(f"DefaultCPUAllocator: can't allocate memory: {error}")
    types = [input_type(value) for value in inputs]
    try:
        op.infer_types(types, attrs)
    except Exception as better:
        return better
    if isinstance(error, RuntimeError | np.linalg.LinAlgError):  # already in torch's words
        return error
    if isinstance(error, TypeError) and "ufunc" in str(error):  # NumPy has no loop for the dtype
        dtype = next((t.dtype for t in types if t is not None), attrs.get("dtype"))
        return no_kernel(f"{op.name}_cpu", dtype)
    if isinstance(attrs.get("size"), tuple) and TOO_LARGE.search(str(error)):
        return RuntimeError(f"Storage size calculation overflowed with sizes={[*attrs['size']]}; "
                            "use smaller ones")  # fmt: skip
    if isinstance(error, IndexError | NotImplementedError | TypeError):
        return error
    for name, value in attrs.items():
        if isinstance(value, str) and isinstance(error, ValueError):  # no word is a number
            return must_be(op.name, name, "Number", value)
    listed = ", ".join("none" if t is None else str(t) for t in types)
    return RuntimeError(f"{op.name}({listed}): {error}")


TOO_LARGE = re.compile("array is too big|Maximum allowed dimension exceeded")  # NumPy's words


def is_too_big(value: Any) -> bool:
    """Is it a Python int that 64 bits can't hold?"""
    return isinstance(value, int) and not -(1 << 63) <= value < 1 << 64


def operand_types(op: Op, inputs: Any) -> list[TensorType | None]:
    """The inputs' types; a number takes the dtype that promotion gives it."""
    common = op.promote(inputs) if op.promote is not None else None
    return [
        input_type(v) if common is None or v is None or is_tensor(v) else TensorType(common, ())
        for v in inputs
    ]


def wrap(result: Any) -> Tensor:
    """A NumPy result as a Tensor."""
    if type(result) is Tensor:
        return result
    if type(result) is not ndarray:
        result = np.asarray(result)
    dtype = FROM_NUMPY.get(result.dtype)
    if dtype is None:
        raise TypeError(f"an op returned an array of {result.dtype}, which torch has not")
    return Tensor._wrap(result, dtype)


# --- half precision ------------------------------------------------------------------------------


def run_half(op: Op, inputs: Any, attrs: Any) -> Any:
    """16-bit floats are computed in float32 and rounded once, at the end."""
    common = None if op.promote is None else op.promote(inputs)
    widened = [widened_operand(op, k, value, common) for k, value in enumerate(inputs)]
    results = evaluate(op, inputs, widened, attrs)
    types = op.infer_types(operand_types(op, inputs), attrs)
    listed = results if type(results) is tuple else (results,)
    rounded = tuple(round_to(np.asarray(r), t.dtype) for r, t in zip(listed, types))
    outputs = tuple(Tensor._wrap(r, t.dtype) for r, t in zip(rounded, types))
    return outputs if type(results) is tuple else outputs[0]


def restore_dtypes(op: Op, inputs: Any, outputs: list[Tensor], attrs: dict[str, Any]) -> None:
    """Moved bfloat16 bits come back from NumPy as uint16: give them their name again."""
    dtype = attrs.get("dtype") or next(
        v.dtype for v in inputs if isinstance(v, Tensor) and v.dtype.name in _HALF)  # fmt: skip
    for tensor in outputs:
        if dtype is bfloat16 and tensor.dtype.name == "uint16":
            tensor.dtype = bfloat16


def run_marking(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """`run` in inference mode: another function, so that short ways that mark nothing ask."""
    return run(op, inputs, attrs)


install_bottom(run, run_marking)
as_eager.evaluate = offered

__all__ = ["PLAIN_CLASSES", "cast_array", "history", "input_type", "record", "refresh_view",
           "run"]  # fmt: skip
