"""`pull()`, the only caller of derivative rules, and `fit()`.

Note [Fit]
    Rules ignore broadcasting and promotion. `fit` sums and casts each gradient to the type of the
    input it belongs to, here and nowhere else.

Note [Pullers]
    Which rules run, and where their arguments come from, is known from the op and the inputs that
    need gradients. So `puller` writes the calls out once as a small Python function, e.g. of mul:

        def pull(frame, grads):
            a = b = None
            if grads[0] is not None:
                a = frame.fit_input(rule_a(grads[0], frame.input(1)), 0)
                b = frame.fit_input(rule_b(grads[0], frame.input(0)), 1)
            return [a, b]

    It is half the cost of a backward step where the tensors are small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .op import ATTR, GRAD, GRADS, INDEX, INPUT, INPUT_TYPE, OUTPUT, OUTPUT_TYPE, TABLE
from .texts import function_of
from .types import TensorType, same_shape

if TYPE_CHECKING:
    from .op import Op, Rule


class Frame:
    """What `pull` asks of a recorded call: its values, types and attributes.

    Eager graph nodes and IR nodes each implement it, so one `pull` serves both.
    """

    __slots__ = ()

    op: Op
    attrs: dict[str, Any]

    def input(self, position: int) -> Any:
        raise NotImplementedError

    def output(self, position: int) -> Any:
        raise NotImplementedError

    def input_type(self, position: int) -> TensorType:
        raise NotImplementedError

    def output_type(self, position: int) -> TensorType:
        raise NotImplementedError

    def input_count(self) -> int:
        raise NotImplementedError

    def fit_input(self, grad: Any, position: int) -> Any:
        """A gradient made to fit the input it belongs to."""
        return fit(grad, self.input_type(position))


Puller = Callable[[Any, Sequence[Any]], "list[Any]"]


def pull(frame: Any, grads: Sequence[Any], needs: Sequence[bool]) -> list[Any]:
    """Gradients of all inputs of a recorded call, given those of its outputs.

    None stands for "no gradient" on both sides. Each result has its input's type.
    """
    return puller(frame.op, tuple(needs))(frame, grads)


def puller(op: Op, needs: tuple[bool, ...]) -> Puller:
    """`pull` for one op and one set of inputs that need gradients; see Note [Pullers]."""
    found: Puller | None = op.pulls.get(needs)
    if found is None:
        found = op.pulls[needs] = write_puller(op, needs, _fitted)
    return found


def _fitted(target: str, value: str, position: int | str) -> list[str]:
    """The lines that make a rule's result fit its input."""
    return [f"{target} = frame.fit_input({value}, {position})"]


def write_puller(
    op: Op,
    needs: tuple[bool, ...],
    fitted: Callable[[str, str, int | str], list[str]],
    first: Sequence[str] = (),
    saved: dict[int, str] | None = None,
    **names: Any,
) -> Puller:
    """Writes a puller; `fitted` gives the lines for each result, `first` comes before all.

    `saved` says how inputs (by position) and outputs (as ~position) are read.
    """
    names.update(needs=needs, defaults=op.defaults, __name__=__name__)
    lines = ["def pull(frame, grads):", *(f"    {line}" for line in first)]
    single = len(needs) if op.many_at_once is None else op.many_at_once
    lines += [f"    r{k} = None" for k in range(single)]
    if single < len(needs):
        lines.append(f"    rest = [None] * {len(needs) - single}")
    done: set[int] = set()
    for position, needed in enumerate(needs):
        if not needed or position in done:
            continue
        rule = op.rule_for(position)
        assert rule is not None, f"{op.name}: no rule for '{op.input_name(position)}'"
        names[f"rule{position}"] = rule.function
        texts = _arguments(op, rule, position, len(needs), saved or {})
        call = f"rule{position}({', '.join(texts)})"
        lines.append(f"    if {_condition(rule)}:")
        if position >= single:
            done.update(range(position, len(needs)))
            lines.append(f"        for k, part in enumerate({call}):")
            lines += [f"            {line}" for line in fitted("part", "part", f"k + {single}")]
            lines.append("            rest[k] = part")
        elif rule.joint:
            done.update(rule.targets)
            lines.append(f"        parts = {call}")
            for k, t in enumerate(rule.targets):
                if t < len(needs) and needs[t]:
                    lines += [f"        {line}" for line in fitted(f"r{t}", f"parts[{k}]", t)]
        else:
            lines += [f"        {line}" for line in fitted(f"r{position}", call, position)]
    results = [f"r{k}" for k in range(single)] + ["*rest"] * (single < len(needs))
    lines.append(f"    return [{', '.join(results)}]")
    puller: Puller = function_of("\n".join(lines), f"<wengert pull {op.name}>", names)
    return puller


