"""Shortcuts: functions that replay one trace for the usual call with the fewest checks.

A shortcut serves calls of one structure (`unpacking.py`). It answers MISS where anything is not as
it was; then the general way decides, and makes a new shortcut.

- `bound_replay` leaves all checks to one native call: tensors from outside have not moved, so their
  addresses are known (`binding.py`).
- `branching_replay` does so for traces with branches, segment by segment.
- `gathered_replay` collects and checks in Python, for all that can't be bound.
"""

from __future__ import annotations

from types import BuiltinFunctionType
from typing import Any

from .binding import Binding, Unbindable
from .branching import Branching
from .environment import Environment
from .ir.bind import epoch, state
from .replay import MISS, Trace
from .runtime.entering import unpacking
from .segments import Segment
from .sharing import layout_of, shared_arguments
from .sources import Argument, Captured, Reached
from .tracer.hooks import uses
from .tracer.tensor import Tensor
from .unpacking import Writer, taking_apart, unpacker

MAX_REBINDS = 4  # in a row: beyond that, what is bound changes too often


def shortcut(trace: Trace, structure: Any, leaves: list[Any], specialised: set[int]) -> Any:
    """A function of a call's arguments that replays `trace`, or None."""
    taken = taking_apart(structure)
    if taken is None:
        return None
    replay, branches = None, trace.root.end is None
    if trace.may_bind(MAX_REBINDS):
        try:
            if branches:
                replay = branching_replay(Branching(trace, leaves, specialised).first, taken)
            else:
                replay = bound_replay(Binding(trace, leaves, specialised, taken), taken)
        except Unbindable:
            trace.rebinds = MAX_REBINDS  # not again
    if replay is None and not branches and not (
            any(isinstance(s, Reached) for s in trace.root.sources)):  # fmt: skip
        replay = gathered_replay(trace, leaves, specialised, unpacker(structure))
    # what is Reached must be looked at closely
    return None if replay is None else trace.rewinding(replay)


def bound_replay(binding: Binding, taken: Writer) -> Any:
    """One native call that checks, runs and makes results, in code for this trace."""
    if binding.packed:
        return binding.call
    lines = [*taken.lines, *binding.lines(), f"return {binding.ending.result}"]
    return taken.function("bound_replay", MISS, lines, **binding.names())


def branching_replay(first: Any, taken: Writer) -> Any:
    """The call of a tree's first segment, which goes on by itself; see branching.py."""
    if taken.taking is not None and isinstance(first, BuiltinFunctionType):
        return unpacking(first, taken.taking, MISS)
    lines = [*taken.lines, f"return first({', '.join(taken.leaves)})"]
    return taken.function("branching_replay", MISS, lines, first=first)


def gathered_replay(trace: Trace, leaves: list[Any], specialised: set[int], unpack: Any) -> Any:
    """Checks and collects tensors in Python."""
    segment, count = trace.root, len(leaves)
    kept = {s.place for s, kept in zip(segment.sources, segment.kept)
            if kept and isinstance(s, Argument)}  # fmt: skip
    tensors = [
        (k, type(x), x.dtype, x._array.shape, x._requires_grad, layout_of(x._array), k in kept)
        for k, x in enumerate(leaves) if isinstance(x, Tensor)
    ]  # fmt: skip
    floats = [k for k, x in enumerate(leaves) if type(x) is float and k not in specialised]
    fixed = [(k, x) for k, x in enumerate(leaves) if not isinstance(x, Tensor) and k not in floats]
    captured = [(source.tensor, flag) for source, flag in zip(segment.sources, segment.flags)
                if isinstance(source, Captured)]  # fmt: skip
    environment: Environment = trace.environment
    gather = gatherer(segment)
    run, end = segment.function.runner(segment.wanted(trace.history)), segment.end
    grad_mode, inference, top = state.grad_enabled, state.inference, state.top
    guarded = bool(trace.grad_guards or trace.comparisons or trace.bound or trace.written)
    shared, several = shared_arguments(leaves), len(tensors) > 1
    single = end.single_result()

    def replay(args: Any, kwargs: Any) -> Any:
        args = unpack(args, kwargs)
        if args is None or len(args) != count or environment.epoch != epoch.value or uses.value:
            return MISS
        if (state.top is not top or state.grad_enabled is not grad_mode
                or state.inference is not inference):  # fmt: skip
            return MISS
        for tensor, flag in captured:
            if tensor._requires_grad is not flag:
                return MISS
        for k, known in fixed:
            if args[k] is not known:
                return MISS
        for k, kind, dtype, shape, flag, layout, saved in tensors:
            x = args[k]
            if x.__class__ is not kind or x.dtype is not dtype or x._requires_grad is not flag:
                return MISS
            array = x._array
            if array.shape != shape or layout_of(array) != layout:
                return MISS
            if saved and x._mark == "inference":
                return MISS  # eager raises
        for k in floats:
            if type(args[k]) is not float:
                return MISS
        if several and shared_arguments(args) != shared:
            return MISS
        if (trace.applies(args) if guarded else environment.quick_failure()) is not None:
            return MISS
        results = run(gather(args))
        if inference:
            for tensor in results:
                tensor._mark = "inference"
        trace.replays += 1
        return results[0] if single else end.finish(args, results)

    return replay


def gatherer(segment: Segment) -> Any:
    """Collects a segment's inputs: arguments, then captured tensors, then the rest."""
    sources = segment.sources
    places = [s.place for s in sources if isinstance(s, Argument)]
    captured = [s.tensor for s in sources if isinstance(s, Captured)]
    rest = sources[len(places) + len(captured) :]

    def gather(args: Any) -> list[Any]:
        inputs = [args[k] for k in places]
        inputs += captured
        if rest:
            inputs += [source(args) for source in rest]
        return inputs

    return gather
