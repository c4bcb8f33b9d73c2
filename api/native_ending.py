"""What native code does at the end of a bound call, where it can do all that is left.

Counting writes, setting gradients, history that is spent, and putting results together have a form
that native code reads (`runtime/effects.py`). Anything else is written as Python (`finishing.py`).
"""

from __future__ import annotations

import operator
from typing import Any

from .eager_graph import EAGER
from .for_inference import ViewForInference, made_for_inference
from .ir.bind import state
from .ir.types import bfloat16
from .native_views import of_argument, of_result
from .pytree import split
from .runtime import watch
from .runtime.effects import Answer, Effects, Spent
from .sources import (
    Argument,
    Captured,
    ComputedFloat,
    ComputedView,
    Converted,
    Direct,
    Given,
    GivenFloat,
    MadeLeaf,
    OnTheWay,
    Plain,
    Reached,
    Shared,
    ViewOfDetached,
    ViewOfInput,
)  # fmt: skip
from .spent import SPENT_SLOTS, SpentNode
from .tracer.tape import ANOMALY
from .unpacking import builder, is_record

to_item, array_of = operator.methodcaller("item"), operator.attrgetter("_array")


def after(binding: Any) -> tuple[Effects | None, Answer | None] | None:
    """The effects of a call and its answer; None where there is more to do."""
    if (binding.wanted and not binding.linked) or binding.end.flag_effects:
        return None
    if not all(isinstance(source, Argument | Captured | Reached)
               for maker in spenders(binding) for source in maker.spent.sources):  # fmt: skip
        return None
    made_at = numbers_made(binding)
    gradients: list[tuple[Any, int | None]] = []
    for owner, maker in binding.new_gradients():
        if not isinstance(owner, Captured | Reached) or not (
                maker is None or is_made(maker, made_at)):  # fmt: skip
            return None
        at = None if maker is None else made_at[maker.number]
        gradients.append((binding.tensor_of(owner), at))
    spent = [spent_result(binding, maker, made_at) for maker in spenders(binding)]
    writes = [(-1, storage, count) for storage, count in binding.storages]
    writes += [(place, None, count) for place, count in binding.argument_writes]
    effects = Effects(EAGER, writes, gradients, spent, SpentNode, storages(binding))
    if gives_results(binding, made_at):
        return effects or None, None
    answer = Answer()
    makers = iter(binding.end.makers)
    if not put_together(answer, binding.end.structure, makers, binding, made_at):
        return None
    return effects or None, answer


def storages(binding: Any) -> list[tuple[int, Any]]:
    """What was made that the body wrote, and what its storage says of that."""
    made_at, versions = numbers_made(binding), binding.function.versions
    return [(made_at[number], tuple(zip(("version", "written"), known)))
            for number, known in versions.items() if number in made_at]  # fmt: skip


def numbers_made(binding: Any) -> dict[int, int]:
    """Where results are among what the call makes."""
    results = enumerate(binding.executor.results)
    return {n: binding.made_at[k] for n, (k, _) in results if n not in binding.recycled}


def is_made(maker: Any, made_at: dict[int, int]) -> bool:
    return isinstance(maker, Direct) and maker.number in made_at


def is_spender(maker: Any) -> bool:
    """Is it a result itself, with history whose backward ran inside?"""
    is_result = isinstance(maker, ComputedView) and not (maker.chain or maker.turn)
    return is_result and maker.history == "spent"


def spenders(binding: Any) -> list[Any]:
    """The makers of such results, where native code may give that history."""
    if binding.wanted or not state.grad_enabled:
        return []
    return [*{m.number: m for m in binding.end.makers if is_spender(m)}.values()]


def spent_result(binding: Any, maker: Any, made_at: dict[int, int]) -> Spent:
    """Such a result, with the tensors behind it."""
    sources = maker.spent.sources
    given = [source.place for source in sources if isinstance(source, Argument)]
    known = tuple(None if isinstance(source, Argument) else binding.tensor_of(source)
                  for source in sources)  # fmt: skip
    slots = {**dict(SPENT_SLOTS), "ops": maker.spent, "known": known}
    return Spent(made_at[maker.number], tuple(slots.items()), given)


def spent_by(binding: Any) -> set[int]:
    """The outputs of the graph that get it."""
    return {binding.executor.results[maker.number][0] for maker in spenders(binding)}


def gives_results(binding: Any, made_at: dict[int, int]) -> bool:
    """Is what is made the result of the function: one tensor, or a tuple of them?"""
    structure, makers = binding.end.structure, binding.end.makers
    if not all(is_made(maker, made_at) or is_spender(maker) for maker in makers):
        return False
    flat = structure is None or structure == (tuple, *[None] * len(makers))
    shown = len(binding.executor.results) if binding.linked else len(binding.fresh)
    return flat and [made_at.get(maker.number) for maker in makers] == list(range(shown))


