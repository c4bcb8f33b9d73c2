"""Programs as data: inputs, statements and outputs. Their text is what runs, on every route."""

from __future__ import annotations

import random
import textwrap
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

HARD_VALUES = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-6, -1e4, float("inf"), float("-inf"),
               float("nan"))  # fmt: skip
SMALLEST_BOUND = {"uint8": 0, "bool": 0}


@dataclass(frozen=True)
class Input:
    """An argument, or a tensor from outside (`captured`); a `number` is a Python float.

    `layout` is an expression of the tensor `t` that gives it other strides.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] = ()
    requires_grad: bool = False
    captured: bool = False
    layout: str = "t"
    hard: bool = False

    def values(self, seed: int) -> Any:
        """A number, or values of the tensor before `layout`, for one call."""
        rng = np.random.default_rng(abs(hash((seed, len(self.name), *self.name.encode()))))
        if self.dtype == "number":
            return float(rng.integers(-16, 17)) / 8  # exact in every dtype
        if self.dtype.startswith(("int", "uint", "bool")):
            low = SMALLEST_BOUND.get(self.dtype, -4)
            return rng.integers(low, 2 if self.dtype == "bool" else 5, self.shape)
        x = rng.normal(size=self.shape).round(3)
        if self.dtype.startswith("complex"):
            x = x + 1j * rng.normal(size=self.shape).round(3)
        if self.hard and x.size:
            x = np.where(rng.random(self.shape) < 0.3, rng.choice(HARD_VALUES, self.shape), x)
        return x

    def expression(self, seed: int) -> str:
        """Python text that makes it."""
        values = self.values(seed)
        if self.dtype == "number":
            return repr(values)
        listed = values.tolist()
        text = f"torch.tensor({listed!r}, dtype=torch.{self.dtype})"
        text = text.replace("inf", "float('inf')").replace("nan", "float('nan')")
        if 0 in self.shape:
            text = f"torch.empty({self.shape!r}, dtype=torch.{self.dtype})"
        if self.layout != "t":
            text = f"(lambda t: {self.layout})({text})"
        return text + (".requires_grad_()" if self.requires_grad else "")


@dataclass(frozen=True)
class Statement:
    """`target = text`, or `text` alone where it only has effects.

    Braces in `text` stand for arguments by number; a text of several lines sets `{target}` itself.
    """

    text: str
    arguments: tuple[str, ...]
    target: str | None = None

    def lines(self, around: str = "") -> str:
        """Its Python text; `around` is a function that is called on each argument that is read."""
        read = [f"{around}({name})" for name in self.arguments] if around else self.arguments
        body = self.text.format(*read, target=self.target)
        if self.target is None or "{target}" in self.text:
            return body
        return f"{self.target} = {body}"


@dataclass(frozen=True)
class Program:
    """A function of tensors; `seed` gives the values of its inputs at each call."""

    inputs: tuple[Input, ...]
    statements: tuple[Statement, ...]
    outputs: tuple[str, ...]
    seed: int = 0
    calls: int = 3

    def body(self, observed: bool = False, fresh: frozenset[str] = frozenset()) -> str:
        """The function's body. When observed, `observe(argument, ..., target)` follows each
        statement, and arguments of statements whose targets are `fresh` pass through `near`."""
        lines = []
        for s in self.statements:
            lines.append(s.lines("near" if s.target in fresh else ""))
            if observed and s.target:
                lines.append(f"observe({s.target!r}, {', '.join([s.target, *s.arguments])})")
        return "\n".join([*lines, f"return [{', '.join(self.outputs)}]"])

    def source(self, observed: bool = False, fresh: frozenset[str] = frozenset()) -> str:
        """The text of `program`, a function of the inputs that are arguments."""
        names = ", ".join(i.name for i in self.inputs if not i.captured)
        return f"def program({names}):\n" + textwrap.indent(self.body(observed, fresh), "    ")

    @property
    def keeps_dtypes(self) -> bool:
        """Would it be another program in float64? Random numbers, neighbours, the usual eps and
        the largest number would be others, and a cast to the dtype a tensor has already gives the
        tensor itself."""
        words = ("rand", "dropout", "berno", ".float()", ".double()", ".type_as(", "nextafter",
                 "rms_norm", "nan_to_num")  # fmt: skip
        return any(word in s.text for s in self.statements for word in words)

    def with_changes(self, **changes: Any) -> Program:
        return replace(self, **changes)


def pick_seed(rng: random.Random) -> int:
    return rng.randrange(1 << 30)
