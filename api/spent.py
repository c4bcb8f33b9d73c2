"""History of results whose backward already ran inside a compiled function.

Note [Spent history]
    Eager's nodes stay when backward has gone through them: those that kept nothing can be gone
    through again, the others raise, and leaves that were reached before have their gradients then.
    So the node of such a result knows the leaves behind it, and when a gradient comes, the recorded
    ops take its place, freed (Note [Errors in backward] in expanding.py). Nothing is kept of their
    values, so they run on zeros.
"""

from __future__ import annotations

from typing import Any

from .custom_backwards import Customs
from .expanding import behind, link, zeros
from .ir.bind import state
from .ir.cached import cached_property
from .ir.graph import RESULT, Graph, Output
from .ir.inline import inline
from .ir.passes import dead_code
from .ir.reverse import reached
from .tracer.eager import history
from .tracer.engine import Expanded
from .tracer.inplace import look
from .tracer.quiet import quiet, restore
from .tracer.saved import FREED, Freed
from .tracer.tape import Node, next_sequence, user_place


class SpentOps:
    """The ops of a path behind one of its results, or behind a view of it."""

    def __init__(self, path: Any, number: int, chain: Any):
        self.path, self.number, self.chain = path, number, chain

    @cached_property
    def graph(self) -> Graph:
        """What leads to the result."""
        results = [o.var for o in self.path.graph.outputs if o.kind == RESULT]
        return dead_code.run(self.path.graph.replace(outputs=(Output(results[self.number]),)))

    @cached_property
    def wanted(self) -> tuple[int, ...]:
        """The inputs that gradients come to."""
        known = reached(self.graph, [0])
        return tuple(k for k, flag in enumerate(self.path.flags) if flag and k in known)

    @cached_property
    def sources(self) -> list[Any]:
        """Where these come from."""
        return [self.path.sources[k] for k in self.wanted]

    def again(self, edges: Any, freed: Freed) -> Any:
        """The edge of the result into nodes of its ops, which are freed; None where none is."""
        mode, token = state.grad_enabled, quiet()
        state.grad_enabled = True
        try:
            values = zeros(self.graph)
            link(values, self.wanted, edges)
            customs = Customs(self.graph, self.path.customs, {})
            (result,) = inline(self.graph, values, again=True, run=customs.run)
            result = look(result, self.chain) if self.chain else result
            for node in behind([result], edges):
                node.release(freed)
            return result._node and (result._node, result._nr)
        except Exception:
            return None  # zeros led to another error
        finally:
            state.grad_enabled = mode
            restore(token)


# what is in the slots of a new one, beside what its call gives
SPENT_SLOTS: tuple[tuple[str, Any], ...] = (
    ("extra", None), ("made", None), ("ops", None), ("known", ()), ("given", ()),
)  # fmt: skip


class SpentNode(Node):
    """See Note [Spent history]. `known` are the tensors behind it, None for those in `given`."""

    __module__ = "builtins"
    __slots__ = ("given", "known", "made", "ops")
    made: Any  # the edge into nodes of ops, once a gradient came

    def __init__(self, ops: SpentOps | None = None, leaves: Any = ()) -> None:
        for slot, value in SPENT_SLOTS:
            setattr(self, slot, value)
        self.ops = ops
        if ops is not None:
            self.known = tuple([source(leaves) for source in ops.sources])
            if any(tensor._node is not None for tensor in self.known):
                _ = self.edges  # leaves keep theirs
        self.place, self.sequence = user_place(), next_sequence()

    def __getattr__(self, name: str) -> Any:
        if name != "edges":
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        given = iter(self.given)
        self.edges = tuple([history(next(given) if tensor is None else tensor)
                            for tensor in self.known])  # fmt: skip
        return self.edges

    def apply(self, grads: list[Any]) -> list[Any]:
        if self.made is None and self.ops is not None:
            self.made = self.ops.again(self.edges, Freed(self.place))
        if self.made is None:
            raise RuntimeError(FREED)
        arrived = [grad for grad in grads if grad is not None]
        raise Expanded(RuntimeError(FREED), [self.made] * len(arrived), arrived)


SpentNode.__name__ = SpentNode.__qualname__ = "CompiledFunctionBackward"
