"""Calls that came before: a public function seen with such arguments runs as one written function.

Note [Familiar calls]
    A public function checks its arguments, then runs ops whose attributes follow from shapes,
    dtypes, strides and numbers. With small tensors that is most of its time, and a program makes
    the same calls thousands of times. So calls are described (`describe`): what the function could
    have looked at, but no elements. When a description comes for the third time, the function is
    watched while it runs; what it did is written as straight code on arrays that makes the same
    NumPy calls in the same order, and the same nodes, views and saved values
    (`familiar_calls_text.py`). Further calls like it run that code.

    What is watched must depend on nothing else: functions that look at elements (but for checks by
    `check_elements`, which are repeated), write, draw, warn or make tensors in other ways than by
    ops are left as they are. So are calls that fail: the general way says what is wrong.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

from ..ir import ops, value
from ..ir.bind import interpreting, state
from ..ir.types import Defaults, DType
from ..ir.value import FUNCTIONS, Value
from .eager import run, run_marking
from .familiar_calls_text import Step, write
from .hooks import active
from .quiet import CALM, quietly
from .tape import ANOMALY
from .tensor import PLAIN, Tensor

OFTEN = 3  # a call that comes so often is written out
MOST_KNOWN = 512  # descriptions that are kept for one function
LONGEST_PAUSE = 1 << 12
MOST_STEPS = 100  # ops of one call
NEVER = 1 << 30  # a count that says: this one cannot be written

_ATOMS = {int, bool, str, type(None), type(...), DType}
_LISTS = (tuple, list)


class Known:
    """What one function's calls looked like: how often each came, or the code for it."""

    __slots__ = ("calls", "pause", "wait")

    def __init__(self) -> None:
        self.calls: dict[Any, Any] = {}
        self.pause = self.wait = 0  # calls that are not looked at, at a time and from now on

    def meet(self, key: Any, count: Any, tensors: list[Tensor], function: Any) -> Any:
        """Makes a call that has no code yet, and writes it when it comes often."""
        if count == OFTEN:
            watch = Watch(tensors)
            with interpreting(watch):
                result = function()
            self.calls[key] = (not is_marked(result) and write(watch, result)) or NEVER
            self.pause = 0
            return result
        if len(self.calls) >= MOST_KNOWN:  # looking led to nothing
            self.calls.clear()
            self.wait = self.pause = min(2 * self.pause + 1 << 4, LONGEST_PAUSE)
        self.calls[key] = count + 1
        return function()


def recalled(function: Any) -> Any:
    """`function` with the code of familiar calls before it."""
    known = Known()

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        top = state.top
        if (top is not run and top is not run_marking) or known.wait or ANOMALY or active.saved:
            if known.wait:
                known.wait -= 1
            return function(*args, **kwargs)
        tensors: list[Tensor] = []
        key = key_of(args, kwargs, tensors)
        if key is None:
            return function(*args, **kwargs)
        found = known.calls.get(key, 0)
        if found.__class__ is not int:
            if warnings.filters[0] is CALM:  # see Note [Calm]
                result = found(*tensors)
            else:
                result = quietly(found, *tensors)
            if result is not None:
                return result
        elif found is not NEVER:
            return known.meet(key, found, tensors, lambda: function(*args, **kwargs))
        return function(*args, **kwargs)

    return call


# --- what a call looks like ----------------------------------------------------------------------


def key_of(args: Any, kwargs: Any, tensors: list[Tensor]) -> Any:
    """All that a function may ask of its arguments but elements; None if they are not plain.

    The tensors among them are put into `tensors`, in order.
    """
    key: list[Any] = [state.grad_enabled, state.inference, Defaults.float]
    if not describe(args, key, tensors):
        return None
    if kwargs:
        if "out" in kwargs:
            return None
        key += kwargs
        if not describe(kwargs.values(), key, tensors):
            return None
    count = len(tensors)
    if count == 2:
        key.append(tensors[0] is tensors[1])
    elif count > 2:
        ids = [id(t) for t in tensors]
        if len(set(ids)) < count:
            key.append(tuple(map(ids.index, ids)))
    return tuple(key)


def is_marked(value: Any) -> bool:
    """Is it what conj() gives? Written code makes tensors without attributes."""
    return value.__class__ in PLAIN and value.dtype.is_complex and bool(value.__dict__)


def describe(values: Any, key: list[Any], tensors: list[Tensor]) -> bool:
    """Adds to `key` what the values are; False if one is out of the ordinary."""
    for item in values:
        kind = item.__class__
        if kind in PLAIN:
            view = item._view
            based = None
            if view is not None:
                if view.seen != item._storage.version:
                    return False
                based = view.base._requires_grad
            mark = item._mark
            if mark == "inference" and not state.inference:
                return False
            array, dtype = item._array, item.dtype
            if dtype.is_complex and is_marked(item):
                return False
            key += (dtype, array.shape, array.strides, item._requires_grad, based,
                    mark.__class__)  # fmt: skip
            tensors.append(item)
        elif kind in _ATOMS:
            key += (kind, item)
        elif kind is float:
            key += (kind, item or str(item))  # 0.0 equals -0.0
        elif isinstance(item, _LISTS):
            key += (kind, len(item))
            if not describe(item, key, tensors):
                return False
        elif kind is slice:
            key.append(slice)
            for bound in (item.start, item.stop, item.step):
                if bound is not None and bound.__class__ is not int:
                    return False
                key.append(bound)
        else:
            return False
    return True


# --- what it does --------------------------------------------------------------------------------


class Watch:
    """The interpreter that runs ops as ever and notes them."""

    casts = runs_as_built = False

    def __init__(self, arguments: list[Tensor]):
        self.arguments = arguments
        self.below = state.top
        self.versions = [t.storage_.version for t in arguments]
        self.steps: list[Step] = []
        self.checks: list[Any] = []  # (before which step, check, tensor, its facts)
        self.refused = False

    def __call__(self, op: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        state.top = self.below
        try:
            result = run(op, inputs, attrs)
        finally:
            state.top = self
        outputs = result if isinstance(result, tuple) else (result,)
        self.steps.append(Step(op, inputs, attrs, outputs))
        return result

    def elements_checked(self, check: Any, value: Tensor, facts: Any) -> None:
        """The function checked the elements of a tensor: so does its code."""
        self.checks.append((len(self.steps), check, value, facts))

    def refuse(self, *facts: Any) -> None:
        """The function did something that its code would not do."""
        self.refused = True

    aliased = backward_ran = branched = checked = compared = copied = custom_function = refuse
    detached = escaped = flag_changed = from_array = grad_read = grad_set = handed = refuse
    hooked = looking = made = reseeded = value_asked = warned = warned_once = written = refuse

    def is_repeatable(self) -> bool:
        """Does what was seen depend on the description of the call alone?"""
        if self.refused or not 0 < len(self.steps) <= MOST_STEPS:
            return False
        unwritten = all(t.storage_.version == v for t, v in zip(self.arguments, self.versions))
        return unwritten and all(step.is_plain() for step in self.steps)


# --- where it is put -----------------------------------------------------------------------------


def install() -> None:
    """Gives Tensor's methods and operators, and the namespaces' functions, their familiar calls."""
    value.recalled = recalled
    names = {f.name for f in FUNCTIONS.values() if f.method and f.call.__module__.startswith(OPS)}
    for name in (*sorted(names), *_OPERATORS):
        if name not in Tensor.__dict__:
            setattr(Tensor, name, recalled(getattr(Value, name)))


OPS = ops.__name__ + "."
_OPERATORS = ("__getitem__", "__matmul__", "__pow__", "__rtruediv__")

install()
