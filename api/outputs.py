"""What a recorded call hands out: how its results and new `.grad` fields are made at a replay."""

from __future__ import annotations

import collections
import functools
import operator
from collections.abc import Mapping
from typing import Any

from .for_inference import ForInference, ViewForInference
from .given_back import Answer, Same
from .ir.bind import state
from .ir.dims import as_formulas
from .ir.graph import Var
from .ir.ops.layouts import memory_order
from .ir.ops.views import inverse, permute_op
from .ir.reverse import masks_behind, places_of
from .plain import is_constant
from .returns import Handed
from .saved_values import is_spent
from .sources import (
    Argument,
    ComputedFloat,
    ComputedView,
    Converted,
    Counter,
    CustomView,
    Direct,
    Given,
    GivenFloat,
    MadeLeaf,
    OnTheWay,
    Plain,
    Shared,
    ViewOfDetached,
    ViewOfInput,
    Whole,
)
from .tracer.recorded import Refused
from .tracer.scalars import RunTimeNumber
from .tracer.tensor import Tensor

# by result that the body wrote: how often, and where last
Versions = Mapping[int, tuple[int, Any]]


class Outputs:
    """`results` are computed; `makers` and `grad_effects` say what becomes of them.

    Note [Unseen bases]
        Many modules end in a view, as `Linear` does for batches of sequences. Where nobody else
        sees the memory, and the view shows all of it in its order, the view is the result: making
        it again at each call would take longer than a short call does. Its base is made when
        somebody asks for it (Note [Late bases]).

    Note [Turned results]
        Native code hands out row-major arrays. Where eager's result has its dimensions in another
        order in memory, as `x.t() * 2` has, the graph computes the result in that order, and the
        caller gets it turned back: strides decide what `view()` accepts. Views of it, or several
        results in its memory, have what is turned back in common, as eager's base.

    Note [Parts on the way]
        A result that shows a part of a tensor, or is turned, is looked at from the whole one, which
        is computed: its history leads there. Where another result is computed of it, gradients
        pass by it inside the call (Note [Results on the way]). So it has a result of its own, whose
        history it gets; so have all that lie in its memory, since views are made of views.
    """

    def __init__(self, recording: Any, leaves: list[Any]):
        self.recording, self.recorder = recording, recording.recorder
        self.results: list[Tensor] = []
        self.views: set[int] = set()  # numbers of results that are views, as they are
        self.histories: set[int] = set()  # those that give parts theirs; see below
        self.orders: dict[int, tuple[int, ...]] = {}  # by id of memory; see Note [Turned results]
        self.counters: dict[int, int] = {}  # by id of storage
        owners = self.owners()
        inner = (leaf for leaf in leaves if self.recorder.is_made_leaf(leaf))
        gradients = [t._grad for t in (*owners, *inner) if t._grad is not None]
        self.uses = self.count_uses([*leaves, *gradients])
        # by id of tensor: how often it is handed out, or a view of it whose base must be this one
        shown = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        bases = [base for leaf in shown if (base := self.base_of(leaf)) is not None]
        self.shown = collections.Counter(map(id, (*shown, *bases, *gradients)))
        self.on_the_way = self.passed_in_part(shown)
        # What has history comes first, then what is no view: results on one memory share that of
        # the first of them.
        order = sorted(range(len(leaves)), key=lambda k: self.rank(leaves[k]))
        made = {k: self.maker(leaves[k]) for k in order}
        self.makers = [made[k] for k in range(len(leaves))]
        self.grad_effects = [self.grad_effect(owner) for owner in owners]

    def passed_in_part(self, leaves: list[Tensor]) -> set[int]:
        """Ids of the memory of such leaves; see Note [Parts on the way]."""
        recorder = self.recorder
        found = [leaf for leaf in {id(leaf): leaf for leaf in leaves}.values()
                 if leaf._node is not None and self.history(leaf) == "recorded"]  # fmt: skip
        entries = [recorder.entries[id(leaf)] for leaf in found]
        memories = [id(entry.memory) for entry in entries]
        parts = [shows_part(leaf, entry) for leaf, entry in zip(found, entries)]
        if len(found) < 2 or not (any(parts) or recorder.written_views):
            return set()
        nodes = recorder.with_views_of_bases({*memories})
        behind = masks_behind(nodes, places_of([entry.var for entry in entries]))
        mask = functools.reduce(operator.or_, [behind.get(entry.var, 0) for entry in entries])
        seen = [k for k in range(len(found)) if mask >> k & 1]
        recorder.builder.nodes = recorder.with_views_of_bases({memories[k] for k in seen})
        return {memories[k] for k in seen if parts[k]}

    def rank(self, leaf: Any) -> tuple[bool, bool, bool]:
        """Leaves of a lower rank are made first."""
        entry = self.recorder.entries.get(id(leaf))
        history = getattr(leaf, "_requires_grad", False) and not self.recorder.is_made_leaf(leaf)
        return not history, entry is not None and bool(entry.chain), entry is not None and entry.cut

    def variables(self) -> list[Var]:
        """The Vars of the results."""
        return [self.recorder.var_of(t) if k in self.views else self.whole(t)
                for k, t in enumerate(self.results)]  # fmt: skip

    def versions(self) -> Versions:
        """Writes that eager counts in the memory of results."""
        known = [(k, t._storage) for k, t in enumerate(self.results) if k not in self.histories]
        return {k: (s.version, s.written) for k, s in known if s is not None and s.version}

    def whole(self, tensor: Tensor) -> Var:
        """The memory a result lies in, in the order it is handed out; see Note [Turned results]."""
        recorder = self.recorder
        order = self.orders.get(id(recorder.entries[id(tensor)].memory))
        var = recorder.base_var(tensor)
        return var if order is None else recorder.turned(var, order)

    def count_uses(self, leaves: list[Any]) -> collections.Counter[int]:
        """How many tensors lie in each piece of memory that is handed out, by its id."""
        tensors = {id(t): t for t in (x.tensor if isinstance(x, Handed) else x for x in leaves)
                   if isinstance(t, Tensor)}  # fmt: skip
        for tensor in tensors.values():
            self.recorder.var_of(tensor)
        return collections.Counter(id(self.recorder.entries[key].memory) for key in tensors)

    def is_all_there_is(self, leaf: Tensor, entry: Any) -> bool:
        """See Note [Unseen bases]."""
        view = leaf._view
        if view is None or view.origin or self.uses[id(entry.memory)] > 1:
            return False
        if leaf._requires_grad and is_spent(self.recorder, leaf):
            return False
        whole = view.base._array
        return leaf.dtype is view.base.dtype and leaf._array.size == whole.size and all(
            array.flags.c_contiguous for array in (leaf._array, whole))  # fmt: skip

    def maker(self, leaf: Any) -> Any:
        """How to make one leaf of the output at replay."""
        if isinstance(leaf, Handed):
            return Converted(self.maker(leaf.tensor), leaf.how)
        if not isinstance(leaf, Tensor):
            if isinstance(leaf, Answer | Same):
                return Plain(leaf if isinstance(leaf, Answer) else leaf.value)
            place = self.recording.plain_places.get(id(leaf))
            if place is not None:
                return Given(Argument(place))
            if not is_constant(leaf) and id(leaf) not in self.recording.environment.seen:
                raise made_inside(leaf)
            return Plain(as_formulas(leaf))
        recorder = self.recorder
        recorder.var_of(leaf)
        if isinstance(leaf, RunTimeNumber):
            return self.number_result(leaf)
        for position, external in enumerate(recorder.externals):
            if external is leaf:
                return Given(self.recording.sources[position])
        if self.recording.is_from_outside(leaf):  # in the memory of an external one
            return Given(self.recording.owner_source(leaf))
        maker = self.in_mode(leaf, self.view(leaf) or self.own_maker(leaf))
        if self.shown[id(leaf)] > 1 and not isinstance(maker, Direct):
            return Shared(id(leaf), maker)  # the same tensor each time
        return maker

    def own_maker(self, leaf: Tensor) -> Any:
        """How a tensor that the body made is made of its memory."""
        recorder = self.recorder
        entry = recorder.entries[id(leaf)]
        if type(leaf) is not Tensor and not entry.outside:
            raise made_inside(leaf)
        if recorder.is_made_leaf(leaf) and not self.is_unseen(leaf):
            grad = None if leaf._grad is None else self.maker(leaf._grad)
            return MadeLeaf(self.value(entry, leaf, "none"), grad)
        history = self.history(leaf)
        passed = history == "recorded" and id(entry.memory) in self.on_the_way
        made = self.value(entry, leaf, history)
        if not passed or isinstance(made, Direct):
            return made
        number = self.result_of_its_own(leaf)
        self.histories.add(number)
        return OnTheWay(made, number)

    def in_mode(self, leaf: Tensor, made: Any) -> Any:
        """`made`, in `inference_mode()` or out of it as the leaf was, where the call is not."""
        outside = self.recorder.entries[id(leaf)].memory.external is not None
        if outside or (leaf._mark == "inference") is state.inference:
            return made
        if state.inference:
            raise Refused("the body returns what it made outside of inference_mode(); leave that "
                          "outside")  # fmt: skip
        return ForInference(made.number) if type(made) is Direct else ViewForInference(made)

    def history(self, leaf: Tensor) -> str:
        """Can backward go on from a leaf?"""
        if self.is_unseen(leaf):
            return "unseen"
        if not leaf._requires_grad:
            return "none"
        return "spent" if is_spent(self.recorder, leaf) else "recorded"

    def is_unseen(self, leaf: Tensor) -> bool:
        """Is it a view without a node, made by no_grad(), of a base with history?"""
        view, entries = leaf._view, self.recorder.entries
        if view is None or leaf._node is not None or leaf._grad is not None:
            return False
        known = entries.get(id(view.base))
        if known is None:  # it may be that of an argument, which is a view itself
            cut = entries[id(leaf)].memory.external is None
        else:
            cut = known.cut
        return bool(view.origin and view.base._requires_grad and not cut)

    def base_of(self, leaf: Tensor) -> Tensor | None:
        """What a leaf is a view of, where that is not the whole memory with its own history: a
        custom Function made the view, or it shows a leaf of autograd's graph that the body made, or
        what was detached from what else is seen."""
        entries = self.recorder.entries
        if leaf._view is None or id(leaf) not in entries:
            return None
        base = leaf._view.base
        if entries[id(leaf)].var in self.recorder.custom_views and leaf._requires_grad:
            return base
        if self.is_of_made_leaf(leaf):
            return base
        known = entries.get(id(base))
        if known is None or not known.cut or known.outside or self.uses[id(known.memory)] == 1:
            return None
        return None if base._requires_grad else base

    def is_of_made_leaf(self, leaf: Tensor) -> bool:
        """Is it a view with history of a leaf that the body made? Looking from that gives it."""
        return leaf._node is not None and self.recorder.is_made_leaf(leaf._view.base)

    def view(self, leaf: Tensor) -> Any:
        """How such a view is made; None where it is none."""
        base = self.base_of(leaf)
        if base is None:
            return None
        view, maker = leaf._view, self.maker(base)
        chain = as_formulas(view.chain)
        if not leaf._requires_grad or self.is_of_made_leaf(leaf):
            return ViewOfDetached(maker, chain, view.origin)
        if self.history(leaf) == "spent":
            raise Refused("the body returns a view that a custom Function made, and backward ran "
                          "from it; clone() it")  # fmt: skip
        return CustomView(maker, chain, view.origin, self.result_of_its_own(leaf))

    def value(self, entry: Any, leaf: Tensor, history: str) -> Any:
        """A view of a tensor from outside, or computed."""
        if entry.memory.external is None:
            return self.internal_result(leaf, entry, history)
        source, chain = self.recording.sources[entry.memory.external], as_formulas(entry.chain)
        outside = self.recorder.externals[entry.memory.external]
        counter = self.counter(leaf, outside)
        return ViewOfInput(source, chain, history, origin_of(leaf), counter)

    def number_result(self, leaf: Any) -> Any:
        """A run-time number is handed back as the Python float it stands for."""
        known = self.recording.numbers.get(id(leaf))
        if known is not None:
            return GivenFloat(known[1])
        return ComputedFloat(self.result_number(leaf, self.recorder.entries[id(leaf)]))

    def internal_result(self, leaf: Tensor, entry: Any, history: str) -> Any:
        """A computed value; several results on one memory share it again at replay."""
        if entry.chain and self.is_all_there_is(leaf, entry):
            return Whole(self.result_of_its_own(leaf), as_formulas(tuple(leaf._view.base.shape)))
        number = self.result_number(leaf, entry)
        order = self.orders.get(id(entry.memory))
        alone = history == "none" and self.results[number] is leaf
        if not entry.chain and order is None and (history == "recorded" or alone):
            return Direct(number)  # only results in `needs` are given history
        back = () if order is None else ((permute_op, {"dims": inverse(order)}, 0),)
        is_part = history == "none" and bool(entry.chain)  # that was detached
        is_base = leaf._view is None and (is_part or self.uses[id(entry.memory)] == 1)
        chain, turn = as_formulas(entry.chain), as_formulas(back)
        if is_base:
            chain, turn = (*turn, *chain), ()
        elif turn and alone and not chain:
            history = "recorded"  # as above
        counter = self.counter(leaf, self.results[number])
        return ComputedView(number, chain, history, is_base, origin_of(leaf), counter, turn)

    def counter(self, leaf: Tensor, owner: Tensor) -> Counter | None:
        """What counts the writes of a leaf, where that is not what counts its memory's."""
        storage = leaf._storage
        if storage is None or storage is owner.storage_:
            return None
        number = self.counters.setdefault(id(storage), len(self.counters))
        return Counter(number, storage.version, storage.written)

    def result_number(self, leaf: Tensor, entry: Any) -> int:
        for number, tensor in enumerate(self.results):
            if number in self.views:
                continue  # nothing else lies in its memory, or it shows another result's
            if self.recorder.entries[id(tensor)].memory is entry.memory:
                return number
        self.results.append(leaf)
        order = order_in_memory(leaf, entry)
        if order is not None:
            self.orders[id(entry.memory)] = order
        return len(self.results) - 1

    def result_of_its_own(self, leaf: Tensor) -> int:
        """The number of a result that is as `leaf` is, not the whole memory."""
        self.results.append(leaf)
        self.views.add(len(self.results) - 1)
        return len(self.results) - 1

    def owners(self) -> list[Tensor]:
        """The tensors whose `.grad` differs after the call from before."""
        touched = {id(t): t for t in self.recorder.externals}
        touched.update(self.recorder.grad_assigned)
        return [t for key, t in touched.items() if key in self.recorder.grad_changed]

    def grad_effect(self, owner: Tensor) -> tuple[Any, Any]:
        maker = None if owner._grad is None else self.maker(owner._grad)
        return self.recording.owner_source(owner), maker


def shows_part(leaf: Tensor, entry: Any) -> bool:
    """Is it a view, or turned in memory that the body made?"""
    if entry.chain or entry.memory.external is not None:
        return bool(entry.chain)
    return order_in_memory(leaf, entry) is not None


def origin_of(leaf: Tensor) -> str:
    return "" if leaf._view is None else leaf._view.origin


def made_inside(result: Any) -> Refused:
    return Refused(f"the body returns a {type(result).__name__} that it made; return tensors, "
                   "numbers, or containers of them")  # fmt: skip


def order_in_memory(leaf: Tensor, entry: Any) -> tuple[int, ...] | None:
    """Dimensions of a result's memory from the slowest to the fastest, if it is not row-major."""
    array = leaf._array if leaf._view is None else leaf._view.base._array
    if entry.chain and leaf._view is None:
        array = leaf.storage_.root
    return memory_order(array) if len(entry.memory.var.type.shape) == array.ndim else None
