"""Random draws in a recording: a generator's state is a value, which each draw replaces.

The first draw from a generator makes its state an input of the graph, of kind `random`. A draw is
recorded as `sample`, which takes the state as it is then and gives the next; at the end the last
one is written back. So draws are ordered by what they take, like all else.

Note [Draws that come again]
    A checkpoint runs a function again from the random state that it ran from before, and then goes
    on from where it was. The same draws give the same numbers: in the graph they are those of the
    first time.
"""

from __future__ import annotations

from typing import Any

from ..ir.graph import RANDOM, WRITE, Input, Output, Var
from ..ir.ops.arithmetic import clone
from ..ir.ops.drawing import STATE, draw, sample
from .generator import Generator
from .random import default_generator, pick


class State:
    """What a recording knows of a generator."""

    def __init__(self, generator: Generator):
        self.first = self.now = Var(STATE)
        self.drawn: dict[Var, Any] = {}  # by state: what was drawn from it
        self.name = "default" if generator is default_generator else "generator"


class RandomStates:
    """The part of a recorder that knows generators; `states` are in order of their first draws."""

    builder: Any
    refuse: Any

    def __init__(self) -> None:
        super().__init__()
        self.states: dict[Generator, State] = {}
        self.untouched: dict[Generator, Any] = {}  # as they were before the recording

    def touch(self, generator: Generator) -> None:
        """The generator's state is about to change."""
        if generator not in self.untouched:
            self.untouched[generator] = generator.snapshot()

    def reseeded(self, generator: Any) -> None:
        """A generator gets a seed or a state: that is done at every call."""
        self.touch(generator)
        self.refuse("a random generator is seeded inside the function")

    def seed_asked(self) -> None:
        """Python sees a seed, which may be another at the next call."""
        self.refuse("the seed of a random generator is looked at")

    def expect(self, op: Any, attrs: dict[str, Any]) -> None:
        """An op is about to run: before the first draw, the generator's state is looked at."""
        if op is draw:
            generator = pick(attrs.get("generator"))
            self.touch(generator)
            if generator not in self.states:
                self.states[generator] = State(generator)

    def append(self, op: Any, operands: Any, outputs: Any, attrs: dict[str, Any]) -> None:
        """Adds a node; a draw becomes one that takes and gives states."""
        if op is draw:
            attrs = dict(attrs)
            state = self.states[pick(attrs.pop("generator", None))]
            known = state.drawn.get(state.now)
            if known is not None:
                return self.draw_again(state, known, (list(operands), attrs), outputs)
            following = Var(STATE)
            state.drawn[state.now] = (list(operands), attrs), outputs[0], following
            op, operands, outputs = sample, (state.now, *operands), (*outputs, following)
            state.now = following
        self.builder.append(op, operands, outputs, attrs)

    def draw_again(self, state: State, known: Any, wanted: Any, outputs: Any) -> None:
        """See Note [Draws that come again]."""
        before, value, state.now = known
        if wanted != before:
            self.refuse("other random numbers are drawn again than before")
        self.builder.append(clone, (value,), outputs, {})

    def state_now(self, generator: Generator) -> Var | None:
        """Stands for the state of a generator; None where it was not drawn from yet."""
        known = self.states.get(generator)
        return None if known is None else known.now

    def go_on_from(self, generator: Generator, now: Var | None) -> None:
        """The generator is given a state that it had before."""
        known = self.states.get(generator)
        if known is not None:
            known.now = known.first if now is None else now

    def with_states(self, inputs: list[Input], outputs: list[Output]) -> None:
        """Adds states to the inputs and outputs of the graph."""
        for state in self.states.values():
            outputs.append(Output(state.now, WRITE, len(inputs)))
            inputs.append(Input(state.first, RANDOM, state.name))

    def undo_draws(self) -> bool:
        """Puts the generators back to where they were; were there draws?"""
        for generator, state in self.untouched.items():
            generator.resume(state)
        return bool(self.states)
