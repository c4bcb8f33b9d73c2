"""The op catalogue: `Op`, `define()`, `TABLE`, derivative rules (called by `ir/pull.py`).

An op is defined once. Its entry holds name and signature, inference, NumPy evaluation, derivative
rules written in ops, how it is lowered to native code and torch's node name.

Note [The save list]
    The parameter list of a rule is its save list. A rule may name `grad` (or `grad_<output>`), an
    input or an output (its value is saved), `<input>_type` or `<output>_type` (nothing is saved),
    an attribute, `grads` (all gradients of a variadic output), `needs` (which inputs of a joint
    rule want a gradient) and, where the input is variadic, `i` (its position). `define()` refuses
    any other name. A joint rule of a variadic input alone gives the gradients of all its members.

Note [Numbers beside halves]
    A number or 0-d tensor beside 16-bit floats is rounded to one of them first, but where a kernel
    of torch reads its second operand in float32: `exact_second` says so. In the graph a number has
    the type it is read in, but beside nothing but 0-d tensors, where it would decide the result's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .bind import state
from .signatures import keyword_only, parameter_names
from .types import TensorType

# --- how an op becomes native code ---------------------------------------------------------------


@dataclass(frozen=True)
class Scalar:
    """A pointwise op: `emit(s, *operands)` gives its scalar expression through a ScalarReader."""

    emit: Callable[..., Any]


@dataclass(frozen=True)
class Reduce:
    """A reduction over `dim`: `combine(s, a, b)` from `start(s)`; `finish` maps the total."""

    combine: Callable[..., Any]
    start: Callable[..., Any]


@dataclass(frozen=True)
class View:
    """Data movement that codegen folds into indexing."""


@dataclass(frozen=True)
class Template:
    """A kernel with its own loop skeleton, e.g. "matmul"."""

    name: str


@dataclass(frozen=True)
class Loop(Template):
    """The same at every step of a sequence; see Note [Loops over time] in ops/loops.py.

    `step(*inputs, **attrs)` says one step in ops, `expand(*inputs, **attrs)` all of them.
    """

    step: Callable[..., Any]
    sequences: int  # how many inputs are read step by step; these come first
    states: int  # how many follow that a step replaces; outputs begin with the last ones
    expand: Callable[..., Any]


@dataclass(frozen=True)
class Decompose:
    """A composite: `expand(*inputs, **attrs)` says the same in other ops."""

    expand: Callable[..., Any]


@dataclass(frozen=True)
class HostCall:
    """No kernel: the program calls back to the NumPy evaluation."""


# --- the entry -----------------------------------------------------------------------------------

GRAD, INPUT, OUTPUT, INPUT_TYPE, OUTPUT_TYPE, ATTR, INDEX, NEEDS, GRADS = range(9)


@dataclass(frozen=True)
class Rule:
    """One derivative rule: `function` and where each of its arguments comes from."""

    function: Callable[..., Any]
    targets: tuple[int, ...]  # input positions it gives gradients for
    arguments: tuple[tuple[int, Any], ...]  # (GRAD | INPUT | ..., position or name)
    joint: bool

    def wants(self, kind: int) -> list[Any]:
        return [where for argument, where in self.arguments if argument == kind]


@dataclass(eq=False)
class Op:
    """A catalogue entry; call it with Values to run it by the interpreter on top of the stack."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    optional: frozenset[int]
    variadic: int | None
    many_outputs: bool
    numpy: Callable[..., Any]
    infer: Callable[..., Any]
    lower: Any
    node: Any  # torch's node name, or a function of the attributes that gives it
    attributes: tuple[str, ...] = ()
    defaults: dict[str, Any] = field(default_factory=dict)
    rules: dict[int, Rule] = field(default_factory=dict)
    # (node, position, which gradients came): does the rule of that input give none?
    gives_none: Callable[[Any, int, Sequence[bool]], bool] | None = None
    promote: Callable[[Sequence[Any]], Any] | None = None
    is_view: bool = False
    put: Callable[..., Any] | None = None
    multi_view: bool = False
    restrides: bool = False  # does a view have strides that are not its source's?
    # (shape, **attributes): does a view show memory that no element of its source has?
    beyond: Callable[..., bool] | None = None
    # torch's node name where the input at that position is a Python number
    number_nodes: tuple[str | None, ...] = ()
    # torch's name of the node of a gradient that it gives; True: <Name>BackwardBackward0
    second: Any = None
    # names of attributes as torch's nodes show them (`_saved_<name>`) where they differ, or None;
    # or, by torch's name, functions of the node: what no attribute is
    shown: dict[str, str | Callable[[Any], Any] | None] = field(default_factory=dict)
    # how vmap runs it, where its kind does not say: see tracer/batch_rules.py
    batch: Any = None
    many_passes: bool = False  # does its evaluation go over the elements many times?
    random: bool = False
    data_shape: bool = False  # do output shapes depend on values?
    # True where it may raise because of what its operands hold, or (node) -> what it looks at
    # there, as in ops/looking.py. Composites raise where what they expand to does.
    raises: Any = None
    moves_data: bool = False
    exact_second: bool = False  # see Note [Numbers beside halves]
    out_argument: bool = False
    # NumPy's evaluation of float operands where no attribute is given, if `numpy` is slower
    ufunc: Any = None
    node_type: Any = None  # eager execution's node class, where all calls have the same
    plain: Any = None  # eager execution's short way, written at the first call
    domain: tuple[float, float] | None = None
    samples: Callable[..., Any] | None = None
    kind: str = "other"
    plans: dict[Any, Any] = field(default_factory=dict)
    pulls: dict[Any, Any] = field(default_factory=dict)

    def __call__(self, *inputs: Any, **attrs: Any) -> Any:
        return state.top(self, inputs, attrs)

    def reads_exactly(self, position: int, operand: Any, common: Any) -> bool:
        """See Note [Numbers beside halves]; `common` is the dtype that promotion gives."""
        return (self.exact_second and position == 1 and common.compute is not common.storage
                and operand.dtype is not common and not operand.ndim)  # fmt: skip

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return TABLE.__getitem__, (self.name,)

    def input_name(self, position: int) -> str:
        """The name of the input at `position`, counting the members of a variadic one."""
        if self.variadic is not None and position >= self.variadic:
            return self.inputs[self.variadic]
        return self.inputs[position]

    def may_be_none(self, position: int) -> bool:
        """Is the input at `position` optional, or a member of a variadic one that is?"""
        if self.variadic is not None:
            position = min(position, self.variadic)
        return position in self.optional

    def rule_for(self, position: int) -> Rule | None:
        if self.variadic is not None and position >= self.variadic:
            position = self.variadic
        return self.rules.get(position)

    @property
    def many_at_once(self) -> int | None:
        """Where the variadic input starts, if one rule gives the gradients of all its members."""
        rule = None if self.variadic is None else self.rules.get(self.variadic)
        return self.variadic if rule is not None and rule.joint else None

    @property
    def differentiable(self) -> bool:
        return bool(self.rules)

    def infer_types(self, types: Sequence[Any], attrs: dict[str, Any]) -> tuple[TensorType, ...]:
        """The types of all outputs, always as a tuple."""
        result = self.infer(*types, **attrs)
        return (result,) if isinstance(result, TensorType) else tuple(result)


