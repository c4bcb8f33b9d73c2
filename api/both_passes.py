"""A compiled function with history: forward that saves, and backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .arrivals import Reads, arrivals, left_to_read
from .custom_backwards import Careful
from .executor import Executor
from .ir.graph import RANDOM, RESULT, WRITE
from .ir.partition import Partition
from .rewritten import AsEager, handed_on
from .shared import Shared, shared_by
from .to_leaves import ToLeaves


class Split:
    """Forward that saves, and backward, of a GraphFunction for gradients of the inputs in `wanted`.

    `rereads` says that backward must know of writes; see Note [Written inputs] in rewritten.py. So
    must one with create_graph, where eager keeps what it would compute again: `watches`.
    `kept` are the first of the inputs that backward is given again: their arrays are saved; see
    Note [Replaced memory] in replaced.py.
    """

    __slots__ = ("__weakref__", "album", "as_eager", "backward", "complete", "cores", "forward",
                 "function", "handed_on", "kept", "layouts", "lefts", "orders", "overwritten",
                 "parts", "rereads", "shared", "to_leaves", "wanted", "watches")  # fmt: skip

    def __init__(self, function: Any, wanted: tuple[int, ...], parts: Partition, forward: Executor,
                 backward: Executor, as_eager: AsEager):  # fmt: skip
        self.function, self.wanted, self.parts = function, wanted, parts
        self.forward, self.backward, self.as_eager = forward, backward, as_eager
        # do all that are wanted get a gradient, where all arrive?
        self.complete = all(function.reached[k] for k in wanted)
        self.to_leaves: dict[int, ToLeaves | Careful] = {}  # by result
        self.album: Any = None  # see Note [Familiar graphs]
        self.orders: dict[Any, list[int]] = {}  # see `arrivals`
        self.layouts: dict[Any, Any] = {}  # see Note [Gradients in memory]
        self.cores: dict[Any, Executor] = {}  # what computes them
        self.lefts: dict[Any, Reads] = {}  # see `left_to_read`
        # inputs of which eager's saved values are made, and which the function itself writes over
        inputs = function.trace.inputs
        written = {o.target for o in function.trace.outputs
                   if o.kind == WRITE and inputs[o.target].kind != RANDOM}  # fmt: skip
        self.overwritten = sorted(written & as_eager.read_inputs)
        viewed = as_eager.viewed - function.inner
        self.kept = tuple(k for k in parts.saved_inputs if k in viewed)
        self.handed_on = handed_on(function.trace, function.held)  # see Note [Handed on]
        self.shared: Shared = shared_by(self)
        self.rereads = bool(
            function.held
            or parts.rereads
            or {*parts.saved_inputs} != {*as_eager.saved_inputs}
            or self.shared.goes_on()
            or any(function.passed)
            or not as_eager.parts.direct.isdisjoint(viewed)
        )
        self.watches = self.rereads or bool(as_eager.sources or function.parts)

    @property
    def executors(self) -> tuple[Executor, Executor]:
        return self.forward, self.backward

    def for_gradients(self, given: tuple[int, ...]) -> tuple[Executor, Sequence[int]]:
        """Backward when these gradients arrive, and which of `wanted` it computes."""
        if self.complete and len(given) == len(self.function.out_types):
            return self.backward, range(len(self.wanted))
        return self.function.reduced(self.wanted, given)  # type: ignore[no-any-return]

    def left(self, given: tuple[int, ...]) -> tuple[tuple[int, ...], list[Any]]:
        """Which of `wanted` get a gradient when these arrive, and the types of these."""
        left = self.function.gradients_of(self.wanted, given)
        return left, [self.function.trace.inputs[self.wanted[k]].var.type for k in left]

    def arrivals(self, given: tuple[int, ...], silent: frozenset[int]) -> list[int]:
        """Which of `wanted` gets its gradient first, second, ... in eager."""
        known = self.orders.get((given, silent))
        if known is None:
            graph = self.function.trace
            known = arrivals(graph, self.wanted, self.values_of(given), silent)
            self.orders[given, silent] = known
        return known

    def values_of(self, given: Sequence[int]) -> list[Any]:
        """The results that these gradients are of, in the recorded graph."""
        results = [o.var for o in self.function.trace.outputs if o.kind == RESULT]
        return [results[self.function.differentiable[k]] for k in given]

    def left_to_read(self, given: tuple[int, ...], silent: frozenset[int], at: int) -> Reads:
        """The inputs that eager kept for what is read when the leaf at that position is served."""
        known = self.lefts.get((given, silent, at))
        if known is None:
            graph = self.function.trace
            known = left_to_read(graph, self.wanted, self.values_of(given), silent, at)
            known = Reads(*[inputs & self.as_eager.inputs for inputs in known])
            self.lefts[given, silent, at] = known
        return known
