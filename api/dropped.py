"""Kinds of call that were dropped to make room for others.

Note [Kinds that come once]
    A body that is given another number at each call (`step(x, k)`) is a new kind of call each time:
    recording takes a thousand times what an eager call takes, and nothing is ever replayed. So once
    many kinds were dropped that never came again, a new one runs eagerly until it has been seen
    before: twice, and twice as often with each such number of kinds that were recorded in vain.
    So it is with kinds that were refused, which are as many at most.
"""

from __future__ import annotations

from typing import Any

MAX_IDLE = 64
MAX_SEEN = 4096  # kinds that are counted
MAX_DOUBLINGS = 10


class Dropped:
    """What is known of them."""

    def __init__(self) -> None:
        self.count = self.idle = 0
        self.seen: dict[Any, int] = {}  # how often kinds came that were not recorded
        self.again: set[Any] = set()  # refused kinds that came once more

    def add(self, traces: list[Any]) -> None:
        """The traces of a kind are no longer kept."""
        self.count += 1
        self.idle += not any(trace.hits for trace in traces)

    def make_room(self, function: Any, most: int) -> None:
        """Forgets kinds of `function` that gave no trace, beyond `most`, the oldest first.

        Those that came again since stay for another round.
        """
        refusals, warmups = function.refusals, function.warmups
        while len(refusals) >= most:
            key, reason = next(iter(refusals.items()))
            del refusals[key]
            if key in self.again:
                self.again.discard(key)
                refusals[key] = reason
            else:
                function.body.pays.pop(key, None)
                self.forget(function, key)
        while len(warmups) >= most:
            key = next(iter(warmups))
            del warmups[key]
            if key not in function.traces and key not in refusals:
                self.forget(function, key)

    def forget(self, function: Any, key: Any) -> None:
        function.dynamic.forget(key)
        self.count += 1
        self.idle += 1

    @property
    def needed(self) -> int:
        """How often a kind must come to be recorded."""
        return 1 << min(self.idle // MAX_IDLE, MAX_DOUBLINGS)

    def is_due(self, key: Any) -> bool:
        """Is a kind that has come now to be recorded?"""
        if self.needed == 1:
            return True
        times = self.seen.pop(key, 0) + 1
        if times >= self.needed:
            return True
        self.seen[key] = times
        if len(self.seen) > MAX_SEEN:
            del self.seen[next(iter(self.seen))]
        return False

    def describe(self, kept: int) -> list[str]:
        """Lines for `explain`."""
        lines = []
        if self.count:
            lines.append(f"  {self.count} kinds of call were dropped, the longest unused first: "
                         f"at most {kept} are kept")  # fmt: skip
        if self.needed > 1:
            lines.append(f"  {self.idle} of them had never come again: new kinds run eagerly until "
                         f"they have come {self.needed} times; pass a number that differs at each "
                         "call as a float or a tensor")  # fmt: skip
        return lines
