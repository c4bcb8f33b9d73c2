"""Sparse tensors in coordinate form: positions, and the elements at them.

Note [Sparse tensors]
    A sparse tensor is a pair of dense ones. What is done to it is done to its elements with
    ordinary ops, so gradients reach them, and operands that are dense, as ever. It has no array:
    whoever asks for one (an op that knows only dense tensors) gets an AttributeError, which public
    functions turn into a call of `__torch_function__`, and that into the sparse form or an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.types import default_dtype, int64
from .creation import as_tensor, tensor, zeros
from .facts import Size
from .printing import format_tensor
from .strided import layout
from .tensor import Tensor

sparse_coo = layout("sparse_coo")
HANDLERS: dict[str, Callable[..., Any]] = {}  # by the name of a public function: its sparse form


def handles(*names: str) -> Callable[[Any], Any]:
    """Makes a function the sparse form of public functions and methods of these names."""

    def register(function: Any) -> Any:
        for name in names:
            HANDLERS[name] = function
            setattr(SparseTensor, name, lambda self, *a, _f=function, **k: _f(self, *a, **k))
        return function

    return register


class SparseTensor(Tensor):
    """A tensor that keeps only some elements; the others are zero."""

    __slots__ = ("_coalesced", "_elements", "_positions", "_size")
    is_sparse, is_sparse_csr, layout = True, False, sparse_coo  # type: ignore[assignment]

    def __new__(cls, positions: Tensor, elements: Tensor, size: Any,
                coalesced: bool = False) -> SparseTensor:  # fmt: skip
        self = cls._wrap(None, elements.dtype)  # type: ignore[arg-type]
        self._positions, self._elements = positions, elements
        self._size, self._coalesced = Size(size), coalesced or elements.shape[0] < 2
        return self

    @property
    def _array(self) -> np.ndarray:  # type: ignore[override]
        raise AttributeError("a sparse tensor has no array", name="_array", obj=self)

    @_array.setter
    def _array(self, array: Any) -> None:
        pass

    def _has_type(self, wanted: Any) -> bool:
        dtype, shape = wanted
        return self.dtype is dtype and tuple(self._size) == tuple(shape)

    def outline(self) -> tuple[Any, ...]:
        """What it is beside positions and elements: its size, and whether it is coalesced."""
        return tuple(self._size), self._coalesced

    def like(self, elements: Tensor) -> SparseTensor:
        """Other elements at the same positions."""
        return SparseTensor(self._positions, elements, self._size, self._coalesced)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.__name__.rstrip("_")
        handler = HANDLERS.get(name)
        if handler is None:
            raise NotImplementedError(
                f"Could not run 'aten::{name}' with arguments from the 'SparseCPU' "
                "backend. This could be because the operator doesn't exist for this backend; use "
                "to_dense()"
            )
        return handler(*args, **(kwargs or {}))

    __torch_function__.__func__.turn = "late"  # type: ignore[attr-defined]

    # --- facts ---

    shape = property(lambda self: self._size)
    ndim = property(lambda self: len(self._size))
    requires_grad = property(lambda self: self._elements.requires_grad,
                             lambda self, needed: self.requires_grad_(needed))  # fmt: skip
    grad_fn = property(lambda self: self._elements.grad_fn)
    is_leaf = property(lambda self: self._elements.is_leaf)

    @property
    def grad(self) -> Any:
        """Sparse as well: it has the tensor's positions."""
        grad = self._elements.grad
        return None if grad is None else self.like(grad)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._elements.grad = None if value is None else value._elements

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        self._elements.requires_grad_(requires_grad)
        return self

    def dim(self) -> int:
        return len(self._size)

    def size(self, dim: int | None = None) -> Any:
        return self._size if dim is None else self._size[dim]

    def numel(self) -> int:
        return self._size.numel()

    nelement = numel

    def __len__(self) -> int:
        return self._size[0]

    def sparse_dim(self) -> int:
        """How many dimensions positions have."""
        return self._positions.shape[0]

    def dense_dim(self) -> int:
        """How many dimensions each element has."""
        return self._elements.ndim - 1

    def _nnz(self) -> int:
        return self._elements.shape[0]

    def is_coalesced(self) -> bool:
        """Is each position there once, and are they in order?"""
        return self._coalesced

    def _indices(self) -> Tensor:
        return self._positions

    def _values(self) -> Tensor:
        return self._elements

    def indices(self) -> Tensor:
        """The positions, one a column."""
        return self._if_coalesced("indices", self._positions)

    def values(self) -> Tensor:
        """The elements."""
        return self._if_coalesced("values", self._elements)

    def _if_coalesced(self, what: str, found: Tensor) -> Tensor:
        if not self._coalesced:
            raise RuntimeError(f"Cannot get {what} on an uncoalesced tensor, please call "
                               ".coalesce() first")  # fmt: skip
        return found

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        facts = [f"size={tuple(self._size)}", f"nnz={self._nnz()}"]
        if self.dtype not in (default_dtype(), int64):
            facts.append(f"dtype={self.dtype!r}")
        facts.append("layout=torch.sparse_coo")
        if self.grad_fn is not None:
            facts.append(f"grad_fn=<{type(self.grad_fn).__name__}>")
        elif self.requires_grad:
            facts.append("requires_grad=True")
        parts = [_member("indices", self._positions), _member("values", self._elements)]
        return "tensor(" + ",\n       ".join([*parts, ", ".join(facts)]) + ")"

    __str__ = __repr__

    # --- forms ---

    def coalesce(self) -> SparseTensor:
        """Each position once, in order; elements at the same position are added."""
        if self._coalesced:
            return self
        keys, back = flat(self._positions, self._size).unique(return_inverse=True)
        start = zeros(len(keys), *self._elements.shape[1:], dtype=self.dtype)
        elements = start.index_add(0, back, self._elements)
        positions = positions_of(keys, self._size[: self.sparse_dim()])
        return SparseTensor(positions, elements, self._size, True)

    def to_dense(self, dtype: Any = None, *, masked_grad: Any = None) -> Tensor:
        """All elements, those that are zero too."""
        base = zeros(*self._size, dtype=self.dtype)
        made = base.index_put(tuple(self._positions), self._elements, accumulate=True)
        return made if dtype is None else made.to(dtype)

    def to_sparse(self, *args: Any, **kwargs: Any) -> SparseTensor:
        return self

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        elements = self._elements.to(*args, **kwargs)
        return self if elements is self._elements else self.like(elements)

    def cpu(self, *args: Any, **kwargs: Any) -> SparseTensor:
        return self

    def copy_(self, source: Any, non_blocking: bool = False) -> SparseTensor:
        """Takes over another sparse tensor's positions and elements."""
        self._positions, self._coalesced = source._positions.clone(), source._coalesced
        self._elements, self._size = source._elements.to(self.dtype).clone(), source._size
        return self

    def __deepcopy__(self, memo: Any) -> SparseTensor:
        return self.detach().clone().requires_grad_(self.requires_grad)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return SparseTensor, (self._positions, self._elements, *self.outline())


