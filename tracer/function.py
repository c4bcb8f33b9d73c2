"""`autograd.Function`: user-defined forward and backward."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..ir.arguments import warn
from ..ir.bind import notify, state
from ..ir.op import fit
from ..ir.ops.views import zeros
from ..ir.places import user_place
from ..ir.types import TensorType, broadcast_shapes
from .context_names import SLOTS, given_to, parts_of, replaced, set_aside
from .eager import history
from .function_outputs import attach
from .modes import no_grad
from .saved import FREED, Freed, PackedSaved, SavedOutput, modified, short_name
from .tape import Node, next_sequence
from .tensor import Tensor

NO_BACKWARD = (
    "You must implement either the backward or vjp method for your custom autograd.Function to use "
    "it with backward mode AD."
)


class FunctionCtx:
    """What `forward` tells `backward`. A graph node, when history is recorded, is one of these."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps tensors for backward; they are checked for in-place changes when read."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keeps tensors for `jvp`."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Names inputs that forward changed in place; each must be returned."""
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise RuntimeError("mark_dirty can only accept variables, but argument is of type "
                                   f"{type(tensor).__name__}")  # fmt: skip
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Names outputs that never require grad."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """False: missing gradients reach backward as None, not as zeros."""
        if not isinstance(value, bool):
            raise TypeError("set_materialize_grads received an invalid combination of arguments - "
                            f"got ({type(value).__name__}), but expected (bool)")  # fmt: skip
        self.materialize_grads = value

    to_save: Any = None
    saved_for_forward: Any = None
    dirty_tensors: Any = None
    non_differentiable: Any = None
    materialize_grads = True
    needs_input_grad: tuple[bool, ...] = ()


class BackwardNode(Node, FunctionCtx):
    """The graph node of a custom Function; also its `ctx`."""

    _forward_cls: Any = None
    _given: dict[str, Any]  # see Note [Names of the user's]
    __module__ = "torch.autograd.function"

    def __init__(self) -> None:
        self.edges: tuple[Any, ...] = ()
        self.extra = None
        self.place = user_place()
        self.sequence = next_sequence()
        self._saved: Any = ()
        self._types: list[Any] = []  # of the outputs; None for what is no tensor
        self._positions: tuple[int, ...] = ()  # of the tensors among the arguments
        self._in_types: list[TensorType] = []
        self._count = 0  # of the arguments

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The values of `save_for_backward`, with their history."""
        if isinstance(self._saved, Freed):
            raise RuntimeError(self._saved.message() if self._saved.place else FREED)
        return tuple(self._unpack(*entry) for entry in self._saved)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of `saved_tensors`."""
        warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors

    @contextmanager
    def for_forward(self) -> Iterator[None]:
        """In the block `saved_tensors` are those of `save_for_forward`, if there are any."""
        kept = self._saved
        if self.saved_for_forward is not None:
            self._saved = tuple((t, 0 if t is None else t._version, None)
                                for t in self.saved_for_forward)  # fmt: skip
        try:
            yield
        finally:
            self._saved = kept

    def maybe_clear_saved_tensors(self) -> None:
        """Frees what was saved."""
        self._saved = Freed(None)

    def _unpack(self, entry: Any, version: int, number: int | None) -> Any:
        if entry is None:
            return None
        if isinstance(entry, PackedSaved):
            return entry.restore((self, number))
        tensor = entry.fresh() if isinstance(entry, SavedOutput) else entry
        if tensor._version != version:
            maker = self if number is not None else tensor._node
            which = number if number is not None else tensor._nr
            what = "" if maker is None else f", which is output {which} of {short_name(maker)},"
            raise RuntimeError(modified(tensor, what, version, self.place))
        if not isinstance(entry, SavedOutput):
            return tensor
        if number is not None:
            tensor._node, tensor._nr, tensor._requires_grad = self, number, True
        return tensor

    def output_types(self) -> tuple[Any, ...]:
        return tuple(self._types)

    def apply(self, grads: list[Any]) -> list[Any]:
        grads = grads + [None] * (len(self._types) - len(grads))
        if self.materialize_grads:
            grads = [zeros(t) if g is None and t is not None else g
                     for g, t in zip(grads, self._types)]  # fmt: skip
        if state.pushing and self._forward_cls.jvp is not Function.jvp:
            return self.transposed(grads)  # type: ignore[attr-defined,no-any-return]
        own = parts_of(self)
        results = backward_of(self._forward_cls)(self, *grads)
        if replaced(self, own):
            set_aside(self, (*own[: len(SLOTS)], *parts_of(self)[len(SLOTS) :]))
        return self._arrange(results if isinstance(results, tuple) else (results,))

    def _arrange(self, results: tuple[Any, ...]) -> list[Any]:
        """Gradients per tensor input, checked against the number and types of the inputs."""
        if len(results) < self._count or any(r is not None for r in results[self._count :]):
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected "
                f"{self._count}, got {len(results)})"
            )
        tensors = set(self._positions)
        for position, grad in enumerate(results[: self._count]):
            if position not in tensors and grad is not None:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position "
                    f"{position + 1}, but the corresponding forward input was not a Variable"
                )
        return [
            self._checked(place, results[position]) if edge is not None else None
            for place, (position, edge) in enumerate(zip(self._positions, self.edges))
        ]

    def _checked(self, place: int, grad: Any) -> Any:
        if grad is None:
            return None
        if not isinstance(grad, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(grad).__name__})")
        wanted = self._in_types[place]
        if tuple(grad.shape) != wanted.shape:
            try:
                fits = broadcast_shapes(tuple(grad.shape), wanted.shape) == tuple(grad.shape)
            except RuntimeError:
                fits = False
            if not fits:
                raise RuntimeError(
                    f"Function {self.name()} returned an invalid gradient at index {place} - got "
                    f"{list(grad.shape)} but expected shape compatible with {list(wanted.shape)}"
                )
        return fit(grad, wanted)

    def release(self, freed: Freed) -> None:
        if self._saved:
            self._saved = freed

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *given_to(self),
                       *(n for n in dir(FunctionCtx) if not n.startswith("_")), "saved_tensors",
                       "saved_variables", "apply", "maybe_clear_saved_tensors"})  # fmt: skip

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at {hex(id(self))}>"

    __str__ = __repr__


def backward_of(cls: Any) -> Any:
    """The user's `backward`, or `vjp`, torch's other name for it."""
    if cls.vjp is not Function.vjp:
        if cls.backward is not Function.backward:
            raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is "
                               "not allowed. You should only implement one of them.")  # fmt: skip
        return cls.vjp
    return cls.backward


BackwardNode.__name__ = BackwardNode.__qualname__ = "BackwardCFunction"  # what users see it as


class _FunctionMeta(type):
    """Makes the node class `<Name>Backward` of every Function subclass."""

    def __init__(cls, name: str, bases: Any, body: Any):
        super().__init__(name, bases, body)
        cls._backward_cls = type(f"{name}Backward", (BackwardNode,), {
            "_forward_cls": cls, "__module__": "torch.autograd.function"})  # fmt: skip


class Function(FunctionCtx, metaclass=_FunctionMeta):
    """Subclass with static `forward` and `backward`; call through `apply`."""

    _backward_cls: Any
    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any):
        import warnings

        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the outputs; the first argument is ctx unless `setup_context` is given."""
        raise NotImplementedError("You must implement the forward function for custom "
                                  "autograd.Function.")  # fmt: skip

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Fills ctx after a `forward` that does not take it."""
        raise NotImplementedError("setup_context is not implemented. Define it, or let forward "
                                  "take ctx.")  # fmt: skip

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Gradients of the inputs, given those of the outputs."""
        raise NotImplementedError(NO_BACKWARD)

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name for `backward`."""
        raise NotImplementedError(NO_BACKWARD)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Tangents of the outputs, given those of the inputs; without it `backward` serves."""
        raise NotImplementedError("You must implement the jvp function for custom "
                                  "autograd.Function to use it with forward mode AD.")  # fmt: skip

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """The outputs for a whole batch, and the dimensions along which its examples lie."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or "
            "set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Runs forward and records one node."""
        return apply(cls, args)