TABLE: dict[str, Op] = {}


def define(
    name: str,
    signature: str,
    *,
    numpy: Callable[..., Any],
    infer: Callable[..., Any] | None = None,
    vjp: dict[Any, Callable[..., Any]] | None = None,
    lower: Any = None,
    node: Any = None,
    **facts: Any,
) -> Op:
    """Adds an op to the catalogue. `signature` reads "self other? *rest -> result indices"."""
    if name in TABLE:
        raise ValueError(f"op {name} is defined twice")
    left, right = signature.split("->")
    words = left.split()
    variadic = next((k for k, word in enumerate(words) if word.startswith("*")), None)
    attributes, defaults = keyword_names(numpy)
    op = Op(
        name=name,
        inputs=tuple(word.strip("*?") for word in words),
        outputs=tuple(word.strip("*") for word in right.split()),
        many_outputs=right.strip().startswith("*"),
        optional=frozenset(k for k, word in enumerate(words) if word.endswith("?")),
        variadic=variadic,
        numpy=numpy,
        infer=infer or infer_by_example(name, numpy),
        lower=lower or HostCall(),
        node=node or node_name(name),
        attributes=attributes,
        defaults=defaults,
        **facts,
    )
    for target, function in (vjp or {}).items():
        add_rule(op, target, function)
    TABLE[name] = op
    return op