def _member(name: str, part: Tensor) -> str:
    """`indices=tensor(...)`, lined up below the opening of the whole."""
    kind = part.dtype.name
    text = format_tensor(part.detach()._values_array(), dtype=kind, default_dtype=kind,
                         class_name=f"       {name}=tensor").lstrip()  # fmt: skip
    return text.replace("([])", f"([], size={tuple(part.shape)})")


def flat(positions: Tensor, size: Any) -> Tensor:
    """Positions as numbers, in row-major order."""
    strides = np.cumprod([1, *tuple(size)[: len(positions)][:0:-1]])[::-1]
    return (positions * tensor(strides.tolist()).view(-1, 1)).sum(0)


def positions_of(keys: Tensor, size: Any) -> Tensor:
    """The positions of numbers that `flat` gives."""
    found = np.stack(np.unravel_index(keys._array, tuple(size))) if len(size) else keys._array[None]
    return as_tensor(found.reshape(len(size), -1))


def sparse_coo_tensor(indices: Any, values: Any = None, size: Any = None, *, dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: Any = None,
                      is_coalesced: Any = None) -> SparseTensor:  # fmt: skip
    """sparse_coo_tensor(indices, values, size=None): one position a column, one element each."""
    if values is None and not isinstance(indices, Tensor):  # sparse_coo_tensor(size)
        size, indices, values = indices, zeros(len(indices), 0, dtype=int64), zeros(0, dtype=dtype)
    positions, elements = as_tensor(indices, dtype=int64), as_tensor(values, dtype=dtype)
    if positions.ndim == 1 and not positions.numel():
        positions = positions.view(0, elements.shape[0])
    if positions.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(positions.shape)}")
    if positions.shape[1] != elements.shape[0]:
        raise RuntimeError(
            "indices and values must have same nnz, but got nnz from indices: "
            f"{positions.shape[1]}, nnz from values: {elements.shape[0]}"
        )
    if size is None:
        size = [*((positions.amax(1) + 1).tolist()), *elements.shape[1:]]
    found = SparseTensor(positions, elements, tuple(size), bool(is_coalesced))
    return SparseTensor.requires_grad_(found.detach(), True) if requires_grad else found
