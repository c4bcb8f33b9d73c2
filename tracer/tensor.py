"""`Tensor`: an ndarray with torch's autograd facts. Ops come from the catalogue (`ir/value.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.arguments import must_be
from ..ir.bind import epoch, notify, state
from ..ir.patches import Watched
from ..ir.places import user_place
from ..ir.types import FLOAT, DType, bfloat16, from_bfloat16, same_shape, type_word
from ..ir.value import Value
from .facts import CPU, LeafFacts, Size, device, require_cpu
from .hooks import RemovableHandle
from .readers import announce_replacement, readers
from .storage import Renewed, Storage


class _TensorMeta(Watched, type):
    """`isinstance(x, FloatTensor)` is by dtype; those classes have no instances of their own."""

    def __new__(mcls, name: str, bases: Any, space: Any, **facts: Any) -> Any:
        if not bases or space["__module__"].partition(".")[0] == __name__.partition(".")[0]:
            return super().__new__(mcls, name, bases, space, **facts)
        from .subclasses import admit, bases_for  # see Note [Subclasses]

        made = super().__new__(mcls, name, bases_for(space["__module__"], bases), space, **facts)
        admit(made)
        return made


_TRANSFORMED = (
    "You are attempting to call Tensor.requires_grad_() (or perhaps using "
    "torch.autograd.functional.* APIs) inside of a function being transformed by a functorch "
    "transform. This is unsupported, please attempt to use the functorch transforms (e.g. grad, "
    "vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside of a function being "
    "transformed instead."
)


class Tensor(Value, metaclass=_TensorMeta):
    """A multi-dimensional array that knows how it was computed."""

    # `_unseen` is set in few; see Note [Late bases]
    # `_mark` says why a tensor has no history though its inputs had: "inference", or (how, place)
    __slots__ = ("__dict__", "__weakref__", "_array", "_grad", "_leaf", "_mark", "_node", "_nr",
                 "_requires_grad", "_storage", "_unseen", "_view", "dtype")  # fmt: skip

    _array: np.ndarray
    _unseen: tuple[int, ...]
    wrapped = False  # is it a Python number that is known at run time only?
    __array_priority__ = 1000
    __module__ = __name__.partition(".")[0]  # where users find it

    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:
        from .creation import legacy_tensor

        return legacy_tensor(cls, args, kwargs)

    @classmethod
    def _wrap(cls, array: np.ndarray, dtype: DType) -> Tensor:
        """A new tensor on `array`, whose storage dtype is `dtype`'s."""
        self = object.__new__(cls)
        self._array = array
        self.dtype = dtype
        self._requires_grad = False
        self._storage = self._node = self._grad = self._view = self._leaf = self._mark = None
        self._nr = 0
        return self

    def _twin(self) -> Tensor:
        """Another tensor on the same memory and version counter, without history."""
        fresh = Tensor._wrap(self._array, self.dtype)
        fresh._storage = self.storage_
        return fresh

    def _leaf_facts(self) -> LeafFacts:
        facts = self._leaf
        if facts is None:
            facts = self._leaf = LeafFacts()
        return facts

    def _legacy_name(self) -> str:
        from .convert import type_name

        return type_name(self.dtype)

    def _has_type(self, wanted: Any) -> bool:
        """Are dtype and shape those of `wanted`?"""
        dtype, shape = wanted
        if watched_shape is not None:
            return self.dtype is dtype and same_shape(watched_shape(self), shape)
        return self.dtype is dtype and self._array.shape == shape

    @property
    def _layout(self) -> np.ndarray:
        """The array, for those who look at shape, strides and flags only."""
        return self._array

    @staticmethod
    def _make_subclass(cls: Any, data: Tensor, require_grad: bool = False) -> Any:
        """A tensor of class `cls` on the memory of `data`."""
        self = cls._wrap(data._array, data.dtype)
        self._storage = data.storage_
        if require_grad:
            self.requires_grad = True
        return self

    # --- memory ---

    @property
    def storage_(self) -> Storage:
        """The storage, made now if the tensor has none yet; see Note [Lazy storage]."""
        if self._storage is None:
            self._storage = Storage(self._array)
        return self._storage

    @property
    def shape(self) -> Size:
        if watched_shape is not None:
            return watched_shape(self)
        return tuple.__new__(Size, self._array.shape)

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def _version(self) -> int:
        if self._mark == "inference":
            raise RuntimeError(
                "Inference tensors do not track version counter. Make the tensor "
                "outside of inference_mode(), or clone() it there."
            )
        notify("fact_asked", self, "_version")
        return 0 if self._storage is None else +self._storage.version  # an int: see AsHigh

    @property
    def _base(self) -> Tensor | None:
        notify("fact_asked", self, "_base")
        from .unseen import base_of

        return base_of(self)

    def _is_view(self) -> bool:
        notify("fact_asked", self, "_is_view")
        from .unseen import is_seen_as_view

        return is_seen_as_view(self)

    @property
    def data(self) -> Tensor:
        """The same memory without history; writes to it are not seen by autograd."""
        fresh = Tensor._wrap(self._array, self.dtype)
        fresh._storage = Storage(self.storage_.root)
        if self._mark == "inference":
            fresh._mark = "inference"
        note_detach(self, fresh)
        return fresh

    @data.setter
    def data(self, new: Tensor) -> None:
        if not isinstance(new, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(new).__name__}")
        if self._requires_grad and new.dtype.category < FLOAT:
            raise RuntimeError("data set to a tensor that requires gradients must be floating "
                               "point or complex dtype")  # fmt: skip
        if new._array is self._array:  # x.data += 1
            return
        notify("data_replaced")
        if readers:
            announce_replacement(self)
        self._storage = Renewed(new.storage_.root, self._version, self.storage_)
        self._array, self.dtype = new._array, new.dtype
        self._view = None
        from .unseen import forget_base

        forget_base(self)
        epoch.advance()

    # --- autograd facts ---

    @property
    def requires_grad(self) -> bool:
        if self._requires_grad or self._view is None:
            return self._requires_grad
        # the base may have come to require grad since: a view of it then does, too
        return self._view.base._requires_grad and self.dtype.category >= FLOAT

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        if not isinstance(wanted, bool | np.bool_):
            raise RuntimeError("requires_grad must be a bool")
        if self._node is not None:
            hint = "" if wanted else (
                " If you want to use a computed variable in a subgraph that doesn't require "
                "differentiation use var_no_grad = var.detach().")  # fmt: skip
            raise RuntimeError(f"you can only change requires_grad flags of leaf variables.{hint}")
        if wanted and self.dtype.category < FLOAT:
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        if wanted and self._mark == "inference" and not state.inference:
            raise RuntimeError(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not "
                "allowed."
            )
        if self._requires_grad is not bool(wanted):
            notify("flag_changed", self)
        self._requires_grad = bool(wanted)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Sets `requires_grad` and returns the tensor."""
        if not isinstance(requires_grad, bool | np.bool_):
            raise must_be("requires_grad_", "requires_grad", "bool", requires_grad, 1)
        if state.levels:
            raise RuntimeError(_TRANSFORMED)
        if requires_grad and self.dtype.category < FLOAT:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if not (requires_grad and self._node is not None):
            self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        notify("fact_asked", self, "is_leaf")
        return self.grad_fn is None

    @property
    def grad_fn(self) -> Any:
        if self._view is not None and self._view.seen != self._storage.version:
            from .eager import refresh_view

            refresh_view(self)
        notify("fact_asked", self, "grad_fn")
        return self._node

    _grad_fn = grad_fn

    @property
    def output_nr(self) -> int:
        return self._nr

    @property
    def grad(self) -> Tensor | None:
        if state.top is not state.bottom:  # as `notify` asks, a frame less
            notify("grad_read", self)
        if self._grad is None and self._node is not None and not self.retains_grad:
            import warnings

            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
                ".grad attribute won't be populated during autograd.backward(). If you indeed want "
                "the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the "
                "non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you "
                "access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for "
                "more information.",
                UserWarning,
                stacklevel=2,
            )
        return self._grad

    @grad.setter
    def grad(self, new: Tensor | None) -> None:
        if new is not None:
            check_grad(self, new)
        self._grad = new
        if state.top is not state.bottom:  # as `notify` asks, a frame less
            notify("grad_set", self)

    @grad.deleter
    def grad(self) -> None:
        self._grad = None
        notify("grad_set", self)

    @property
    def retains_grad(self) -> bool:
        notify("fact_asked", self, "retains_grad")
        return bool(self.__dict__.get("_retains"))

    def retain_grad(self) -> None:
        """Keeps `.grad` also for this non-leaf tensor."""
        if not self._requires_grad:
            raise RuntimeError(
                "can't retain_grad on Tensor that has requires_grad=False; set it, "
                "or keep a gradient of a tensor computed from one that requires grad"
            )
        if self._node is None or self.retains_grad:
            return
        notify("hooked", self)
        from .tape import retain

        retain(self)  # a view of what was written gets its history now
        self.__dict__["_retains"] = True

    def register_hook(self, hook: Any) -> RemovableHandle:
        """`hook(grad)` is called with the gradient of this tensor; it may return another."""
        if not self._requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        from .tape import hook_table

        notify("hooked", self)
        return RemovableHandle(hook_table(self), hook)

    @property
    def _backward_hooks(self) -> Any:
        if self._node is None:
            return self._leaf.hooks if self._leaf is not None else None
        extra = self._node.extra
        return extra.tensor_hooks.get(self._nr) if extra is not None else None

    def register_post_accumulate_grad_hook(self, hook: Any) -> RemovableHandle:
        """`hook(tensor)` is called after `.grad` of this leaf was accumulated."""
        if not self._requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._node is not None:
            raise RuntimeError(
                "post accumulate grad hooks cannot be registered on non-leaf tensors"
            )
        facts = self._leaf_facts()
        if facts.post_hooks is None:
            facts.post_hooks = {}
        return RemovableHandle(facts.post_hooks, hook)

    backward: Any  # put here by backward.py

    # --- detaching ---

    def detach(self) -> Tensor:
        """The same memory and version counter without history."""
        fresh = self._twin()
        if self._requires_grad:
            fresh._mark = ("detach()", user_place())
        elif self._mark is not None:
            fresh._mark = self._mark
        note_detach(self, fresh)
        return fresh

    def detach_(self) -> Tensor:
        """Cuts this tensor from its history."""
        from .unseen import is_seen_as_view

        if is_seen_as_view(self):
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using "
                "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
                "True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
                "these gradients. To fix this error, please refer to the Optimizer.zero_grad() "
                "function in torch/optim/optimizer.py as the solution."
            )
        if self._requires_grad:
            self._mark = ("detach_()", user_place())
        self._node, self._nr, self._requires_grad = None, 0, False
        return self

    def is_inference(self) -> bool:
        """Was the tensor made in inference mode?"""
        notify("fact_asked", self, "is_inference")
        return self._mark == "inference"

    @property
    def device(self) -> device:
        return CPU

    # --- Python's own protocols ---

    def __hash__(self) -> int:
        if state.top is not state.bottom:
            notify("hash_asked", self)
        return id(self)

    def __len__(self) -> int:
        if self._array.ndim == 0:
            raise TypeError("len() of a 0-d tensor; use numel(), or reshape(1) it")
        return self.shape[0]

    def __iter__(self) -> Any:
        if self._array.ndim == 0:
            raise TypeError("iteration over a 0-d tensor; use item(), or reshape(1) it")
        return iter(self.unbind(0))

    def __delitem__(self, item: Any) -> None:
        raise TypeError("Tensor does not support deleting items")

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from .display import tensor_text

        return tensor_text(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        if self._array.ndim == 0:
            return format(self.item(), spec)
        return object.__format__(self, spec)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self.__dict__})

    def _values_array(self) -> np.ndarray:
        """The elements in a dtype NumPy can compute with (bfloat16 as float32)."""
        return from_bfloat16(self._array) if self.dtype is bfloat16 else self._array


PLAIN: set[type] = {Tensor}  # classes whose instances are ordinary tensors, see tracer/fast.py


def check_grad(tensor: Tensor, new: Any) -> None:
    """What may be assigned to `.grad`."""
    if not isinstance(new, Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type "
                        f"{type(new).__name__}")  # fmt: skip
    if new is tensor:
        raise RuntimeError("can't assign Variable as its own grad; use a clone()")
    if new.dtype is not tensor.dtype:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{type_word(new.dtype).lower()}' to a "
            f"tensor with grad_dtype '{type_word(tensor.dtype)}'. The gradient must match the "
            "tensor's grad_dtype (defaults to the tensor's dtype); cast it with to()."
        )
    if not new._has_type((new.dtype, tensor._array.shape)):
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(new.shape)}' to a tensor of "
            f"size '{list(tensor._array.shape)}'. Please ensure that the gradient and the tensor "
            "are the same size"
        )


# Set while a recording with symbolic sizes is on: gives a tensor's shape in their terms.
watched_shape: Any = None


# The recorder installs itself here: values and their detached aliases are the same IR value.
def note_detach(source: Tensor, result: Tensor) -> None:
    """Tells the recording, if one is on, that `result` aliases `source`."""
    watcher = getattr(state.top, "detached", None)
    if watcher is not None:
        watcher(source, result)


__all__ = ["CPU", "PLAIN", "LeafFacts", "Size", "Tensor", "device", "require_cpu"]
