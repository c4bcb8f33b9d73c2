"""Dynamic shapes: traces that serve calls of other sizes without running the body again.

Note [Symbolic paths]
    A path recorded with symbolic sizes is kept under the kind of call without its sizes. A call of
    new sizes binds the names, checks the guards, and gets the path of plain sizes: an ordinary
    path, which is compiled and replayed as any other. So a hit costs what it did, and a new size
    costs the passes and the assembly of kernels that are already compiled.

    Sizes of arguments that are equal when recorded have one name: calls where they differ are
    recorded anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .ir.dims import Guard
from .ir.graph import Graph
from .ir.instantiate import NoInstance, instantiate, with_formulas
from .marks import DYNAMIC, STATIC, WEAK, marked
from .paths import Path
from .tracer.recorded import Branch
from .tracer.symbolic import SymbolicRecorder
from .tracer.tensor import Tensor

LETTERS = "nmkpqrstuvw"
MAX_PATHS = 16  # symbolic paths for one kind of call
MAX_SPECIALISED = 2  # recordings that fix a size before it is taken for a constant

Axis = tuple[int, int]  # an argument's place and a dimension of it
Shapes = dict[int, tuple[int, ...]]  # by argument's place


@dataclass(frozen=True, eq=False)
class SymbolicPath:
    """A path with formulas for sizes, and for which sizes it is right."""

    path: Path
    shapes: Mapping[int, tuple[int | str, ...]]  # by argument: sizes, or names of sizes
    guards: Sequence[Guard]
    meanings: Mapping[str, str]  # "x.shape[0]" by name
    free: Sequence[str]  # names that guards do not tie to a number

    def sizes_of(self, shapes: Shapes) -> dict[str, int] | None:
        """The sizes by name in a call with arguments of these shapes, or None if it is not ours."""
        sizes: dict[str, int] = {}
        for place, expected in self.shapes.items():
            for size, known in zip(shapes[place], expected):
                if (sizes.setdefault(known, size) if isinstance(known, str) else known) != size:
                    return None
        if min(sizes.values(), default=2) < 2 or not all(g.holds(sizes) for g in self.guards):
            return None
        return sizes

    def at(self, sizes: Mapping[str, int]) -> Path:
        """The path of plain sizes."""
        path = self.path
        graph, news = instantiate(path.graph, sizes)
        return replace(
            path,
            graph=graph,
            branches=[Branch(news[b.var], b.outcome, b.position, b.place) for b in path.branches],
            needing={news[v] for v in path.needing if v in news},
            makers=[maker.at(sizes) for maker in path.makers],
            grad_effects=[(s, m if m is None else m.at(sizes)) for s, m in path.grad_effects],
            sizes=sizes,
        )

    def describe(self) -> list[str]:
        """Lines for `explain()`."""
        named = ", ".join(f"{name} = {meaning}" for name, meaning in self.meanings.items())
        lines = [f"  symbolic trace of {len(self.path.graph.nodes)} ops: {named}"]
        lines += [f"    for sizes with {guard}{at_place(guard)}" for guard in self.guards]
        return lines


def at_place(guard: Guard) -> str:
    return "" if guard.place is None else f" ({guard.place})"


def symbolic_path(recording: Any) -> SymbolicPath | None:
    """What a recording with symbolic sizes is for other sizes, if it is for any."""
    recorder = recording.recorder
    if not isinstance(recorder, SymbolicRecorder):
        return None
    path = replace(recording.path, graph=with_formulas(recording.path.graph))
    symbols, sizes = recording.symbols, recorder.sizes
    free = [label for label in symbols.values if not sizes.is_fixed(label)]
    guards = list(sizes.guards.values())
    return SymbolicPath(path, symbols.shapes, guards, symbols.meanings, free)


class Symbols:
    """Names for sizes of a call's arguments; equal sizes get one name."""

    def __init__(self, leaves: Sequence[Any], axes: Sequence[Axis], names: Sequence[str]):
        self.values: dict[str, int] = {}
        self.meanings: dict[str, str] = {}
        self.shapes: dict[int, tuple[int | str, ...]] = {}
        by_size: dict[int, str] = {}
        for place, shape in shapes_of(leaves).items():
            sizes: list[int | str] = list(shape)
            for axis, size in enumerate(shape):
                if (place, axis) in axes:
                    name = by_size.setdefault(size, letter(len(by_size)))
                    sizes[axis] = name
                    self.values[name] = size
                    meaning = f"{names[place]}.shape[{axis}]"
                    known = self.meanings.get(name)
                    self.meanings[name] = f"{known} = {meaning}" if known else meaning
            self.shapes[place] = tuple(sizes)

    def recorder(self, name: str, leaves: Sequence[Any]) -> SymbolicRecorder:
        """A recorder that knows the arguments' shapes by these names."""
        recorder = SymbolicRecorder(name)
        dims = {label: recorder.sizes.new(label, value) for label, value in self.values.items()}
        for place, shape in self.shapes.items():
            recorder.shapes[id(leaves[place])] = tuple(
                dims[s] if isinstance(s, str) else s for s in shape
            )
        return recorder


