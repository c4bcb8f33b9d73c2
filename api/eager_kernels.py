"""Native kernels for eager calls on large tensors; see Note [Large calls] in tracer/large.py.

Which calls have one follows from the catalogue: an op with a scalar expression, a reduction, a
decomposition or a skeleton is built as a graph of one node, its derivative as the graph that its
rules make, and both go through the compiler. Pointwise calls on arrays of one shape and layout
share a kernel for all sizes; others have a program per shape, whose kernels are shared where sizes
are run-time words.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from .executor import native_wanted
from .ir.builder import Builder
from .ir.cached import cached_property
from .ir.derivative import Settings, add_outputs, results_in, settings_of
from .ir.exact import is_arithmetic, is_exact
from .ir.graph import Graph
from .ir.op import TABLE, Decompose, Loop, Op, Reduce, Scalar, Template, View
from .ir.passes import dead_code, optimise
from .ir.types import FROM_NUMPY, TensorType
from .runtime.jit import NoCompiler
from .tracer.accumulate import dense
from .tracer.straight import derivative_of
from .tracer.tensor import Tensor

ANY_SIZE = 1_000_003  # stands for all sizes; a prime, so that no loop is specialised for it
_FLOATS = (np.dtype("f4"), np.dtype("f8"))
PRODUCT = Template("matmul")


class Operand(NamedTuple):
    """What a kernel must know of an operand.

    A `spread` one is a single element, repeated; the last two dimensions of a `turned` one are
    swapped in memory, as those of a weight's transpose are; one that lies in another order is
    `copied`.
    """

    type: TensorType
    spread: bool = False
    turned: bool = False
    copied: bool = False

    def symbol(self, builder: Builder) -> Any:
        """The input that is given to the kernel."""
        dtype, shape = self.type
        if self.spread:
            shape = ()
        elif self.turned:
            shape = (*shape[:-2], shape[-1], shape[-2])
        return builder.input(TensorType(dtype, shape))

    def value(self, symbol: Any) -> Any:
        """The operand, seen from the input."""
        if self.spread:
            return TABLE["expand"](symbol, size=self.type.shape)
        return symbol.transpose(-1, -2) if self.turned else symbol

    def given(self, array: np.ndarray) -> np.ndarray:
        """The input, seen from the operand."""
        if self.spread:
            return single(array)
        if self.copied:
            return np.ascontiguousarray(array)
        return array.swapaxes(-1, -2) if self.turned else array


# --- what is computed ----------------------------------------------------------------------------


class Call(NamedTuple):
    """An op with its attributes."""

    op: Op
    settings: Settings

    def build(self, operands: list[Any]) -> Sequence[Any]:
        results = self.op(*operands, **{name: value for name, _, value in self.settings})
        return results if isinstance(results, tuple) else (results,)


# --- kernels -------------------------------------------------------------------------------------


class Draft:
    """A computation as a graph, and as a kernel once that is asked for.

    For `outline` see `add_outputs`.
    """

    def __init__(self, graph: Graph, outline: list[int | None], together: bool):
        self.graph, self.outline, self.together = graph, outline, together
        self.exact = all(is_exact(node.op, node.attrs) for node in graph.nodes)

    @cached_property
    def multiplies(self) -> bool:
        """Is it a matrix product or a loop of them? NumPy's are row-major whatever their operands
        are."""
        lowers = [node.op.lower for node in optimise(self.graph).nodes]
        return any(lower == PRODUCT or isinstance(lower, Loop) for lower in lowers)

    @cached_property
    def programs(self) -> list[Any] | None:
        """Native programs that give the new arrays in turn; None if parts would run by NumPy.

        Where results need not be made together, those of one shape are.
        """
        from .backend import compile_graph

        programs = []
        for _, outputs in groupby(self.graph.outputs, lambda o: self.together or o.var.shape):
            graph = optimise(dead_code.run(replace(self.graph, outputs=tuple(outputs))))
            programs.append(compile_graph(graph))
            if programs[-1].host_calls:
                return None
        with suppress(NoCompiler):
            return [program.runnable.call for program in programs]
        return None

    @cached_property
    def flat(self) -> Any:
        """The kernel for any number of elements, if the program is one kernel over flat arrays."""
        from .backend import Made
        from .runtime.flat import flat

        with suppress(NoCompiler):
            return flat(Made(optimise(self.graph)).found(), ANY_SIZE)
        return None


@lru_cache(maxsize=1024)
def draft(what: Any, operands: tuple[Operand | None, ...]) -> Draft | None:
    """The graph of a computation; None where the catalogue or its size speaks against a kernel."""
    builder = Builder(what.op.name)
    with builder.building():
        symbols = [None if o is None else o.symbol(builder) for o in operands]
        values = [None if o is None else o.value(s) for s, o in zip(symbols, operands)]
        results = what.build(values)
        outline = add_outputs(builder, values, results)
    work = [n for n in builder.nodes
            if n.inputs and not (n.op.is_view or isinstance(n.op.lower, View))]  # fmt: skip
    is_call = isinstance(what, Call)
    if len(work) < (1 if is_call else 2) or not builder.outputs:  # one op is as well run by itself
        return None
    if len(work) > 1 and any(isinstance(n.op.lower, Template) for n in work):
        return None  # nothing is fused with these: each is as well run by itself
    if any(o.var.dtype.compute is not o.var.dtype.storage for o in builder.outputs):
        return None  # eager execution rounds to these itself
    # gradients of weights run over columns, of inputs over rows: not in one program
    return Draft(builder.graph(), outline, together=is_call)


class Compiler:
    """May native code be used? Not known until the question has come up in earnest."""

    usable = False
    waited = 0  # elements of exact calls that NumPy computed meanwhile
    ENOUGH = 1 << 27  # by then they have cost about what loading the compiler does


def is_ready(exact: bool, elements: int) -> bool:
    """May a call of so many elements run natively? What is exact waits until that pays."""
    if not Compiler.usable:
        loaded = f"{__package__}.backend" in sys.modules
        if exact and not loaded and Compiler.waited < Compiler.ENOUGH:
            Compiler.waited += elements
            return False
        Compiler.usable = native_wanted()
    return Compiler.usable


def run_flat(what: Any, arrays: list[Any]) -> Any:
    """(draft, new arrays) of a pointwise computation told in types of `ANY_SIZE`, if it can be."""
    like = full_array(arrays)
    if like is None:
        return None
    made = draft(what, tuple([None if a is None else flat_operand(a) for a in arrays]))
    if made is None or not is_ready(made.exact, like.size) or made.flat is None:
        return None
    return made, made.flat.run(like, [a for a in arrays if a is not None])


def run_shaped(what: Any, arrays: list[Any]) -> Any:
    """(draft, new arrays) of a computation on arrays of these shapes, if it can be."""
    made, operands = shaped(what, tuple([None if a is None else
                                         (a.dtype, a.shape, a.strides, a.flags.aligned)
                                         for a in arrays]))  # fmt: skip
    if made is None:
        return None
    size = max([a.size for a in arrays if a is not None])
    if not is_ready(made.exact, size) or made.programs is None:
        return None
    given = [o.given(a) for a, o in zip(arrays, operands) if o is not None]
    return made, [new for program in made.programs for new in program(*given)]


@lru_cache(maxsize=1024)
def shaped(what: Any, layouts: tuple[Any, ...]) -> tuple[Draft | None, list[Any]]:
    """The draft for arrays laid out like this, and what it must know of them."""
    found = [None if layout is None else described(*layout) for layout in layouts]
    if NotImplemented in found:
        return None, found
    made = draft(what, tuple(found))
    moved = any(o is not None and (o.turned or o.copied) for o in found)
    if made is not None and moved and not made.multiplies:
        made = None
    return made, found


# --- what eager execution asks -------------------------------------------------------------------


def forward(op: Op, values: Sequence[Any], attrs: dict[str, Any]) -> Any:
    """What `op.numpy` would give for arrays, numbers and None; NotImplemented if it must."""
    settings = settings_of(attrs)
    if not has_kernel(op) or is_arithmetic(op, settings) or seldom_again(op, attrs):
        return NotImplemented
    arrays = as_arrays(values)
    if arrays is None:
        return NotImplemented
    call = Call(op, settings)
    done = run_flat(call, arrays) if op.kind == "pointwise" else None
    done = done or run_shaped(call, arrays)
    if done is None:
        return NotImplemented
    made, new = done
    results = results_in(made.outline, arrays, new)
    return tuple(results) if len(op.outputs) > 1 else results[0]


def backward(node: Any, grads: list[Any]) -> Any:
    """What the node's puller would give, or NotImplemented."""
    op = node.op
    if not has_kernel(op):
        return NotImplemented
    tensors = node.operands(grads)
    arrays = as_arrays([v._array if is_plain(v) else v for v in tensors], numbers=False)
    if arrays is None:
        return NotImplemented
    what = derivative_of(node, settings_of(node.attrs))
    done = None
    if node.types is None and op.kind == "pointwise":
        whole = TensorType(what.outputs[0].dtype, (ANY_SIZE,))
        done = run_flat(what._replace(inputs=(whole,) * len(what.inputs), outputs=(whole,)), arrays)
    done = done or run_shaped(what, arrays)
    if done is None:
        return NotImplemented
    made, new = done
    return results_in(made.outline, tensors, [Tensor._wrap(a, FROM_NUMPY[a.dtype]) for a in new])


