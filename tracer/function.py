"""`autograd.Function`: user-defined forward and backward."""

from __future__ import annotations

import functools
from typing import Any

from ..ir.bind import notify, state
from ..ir.types import FLOAT, TensorType
from .eager import history
from .modes import no_grad
from .storage import View
from .tape import FREED, Node, SavedInput, SavedOutput, describe_place, next_sequence, user_place
from .tensor import Tensor


class FunctionCtx:
    """What `forward` tells `backward`. A graph node, when history is recorded, is one of these."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps tensors for backward; they are checked for in-place changes when read."""
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        self._to_save_forward = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Names inputs that forward changed in place."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Names outputs that never require grad."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """False: missing gradients reach backward as None, not as zeros."""
        self._materialize = value

    _to_save: tuple[Any, ...] = ()
    _dirty: tuple[Any, ...] = ()
    _non_differentiable: tuple[Any, ...] = ()
    _materialize = True
    needs_input_grad: tuple[bool, ...] = ()


class BackwardNode(Node, FunctionCtx):
    """The graph node of a custom Function; also its `ctx`."""

    _forward_class: Any = None

    def __init__(self) -> None:
        self.edges: tuple[Any, ...] = ()
        self.extra = self.in_hooks = self.out_hooks = None
        self.place = user_place()
        self.sequence = next_sequence()
        self._saved: list[Any] | None = []
        self.out_types: tuple[TensorType, ...] = ()
        self._positions: tuple[int, ...] = ()

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The values of `save_for_backward`, with their history."""
        if self._saved is None:
            raise RuntimeError(FREED)
        return tuple(self._unpack(entry) for entry in self._saved)

    saved_variables = saved_tensors

    def _unpack(self, entry: Any) -> Any:
        if entry is None:
            return None
        if isinstance(entry, tuple):  # hooks on saved tensors
            unpack, packed = entry
            return unpack(packed)
        if isinstance(entry, SavedInput):
            check_version(self, entry.tensor, entry.tensor._storage, entry.version)
            return entry.tensor
        saved, number = entry.entry, entry.number
        check_version(self, saved, saved.storage, saved.version)
        tensor = Tensor._wrap(saved.array, saved.dtype)
        tensor._storage = saved.storage
        if number is not None:
            tensor._node, tensor._nr, tensor._requires_grad = self, number, True
        return tensor

    def apply(self, grads: list[Any]) -> list[Any]:
        filled = list(grads) + [None] * (len(self.out_types) - len(grads))
        if self._materialize:
            filled = [zeros_of(t) if g is None else g for g, t in zip(filled, self.out_types)]
        results = self._forward_class.backward(self, *filled)
        if not isinstance(results, tuple):
            results = (results,)
        return self._arrange(results)

    def _arrange(self, results: tuple[Any, ...]) -> list[Any]:
        """Gradients per tensor input, checked against the number and types of the inputs."""
        count = self._argument_count
        extra = results[count:]
        if len(results) < count or any(r is not None for r in extra):
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected "
                f"{count}, got {len(results)})"
            )
        ordered = []
        for place, (position, edge) in enumerate(zip(self._positions, self.edges)):
            grad = results[position]
            if grad is not None and not isinstance(grad, Tensor):
                raise TypeError(f"expected Variable or None (got {type(grad).__name__})")
            ordered.append(self._checked(grad, self._in_types[place]) if edge else None)
        return ordered

    def _checked(self, grad: Any, wanted: TensorType) -> Any:
        if grad is None:
            return None
        if tuple(grad.shape) != wanted.shape:
            from ..ir.types import broadcast_shapes

            try:
                fits = broadcast_shapes(tuple(grad.shape), wanted.shape) == tuple(grad.shape)
            except RuntimeError:
                fits = False
            if not fits:
                raise RuntimeError(
                    f"Function {self.name()} returned an invalid gradient at index 0 - got "
                    f"{list(grad.shape)} but expected shape compatible with {list(wanted.shape)}"
                )
        from ..ir.op import fit

        return fit(grad, wanted)

    def release(self) -> None:
        if self._saved:
            self._saved = None


class _SavedResult:
    __slots__ = ("entry", "number")

    def __init__(self, tensor: Tensor, number: int | None):
        self.entry, self.number = SavedOutput(tensor), number


def check_version(node: Any, value: Any, storage: Any, version: int) -> None:
    if storage.version != version:
        from .inplace import last_write

        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace "
            f"operation: [torch.{value.dtype.name}] saved by {node.name()} at "
            f"{describe_place(node.place)} is at version {storage.version}; expected version "
            f"{version} instead. It was changed at {last_write(storage)}."
        )


def zeros_of(type_: TensorType) -> Any:
    from ..ir.op import TABLE

    return TABLE["full"](size=type_.shape, fill_value=0, dtype=type_.dtype)


class _FunctionMeta(type):
    """Makes the node class `<Name>Backward` of every Function subclass."""

    def __init__(cls, name: str, bases: Any, body: Any):
        super().__init__(name, bases, body)
        cls._node_class = type(f"{name}Backward", (BackwardNode,), {"_forward_class": cls})


class Function(metaclass=_FunctionMeta):
    """Subclass with static `forward` and `backward`; call through `apply`."""

    _node_class: Any
    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any):
        raise RuntimeError(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the outputs; the first argument is ctx unless `setup_context` is given."""
        raise NotImplementedError("You must implement the forward function for custom "
                                  "autograd.Function.")  # fmt: skip

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Fills ctx after a `forward` that does not take it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Gradients of the inputs, given those of the outputs."""
        raise NotImplementedError("You must implement either the backward or vjp method for your "
                                  "custom autograd.Function to use it with backward mode AD.")  # fmt: skip

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Runs forward and records one node."""
        if cls.vjp is not Function.vjp and cls.backward is Function.backward:
            cls.backward = staticmethod(cls.vjp)
        return apply(cls, args)


