"""Programs as bytes, to be kept beside their object code, and what they were made from as a key.

A packed Program leaves out what only reports read: the texts of kernels and of modules. Whoever
unpacks one says where module texts come from.

Bytes are `marshal`'s of plain tuples, numbers and strings: reading them runs nothing.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Callable, Sequence
from typing import Any

from .graph import Graph
from .op import TABLE
from .ops import CATALOGUE
from .program import (
    Buffer,
    HostCall,
    KernelInfo,
    Launch,
    Module,
    Program,
    Result,
    Strided,
    Word,
)
from .types import DType, TensorType, dtype_named

LAUNCH, HOST = 0, 1
ERRORS = {error.__name__: error for error in (IndexError, RuntimeError)}


class Unpackable(Exception):
    """Something that has no plain form, or whose meaning is not this package's own."""


def plain(value: Any) -> Any:
    """An attribute as something that `marshal` and `repr` tell apart from all others."""
    kind = type(value)
    if kind in (int, float, bool, str, complex, bytes) or value is None:
        return value
    if kind is tuple:
        return ("tuple", *map(plain, value))
    if kind is DType:
        return ("dtype", value.name)
    raise Unpackable(f"{kind.__name__} {value!r}")


def value_of(form: Any) -> Any:
    """What `plain` was given."""
    if type(form) is not tuple:
        return form
    if form[0] == "dtype":
        return dtype_named(form[1])
    return tuple(map(value_of, form[1:]))


def key_of(graph: Graph, *circumstances: str) -> bytes:
    """What stands for a graph, apart from source places, and for what else shapes its Program."""
    number: dict[Any, int] = {}

    def define(var: Any) -> Any:
        number[var] = len(number)
        return plain_type(var.type)

    inputs = [(define(i.var), i.kind, i.name) for i in graph.inputs]
    nodes = []
    for node in graph.nodes:
        if node.op.name not in CATALOGUE:
            raise Unpackable(f"{node.op} is not of the catalogue")
        read = [None if v is None else number[v] for v in node.inputs]
        attrs = [(name, plain(value)) for name, value in node.attrs]
        nodes.append((node.op.name, read, [define(v) for v in node.outputs], attrs, node.over))
    outputs = [(number[o.var], o.kind, o.target, o.donated) for o in graph.outputs]
    description = (circumstances, graph.name, inputs, nodes, outputs)
    return hashlib.sha256(repr(description).encode()).digest()


def plain_type(type: TensorType) -> tuple[Any, ...]:
    """A type as its dtype's name and its sizes."""
    if any(size.__class__ is not int for size in type.shape):
        raise Unpackable(f"{type} has sizes that are not numbers")
    return (type.dtype.name, type.shape)


def type_of(form: Any) -> TensorType:
    return TensorType(dtype_named(form[0]), form[1])


def pack(program: Program) -> bytes:
    """The bytes of a Program."""
    return marshal.dumps((
        program.name,
        [plain_type(t) for t in program.inputs],
        [(plain_type(r.type), r.buffer, r.target) for r in program.results],
        [(b.kind, b.nbytes, b.index, b.name) for b in program.buffers],
        [_plain_step(step) for step in program.steps],
        [(m.identity, m.symbols, m.imports, m.light, m.shared) for m in program.modules],
        [(k.name, k.kind, k.nodes, k.bytes, k.flops) for k in program.kernels],
        sorted(program.written),
        [(error.__name__, message) for error, message in program.errors],
    ))  # fmt: skip


def _plain_step(step: Launch | HostCall) -> tuple[Any, ...]:
    if isinstance(step, Launch):
        words = [(w.value, w.buffer) for w in step.words]
        return (LAUNCH, step.symbol, words, step.chunks, step.reads, step.writes, step.kernel)
    operands = [None if o is None else _plain_view(o) for o in step.operands]
    attrs = [(name, plain(value)) for name, value in step.attrs]
    results = [_plain_view(r) for r in step.results]
    return (HOST, step.op.name, operands, attrs, results, step.kernel)


def _plain_view(view: Strided) -> tuple[Any, ...]:
    return (view.buffer, plain_type(view.type), view.strides, view.offset)


def unpack(data: bytes, text_of: Callable[[int], str]) -> Program:
    """A Program from its bytes; `text_of(k)` gives the LLVM text of its module number k."""
    name, inputs, results, buffers, steps, modules, kernels, written, errors = marshal.loads(data)
    return Program(
        name,
        tuple(map(type_of, inputs)),
        tuple([Result(type_of(t), buffer, target) for t, buffer, target in results]),
        tuple([Buffer(*fields) for fields in buffers]),
        tuple(map(_step, steps)),
        tuple([Module(_writer(text_of, k), *fields) for k, fields in enumerate(modules)]),
        tuple([KernelInfo(name, kind, "", *more) for name, kind, *more in kernels]),
        frozenset(written),
        tuple([(ERRORS[error], message) for error, message in errors]),
    )


def _writer(text_of: Callable[[int], str], number: int) -> Callable[[], str]:
    return lambda: text_of(number)


def _step(form: Sequence[Any]) -> Launch | HostCall:
    if form[0] == LAUNCH:
        _, symbol, words, *more = form
        return Launch(symbol, tuple([Word(*word) for word in words]), *more)
    _, op, operands, attrs, results, kernel = form
    views = tuple([None if o is None else _view(o) for o in operands])
    named = tuple([(name, value_of(value)) for name, value in attrs])
    return HostCall(TABLE[op], views, named, tuple(map(_view, results)), kernel)


def _view(form: Sequence[Any]) -> Strided:
    buffer, type, strides, offset = form
    return Strided(buffer, type_of(type), strides, offset)