def has_kernel(op: Op) -> bool:
    """Does the catalogue say how to compute the op's elements?"""
    return isinstance(op.lower, Scalar | Reduce | Decompose | Template) and not (
        op.random or op.data_shape or op.is_view
    )


def seldom_again(op: Op, attrs: dict[str, Any]) -> bool:
    """Is the call a loop over packed rows? Few batches have sequences of the same lengths."""
    return isinstance(op.lower, Loop) and attrs.get("sizes") is not None


def is_plain(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype.compute is value.dtype.storage


def as_arrays(values: Sequence[Any], numbers: bool = True) -> list[Any] | None:
    """Operands as arrays and None, if they are computed in one floating dtype; `numbers` may be
    among them."""
    found = {v.dtype for v in values if isinstance(v, np.ndarray) and v.dtype.kind not in "biu"}
    if len(found) != 1 or not found.issubset(_FLOATS):
        return None
    (dtype,) = found
    arrays: list[Any] = []
    for value in values:
        if isinstance(value, np.ndarray) or value is None:
            arrays.append(value)
        elif numbers and value.__class__ in (int, float):
            with np.errstate(all="ignore"):
                arrays.append(np.array(value, dtype))
        else:
            return None
    return arrays


# --- layouts -------------------------------------------------------------------------------------


def described(dtype: Any, shape: Any, strides: Any, aligned: bool) -> Any:
    """The operand that an array is, or NotImplemented.

    Results are row-major: so must be what NumPy would give, whose results are laid out as its
    operands are, but for products (`Draft.multiplies`).
    """
    kind = TensorType(FROM_NUMPY[dtype], shape)
    if kind.numel > 1 and not any(strides):
        return Operand(kind, spread=True)
    steps = [s for s, n in zip(strides, shape) if n != 1]
    if not aligned or 0 in steps:
        return NotImplemented
    falling = sorted(steps, reverse=True)
    if steps == falling:
        return Operand(kind)
    if 1 not in shape[-2:] and [*steps[:-2], *steps[:-3:-1]] == falling:
        return Operand(kind, turned=True)
    return Operand(kind, copied=True)


def single(array: np.ndarray) -> np.ndarray:
    """The element that a spread array repeats."""
    return array[(slice(1),) * array.ndim].reshape(())


def full_array(arrays: list[Any]) -> Any:
    """One of the arrays that are not single elements, if these have one shape and layout."""
    like = None
    for array in arrays:
        if array is None or is_single(array):
            continue
        if like is None:
            if not (array.flags.c_contiguous or dense(array)) or not array.flags.aligned:
                return None
            like = array
        elif array.shape != like.shape or array.strides != like.strides:
            return None
    return like


def is_single(array: np.ndarray) -> bool:
    return array.ndim == 0 or (array.size > 0 and not any(array.strides))


def flat_operand(array: np.ndarray) -> Operand:
    shape = () if is_single(array) else (ANY_SIZE,)
    return Operand(TensorType(FROM_NUMPY[array.dtype], shape))