def apply(cls: Any, args: tuple[Any, ...]) -> Any:
    node = cls._node_class()
    tensors = [(k, a) for k, a in enumerate(args) if isinstance(a, Tensor)]
    recording = state.grad_enabled and any(t._requires_grad for _, t in tensors)
    node.needs_input_grad = tuple(isinstance(a, Tensor) and a._requires_grad for a in args)
    node._positions = tuple(k for k, _ in tensors)
    node._in_types = [TensorType(t.dtype, t._array.shape) for _, t in tensors]
    node._argument_count = len(args)
    node.edges = tuple(history(t) if recording else None for _, t in tensors)
    with no_grad():
        if cls.setup_context is not Function.setup_context:
            result = cls.forward(*args)
            cls.setup_context(node, args, result)
        else:
            result = cls.forward(node, *args)
    single = not isinstance(result, tuple)
    outputs = [result] if single else list(result)
    outputs = attach(node, args, outputs, recording)
    if recording:
        notify("custom_function", node, [t for _, t in tensors], outputs)
    return outputs[0] if single else tuple(outputs)


def attach(node: Any, args: Any, outputs: list[Any], recording: bool) -> list[Any]:
    """Gives the outputs their place in the graph; inputs returned as they are become views."""
    dirty = {id(t) for t in node._dirty}
    for tensor in node._dirty:
        if recording and tensor._requires_grad and tensor.is_leaf and tensor._view is None:
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation."
            )
    inputs = {id(a) for a in args if isinstance(a, Tensor)}
    excluded = {id(t) for t in node._non_differentiable}
    results = []
    types = []
    for position, out in enumerate(outputs):
        if not isinstance(out, Tensor):
            results.append(out)
            types.append(TensorType(args_dtype(args), ()))
            continue
        types.append(TensorType(out.dtype, out._array.shape))
        if id(out) in inputs and id(out) not in dirty:
            out = alias_of(out)
        results.append(set_output(node, out, position, recording and id(outputs[position])
                                  not in excluded, id(out) in dirty))  # fmt: skip
    node.out_types = tuple(types)
    save(node, outputs, results, inputs)
    return results


def args_dtype(args: Any) -> Any:
    return next(a.dtype for a in args if isinstance(a, Tensor))


def alias_of(tensor: Tensor) -> Tensor:
    fresh = Tensor._wrap(tensor._array, tensor.dtype)
    fresh._storage = tensor.storage_
    from ..ir.op import TABLE

    fresh._view = View(tensor, ((TABLE["alias"], {}, 0),), tensor.storage_.version, "custom")
    watcher = getattr(state.top, "aliased", None)
    if watcher is not None:
        watcher(tensor, fresh)
    return fresh


def set_output(node: Any, out: Tensor, position: int, differentiable: bool, dirty: bool) -> Tensor:
    if not differentiable or out.dtype.category < FLOAT:
        if not dirty:
            out._requires_grad = False
            out._node = None
        return out
    if dirty and out._view is not None:
        from .inplace import CopySlices, regenerate_history

        value = Tensor._wrap(out._array, out.dtype)
        value._node, value._nr, value._requires_grad = node, position, True
        base = out._view.base
        base._node = CopySlices(base, out._view.chain, value)
        base._nr, base._requires_grad = 0, True
        regenerate_history(out)
        return out
    if out._view is not None and not dirty and out._view.origin == "":
        out._view.origin = "custom"
        out._view.seen = out._storage.version
    out._node, out._nr, out._requires_grad = node, position, True
    return out


def save(node: Any, outputs: list[Any], results: list[Any], inputs: set[int]) -> None:
    from .hooks import active

    places = {id(out): k for k, out in enumerate(outputs)}
    saved: list[Any] = []
    for tensor in node._to_save:
        if tensor is None:
            saved.append(None)
        elif not isinstance(tensor, Tensor):
            raise TypeError(
                "save_for_backward can only save variables, but argument 0 is of type "
                f"{type(tensor).__name__}"
            )
        elif active.saved:
            pack, unpack = active.saved[-1]
            saved.append((unpack, pack(tensor)))
        elif id(tensor) in places and (id(tensor) not in inputs or tensor._node is node):
            number = places[id(tensor)]
            has_history = results[number]._node is node
            saved.append(_SavedResult(tensor, number if has_history else None))
        else:
            saved.append(SavedInput(tensor))
    node._saved = saved
    node._to_save = ()


def once_differentiable(function: Any) -> Any:
    """Marks a backward that can't itself be differentiated: trying to raises."""

    @functools.wraps(function)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with no_grad():
            outputs = function(ctx, *args)
        if not state.grad_enabled:
            return outputs
        if not any(isinstance(a, Tensor) and a._requires_grad for a in args):
            return outputs
        single = not isinstance(outputs, tuple)
        listed = [outputs] if single else list(outputs)
        marked = [refuse(out) if isinstance(out, Tensor) else out for out in listed]
        return marked[0] if single else tuple(marked)

    return wrapper


class DelayedError(Node):
    """Raises when a gradient reaches it."""

    __slots__ = ("message",)

    def __init__(self, message: str):
        self.message = message
        self.edges = ()
        self.extra = self.in_hooks = self.out_hooks = None
        self.place, self.sequence = user_place(), next_sequence()

    def apply(self, grads: list[Any]) -> list[Any]:
        raise RuntimeError(self.message)


def refuse(tensor: Tensor) -> Tensor:
    fresh = tensor.detach()
    fresh._requires_grad = True
    fresh._node = DelayedError(
        "trying to differentiate twice a function that was marked with @once_differentiable"
    )
    return fresh
