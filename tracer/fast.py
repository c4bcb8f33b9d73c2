"""The short way through eager execution, for calls that are plain.

Note [Plain calls]
    A pointwise op without attributes on tensors of one dtype, float32 or float64, or on a tensor
    and a Python number, with nothing on top of eager execution: operands need no promotion and no
    widening, results no inference. That is most calls of most programs, and with small tensors the
    general way (`eager.run`) costs several times the arithmetic. So for each op functions are
    written out here from one template, with all that is fixed looked up once. What is not plain, or
    fails, takes the general way, which alone knows the rules; a test compares the two over the
    catalogue.
"""

from __future__ import annotations

import operator
import sys
import warnings
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np

from ..ir.bind import state
from ..ir.op import Op
from ..ir.ops.operators import OPERATORS
from ..ir.places import USERS_FILES, user_place
from ..ir.texts import code_of
from ..ir.types import TensorType, bool_, float32, float64
from ..ir.value import FUNCTIONS, MISSING, Value
from . import hooks
from .eager import history, run
from .fast_text import BINARY, EDGE, EVALUATE, HEADS, IS_PLAIN, RECORD, UNARY, WRITE
from .large import limit_of
from .quiet import CALM, quietly
from .readers import readers
from .saved import SavedOutput, plan_of, save_values
from .storage import Storage
from .tape import ANOMALY, accumulator_of, next_sequence, node_class
from .tensor import PLAIN, Tensor


def leaf_edge(leaf: Tensor) -> Any:
    """The edge of a leaf that is no view."""
    facts = leaf._leaf
    if facts is not None and facts.accumulator is not None:
        node = facts.accumulator()
        if node is not None:
            return node, 0
    return accumulator_of(leaf), 0


def scaled(value: Any, alpha: Any) -> Any:
    """`value * alpha`."""
    return quietly(operator.mul, value, alpha)


def tensor_types(*operands: Any) -> list[Any]:
    return [TensorType(v.dtype, v._array.shape) if isinstance(v, Tensor)
            else TensorType(float64, ()) for v in operands]  # fmt: skip


# --- writing the functions out --------------------------------------------------------------------


def _indent(text: str, more: int) -> str:
    return "".join(" " * more + line for line in text.splitlines(keepends=True))


def _space(op: Op, slow: Any) -> dict[str, Any]:
    """The names a written function uses."""
    return {
        "ALPHA": {"alpha"}, "ANOMALY": ANOMALY, "CALM": CALM, "LARGE": limit_of(op),
        "NOTHING": MISSING, "NO_ATTRS": {}, "PLAIN": PLAIN, "SavedOutput": SavedOutput,
        "Storage": Storage, "Tensor": Tensor, "TensorType": TensorType, "USERS_FILES": USERS_FILES,
        "readers": readers, "__name__": __name__, "asarray": np.asarray, "bool_": bool_,
        "evaluate": op.ufunc or op.numpy,
        "float32": float32, "float64": float64, "getframe": sys._getframe, "history": history,
        "hooks": hooks.active, "leaf_edge": leaf_edge, "ndarray": np.ndarray,
        "new": object.__new__, "next_sequence": next_sequence, "quietly": quietly, "run": run,
        "save_values": save_values, "scaled": scaled, "slow": slow, "state": state,
        "tensor_types": tensor_types, "user_place": user_place, "warnings": warnings,
    }  # fmt: skip


def _plan(op: Op, wanted: tuple[bool, ...]) -> Any:
    """The plan of a call that needs these gradients; None if there are not rules for all."""
    if not op.rules:
        return None
    plan = plan_of(op, wanted)
    return plan if plan.needs == wanted else None


def _evaluate(op: Op, operands: str, names: str, needs: str) -> str:
    """The lines that compute; results of comparisons are bools and need no gradient."""
    compares = op.infer_types([TensorType(float32, ())] * len(op.inputs), {})[0].dtype is bool_
    return EVALUATE.format(operands=operands, names=names, dtype="bool_" if compares else "dtype",
                            needs=needs if op.rules else "False")  # fmt: skip