def _condition(rule: Rule) -> str:
    """A rule runs when one of the gradients it names arrived."""
    used = [f"grads[{where}] is not None" for where in rule.wants(GRAD)]
    if rule.wants(GRADS):
        used.append("any(g is not None for g in grads)")
    return " or ".join(used) or "True"


def _arguments(op: Op, rule: Rule, position: int, count: int, saved: dict[int, str]) -> list[str]:
    """The expressions a rule is called with."""
    texts = []
    for kind, where in rule.arguments:
        many = op.variadic is not None and where == op.variadic
        if kind == GRAD:
            texts.append(f"grads[{where}]")
        elif kind == ATTR:
            default = f"defaults[{where!r}]" if where in op.defaults else "None"
            texts.append(f"frame.attrs[{where!r}] if {where!r} in frame.attrs else {default}")
        elif kind in (INPUT, INPUT_TYPE):
            read = "input" if kind == INPUT else "input_type"
            if kind == INPUT and not many and where in saved:
                texts.append(saved[where])
            elif many:
                texts.append(f"tuple([frame.{read}(k) for k in range({where}, {count})])")
            else:
                texts.append(f"frame.{read}({where})")
        elif kind == OUTPUT:
            texts.append(saved.get(~where, f"frame.output({where})"))
        elif kind == OUTPUT_TYPE:
            texts.append("tuple([frame.output_type(k) for k in range(len(grads))])"
                         if op.many_outputs else f"frame.output_type({where})")  # fmt: skip
        elif kind == GRADS:
            texts.append("tuple(grads)")
        elif kind == INDEX:
            texts.append(str(position - (op.variadic or 0)))
        else:
            texts.append("needs")
    return texts


def saved_keys(op: Op, needs: Sequence[bool]) -> tuple[int, ...]:
    """What the rules for the inputs in `needs` read: inputs by position, outputs as ~position.

    Inputs stand in the order of their names, then outputs: so torch saves them, which hooks see.
    """
    inputs: set[int] = set()
    outputs: set[int] = set()
    for position, needed in enumerate(needs):
        rule = op.rule_for(position) if needed else None
        if rule is None:
            continue
        for where in rule.wants(INPUT):
            if op.variadic is not None and where == op.variadic:
                inputs.update(range(where, len(needs)))
            else:
                inputs.add(where)
        outputs.update(rule.wants(OUTPUT))
    ordered = sorted(inputs, key=lambda k: (op.input_name(k), k))
    return (*ordered, *(~k for k in sorted(outputs)))


def fit(grad: Any, wanted: TensorType) -> Any:
    """`grad` summed and cast to the type of the input it belongs to; see Note [Fit]."""
    if grad is None or grad._has_type(wanted):
        return grad
    if not same_shape(tuple(grad.shape), wanted.shape):
        grad = sum_to_shape(grad, wanted.shape)
    if grad.dtype is not wanted.dtype:
        if grad.dtype.is_complex and not wanted.dtype.is_complex:
            grad = TABLE["real"](grad)
        if grad.dtype is not wanted.dtype:
            grad = TABLE["cast"](grad, dtype=wanted.dtype)
    return grad


def sum_to_shape(value: Any, shape: tuple[int, ...]) -> Any:
    """The adjoint of broadcasting `shape` to the shape of `value`."""
    have = tuple(value.shape)
    lead = len(have) - len(shape)
    if lead < 0:
        return TABLE["expand"](value, size=shape)
    dims = tuple(range(lead)) + tuple(
        k + lead for k, size in enumerate(shape) if size == 1 and have[k + lead] != 1
    )
    if dims:
        value = TABLE["sum"](value, dim=dims, keepdim=True)
    if same_shape(tuple(value.shape), shape):
        return value
    if lead:
        value = TABLE["view"](value, size=tuple(value.shape)[lead:])
    if not same_shape(tuple(value.shape), shape):  # smaller than its input: not broadcast yet
        value = TABLE["expand"](value, size=shape)
    return value