def letter(number: int) -> str:
    if number < len(LETTERS):
        return LETTERS[number]
    return f"n{number}"


def shapes_of(leaves: Sequence[Any]) -> Shapes:
    return {k: x._array.shape for k, x in enumerate(leaves) if isinstance(x, Tensor)}


class DynamicShapes:
    """What a compiled function knows about the sizes it is called with; see Note [Symbolic paths].

    `mode` is compile's `dynamic`: None makes a dimension symbolic when its second size is seen,
    True from the first call, False never.
    """

    def __init__(self, mode: bool | None):
        self.mode = mode
        self.clear()

    def clear(self) -> None:
        self.seen: dict[Any, dict[Any, Shapes]] = {}  # by kind of call, by key
        self.paths: dict[Any, list[SymbolicPath]] = {}
        self.placed: dict[Any, set[int]] = {}  # by key: symbolic paths that were looked at
        self.fixed: dict[Any, dict[Axis, int]] = {}  # how often a size turned out a constant
        self.notes: list[str] = []

    # --- before a recording ---

    def axes(self, key: Any, leaves: Sequence[Any]) -> list[Axis]:
        """Which sizes the next recording should be symbolic in."""
        if self.mode is False:
            return []
        kind, shapes = without_sizes(key), shapes_of(leaves)
        seen = self.seen.setdefault(kind, {})
        seen[key] = shapes
        if len(seen) > MAX_PATHS:
            del seen[next(iter(seen))]
        constant, wanted = self.fixed.get(kind, {}), marked(leaves, DYNAMIC, WEAK)
        plain = marked(leaves, STATIC)
        return [
            (place, axis)
            for place, shape in shapes.items()
            for axis, size in enumerate(shape)
            if size > 1 and constant.get((place, axis), 0) < MAX_SPECIALISED
            and (place, axis) not in plain
            and (self.mode or (place, axis) in wanted
                 or any(s[place][axis] != size for s in seen.values()))
        ]  # fmt: skip

    # --- after it ---

    def keep(self, key: Any, recording: Any, traces: Mapping[Any, Any]) -> Path:
        """The path of a recording for its own sizes; its symbolic form serves later calls."""
        symbolic = symbolic_path(recording)
        if symbolic is None:
            return recording.path
        kind = without_sizes(key)
        self.note_fixed(kind, symbolic)
        if not symbolic.free:
            self.note_static(recording, symbolic)
        elif self.agrees(kind, symbolic, traces):
            paths = self.paths.setdefault(kind, [])
            paths.append(symbolic)
            del paths[:-MAX_PATHS]
            self.placed.setdefault(key, set()).add(id(symbolic))
        return symbolic.at(recording.symbols.values)

    def agrees(self, kind: Any, symbolic: SymbolicPath, traces: Mapping[Any, Any]) -> bool:
        """Does a symbolic path give, for sizes recorded before, what was recorded?

        It does by construction, see Note [Dims]; this is the proof by example that nothing in the
        body came by a size in a way that is not watched.
        """
        for key, shapes in self.seen[kind].items():
            sizes = symbolic.sizes_of(shapes)
            for trace in traces.get(key, ()) if sizes is not None else ():
                if comparable(trace, symbolic.path) and symbolic.at(sizes).graph != trace.graphs[0]:
                    self.note(f"sizes stay plain: the trace for {sizes} differs from its symbolic "
                              "form")  # fmt: skip
                    return False
        return True

    def note_fixed(self, kind: Any, symbolic: SymbolicPath) -> None:
        counts = self.fixed.setdefault(kind, {})
        for place, shape in symbolic.shapes.items():
            for axis, name in enumerate(shape):
                if isinstance(name, str) and name not in symbolic.free:
                    counts[place, axis] = counts.get((place, axis), 0) + 1

    def note_static(self, recording: Any, symbolic: SymbolicPath) -> None:
        named = ", ".join(f"{name} = {meaning}" for name, meaning in symbolic.meanings.items())
        reasons = recording.recorder.reasons or [f"{g}{at_place(g)}" for g in symbolic.guards]
        self.note(f"all sizes specialise ({named}): {', '.join(reasons)}")

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes = [*self.notes[1 - MAX_PATHS :], text]

    # --- a call of other sizes ---

    def instances(self, key: Any, leaves: Sequence[Any]) -> Iterator[Path]:
        """Paths of plain sizes for a call, from symbolic ones that were not looked at for it."""
        for symbolic in list(self.paths.get(without_sizes(key), ())):
            placed = self.placed.setdefault(key, set())
            if id(symbolic) in placed or symbolic.path.environment.failure() is not None:
                continue
            placed.add(id(symbolic))
            sizes = symbolic.sizes_of(shapes_of(leaves))
            if sizes is not None:
                try:
                    yield symbolic.at(sizes)
                except NoInstance as problem:
                    self.note(f"no instance for {sizes}: {problem}")

    def graph(self) -> Graph:
        """The newest symbolic trace, with formulas for sizes."""
        found = [path for paths in self.paths.values() for path in paths]
        if not found:
            raise RuntimeError(
                "there is no symbolic trace; call it with several sizes, or see explain()"
            )
        return found[-1].path.graph

    def forget(self, key: Any) -> None:
        """The traces for a key were dropped; with the last of a kind, what is known of it."""
        kind = without_sizes(key)
        self.placed.pop(key, None)
        self.seen.get(kind, {}).pop(key, None)
        if not self.seen.get(kind) and all(without_sizes(k) != kind for k in self.placed):
            for known in (self.seen, self.paths, self.fixed):
                known.pop(kind, None)

    def describe(self) -> list[str]:
        """Lines for `explain()`."""
        lines = [line for paths in self.paths.values() for p in paths for line in p.describe()]
        return lines + [f"  {note}" for note in self.notes]


def comparable(trace: Any, path: Path) -> bool:
    """Was a trace recorded under the guards of a path, without branches?"""
    return (not path.branches and trace.root.end is not None and trace.grad_keys == path.grad_keys
            and trace.environment.failure() is None)  # fmt: skip


def without_sizes(key: Any) -> Any:
    """A key of `CompiledFunction` with ranks instead of shapes."""
    return tuple(part.without_sizes() if isinstance(part, TensorKey) else part for part in key)


class TensorKey(tuple):
    """What of a tensor argument selects a trace: dtype, shape, requires_grad, layout, class."""

    __slots__ = ()

    def without_sizes(self) -> Any:
        dtype, shape, *flags = self
        return (dtype, len(shape), *flags)