def unary(op: Op, slow: Any) -> Any:
    """`slow` with the short way before it."""
    text = UNARY.format(
        evaluate=_evaluate(op, "x._array", "x", "x._requires_grad"),
        edge_x=EDGE.format(v="x"),
        record=RECORD.format(node="Node"),
        plain_x=IS_PLAIN.format(v="x"),
    )
    space = _space(op, slow)
    space["Node"] = node_class(op, {}, (_SAMPLE,)) if op.rules else None
    space["plan"] = _plan(op, (True,))
    return _made(text, space, op.name)


def binary(op: Op, slow: Any) -> Any:
    """`slow` with the short way before it."""
    text = BINARY.format(
        head=HEADS[bool(op.attributes)],
        evaluate=_evaluate(op, "a, b", "x, y", "x._requires_grad or y._requires_grad"),
        evaluate_number=_evaluate(op, "x._array, y", "x, y", "x._requires_grad"),
        edge_x=EDGE.format(v="x"),
        edge_x_deep=_indent(EDGE.format(v="x"), 4),
        edge_y_deep=_indent(EDGE.format(v="y"), 4),
        edge_y_deeper=_indent(EDGE.format(v="y"), 8),
        record=RECORD.format(node="Node"),
        record_number=RECORD.format(node="NumberNode"),
        plain_x=IS_PLAIN.format(v="x"),
        plain_y=IS_PLAIN.format(v="y"),
    )
    space = _space(op, slow)
    space["Node"] = node_class(op, {}, (_SAMPLE, _SAMPLE)) if op.rules else None
    space["NumberNode"] = node_class(op, {}, (_SAMPLE, 1.0)) if op.rules else None
    space["plan_both"] = _plan(op, (True, True))
    space["plan_left"] = _plan(op, (True, False))
    space["plan_right"] = _plan(op, (False, True))
    return _made(text, space, op.name, (MISSING,))


def writing(op: Op, slow: Any) -> Any:
    """An in-place method with the short way before it."""
    return _made(WRITE, _space(op, slow), op.name, (MISSING,))


def _made(text: str, space: dict[str, Any], name: str, defaults: Any = None) -> Any:
    """The function of a text. A few texts do for all ops, which differ in what is in `space`."""
    made = FunctionType(
        code_of(text, "<wengert fast>").replace(co_name=name), space, name, defaults
    )
    made.__qualname__ = name
    return made


_SAMPLE = Tensor._wrap(np.zeros(1, np.float32), float32)


# --- where they are put --------------------------------------------------------------------------


def is_fast(op: Any) -> bool:
    """May plain calls of the op take the short way?"""
    return (
        isinstance(op, Op)
        and op.kind == "pointwise"
        and op.promote is not None
        and len(op.inputs) <= 2
        and op.variadic is None
        and not op.optional
        and op.node != "NotImplemented"
    )


def install() -> None:
    """Gives Tensor the short way of operators and of methods that are one op."""
    Tensor.zero_ = zero_  # type: ignore[method-assign]
    for name, op in OPERATORS.items():
        if is_fast(op):
            setattr(Tensor, name, _named(op, getattr(Value, name), name))
    for key, function in FUNCTIONS.items():
        op = getattr(function.call, "op", None)
        if not function.method or not is_fast(op) or getattr(function.call, "strict", False):
            continue
        made = _named(op, getattr(Value, function.name), function.name)
        setattr(Tensor, function.name, made)
        FUNCTIONS[key] = replace(function, short=made)
        if function.inplace and len(op.inputs) == 2 and isinstance(op.ufunc or op.numpy, np.ufunc):
            name = function.name + "_"
            setattr(Tensor, name, _renamed(writing(op, getattr(Value, name)), name))


def zero_(self: Any) -> Any:
    """Sets every element to zero."""
    if (
        state.top is run
        and self._view is None
        and self._mark != "inference"
        and self.__class__ in PLAIN
        and self._array.flags.writeable
        and not readers
        and not (self._requires_grad and state.grad_enabled)
    ):
        self._array.fill(0)
        self.storage_.note_write(user_place())
        return self
    return _general_zero(self)


_general_zero = Tensor.zero_


def _renamed(function: Any, name: str) -> Any:
    function.__name__ = function.__qualname__ = name
    return function


def _named(op: Op, slow: Any, name: str) -> Any:
    made = unary(op, slow) if len(op.inputs) == 1 else binary(op, slow)
    made.__doc__ = slow.__doc__
    return _renamed(made, name)


install()
