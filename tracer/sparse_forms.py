"""What can be done with sparse tensors: the sparse forms of public functions and methods."""

from __future__ import annotations

from typing import Any

from ..ir.types import int64, normalize_dim
from ..ir.value import FUNCTIONS
from .creation import as_tensor, full, zeros
from .sparse import HANDLERS, SparseTensor, flat, handles
from .tensor import Tensor

# Functions of elements that keep zeros zero; NaN and the like are found at positions only.
ZERO_KEEPING = ("abs", "asin", "asinh", "atan", "atanh", "ceil", "deg2rad", "erf", "erfinv",
                "expm1", "floor", "log1p", "neg", "rad2deg", "relu", "round", "sgn", "sign", "sin",
                "sinh", "sqrt", "square", "tan", "tanh", "trunc")  # fmt: skip
# What changes the elements alone, by place.
ELEMENTWISE = ("detach", "clone", "float", "double", "half", "bfloat16", "long", "int", "bool",
               "type")  # fmt: skip


def _through_elements(name: str, by_position: bool) -> Any:
    def form(input: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        source = input if by_position else input.coalesce()
        return source.like(getattr(source._elements, name)(*args, **kwargs))

    form.__name__ = form.__qualname__ = name
    return form


for _name in ZERO_KEEPING:
    handles(_name)(_through_elements(_name, _name == "neg"))
for _name in ELEMENTWISE:
    handles(_name)(_through_elements(_name, True))
handles("negative", "__neg__")(HANDLERS["neg"])


def to_sparse(self: Tensor, sparse_dim: int | None = None) -> SparseTensor:
    """The elements that are not zero; with `sparse_dim`, slices that are not all zero."""
    count = self.ndim if sparse_dim is None else sparse_dim
    kept = self.detach() != 0
    if count < self.ndim:
        kept = kept.flatten(count).any(-1)
    positions = kept.nonzero().t().contiguous()
    elements = self[tuple(positions)] if count else self[None]
    return SparseTensor(positions, elements, self.shape, True)


@handles("pow", "__pow__")
def power(input: SparseTensor, exponent: Any) -> SparseTensor:
    """Powers that keep zeros zero."""
    if isinstance(exponent, Tensor) or exponent == 0:
        raise RuntimeError("pow(sparse): the exponent must be a number other than 0")
    source = input.coalesce()
    return source.like(source._elements**exponent)


# --- sums and products of elements ---------------------------------------------------------------


@handles("add", "__add__")
def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """sparse + sparse is sparse, dense + sparse is dense."""
    if not isinstance(input, SparseTensor):
        return input + other.to_dense() * alpha
    if not isinstance(other, SparseTensor):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if input.shape != other.shape:
        raise RuntimeError("add: expected sizes of 'self' and 'other' to match, but "
                           f"{list(input.shape)} != {list(other.shape)}")  # fmt: skip
    positions = _joined([input._positions, other._positions], 1)
    elements = _joined([input._elements, other._elements * alpha], 0)
    if input._coalesced and other._coalesced:
        return SparseTensor(positions, elements, input.shape).coalesce()
    chosen, places = merged(*(flat(t._positions, t.shape).tolist() for t in (input, other)))
    start = zeros(len(chosen), *elements.shape[1:], dtype=elements.dtype)
    found = start.index_add(0, as_tensor(places, dtype=int64), elements)
    return SparseTensor(positions[:, as_tensor(chosen, dtype=int64)], found, input.shape)


def merged(first: list[int], second: list[int]) -> tuple[list[int], list[int]]:
    """How torch joins positions that are in no order: the smaller of the two next ones first.

    Gives the numbers, in both lists together, of positions of the result, and the place in the
    result of each: equal ones that meet are one.
    """
    count, k, n = len(first), 0, 0
    chosen: list[int] = []
    places = [0] * (count + len(second))
    while k < count or n < len(second):
        here = n == len(second) or (k < count and first[k] <= second[n])
        there = k == count or (n < len(second) and second[n] <= first[k])
        chosen.append(k if here else count + n)
        if here:
            places[k] = len(chosen) - 1
            k += 1
        if there:
            places[count + n] = len(chosen) - 1
            n += 1
    return chosen, places


def _joined(tensors: list[Tensor], dim: int) -> Tensor:
    return FUNCTIONS["cat"].call(tensors, dim)


@handles("sub", "subtract", "__sub__")
def subtract(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """As `add`."""
    return add(input, other, alpha=-alpha)


@handles("mul", "multiply", "__mul__")
def multiply(input: Any, other: Any) -> SparseTensor:
    """With a number, a sparse tensor, or a dense one, of which the same positions are taken."""
    if not isinstance(input, SparseTensor):
        return multiply(other, input)
    if not isinstance(other, Tensor) or (not other.is_sparse and not other.ndim):
        return input.like(input._elements * other)
    source = input.coalesce()
    if isinstance(other, SparseTensor):
        other = other.coalesce()
        there = [flat(each._positions, each.shape) for each in (source, other)]
        shared = FUNCTIONS["isin"].call(*there)
        positions = source._positions[:, shared]
        source = SparseTensor(positions, source._elements[shared], source.shape, True)
        other = other.to_dense()
    return source.like(source._elements * other.expand(source.shape)[tuple(source._positions)])


@handles("div", "divide", "true_divide", "__truediv__")
def divide(input: SparseTensor, other: Any, *, rounding_mode: Any = None) -> SparseTensor:
    """By a number."""
    if isinstance(other, Tensor) and (other.is_sparse or other.ndim):
        raise RuntimeError("Sparse division requires a scalar or zero-dim dense tensor divisor")
    source = input.coalesce()
    return source.like(source._elements.div(other, rounding_mode=rounding_mode))


SparseTensor.__radd__ = lambda self, other: add(other, self)  # type: ignore[attr-defined]
SparseTensor.__rsub__ = lambda self, other: subtract(other, self)  # type: ignore[attr-defined]
SparseTensor.__rmul__ = lambda self, other: multiply(self, other)  # type: ignore[attr-defined]


# --- matrix products -----------------------------------------------------------------------------


@handles("mm", "matmul", "mv", "spmm", "smm", "__matmul__")
def product(input: Any, other: Any, reduce: str = "sum") -> Any:
    """A sparse matrix times a dense matrix or vector is dense, times a sparse one sparse."""
    if not isinstance(input, SparseTensor):
        return product(transpose(other, 0, 1), input.mT).mT
    if isinstance(other, SparseTensor):
        return _sparse_product(input, other)
    if other.shape[0] != input.shape[1]:
        raise RuntimeError(
            f"addmm: Argument #3 (dense): Expected dim 0 size {input.shape[1]}, got "
            f"{other.shape[0]}"
        )
    rows, columns = input._positions
    elements = input._elements.view(-1, *[1] * (other.ndim - 1))
    start = zeros(input.shape[0], *other.shape[1:], dtype=input.dtype)
    return start.index_add(0, rows, elements * other[columns])


def _sparse_product(input: SparseTensor, other: SparseTensor) -> SparseTensor:
    """At each position that some pair of positions reaches."""
    reach = [s.like(full((s._nnz(),), 1.0)).to_dense() for s in (input, other)]
    positions = (reach[0] @ reach[1]).nonzero().t().contiguous()
    elements = (input.to_dense() @ other.to_dense())[tuple(positions)]
    return SparseTensor(positions, elements, (input.shape[0], other.shape[1]), True)


SparseTensor.__rmatmul__ = lambda self, other: product(other, self)  # type: ignore[attr-defined]


@handles("addmm")
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * mat1 @ mat2, with a sparse `mat1`."""
    return input * beta + product(mat1, mat2) * alpha


# --- dimensions ----------------------------------------------------------------------------------


@handles("transpose", "swapaxes", "swapdims")
def transpose(input: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    """Exchanges two of the dimensions that positions have."""
    order, size = list(range(input.sparse_dim())), list(input.shape)
    first, second = normalize_dim(dim0, input.ndim), normalize_dim(dim1, input.ndim)
    for listed in (order, size):
        listed[first], listed[second] = listed[second], listed[first]
    return SparseTensor(input._positions[order], input._elements, size)


@handles("t")
def turned(input: SparseTensor) -> SparseTensor:
    """A matrix with rows and columns exchanged."""
    return transpose(input, 0, 1)


@handles("sum")
def total(input: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum of all elements; over some dimensions it is sparse."""
    source = input if dtype is None else input.to(dtype)
    if dim is None:
        return source._elements.sum()
    dims = {normalize_dim(d, input.ndim) for d in (dim if isinstance(dim, tuple | list) else [dim])}
    kept = [d for d in range(input.sparse_dim()) if d not in dims]
    inner = [d - input.sparse_dim() + 1 for d in dims if d >= input.sparse_dim()]
    elements = source._elements.sum(inner) if inner else source._elements
    size = [n for d, n in enumerate(input.shape) if d not in dims]
    if not kept:
        return elements.sum(0)
    return SparseTensor(source._positions[kept], elements, size).coalesce()


@handles("select")
def select(input: SparseTensor, dim: int, index: int) -> Any:
    """One slice."""
    dim = normalize_dim(dim, input.ndim)
    size = [n for d, n in enumerate(input.shape) if d != dim]
    if dim >= input.sparse_dim():
        elements = input._elements.select(dim - input.sparse_dim() + 1, index)
        return SparseTensor(input._positions, elements, size, input._coalesced)
    if not -input.shape[dim] <= index < input.shape[dim]:
        raise IndexError(f"select(): index {index} out of range for tensor of size "
                         f"{list(input.shape)} at dimension {dim}")  # fmt: skip
    chosen = input._positions[dim] == index % input.shape[dim]
    rest = [d for d in range(input.sparse_dim()) if d != dim]
    if not rest:
        return input._elements[chosen].sum(0)
    return SparseTensor(input._positions[rest][:, chosen], input._elements[chosen], size,
                        input._coalesced)  # fmt: skip


@handles("__getitem__")
def item_of(input: SparseTensor, item: Any) -> Any:
    """`input[k]`, or `input[j, k]`."""
    for index in item if isinstance(item, tuple) else (item,):
        if not isinstance(index, int):
            raise NotImplementedError("sparse tensors are indexed by ints; use to_dense()")
        input = select(input, 0, index) if input.is_sparse else input[index]
    return input


@handles("index_select")
def index_select(input: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    """The slices named by `index`, in its order."""
    dim = normalize_dim(dim, input.ndim)
    found, old = (input._positions[dim][None] == index[:, None]).nonzero(as_tuple=True)
    positions = input._positions[:, old]
    positions[dim] = found
    size = [len(index) if d == dim else n for d, n in enumerate(input.shape)]
    return SparseTensor(positions, input._elements[old], size).coalesce()


@handles("unsqueeze")
def unsqueeze(input: SparseTensor, dim: int) -> SparseTensor:
    """A new dimension of size 1."""
    dim = normalize_dim(dim, input.ndim + 1)
    new = zeros(1, input._nnz(), dtype=input._positions.dtype)
    positions = _joined([input._positions[:dim], new, input._positions[dim:]], 0)
    size = [*input.shape[:dim], 1, *input.shape[dim:]]
    return SparseTensor(positions, input._elements, size, input._coalesced)


@handles("cat", "concat", "concatenate")
def cat(tensors: Any, dim: int = 0) -> SparseTensor:
    """One after the other along a dimension that positions have."""
    dim, before, moved = normalize_dim(dim, tensors[0].ndim), 0, []
    for each in tensors:
        shift = zeros(each.sparse_dim(), 1, dtype=each._positions.dtype)
        shift[dim] = before
        moved.append(each._positions + shift)
        before += each.shape[dim]
    size = [before if d == dim else n for d, n in enumerate(tensors[0].shape)]
    return SparseTensor(_joined(moved, 1), _joined([t._elements for t in tensors], 0), size)


@handles("stack")
def stack(tensors: Any, dim: int = 0) -> SparseTensor:
    """One above the other along a new dimension."""
    return cat([unsqueeze(t, dim) for t in tensors], dim)


# --- softmax -------------------------------------------------------------------------------------


@handles("softmax")
def softmax(input: SparseTensor, dim: int, dtype: Any = None) -> SparseTensor:
    """softmax over the elements that are there; those that are not count as -inf."""
    source, shares, sums, group = _exponentials(input, dim, dtype)
    return source.like(shares / sums[group])


@handles("log_softmax")
def log_softmax(input: SparseTensor, dim: int, dtype: Any = None) -> SparseTensor:
    """The logarithm of `softmax`."""
    source, shares, sums, group = _exponentials(input, dim, dtype)
    return source.like(shares.log() - sums[group].log())


def _exponentials(input: SparseTensor, dim: int, dtype: Any) -> tuple[Any, Any, Any, Any]:
    """(coalesced input, exponentials, their sums by group, the group of each)."""
    source = (input if dtype is None else input.to(dtype)).coalesce()
    dim = normalize_dim(dim, source.ndim)
    rest = [d for d in range(source.sparse_dim()) if d != dim]
    keys = flat(source._positions[rest], [source.shape[d] for d in rest])
    names, group = keys.unique(return_inverse=True)
    inside = source._elements
    lowest = full((len(names), *inside.shape[1:]), float("-inf"), dtype=inside.dtype)
    index = group.view(-1, *[1] * (inside.ndim - 1)).expand(inside.shape)
    largest = lowest.scatter_reduce(0, index, inside.detach(), "amax")
    shares = (inside - largest[group]).exp()
    sums = zeros(*lowest.shape, dtype=inside.dtype).index_add(0, group, shares)
    return source, shares, sums, group


# --- in place ------------------------------------------------------------------------------------


@handles("zero_")
def zero_(input: SparseTensor) -> SparseTensor:
    """No position is left."""
    input._positions, input._elements = input._positions[:, :0], input._elements[:0].detach()
    input._coalesced = True
    return input


def _in_place(name: str) -> Any:
    form = HANDLERS[name]

    def in_place(input: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        made = form(input, *args, **kwargs)
        input._positions, input._elements = made._positions, made._elements
        input._coalesced = made._coalesced
        return input

    in_place.__name__ = in_place.__qualname__ = f"{name}_"
    return in_place


for _name in ("add", "sub", "mul", "div", "neg", "pow"):
    handles(f"{_name}_")(_in_place(_name))


@handles("norm")
def norm(input: SparseTensor, p: Any = "fro", *args: Any, **kwargs: Any) -> Tensor:
    """Of all elements."""
    return input.coalesce()._elements.norm(*() if p == "fro" else (p,), *args, **kwargs)