def same(*names: str) -> dict[str, Any]:
    """`shown` of names that are torch's, whether rules ask for them or not."""
    return {name: name for name in names}


def node_name(name: str) -> str:
    """torch's name of the op's graph node: "log_softmax" gives LogSoftmaxBackward0."""
    # title() also raises a letter after a digit, as torch does: Log1PBackward0
    return "".join(word.title() for word in name.strip("_").split("_")) + "Backward0"


def keyword_names(function: Callable[..., Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The keyword-only parameters: an op's attributes are those of its NumPy evaluation."""
    if isinstance(function, np.ufunc):  # its keywords (out=, where= ...) are not attributes
        return (), {}
    return keyword_only(function)


def infer_by_example(name: str, numpy: Callable[..., Any]) -> Callable[..., Any]:
    """Inference for irregular ops: evaluates on arrays of ones and looks at the result."""

    def infer(*types: Any, **attrs: Any) -> Any:
        from .types import from_numpy_dtype

        arrays = [t and np.ones(t.shape, t.dtype.compute) for t in types]
        with np.errstate(all="ignore"):
            results = numpy(*arrays, **attrs)
        halves = [t.dtype for t in types if t is not None and t.dtype.compute != t.dtype.storage]
        if not isinstance(results, tuple):
            results = (results,)
        inferred = []
        for result in results:
            dtype = from_numpy_dtype(result.dtype)
            if halves and dtype.name == "float32":
                dtype = halves[0]
            inferred.append(TensorType(dtype, np.shape(result)))
        return tuple(inferred)

    infer.__name__ = f"infer_{name}_by_example"
    return infer


# --- derivative rules ----------------------------------------------------------------------------


def add_rule(op: Op, target: Any, function: Callable[..., Any]) -> None:
    """Attaches `function` as the rule for input `target` (a name, or a tuple for a joint rule)."""
    joint = isinstance(target, tuple)
    names = target if joint else (target,)
    for name in names:
        if name not in op.inputs:
            raise ValueError(f"{op.name}: rule for unknown input {name!r}; inputs: {op.inputs}")
    arguments = tuple(_argument(op, p) for p in parameter_names(function))
    rule = Rule(function, tuple(op.inputs.index(n) for n in names), arguments, joint)
    for position in rule.targets:
        op.rules[position] = rule


def _argument(op: Op, name: str) -> tuple[int, Any]:
    """Where a rule's parameter comes from; see Note [The save list]."""
    if name == "grad":
        return GRAD, 0
    if name == "grads" and op.many_outputs:
        return GRADS, None
    if name.startswith("grad_") and name[5:] in op.outputs:
        return GRAD, op.outputs.index(name[5:])
    if name in op.inputs:
        return INPUT, op.inputs.index(name)
    if name in op.outputs:
        return OUTPUT, op.outputs.index(name)
    if name.endswith("_type") and name[:-5] in op.inputs:
        return INPUT_TYPE, op.inputs.index(name[:-5])
    if name.endswith("_type") and name[:-5] in op.outputs:
        return OUTPUT_TYPE, op.outputs.index(name[:-5])
    if name in op.attributes:
        return ATTR, name
    if name == "i" and op.variadic is not None:
        return INDEX, None
    if name == "needs":
        return NEEDS, None
    legal = [*op.inputs, *op.outputs, *op.attributes, "grad", "<name>_type", "needs", "i"]
    raise ValueError(f"{op.name}: a rule may not name {name!r}; legal names: {', '.join(legal)}")


# `pull`, the only caller of rules, and what it needs live in a file of their own.
from .pull import (  # noqa: E402
    Frame,  # noqa: F401
    fit,  # noqa: F401
    pull,  # noqa: F401
    puller,  # noqa: F401
    saved_keys,  # noqa: F401
    sum_to_shape,  # noqa: F401
    write_puller,  # noqa: F401
)
