"""Replaying a recorded trace: a tree of compiled segments."""

from __future__ import annotations

from typing import Any

import numpy as np

from .ir.bind import epoch, state
from .ir.graph import Graph
from .packing import PackedFunction
from .paths import Path
from .runtime.freed_memory import give_back
from .segments import Segment, cut, merge
from .settings import Settings
from .sharing import shared_arguments
from .sources import Fact, Identities, is_same
from .tracer.inplace import overlaps
from .tracer.recorded_facts import hooks_of

MISS = object()
LARGE_ARENA = 8 << 20


class Trace:
    """All recorded paths for one kind of call: a tree of compiled segments.

    A segment ends where Python looked at the truth of a value. Replay runs a segment, looks at the
    value, and goes on in the child for that outcome; an unknown outcome means a new path must be
    recorded. Nothing is written before the last segment, so giving up leaves no trace.
    """

    frames = 1  # of Python, around what is bound and not served by native code alone

    def __init__(self, path: Path, settings: Settings, why: str = ""):
        self.settings, self.why = settings, why
        self.environment = path.environment
        self.grad_guards, self.grad_keys = path.grad_guards, path.grad_keys
        self.comparisons, self.comparison_keys = path.comparisons, path.comparison_keys
        self.bound: list[Any] = []
        self.fixed: list[Any] = []  # see Note [Shared arguments]
        self.hooks: list[Any] = []
        sizes = ", ".join(f"{name} = {size}" for name, size in (path.sizes or {}).items())
        self.sizes = f" at {sizes}" if sizes else ""
        self.history = bool(path.needs)
        self.graphs: list[Graph] = []
        self.generators: dict[Any, None] = {}  # that its paths draw from
        self.written: list[tuple[list[Any], Any]] = []  # of paths that write: what is shared
        self.replays = 0
        self.counter = np.zeros(1, np.int64)  # of calls that native code served by itself
        self.targets: list[Any] = []  # what they write, beside arguments
        self.used = 0  # when it served last, counted in the function's calls
        self.rebinds = self.served = 0  # shortcuts made in a row without a call that they served
        self.root: Segment | None = None
        self.loaded = False
        self.packs = path.packs
        self.hands_back = False  # see Note [Handed back]
        self.packed: Any = None  # what runs then: see Note [Packed calls]
        self.insert(path)

    @property
    def hits(self) -> int:
        """How many calls it served."""
        return self.replays + int(self.counter[0])

    def reads(self, place: int) -> bool:
        """Must the argument at a place be as it was? See `Piece.reads`."""
        return True

    def may_bind(self, limit: int) -> bool:
        """Were fewer shortcuts than that made since one served a call? This will be one more."""
        served = int(self.counter[0])
        if served != self.served:
            self.rebinds, self.served = 0, served
        self.rebinds += 1
        return self.rebinds <= limit

    def insert(self, path: Path) -> None:
        """Adds a path; segments it shares with earlier paths are kept."""
        if path.environment is not self.environment:
            self.environment.rely_on(path.environment.looks)
        self.graphs.append(path.graph)
        self.bound += [r for r in path.bound if not r.is_fixed]
        self.fixed += [r for r in path.bound if r.is_fixed]
        self.hooks += path.hooks
        self.hands_back = self.hands_back or path.hands_back
        self.generators.update(dict.fromkeys(path.generators))
        if path.writes():
            self.written.append((path.tensor_sources(), path.shared))
            self.targets += path.targets()
        self.history = self.history or bool(path.needs)
        self.root = merge(self.root, cut(path, self.settings))

    def applies(self, leaves: list[Any]) -> str | None:
        """Why this trace can't be used for a call now, or None."""
        environment = self.environment
        reason = environment.quick_failure()
        if reason is None and environment.epoch != epoch.value:
            reason = self.outside_change() or environment.failure()
        if reason is not None:
            return reason
        for read, how, other, outcome in self.comparisons:
            value = read(leaves)
            unset = value is None and how is not is_same
            if (False if unset else bool(how(value, other))) is not outcome:
                if isinstance(read, Fact | Identities):
                    return f"{read.name} of a tensor differs"
                return "a comparison of a number came out differently"
        if not all(relation.holds(leaves) for relation in self.bound):
            return "an argument was a tensor that the body also reads, and now is another"
        for sources, shared in self.written:
            if shared_arguments([source(leaves) for source in sources]) != shared:
                return "tensors share memory in another way"
        for owner, was_none in self.grad_guards:
            if (owner(leaves)._grad is None) is not was_none:
                return ".grad of a parameter was " + ("None" if was_none else "a tensor")
        targets = [target(leaves) for target in self.targets]
        if any(t is not None and overlaps(t._array) for t in targets):
            return "elements of what is written share memory"
        return None

    def outside_change(self) -> str | None:
        """Tensors from outside were traced as they were: with other hooks, or in other memory of
        each other, they need a new trace."""
        for tensor, before in self.hooks:
            if hooks_of(tensor) != before:
                return "hooks of a parameter changed"
        if not all(relation.holds([]) for relation in self.fixed):
            return "tensors share memory in another way"
        return None

    def replay(self, leaves: list[Any]) -> Any:
        """The result of the call, or MISS where the path taken is not known."""
        return self.replay_from(self.root, leaves, {})

    def replay_from(self, segment: Any, leaves: Any, values: dict[Any, Any]) -> Any:
        """`replay` where some segments ran already, which made `values`."""
        history = self.history
        while True:
            inputs = segment.inputs(leaves, values)
            if inputs is None:
                return MISS
            if self.packed is None:
                results = segment.function.run_for(inputs, history)
            else:
                results = self.packed.run(inputs, leaves)
            if state.inference:
                for tensor in results:
                    tensor._mark = "inference"
            if segment.end is not None:
                self.replays += 1
                return segment.end.finish(leaves, results)
            values.update(zip(segment.keys_out, results))
            outcome = bool(values[segment.condition])
            child = segment.children.get(outcome)
            if child is None:
                return MISS
            segment = child

    def ready(self, segment: Segment) -> tuple[Any, ...]:
        """What is compiled of a segment: forward and backward, or forward alone, or nothing."""
        return segment.function.ready(segment.wanted(self.history))

    def accepts(self, path: Path) -> bool:
        """Is a new path one of ours: recorded under the same guards, parting at a branch?"""
        if not path.branches or self.root.end is not None:
            return False
        if path.grad_keys != self.grad_keys or path.comparison_keys != self.comparison_keys:
            return False  # what it compared is compared before the first segment
        if path.environment.varied.keys() != self.environment.varied.keys():
            return False
        return self.environment.failure() is None

    def segments(self) -> list[Segment]:
        """All segments, parents first."""
        found, stack = [], [self.root]
        while stack:
            segment = stack.pop()
            found.append(segment)
            stack.extend(segment.children.values())
        return found

    def prepare(self) -> None:
        """Begins to compile what the next call will need."""
        if self.packs:
            self.packed = PackedFunction(self.root)
        else:
            for segment in self.segments():
                segment.function.prepare(segment.wanted(self.history))
        self.loaded = False

    def load(self) -> None:
        """Waits until that can run; see Note [Compiling ahead]."""
        for segment in self.segments():
            for executor in self.ready(segment):
                executor.load()
                if executor.arena_size > LARGE_ARENA:
                    give_back()  # the recorded call needed as much
        self.loaded = True

    def rewinding(self, call: Any) -> Any:
        """`call`, which takes its random draws back where it stops in the middle."""
        if not self.generators or not self.may_stop():
            return call
        generators = list(self.generators)

        def careful(*arguments: Any) -> Any:
            before = [(g, g.snapshot()) for g in generators]
            result = MISS
            try:
                result = call(*arguments)
            finally:
                if result is MISS:
                    for generator, known in before:
                        generator.resume(known)
            return result

        return careful

    def may_stop(self) -> bool:
        """Can a replay end at a branch never taken, or by an error?"""
        if self.root.end is None:
            return True
        ready = self.ready(self.root)
        return any(e.native is None or e.native.runnable.may_fail for e in ready)

    def describe(self) -> list[str]:
        """Lines for `explain()`."""
        lines = []
        for graph in self.graphs:
            lines.append(f"  trace of {len(graph.nodes)} ops{self.sizes}")
        if self.why:
            lines.append(f"    recorded as no other one fits: {self.why}")
        lines.append(f"  replayed {self.hits} times")
        outcomes: dict[str, set[bool]] = {}
        for segment in self.segments():
            if segment.place is not None:
                outcomes.setdefault(str(segment.place), set()).update(segment.children)
        lines += [f"    branch on a value ({place}), outcomes seen: {len(seen)}"
                  for place, seen in outcomes.items()]  # fmt: skip
        return lines