def put_together(answer: Answer, structure: Any, makers: Any, binding: Any,
                 made_at: dict[int, int]) -> bool:  # fmt: skip
    """Adds the steps that make a part of the result; False where native code can't."""
    if structure is None:
        return leaf(answer, next(makers), binding, made_at)
    kind, (names, parts) = structure[0], split(structure)
    for part in parts:
        if not put_together(answer, part, makers, binding, made_at):
            return False
    if kind in (tuple, list, dict):
        answer.join(kind, len(parts), names or ())
    elif is_record(kind, names):
        answer.fields(kind, names)
    else:
        answer.ask(builder(kind, names, len(parts)), len(parts))
    return True


def leaf(answer: Answer, maker: Any, binding: Any, made_at: dict[int, int]) -> bool:
    """Adds the steps that make one leaf."""
    if is_made(maker, made_at) or (is_spender(maker) and maker in spenders(binding)):
        answer.made(made_at[maker.number])
    elif isinstance(maker, Plain):
        answer.constant(maker.value)
    elif isinstance(maker, Given):
        return outside(answer, maker.source, binding)
    elif isinstance(maker, GivenFloat) and is_float_argument(maker.read, binding):
        answer.argument(maker.read.place)
    elif isinstance(maker, ComputedFloat) and maker.number in made_at:
        item_of_result(answer, maker.number, binding, made_at)
    elif isinstance(maker, Converted) and maker.how == "item" and is_made(maker.maker, made_at):
        item_of_result(answer, maker.maker.number, binding, made_at)
    elif isinstance(maker, Converted):
        if not leaf(answer, maker.maker, binding, made_at):
            return False
        answer.ask(maker.of, 1)
    elif isinstance(maker, ViewForInference):
        if not leaf(answer, maker.maker, binding, made_at):
            return False
        answer.ask(made_for_inference, 1)
    elif isinstance(maker, OnTheWay) and maker.own in made_at:
        if not leaf(answer, maker.view, binding, made_at):
            return False
        answer.made(made_at[maker.own])
        answer.ask(maker.of, 2)
    elif isinstance(maker, ViewOfDetached):
        return detached(answer, maker, binding, made_at)
    elif getattr(maker, "counter", None) is not None:
        return False  # several results may share it
    elif isinstance(maker, ComputedView) and maker.history == "spent":
        return False  # its history knows what the call was given
    elif isinstance(maker, ComputedView) and maker.number in made_at:
        spent = any(maker.number == other.number for other in spenders(binding))
        answer.made(made_at[maker.number])
        by_python = spent or maker.turn  # which others may share
        view = None if by_python else of_result(binding, maker, answer.shared)
        look(answer, maker, view, binding)
    elif isinstance(maker, ViewOfInput):
        if not outside(answer, maker.source, binding):
            return False
        tensor = maker.source(binding.leaves)
        look(answer, maker, of_argument(tensor, maker, answer.shared), binding)
    else:
        return False
    return True


def detached(answer: Answer, maker: Any, binding: Any, made_at: dict[int, int]) -> bool:
    """Adds a view of what was detached, if nothing else shows that."""
    base = maker.base
    if isinstance(base, MadeLeaf | Shared) or base.counter is not None:
        return False
    if isinstance(base, ViewOfInput):
        if not outside(answer, base.source, binding):
            return False
    elif base.number in made_at:
        answer.made(made_at[base.number])
    else:
        return False
    answer.ask(maker.of, 1)
    return True


def look(answer: Answer, maker: Any, view: Any, binding: Any) -> None:
    """Adds the step that makes a view of the last tensor."""
    if view is None:
        answer.ask(maker.of, 1)
        return
    answer.view(view)
    binding.words += watch.of_list(ANOMALY)  # its nodes say where they come from


def item_of_result(answer: Answer, number: int, binding: Any, made_at: dict[int, int]) -> None:
    """Adds `item()` of a result; nobody records, so that of its array is all there is to it."""
    answer.made(made_at[number])
    if binding.executor.results[number][1] is not bfloat16:
        answer.ask(array_of, 1)
    answer.ask(to_item, 1)


def is_float_argument(read: Any, binding: Any) -> bool:
    return isinstance(read, Argument) and type(binding.leaves[read.place]) is float


def outside(answer: Answer, source: Any, binding: Any) -> bool:
    """Adds a tensor that the call was given, or found."""
    if isinstance(source, Argument):
        answer.argument(source.place)
    elif isinstance(source, Captured | Reached):
        answer.constant(binding.tensor_of(source))
    else:
        return False
    return True
