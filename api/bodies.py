"""Calls that run the Python body with its arithmetic in compiled windows.

A body that can't be replayed without Python (it looks at values, changes Python's state) runs under
a `Deferral`. What it computes between two looks at a value is one compiled graph, made here.

Note [Small tensors]
    Postponing an op takes some 10 us of Python, three times what an eager op with little to do
    takes in all. So a kind of call whose results are small runs eagerly from its second time on.
    An eager op on WORTH elements takes about these 10 us longer than its share of a fused kernel.
    Bodies that can be taken apart are not postponed: Note [Pieces of a body] in outlining.py.

    Calls like it are known again by native code (`like`), which need not be sure: whatever the call
    is, the body does what it should.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .class_tests import asks_for_types
from .environment import Environment
from .executor import own
from .graph_function import GraphFunction
from .ir import interp
from .ir.bind import interpreting, state
from .ir.graph import Graph
from .pytree import flatten
from .runtime import fastcall, layout, watch
from .runtime.expected import Argument, Array, Fixed, Float
from .settings import DEFAULT, Settings
from .tracer.deferral import Deferral, Tree
from .tracer.recorded import graph_name
from .tracer.steps import Assembly, Step
from .tracer.tensor import Tensor
from .unpacking import taking_apart

WORTH = 1 << 16  # elements of a step's results, on average
MAX_LIKE = 4  # kinds of calls that are known again
NOTHING = layout.python_function("Py_IsInitialized")  # an entry that does nothing


class Pieces(NamedTuple):
    """What runs instead of a body, and the functions that it calls; `is_clean`: nothing else but
    what must be is left to Python."""

    run: Any
    functions: tuple[Any, ...] = ()
    is_clean: bool = False


class Body:
    """A function whose body runs at every call, and the windows compiled so far."""

    def __init__(self, function: Any, name: str, on_fault: Any, settings: Settings = DEFAULT,
                 wrap: Any = None):  # fmt: skip
        self.function, self.name, self.on_fault = function, name, on_fault
        self.settings = settings
        self.tree = Tree(self.compute)
        self.postpones: bool | None = None
        self.windows: list[Window] = []
        self.calls = 0
        self.pays: dict[Any, bool] = {}  # by kind of call; see Note [Small tensors]
        self.eager: dict[Any, Any] = {}  # by kind of call: what tells that a call is of it
        self.escapes: set[Any] = set()  # places that hand values to Python
        self.wrap = wrap
        self.pieces = Pieces(function)

    def __call__(self, key: Any, args: Any, kwargs: Any) -> Any:
        self.calls += 1
        self.take_apart()
        if self.pieces.is_clean or not self.may_postpone() or not self.pays.get(key, True):
            if key not in self.eager and len(self.eager) < MAX_LIKE:
                self.eager[key] = like(args, kwargs)
            return self.pieces.run(*args, **kwargs)
        before = self.tree.size, self.tree.elements
        deferral = Deferral(self.tree)
        with interpreting(deferral):
            try:
                return self.function(*args, **kwargs)
            finally:
                deferral.close()
                if key not in self.pays:
                    self.judge(key, *before)

    def may_postpone(self) -> bool:
        """Is there nobody who would tell a postponed tensor by its type?"""
        if self.postpones is None:
            self.postpones = not asks_for_types(Environment(self.function, []).functions())
        return self.postpones

    def is_eager(self, args: Any, kwargs: Any) -> bool:
        """Is it a call whose body is known to run eagerly?"""
        for fits in self.eager.values():
            if fits(args, kwargs) is None:
                self.calls += 1
                return True
        return False

    def note_escapes(self, places: set[Any] | None) -> None:
        """Where values go to Python; None: the body must stay whole."""
        if places is None:
            self.wrap = None
        else:
            self.escapes |= places

    def take_apart(self) -> None:
        """See Note [Pieces of a body]."""
        if self.wrap is None or not self.escapes or self.settings.strict:
            return  # strictly, gradients are summed in eager's order, by which pieces do not go
        from .outlining import in_pieces  # few bodies need it

        wrap, self.wrap = self.wrap, None  # once
        try:
            self.pieces = in_pieces(self.function, self.escapes, wrap)
        except Exception as error:
            self.on_fault(error)

    def judge(self, key: Any, steps: int, elements: int) -> None:
        """Decides what becomes of a kind of call, by the steps that are new with it."""
        tree = self.tree
        if tree.size == steps:  # another kind has made the same ones
            steps = elements = 0
        self.pays[key] = tree.elements - elements >= WORTH * (tree.size - steps)

    def compute(self, step: Step, alive: Any, *memory: list[Any]) -> None:
        """Computes a window. `memory` is that of tensors from before, of floats, of results."""
        window = step.programs.get(alive)
        if window is None:
            window = self.window(step, alive)
        window.run(*memory)

    def window(self, step: Step, alive: tuple[bool, ...]) -> Window:
        """One that gives at least what is in use; new ones are compiled where a window ended."""
        for known in step.programs.values():
            if all(k in known.kept for k, wanted in enumerate(alive) if wanted):
                step.programs[alive] = known
                return known
        window = Window(self.name, step.path(), alive, self.settings)
        if step.is_end:  # else a body went on in a new way, and may never come here again
            step.programs[alive] = window
            self.windows.append(window)
            try:
                window.prepare()
            except Exception as error:
                self.on_fault(error)
        step.is_end = True
        return window

    def describe(self) -> list[str]:
        """Lines for `explain()`."""
        ops = sum(len(w.graph.nodes) for w in self.windows)
        lines = [f"    {self.calls} such calls, {len(self.windows)} compiled segments of {ops} ops"]
        if self.pieces.functions:
            inside = "\n".join(p.explain() for p in self.pieces.functions).splitlines()
            return [f"    {self.calls} such calls; what is around it is compiled:",
                    *[f"      {line}" for line in inside]]  # fmt: skip
        if False in self.pays.values():
            lines.append(f"    eagerly where results have fewer than {WORTH:,} elements on "
                         "average: postponing them would take longer")  # fmt: skip
        if not self.postpones:
            lines = ["    eagerly, since it asks for the type() of values; use isinstance()"]
        if self.tree.is_full:
            lines.append("    too many different segments: new ones run eagerly")
        return lines


def like(args: Any, kwargs: Any) -> Any:
    """A function that answers None to arguments like these in modes like now."""
    leaves: list[Any] = []
    taken = taking_apart(flatten((args, kwargs), leaves))
    if watch.trouble() or taken is None or taken.taking is None:
        return lambda args, kwargs: False
    modes = watch.modes(state, grad_enabled=state.grad_enabled, inference=state.inference)
    return fastcall.make(NOTHING, [*map(expected, leaves)], name="like", declined=False,
                         taking=taken.taking, modes=modes)  # fmt: skip


def expected(leaf: Any) -> Argument:
    """A leaf like this one."""
    if not isinstance(leaf, Tensor):
        return Float() if type(leaf) is float else Fixed(leaf)
    array = leaf._array
    strides = None if array.flags.c_contiguous else array.strides
    facts = (("dtype", leaf.dtype), ("_requires_grad", leaf._requires_grad))
    return Array(leaf.dtype.storage, array.shape, strides, holder=type(leaf), slot="_array",
                 facts=facts)  # fmt: skip


class Window:
    """The graph of a window, compiled when it is worth it."""

    def __init__(self, name: str, path: list[Step], alive: tuple[bool, ...], settings: Settings):
        self.path, self.alive = path, alive
        self.kept = tuple(k for k, wanted in enumerate(alive) if wanted)
        assembly = Assembly(graph_name(name), path, alive)
        self.graph, self.ends = assembly.graph(), assembly.ends
        self.before = len(assembly.pieces)  # the next step may have met more tensors already
        self.function = GraphFunction(self.graph, settings=settings)
        self.executor: Any = None

    def prepare(self) -> None:
        self.executor = self.function.plain()
        if self.executor.native is not None:
            self.executor.native.runnable.trust()

    def run(self, before: list[Any], floats: list[Any], roots: list[Any]) -> None:
        arrays = [*before[: self.before], *floats, *(roots[k] for k in self.kept)]
        if self.executor is not None:
            try:
                made = self.executor.call(*arrays)
            except Exception:  # nothing was written: the interpreter stops where eager would
                made = None
            if made is not None:
                for k, target in self.executor.writes:
                    if made[k] is not arrays[target]:
                        np.copyto(arrays[target], made[k])
                return
        failed = interpret(self.graph, arrays)
        if failed is not None:
            self.stop_at(failed, before, floats, roots)

    def stop_at(self, failed: Failed, before: list[Any], floats: Any, roots: Any) -> None:
        """Does what was done before the step that failed, and raises its error."""
        done = next(k for k, end in enumerate(self.ends) if failed.number < end)
        part = Assembly(self.graph.name, self.path[:done], self.alive)
        kept = [roots[k] for k in self.kept if k < len(part.roots)]
        interpret(part.graph(), [*before[: len(part.pieces)], *floats[: part.float_count], *kept])
        raise failed.error


class Failed(NamedTuple):
    """The node at which the interpreter stopped, and why."""

    number: int
    error: Exception


def interpret(graph: Graph, arrays: list[np.ndarray]) -> Failed | None:
    """Runs a graph whose outputs are all written to inputs; nothing is written if it fails."""
    values: dict[Any, Any] = dict(zip((i.var for i in graph.inputs), arrays))
    for number, node in enumerate(graph.nodes):
        try:
            with np.errstate(all="ignore"):
                values.update(zip(node.outputs, interp.evaluate(node, values)))
        except Exception as error:
            if node.place is not None and hasattr(error, "add_note"):
                error.add_note(f"raised by {node.op.name} at {node.place}")
            return Failed(number, error)
    own(graph, arrays, [values[output.var] for output in graph.outputs])
    return None
