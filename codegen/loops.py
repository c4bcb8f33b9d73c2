"""Loops over time (Note [Loops over time] in ir/ops/loops.py): the builder of their launches.

One step is a graph like any other, and becomes a Program of its own. Its kernels are launched for
each step, on parts of the loop's buffers; temporary memory is the same for all steps. States are
read from one place and written to another in turn, so that the last ones are where the results
should be. Steps of packed sequences have several sizes, and a Program for each: their states stay
in one place, the first rows of which are replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..ir.builder import Builder
from ..ir.cached import cached_property
from ..ir.graph import Node, Var
from ..ir.op import Op
from ..ir.ops.loops import bounds, in_turn
from ..ir.passes import optimise
from ..ir.program import INPUT, OUTPUT, STATUS, HostCall, KernelInfo, Launch, Program, Word
from ..ir.types import TensorType
from .target import Target
from .templates_table import Operand, template

Place = Word  # the address of a buffer plus a number of bytes


def can(node: Node) -> bool:
    return all(v.dtype.name in ("float32", "float64") and v.type.numel
               for v in (*node.present(), *node.outputs))  # fmt: skip


@template("loop", can, contiguous=True)
def loop(build: Any, node: Node) -> None:
    """Launches one step's kernels for each step."""
    Loop(build, node).run()


@dataclass
class Step:
    """The Program of a step, and where its temporaries and kernels are in the whole one."""

    program: Program
    scratch: dict[int, int]
    kernels: int


