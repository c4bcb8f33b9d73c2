"""What runs: buffers, launches of native functions and host calls, in order, as plain data.

codegen makes Programs, the runtime runs them; neither imports the other. Nothing here is compiled:
a Program holds LLVM text, made when asked for, and says which words each native function finds in
its argument block.

A native function is `void name(ptr args, i64 chunk)`; `args` points to 64-bit words. Chunks may run
in any order and at once.

Most classes are named tuples, which Python makes six times as fast as frozen dataclasses: a process
that finds its code on disk spends a tenth of its first call on importing. For the same reason
annotations are objects here: named tuples compile each one that is text.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .cached import cached_property
from .types import TensorType

INPUT, OUTPUT, TEMPORARY = "input", "output", "temporary"


class Buffer(NamedTuple):
    """Memory of `nbytes`: an input's, an output's (`index` says which) or a place in the arena."""

    kind: str
    nbytes: int
    index: int = -1  # type: ignore[assignment]  # not tuple's method
    name: str = ""


class Word(NamedTuple):
    """A word of an argument block: `value`, or the address of a buffer plus `value` bytes."""

    value: int
    buffer: int | None = None


STATUS = -1  # as Word.buffer: the address of the call's status word


class Launch(NamedTuple):
    """A call of a native function; `chunks` of them, shared among threads if more than one."""

    symbol: str
    words: tuple[Word, ...]
    chunks: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    kernel: int = -1  # index into Program.kernels

    def buffers(self) -> tuple[int, ...]:
        return self.reads + self.writes


class Strided(NamedTuple):
    """How a host call sees a buffer: an array of `type` with strides and offset in elements."""

    buffer: int
    type: TensorType
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def is_dense(self) -> bool:
        """Do its elements lie in row-major order, without gaps?"""
        step = 1
        for size, stride in zip(self.type.shape[::-1], self.strides[::-1]):
            if size != 1 and stride != step:
                return False
            step *= size
        return True


def may_raise(op: Any, operands: Sequence[Any]) -> bool:
    """May an op's evaluation raise an error that depends on values?

    Not draws of numbers alone; those that are given something may: probabilities can be none.
    """
    given = [o for o, name in zip(operands, op.inputs) if name != "state"]
    return not op.random or bool(given)


class HostCall(NamedTuple):
    """A call back to an op's NumPy evaluation."""

    op: Any
    operands: tuple[Strided | None, ...]
    attrs: tuple[tuple[str, Any], ...]
    results: tuple[Strided, ...]
    kernel: int = -1

    @property
    def reads(self) -> tuple[int, ...]:
        return tuple(o.buffer for o in self.operands if o is not None)

    @property
    def writes(self) -> tuple[int, ...]:
        return tuple(r.buffer for r in self.results)

    def buffers(self) -> tuple[int, ...]:
        return self.reads + self.writes


class Module:
    """LLVM text that defines `symbols` and needs `imports`.

    `identity` stands for the text: modules with one identity have one text, now and later, so that
    compiled code is found without writing it. `light`: it is scheduled by hand. `shared`: other
    modules import it.
    """

    def __init__(self, write: Callable[[], str], identity: str, symbols: tuple[str, ...],
                 imports: tuple[str, ...] = (), light: bool = False,
                 shared: bool = False) -> None:  # fmt: skip
        self.write, self.identity, self.symbols = write, identity, symbols
        self.imports, self.light, self.shared = imports, light, shared

    def _facts(self) -> tuple[Any, ...]:
        return (self.identity, self.symbols, self.imports, self.light, self.shared)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Module) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def __repr__(self) -> str:
        return f"Module{self._facts()}"

    @cached_property
    def text(self) -> str:
        """The LLVM text."""
        return self.write()


class KernelInfo(NamedTuple):
    """What a report says of a kernel: its printed form, the nodes it computes, its traffic."""

    name: str
    kind: str
    text: str
    nodes: tuple[int, ...]  # positions in the graph
    bytes: int = 0
    flops: int = 0


class Result(NamedTuple):
    """An output: a new array in `buffer`, or the input `target`, written in place."""

    type: TensorType
    buffer: int
    target: int | None = None


class Program(NamedTuple):
    """A graph, ready to be compiled and run."""

    name: str
    inputs: tuple[TensorType, ...]
    results: tuple[Result, ...]
    buffers: tuple[Buffer, ...]
    steps: tuple[Launch | HostCall, ...]
    modules: tuple[Module, ...]
    kernels: tuple[KernelInfo, ...] = ()
    written: frozenset[int] = frozenset()  # inputs that are written to
    errors: tuple[tuple[type, str], ...] = ()  # by status word less one: what to raise
