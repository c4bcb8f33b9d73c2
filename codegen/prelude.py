"""The text of the math functions a module calls, each built once per process and element type.

`prelude(calls)` takes what an Emitter collected in `calls` and gives the LLVM definitions of
those functions and of what they call in turn, in a fixed order, so that equal kernels have equal
text. See Note [Outlined functions] in math_core.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from . import math_exp, math_log, math_power, math_special, math_trig  # noqa: F401
from .llvm import SHORT, Emitter, Value, float_literal
from .math_core import TABLE, MathFunction
from .target import DEFAULT, Target

Call = tuple[str, str, int]


def _body(function: MathFunction, m: Emitter, arguments: list[Value]) -> Value:
    if function.wide and arguments[0].element == "float":
        return m.narrow(m.call(function.name, *map(m.widen, arguments)))
    return function.body(m, *arguments)


def variant_lanes(element: str, target: Target) -> tuple[int, ...]:
    """Lanes of the variants of outlined functions: a full vector, and for floats half of one,
    which the vectoriser chooses in loops that also hold 64-bit elements."""
    full = target.lanes(element)
    return (full, full // 2) if element == "float" else (full,)


def _attributes(function: MathFunction, element: str, lanes: int, target: Target) -> str:
    if element not in function.outline:
        return "alwaysinline nounwind"
    if lanes > 1:
        return "noinline nounwind memory(none)"
    scalar = f"w_{function.name}_{SHORT[element]}"
    names = ",".join(
        f"_ZGV_LLVM_N{n}{'v' * function.arity}_{scalar}(w_{function.name}_v{n}{SHORT[element]})"
        for n in variant_lanes(element, target)
    )
    return f'noinline nounwind willreturn memory(none) "vector-function-abi-variant"="{names}"'


# A loop, so it is written out: x^n by squaring; a negative n gives 0 except for x = 1 and -1.
INTEGER_POWER = """define internal i64 @w_ipow_i64(i64 %x, i64 %n) nounwind memory(none) {
entry:
  %negative = icmp slt i64 %n, 0
  br i1 %negative, label %inverse, label %loop
inverse:
  %one = icmp eq i64 %x, 1
  %minus = icmp eq i64 %x, -1
  %odd = and i64 %n, 1
  %is.odd = icmp ne i64 %odd, 0
  %sign = select i1 %is.odd, i64 -1, i64 1
  %r.minus = select i1 %minus, i64 %sign, i64 0
  %r.inverse = select i1 %one, i64 1, i64 %r.minus
  ret i64 %r.inverse
loop:
  %left = phi i64 [ %n, %entry ], [ %left.next, %step ]
  %base = phi i64 [ %x, %entry ], [ %base.next, %step ]
  %r = phi i64 [ 1, %entry ], [ %r.next, %step ]
  %done = icmp eq i64 %left, 0
  br i1 %done, label %exit, label %step
step:
  %bit = and i64 %left, 1
  %is.set = icmp ne i64 %bit, 0
  %product = mul i64 %r, %base
  %r.next = select i1 %is.set, i64 %product, i64 %r
  %base.next = mul i64 %base, %base
  %left.next = lshr i64 %left, 1
  br label %loop
exit:
  ret i64 %r
}
"""


class Definition(NamedTuple):
    """The LLVM text of one function, the functions it needs beside itself, its tables."""

    text: str
    needs: tuple[Call, ...]
    tables: dict[str, tuple[float, ...]]


@cache
def definition(name: str, element: str, lanes: int, target: Target) -> Definition:
    """One function of the prelude, e.g. ("exp", "float", 1)."""
    if name == "ipow":
        return Definition(INTEGER_POWER, (), {})
    function = TABLE[name]
    m = Emitter(lanes)
    arguments = [m.argument(f"%x{i}", element) for i in range(function.arity)]
    result = _body(function, m, arguments)
    kind = m.type(element)
    listed = ", ".join(f"{kind} {a.text}" for a in arguments)
    head = f"define internal {kind} @w_{name}_{m.suffix(element)}({listed})"
    attributes = _attributes(function, element, lanes, target)
    needs = list(m.calls)
    if element in function.outline and lanes == 1:
        needs += [(name, element, n) for n in variant_lanes(element, target)]
    text = f"{head} {attributes} {{\nentry:\n{m.text()}  ret {kind} {result.text}\n}}\n"
    return Definition(text, tuple(needs), m.tables)


def _table(name: str, values: tuple[float, ...]) -> str:
    listed = ", ".join(f"double {float_literal(v)}" for v in values)
    return f"@{name} = internal unnamed_addr constant [{len(values)} x double] [{listed}]\n"


def prelude(calls: Iterable[Call], target: Target = DEFAULT) -> str:
    """The definitions of all functions called, directly or not."""
    wanted, queue = set(), list(calls)
    while queue:
        call = queue.pop()
        if call not in wanted:
            wanted.add(call)
            queue += definition(*call, target).needs
    ordered = sorted(wanted)
    parts = [definition(*call, target) for call in ordered]
    tables = {name: values for part in parts for name, values in part.tables.items()}
    texts = [_table(*item) for item in sorted(tables.items())] + [part.text for part in parts]
    # variants are known to the vectoriser by name only; this keeps them until it has run
    kept = [f"ptr @w_{name}_v{lanes}{SHORT[element]}" for name, element, lanes in ordered
            if lanes > 1 and name in TABLE and element in TABLE[name].outline]  # fmt: skip
    if kept:
        texts.append(
            f"@llvm.compiler.used = appending global [{len(kept)} x ptr] "
            f'[{", ".join(kept)}], section "llvm.metadata"\n'
        )
    return "\n".join(texts)