class Loop:
    """Builds the launches of one loop."""

    def __init__(self, build: Any, node: Node):
        self.build, self.node, self.lower = build, node, node.op.lower
        self.settings = node.attributes
        self.reverse, self.sizes = self.settings.pop("reverse"), self.settings.pop("sizes", None)
        self.inputs = [None if v is None else build.operand(v) for v in node.inputs]
        read = values_read(build.plan)
        self.results = [build.result(v) if k < self.states or v in read else None
                        for k, v in enumerate(node.outputs)]  # fmt: skip
        self.known: dict[int, Step] = {}

    @property
    def states(self) -> int:
        count: int = self.lower.states
        return count

    def run(self) -> None:
        if self.sizes is None:
            self.run_even()
        else:
            self.run_packed()

    def run_even(self) -> None:
        """Steps of the same size: states go to and fro between two places."""
        like = next(v for v in self.node.inputs[: self.lower.sequences] if v is not None)
        steps, rows = like.shape[:2]
        last = [o.word for o in self.results[: self.states]]
        spare = self.spare_states()
        now = [o.word for o in self.inputs_that_are_states()]
        for count, t in enumerate(in_turn(steps, self.reverse)):
            after = last if (steps - count) % 2 else spare
            self.launch(rows, t * rows, now, after)
            now = after

    def run_packed(self) -> None:
        """Steps of falling sizes work on the first rows of the states."""
        assert self.sizes is not None
        states = [o.word for o in self.results[: self.states]]
        spare = self.spare_states()
        widths = [row_bytes(o.type) for o in self.results[: self.states]]
        for o, place in zip(self.inputs_that_are_states(), states):
            self.copy(place, o.word, o.type.nbytes)
        rows = bounds(self.sizes)
        for t in in_turn(len(rows), self.reverse):
            self.launch(self.sizes[t], rows[t][0], states, spare)
            for place, new, width in zip(states, spare, widths):
                self.copy(place, new, self.sizes[t] * width)

    def inputs_that_are_states(self) -> list[Operand]:
        first = self.lower.sequences
        return self.inputs[first : first + self.states]  # type: ignore[return-value]

    def spare_states(self) -> list[Place]:
        return [Word(0, self.build.scratch(o.type.nbytes, "state"))
                for o in self.results[: self.states]]  # fmt: skip

    def copy(self, to: Place, source: Place, nbytes: int) -> None:
        words = (to, source, Word(nbytes))
        self.build.steps.append(Launch("wengert_copy", words, 1, (source.buffer,), (to.buffer,),
                                       self.copies))  # fmt: skip

    @cached_property
    def copies(self) -> int:
        text = f"copy states of {self.node.op.name}"
        self.build.infos.append(KernelInfo("copy_states", "copy", text, self.numbers))
        return len(self.build.infos) - 1

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        number = self.build.plan.number[self.node]
        return (number,) if number >= 0 else ()

    # -- one step --------------------------------------------------------------------------

    def launch(self, rows: int, first: int, now: list[Place], after: list[Place]) -> None:
        """The step on rows from `first` on, with states read and written there."""
        step = self.known.get(rows) or self.made(rows)
        places = self.places(step, first, now, after)
        for launch in step.program.steps:
            assert not isinstance(launch, HostCall)
            words = tuple(moved(word, places) for word in launch.words)
            reads, writes = (tuple(places[b].buffer for b in listed)
                             for listed in (launch.reads, launch.writes))  # fmt: skip
            self.build.steps.append(Launch(launch.symbol, words, launch.chunks, reads, writes,
                                           step.kernels + launch.kernel))  # fmt: skip

    def places(self, step: Step, first: int, now: list[Place], after: list[Place],
               ) -> dict[int, Place]:  # fmt: skip
        """Where the buffers of a step's Program are."""
        sequences, states = self.lower.sequences, self.lower.states
        given = [part(o, first) for o in self.inputs[:sequences] if o is not None]
        given += now
        given += [o.word for o in self.inputs[sequences + states :] if o is not None]
        results = after + [part(o, first) for o in self.results[states:] if o is not None]
        found = {}
        for number, buffer in enumerate(step.program.buffers):
            if buffer.kind == INPUT:
                found[number] = given[buffer.index]
            elif buffer.kind == OUTPUT:
                found[number] = results[buffer.index]
            else:
                found[number] = Word(0, step.scratch[number])
        return found

    def made(self, rows: int) -> Step:
        """The Program of a step of so many rows, its modules and kernels entered."""
        wanted = tuple(result is not None for result in self.results)
        settings = tuple(self.settings.items())
        program = step_program(type(self.build), self.build.target, self.node.op, settings,
                               tuple(self.types(rows)), wanted)  # fmt: skip
        for module in program.modules:
            self.build.add_module(module.symbols[0], module)
        scratch = {number: self.build.scratch(buffer.nbytes, "step")
                   for number, buffer in enumerate(program.buffers)
                   if buffer.kind not in (INPUT, OUTPUT)}  # fmt: skip
        kernels = len(self.build.infos)
        self.build.infos += [info._replace(nodes=self.numbers) for info in program.kernels]
        self.build.checks |= bool(program.errors)
        self.known[rows] = Step(program, scratch, kernels)
        return self.known[rows]

    def types(self, rows: int) -> Iterator[TensorType | None]:
        """Of what a step reads."""
        moving = self.lower.sequences + self.lower.states
        for k, var in enumerate(self.node.inputs):
            if var is None or k >= moving:
                yield None if var is None else var.type
            else:
                yield TensorType(var.dtype, (rows, var.shape[-1]))


@lru_cache(maxsize=256)
def step_program(assembler: Any, target: Target, op: Op, settings: Any, types: Any, wanted: Any,
                 ) -> Program:  # fmt: skip
    """A step that reads values of such types and gives the wanted results."""
    builder = Builder(f"{op.name}_step")
    with builder.building():
        symbols = [None if t is None else builder.input(t) for t in types]
        for result, needed in zip(op.lower.step(*symbols, **dict(settings)), wanted):
            if needed:
                builder.output(result)
    program: Program = assembler(optimise(builder.graph()), target).run()
    return program


def values_read(plan: Any) -> set[Var]:
    """Values that some node or the caller reads."""
    found = {plan.base(v)[0] for node in plan.nodes for v in node.present()}
    return found | {var for _, var in plan.outputs}


def row_bytes(type_: TensorType) -> int:
    return type_.shape[-1] * type_.dtype.itemsize


def part(operand: Operand, first: int) -> Place:
    """Where the rows of a sequence from `first` on are."""
    word = operand.word
    return Word(word.value + first * row_bytes(operand.type), word.buffer)


def moved(word: Word, places: dict[int, Place]) -> Word:
    """A word of a step's Program in the whole one's."""
    if word.buffer is None or word.buffer == STATUS:
        return word
    place = places[word.buffer]
    return Word(word.value + place.value, place.buffer)