def apply(cls: Any, args: tuple[Any, ...]) -> Any:
    node = cls._backward_cls()
    tensors = [(k, a) for k, a in enumerate(args) if isinstance(a, Tensor)]
    recording = state.grad_enabled and any(t.requires_grad for _, t in tensors)
    node.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
    node._positions = tuple(k for k, _ in tensors)
    node._in_types = [t.type_ for _, t in tensors]
    node._count = len(args)
    node.edges = tuple(history(t) if recording else None for _, t in tensors)
    enabled, own = state.grad_enabled, parts_of(node)
    mapping = getattr(state.top, "call_function", None)
    if mapping is not None and not recording:
        return mapping(cls, args, enabled)
    if state.levels and mapping is None and cls.setup_context is Function.setup_context:
        raise without_setup_context()
    with no_grad():
        if cls.setup_context is not Function.setup_context or mapping is not None:
            result = cls.forward(*args) if mapping is None else mapping(cls, args, enabled)
            cls.setup_context(node, args, result)
        else:
            result = cls.forward(node, *args)
    set_aside(node, own)
    single = not isinstance(result, tuple)
    outputs = attach(node, args, [result] if single else list(result), recording, enabled)
    if recording:
        notify("custom_function", node, [t for _, t in tensors], outputs)
        node.dirty_tensors = node.non_differentiable = None  # nothing of it stays alive
    return outputs[0] if single else tuple(outputs)


def without_setup_context() -> RuntimeError:
    """Transforms of functions run forward and what it sets up apart."""
    return RuntimeError(
        "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, "
        "...), it must override the setup_context staticmethod. For more details, please see "
        "https://pytorch.org/docs/main/notes/extending.func.html"
    )


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
        self.extra = None
        self.place, self.sequence = user_place(), next_sequence()

    def apply(self, grads: list[Any]) -> list[Any]:
        raise RuntimeError(self.message)


def refuse(tensor: Tensor) -> Tensor:
    fresh = tensor._twin()
    fresh._requires_grad = True
    fresh._node = DelayedError(
        "trying to differentiate twice a function that was marked with @once_differentiable"
    )
    return fresh
