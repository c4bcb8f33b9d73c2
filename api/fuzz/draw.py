"""Programs grown by running them: a statement that eager refuses is not taken."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from . import grammar
from .program import Input, Program, Statement, pick_seed
from .routes import make_inputs, quiet

SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 5, 8, 17)
DTYPE_WEIGHTS = {"float32": 60, "float64": 10, "float16": 4, "bfloat16": 4, "int64": 10, "int32": 2,
                 "uint8": 2, "bool": 5, "complex64": 4}  # fmt: skip
LAYOUTS = ("t.mT.contiguous().mT", "torch.stack([t, t], -1)[..., 0]", "t.flip(0).flip(0)",
           "torch.cat([t, t])[:t.shape[0]]")  # fmt: skip
# What eager may answer to a statement that makes no sense. Anything else is a finding.
REFUSALS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError,
            ZeroDivisionError, OverflowError)  # fmt: skip
MOST_ELEMENTS = 20_000


class Drawing:
    """A program in the making: what is alive, and the choices made from it."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.inputs = self.draw_inputs()
        self.statements: list[Statement] = []
        self.space = {**grammar.namespace(), **make_inputs(self.inputs, seed)}
        self.names = [i.name for i in self.inputs if i.dtype != "number"]

    # --- inputs ---

    def draw_inputs(self) -> tuple[Input, ...]:
        base = tuple(
            self.rng.choice(SIZES) for _ in range(self.rng.choice((0, 1, 2, 2, 2, 3, 3, 4)))
        )
        if self.chance(0.7):
            base = tuple(max(n, 1) for n in base)
        inputs = [self.draw_input(f"x{k}", base) for k in range(self.rng.choice((1, 2, 2, 3)))]
        if self.chance(0.2):
            inputs.append(Input("s0", "number"))
        return tuple(inputs)

    def draw_input(self, name: str, base: tuple[int, ...]) -> Input:
        rng = self.rng
        shape = base[rng.choice((0, 0, 0, 1)) :]
        shape = tuple(1 if self.chance(0.15) else n for n in shape)
        dtype = rng.choices(list(DTYPE_WEIGHTS), list(DTYPE_WEIGHTS.values()))[0]
        floating = dtype.startswith(("float", "bfloat", "complex"))
        usual = "float" in dtype
        grad = floating and self.chance(0.6)
        layout = rng.choice(LAYOUTS) if len(shape) > 1 and self.chance(0.2) else "t"
        if layout != "t" and grad:
            layout = f"({layout}).detach()"
        return Input(
            name, dtype, shape, grad, self.chance(0.2), layout, usual and self.chance(0.06)
        )

    # --- choices ---

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, items: Sequence[Any]) -> Any:
        return self.rng.choice(items)

    def any_value(self) -> str:
        """A live tensor; newer ones more often."""
        if self.chance(0.5):
            return self.rng.choice(self.names[-3:])
        return self.rng.choice(self.names)

    def like(self, name: str) -> str:
        """A live tensor of the same shape; there is always one."""
        shape = self.space[name].shape
        return self.rng.choice([n for n in self.names if self.space[n].shape == shape])

    def broadcastable(self, count: int) -> tuple[str, ...]:
        first = self.any_value()
        rest = [
            self.like(first) if self.chance(0.5) else self.any_value() for _ in range(count - 1)
        ]
        return (first, *rest)

    def number(self) -> str:
        if "s0" in self.space and self.chance(0.5):
            return "s0"
        return self.rng.choice(grammar.NUMBERS)

    def dim(self, name: str) -> str:
        rank = self.space[name].dim()
        return str(self.rng.randrange(-rank, rank) if rank else 0)

    def dims(self, name: str) -> str:
        rank = self.space[name].dim()
        chosen = sorted(self.rng.sample(range(rank), self.rng.randint(0, rank)))
        return repr(tuple(chosen))

    def index(self, name: str) -> str:
        items = self.rng.choices(("0", "-1", ":", "1:", ":-1", "::2", "...", "None", "0:1", "2:2"),
                                 k=self.rng.randint(1, max(1, self.space[name].dim())))  # fmt: skip
        return ", ".join(items)

    # --- growing ---

    def grow(self) -> None:
        """Tries one more statement."""
        maker, _, effects = self.rng.choices(grammar.MAKERS, grammar.weights())[0]
        made = maker(self)
        if made is None:
            return
        text, arguments = made
        target = None if effects else f"v{len(self.statements)}"
        statement = Statement(text, arguments, target)
        if self.accepts(statement):
            self.statements.append(statement)
            if target is not None:
                self.names.append(target)

    def accepts(self, statement: Statement) -> bool:
        try:
            with quiet():
                exec(statement.lines(), self.space)
        except REFUSALS:
            return False
        if statement.target is None:
            return True
        result = self.space[statement.target]
        tensor = self.space["torch"].Tensor
        return isinstance(result, tensor) and result.numel() <= MOST_ELEMENTS


def draw_program(seed: int, most: int = 12) -> Program:
    """The program of a seed: the same one in every process."""
    drawing = Drawing(seed)
    wanted = drawing.rng.randint(1, most)
    for _ in range(4 * wanted):
        drawing.grow()
        if len(drawing.statements) >= wanted:
            break
    outputs = drawing.names[-1:] + drawing.rng.sample(drawing.names, min(2, len(drawing.names)))
    return Program(drawing.inputs, tuple(drawing.statements), tuple(dict.fromkeys(outputs)),
                   pick_seed(drawing.rng))  # fmt: skip
