"""Shortcuts for traces with branches on values: each segment is one native call.

A segment's function takes the leaves of the call and all values that segments before it made. It
looks at the truth of one it makes, and goes on with the function for that outcome, which is bound
(`binding.py`) when that outcome is first met.
"""

from __future__ import annotations

from typing import Any

from .binding import Binding, Unbindable
from .replay import MISS, Trace
from .runtime.entering import Turn
from .segments import Segment
from .sources import Argument, Direct, Number
from .tracer.tensor import Tensor
from .unpacking import Writer


class Handed:
    """What a segment gives to the next one, as `Binding` asks of the end of a trace."""

    grad_effects = flag_effects = more_writes = assigned = ()

    def __init__(self, segment: Segment, read: set[Any]):
        count, at = len(segment.keys_out), segment.keys_out.index(segment.condition)
        self.structure = (tuple, *[None] * count)
        self.makers = [Direct(number) for number in range(count)]
        seen = segment.condition in read or at in segment.function.held
        self.unseen = None if seen else at  # a condition that is looked at, and that is all


class Piece:
    """One segment of a tree as a trace by itself."""

    bound = ()
    frames = 0  # none of Python need be between the user's and this one's

    def __init__(self, tree: Branching, segment: Segment, places: dict[Any, int]):
        trace = tree.trace
        self.root, self.count = self, tree.count
        self.history, self.grad_guards = trace.history, trace.grad_guards
        self.function, self.wanted = segment.function, segment.wanted
        self.sources = [Argument(places[key]) if source is None else source
                        for source, key in zip(segment.sources, segment.keys_in)]  # fmt: skip
        self.kept = segment.kept
        self.end: Any = segment.end or Handed(segment, tree.read)
        self.counter = None if segment.end is None else trace.counter  # the last segment counts
        # what the call as a whole relies on was looked at before the first segment
        first = segment is trace.root
        self.reads_arguments = first or not all(isinstance(m, Direct) for m in self.end.makers)
        self.environment: Any = trace.environment if first else self
        self.comparisons = trace.comparisons if first else []
        # floats that vary are read by each segment
        known = trace.environment
        self.loose, self.varies_in_modules = known.loose, known.varies_in_modules
        self.loose_failure, self.failure = known.loose_failure, known.failure
        self.outside_change = trace.outside_change

    def words(self) -> list[Any]:
        return []

    words_of_modules = words

    def reads(self, place: int) -> bool:
        """Must the value at a place be as it was? Segments before looked at the arguments."""
        if self.reads_arguments and place < self.count:  # what comes after these was made
            return True
        sources = [*self.sources, *(source for source, _ in self.end.more_writes)]
        read = (s.read if isinstance(s, Number) else s for s in sources)
        return any(isinstance(s, Argument) and s.place == place for s in read)


def keys_read(first: Segment) -> set[Any]:
    """The keys of all values that segments of a tree take."""
    found: set[Any] = set()
    left = [first]
    while left:
        segment = left.pop()
        found.update(segment.keys_in)
        left += segment.children.values()
    return found


class Branching:
    """The functions of a tree's segments for calls like one."""

    def __init__(self, trace: Trace, leaves: list[Any], specialised: set[int]):
        self.trace, self.specialised, self.count = trace, specialised, len(leaves)
        self.read = keys_read(trace.root)
        self.hands_back = trace.hands_back
        self.first = self.stage(trace.root, leaves, {})

    def stage(self, segment: Segment, values: list[Any], places: dict[Any, int]) -> Any:
        """The function of a segment; `places` says which of the `values` the keys are."""
        names = [f"a{k}" for k in range(len(values))]
        writer = Writer()
        writer.leaves = names
        binding = Binding(Piece(self, segment, places), values, self.specialised, writer)
        enter = self.entering(segment, len(values), places, binding.unseen)
        if binding.after is not None:
            return self.natively(segment, binding, enter)
        known: dict[bool, Any] = {}
        lines = [*binding.lines(), *self.way_on(segment, names, binding.ending.result)]
        return writer.function(
            "segment", MISS, lines, given=names, known=known,
            enter=lambda outcome, values: enter(known.__setitem__, outcome, values),
            **binding.names(),
        )  # fmt: skip

    def natively(self, segment: Segment, binding: Binding, enter: Any) -> Any:
        """The function of a segment that leaves nothing to do in Python."""
        if segment.end is not None:
            return binding.call
        at = segment.keys_out.index(segment.condition)
        holder = None if binding.unseen == at else Tensor
        turn: Turn = Turn(binding.call, MISS, at, holder, "_array",
                          lambda outcome, values: enter(turn.learn, outcome, values))  # fmt: skip
        return turn.call

    def way_on(self, segment: Segment, names: list[str], result: str) -> list[str]:
        """The lines after a segment ran: the end of the call, or the next segment."""
        if segment.end is not None:
            return [f"return {result}"]
        at = segment.keys_out.index(segment.condition)
        values = "".join(f"{name}, " for name in names)
        return [
            f"results = {result}",
            f"outcome = bool(results[{at}]._array)",
            "following = known.get(outcome)",
            f"if following is None: following = enter(outcome, ({values}*results,))",
            f"return following({values}*results)",
        ]

    def entering(self, segment: Segment, count: int, places: dict[Any, int],
                 unseen: int | None) -> Any:  # fmt: skip
        """A function that finds the next one for an outcome that was not met here before."""
        after = {**places, **{key: count + k for k, key in enumerate(segment.keys_out)
                              if k != unseen}}  # fmt: skip

        def enter(learn: Any, outcome: bool, values: tuple[Any, ...]) -> Any:
            child = segment.children.get(outcome)
            if self.hands_back is not self.trace.hands_back:
                return lambda *_: MISS  # see Note [Handed back]
            if child is None or not all(k in after for k in child.keys_in if k[0] != "in"):
                return lambda *_: MISS  # to be recorded, or bound anew with what was recorded
            try:
                following = self.stage(child, list(values), after)
            except Unbindable:
                following = self.unbound(child, after)
            learn(outcome, following)
            return following

        return enter

    def unbound(self, segment: Segment, places: dict[Any, int]) -> Any:
        """Goes on without bound calls."""
        trace, count = self.trace, self.count
        return lambda *values: trace.replay_from(
            segment, values[:count], {key: values[at] for key, at in places.items()})  # fmt: skip
