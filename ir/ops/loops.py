"""Loops over time: what the ops of recurrent layers share.

Note [Loops over time]
    An op with `Loop` runs the same step over a sequence. Its inputs are sequences, of which a step
    reads one part each, then states, which it replaces, then what is the same for all steps. Its
    outputs are the last states, then sequences. Said in ops, a step is

        step(*parts, *states, *others, **settings) -> (*states, *parts)

    Two settings belong to the loop: with `reverse`, time runs backwards; `sizes` says how many rows
    each step has, where sequences are packed, (rows, width), rather than (time, batch, width).
    These fall, and a step works on the first rows of the states: the others have ended, or have not
    begun where time runs backwards.

    NumPy evaluates with a step of its own, which writes parts in place. Native code is made of one
    step and launched for each (codegen/loops.py), so it takes as long to make for any length.
    Derivatives are loops too. Their own derivatives come from `expand`, all steps in ops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any

import numpy as np

from ..graph import Graph
from ..inline import inline
from ..op import TABLE, Loop, Op, define
from ..types import TensorType
from .joining import cat, stack

Sizes = tuple[int, ...] | None


def split(loop: Loop, inputs: Sequence[Any]) -> tuple[Any, Any, Any]:
    """Sequences, states and what is the same for all steps."""
    states = loop.sequences + loop.states
    return inputs[: loop.sequences], inputs[loop.sequences : states], inputs[states:]


def bounds(sizes: tuple[int, ...]) -> list[tuple[int, int]]:
    """Where the rows of each step begin and end in a packed sequence."""
    ends = list(accumulate(sizes))
    return list(zip([0, *ends], ends))


def in_turn(steps: int, reverse: bool) -> Iterator[int]:
    return iter(range(steps - 1, -1, -1) if reverse else range(steps))


# --- by NumPy ------------------------------------------------------------------------------------


def evaluate(
    step: Callable[..., Any], sequences: Sequence[Any], states: Sequence[Any],
    others: Sequence[Any], widths: Sequence[int], reverse: bool, sizes: Sizes,
) -> tuple[Any, ...]:  # fmt: skip
    """Runs `step(parts, states, others, results)`, which fills results and gives new states."""
    like = next(x for x in sequences if x is not None)
    results = [np.empty((*like.shape[:-1], width), like.dtype) for width in widths]
    if sizes is not None:
        states = [h.copy() for h in states]
        rows = bounds(sizes)
        for t in in_turn(len(rows), reverse):
            here, first = slice(*rows[t]), slice(sizes[t])
            parts = [x if x is None else x[here] for x in sequences]
            new = step(parts, [h[first] for h in states], others, [y[here] for y in results])
            for h, value in zip(states, new):
                h[first] = value
        return (*states, *results)
    for t in in_turn(len(like), reverse):
        parts = [x if x is None else x[t] for x in sequences]
        states = step(parts, states, others, [y[t] for y in results])
    return (*(h.copy() for h in states), *results)  # they may be parts of results


# --- in ops --------------------------------------------------------------------------------------


def unrolled(
    loop: Loop, *inputs: Any, reverse: bool, sizes: Sizes = None, **settings: Any
) -> tuple[Any, ...]:
    """All steps in ops."""
    sequences, states, others = split(loop, inputs)
    parts = [x if x is None else x.unbind(0) if sizes is None else x.split(list(sizes), 0)
             for x in sequences]  # fmt: skip
    steps = len(next(x for x in parts if x is not None))
    made: list[Any] = [None] * steps
    for t in in_turn(steps, reverse):
        now = states if sizes is None else [h[: sizes[t]] for h in states]
        results = loop.step(*(x if x is None else x[t] for x in parts), *now, *others, **settings)
        new, made[t] = results[: loop.states], results[loop.states :]
        states = new if sizes is None else [_renewed(h, part) for h, part in zip(states, new)]
    join = partial(stack, dim=0) if sizes is None else partial(cat, dim=0)
    return (*states, *(join(*column) for column in zip(*made)))


def _renewed(state: Any, rows: Any) -> Any:
    """A state, its first rows replaced."""
    count = rows.shape[0]
    return rows if count == state.shape[0] else cat(rows, state[count:], dim=0)


def states_before(initial: Any, sequence: Any, reverse: bool, sizes: Sizes) -> Any:
    """The state that each step found, given those they left."""
    if sizes is None:
        first = initial.unsqueeze(0)
        return cat(sequence[1:], first, dim=0) if reverse else cat(first, sequence[:-1], dim=0)
    rows, pieces = bounds(sizes), []
    for t, size in enumerate(sizes):
        s = t + 1 if reverse else t - 1
        known = min(size, sizes[s]) if 0 <= s < len(sizes) else 0
        if known:
            pieces.append(sequence[rows[s][0] : rows[s][0] + known])
        if known < size:
            pieces.append(initial[known:size])
    return cat(*pieces, dim=0)


def weight_gradient(grad: Any, states: Any) -> Any:
    """Of a weight that states are multiplied by: one product for all steps.

    It is the transpose of one, since the weight is the transpose of a parameter.
    """
    rows = grad.reshape((-1, grad.shape[-1]))
    product = rows.transpose(0, 1) @ states.reshape((-1, states.shape[-1]))
    return product.transpose(0, 1)


# --- entries -------------------------------------------------------------------------------------


def define_loop(
    name: str, signature: str, step: Callable[..., Any], sequences: int, states: int, **facts: Any
) -> Op:
    """Adds a loop to the catalogue."""

    def expand(*inputs: Any, **settings: Any) -> tuple[Any, ...]:
        return unrolled(TABLE[name].lower, *inputs, **settings)

    loop = Loop("loop", step, sequences, states, expand)
    return define(name, signature, lower=loop, batch="decompose", many_passes=True, **facts)


def outputs_type(like: TensorType, states: Sequence[TensorType], widths: Sequence[int]) -> Any:
    """The types of a loop's outputs, where sequences have these widths."""
    return (*states, *(TensorType(like.dtype, (*like.shape[:-1], w)) for w in widths))


def by_parts(op: Op, inputs: Sequence[Any], grads: Sequence[Any], needs: Any,
             settings: dict[str, Any]) -> list[Any]:  # fmt: skip
    """The derivative of a loop, from all its steps in ops."""
    types = tuple(None if x is None else TensorType(x.dtype, tuple(x.shape)) for x in inputs)
    arrived = tuple(g is not None for g in grads)
    wanted = tuple(bool(needed) and x is not None for needed, x in zip(needs, inputs))
    graph = _derivative(op.name, types, arrived, wanted, tuple(settings.items()))
    given = [x for x in (*inputs, *grads) if x is not None]
    found = iter(inline(graph, given))
    return [next(found) if needed else None for needed in wanted]


@lru_cache(maxsize=64)
def _derivative(name: str, types: Any, arrived: Any, wanted: Any, settings: Any) -> Graph:
    """A graph of inputs and gradients to gradients, by reversing all steps in ops."""
    from ..builder import Builder
    from ..passes import dead_code
    from ..reverse import joint

    builder = Builder(f"{name}_steps")
    with builder.building():
        symbols = [None if t is None else builder.input(t) for t in types]
        for result in TABLE[name].lower.expand(*symbols, **dict(settings)):
            builder.output(result)
    places = [k for k, needed in enumerate(w for w, t in zip(wanted, types) if t is not None)
              if needed]  # fmt: skip
    results = [k for k, there in enumerate(arrived) if there]
    graph = joint(builder.graph(), places, results, again=True)
    return dead_code.run(graph.replace(outputs=graph.outputs[len(arrived) :]))
