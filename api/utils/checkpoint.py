"""`torch.utils.checkpoint`: values needed by backward are computed again instead of kept."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import Any

from ..amp import autocast_now
from ..autograd import backward
from ..ir.bind import state
from ..tracer.function import Function
from ..tracer.hooks import saved_tensors_hooks
from ..tracer.modes import enable_grad
from ..tracer.random import default_generator
from ..tracer.tensor import Tensor
from .selective import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = ["CheckpointError", "CheckpointFunction", "CheckpointPolicy",
           "SelectiveCheckpointContext", "check_backward_validity", "checkpoint",
           "checkpoint_sequential", "create_selective_checkpoint_contexts", "detach_variable",
           "get_device_states", "noop_context_fn", "set_checkpoint_debug_enabled",
           "set_checkpoint_early_stop", "set_device_states"]  # fmt: skip


class RandomState:
    """Where random numbers are now, to go on from there."""

    def __init__(self) -> None:
        self.state = default_generator.snapshot()
        self.top = state.top
        self.mark = self.top.state_now(default_generator) if self.is_recorded() else None

    def is_recorded(self) -> bool:
        """Does a recording see where the random numbers come from?"""
        return state.top is self.top and hasattr(self.top, "state_now")

    def resume(self) -> None:
        """Goes on from there; see Note [Draws that come again]."""
        if self.is_recorded():
            default_generator.resume(self.state)
            self.top.go_on_from(default_generator, self.mark)
        else:
            default_generator.restore(self.state.state())


@contextmanager
def random_state(kept: RandomState | None) -> Iterator[None]:
    """Random numbers from `kept` on within the block; the stream goes on untouched after it."""
    if kept is None:
        yield
        return
    now = RandomState()
    kept.resume()
    try:
        yield
    finally:
        now.resume()


class CheckpointError(RuntimeError):
    """The function did not do the same again."""


class Recomputing(saved_tensors_hooks):
    """Values are computed again: they are what they were."""

    keeps = True


@contextmanager
def doing_again(preserve: bool) -> Iterator[None]:
    """Backward will do again what the block does; a replay would do without."""
    effects = getattr(state.top, "effects", None)
    before = None if effects is None else effects()
    yield
    if effects is not None:
        writes, draws = (now - then for now, then in zip(effects(), before))
        if writes or (draws and not preserve):
            state.top.refuse("a checkpoint writes or draws, which backward does again")


class _EnoughSaved(Exception):
    """All values are there: the rest of the function need not run."""


class Frame:
    """One checkpointed call: how to run it again, and the values it saved."""

    def __init__(self, function: Any, args: Any, kwargs: Any, state: Any, contexts: Any,
                 early_stop: bool):  # fmt: skip
        self.function, self.args, self.kwargs = function, args, kwargs
        self.state, self.contexts, self.early_stop = state, contexts, early_stop
        self.casting = autocast_now()
        self.count = 0
        self.values: dict[int, Any] = {}

    def pack(self, tensor: Tensor) -> int:
        self.count += 1
        return self.count - 1

    def unpack(self, number: int) -> Any:
        if number not in self.values:
            self.recompute()
        return self.values.pop(number)

    def recompute(self) -> None:
        self.values = {}
        seen = 0

        def keep(tensor: Tensor) -> None:
            nonlocal seen
            self.values[seen] = tensor.detach()
            seen += 1
            if seen == self.count and self.early_stop:
                raise _EnoughSaved

        hooks = Recomputing(keep, None)  # nobody differentiates this graph
        again = (random_state(self.state), enable_grad(), self.casting, hooks, self.contexts[1])
        with suppress(_EnoughSaved), ExitStack() as stack:
            for context in again:
                stack.enter_context(context)
            self.function(*self.args, **self.kwargs)
        if seen != self.count:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\nNumber of tensors saved during forward: "
                f"{self.count}\nNumber of tensors saved during recomputation: {seen}."
            )


class CheckpointFunction(Function):
    """The reentrant form: one node, whose backward runs the function again."""

    @staticmethod
    def forward(ctx: Any, function: Any, preserve: bool, *args: Any) -> Any:
        if not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            warnings.warn("None of the inputs have requires_grad=True. Gradients will be None",
                          stacklevel=4)  # fmt: skip
        ctx.function = function
        ctx.state = RandomState() if preserve else None
        ctx.casting = autocast_now()
        ctx.others = [None if isinstance(arg, Tensor) else arg for arg in args]
        ctx.places = [k for k, arg in enumerate(args) if isinstance(arg, Tensor)]
        ctx.save_for_backward(*(args[k] for k in ctx.places))
        return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        inputs = list(ctx.others)
        for place, tensor in zip(ctx.places, ctx.saved_tensors):
            inputs[place] = tensor.detach()
            inputs[place].requires_grad = tensor.requires_grad
        with random_state(ctx.state), enable_grad(), ctx.casting:
            outputs = ctx.function(*inputs)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        pairs = [(out, grad) for out, grad in zip(outputs, grads)
                 if isinstance(out, Tensor) and out.requires_grad]  # fmt: skip
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary; call "
                "the function itself"
            )
        backward([out for out, _ in pairs], [grad for _, grad in pairs])
        return None, None, *(x.grad if isinstance(x, Tensor) else None for x in inputs)


def is_recorded_with_history(args: Any) -> bool:
    """In a recording the two forms give the same graph; that of the other one can be replayed."""
    recorded = hasattr(state.top, "effects")
    return recorded and any(isinstance(a, Tensor) and a.requires_grad for a in args)


def noop_context_fn() -> tuple[Any, Any]:
    """Contexts of the first run and of the recomputation: none."""
    return nullcontext(), nullcontext()


_EXPLICIT = (
    "{}: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, "
    "calling checkpoint without use_reentrant will raise an exception. use_reentrant=False "
    "is recommended, but if you need to preserve the current default behavior, you can "
    "pass use_reentrant=True. Refer to docs for more details on the differences between "
    "the two variants."
)


class _Settings:
    early_stop: bool | None = None  # None: each checkpoint says itself
    debug: bool | None = None


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Takes torch's setting; errors of checkpoints name the lines of ops in any case."""
    before, _Settings.debug = _Settings.debug, enabled
    try:
        yield
    finally:
        _Settings.debug = before


# --- what checkpoints that programs write themselves ask for -------------------------------------


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors among `inputs` without history, but requiring grad as before."""
    if not isinstance(inputs, tuple):
        raise RuntimeError("Only tuple of tensors is supported. Got Unsupported input type: "
                           f"{type(inputs).__name__}")  # fmt: skip
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x
                 for x in inputs)  # fmt: skip


def check_backward_validity(inputs: Any) -> None:
    """Warns where none of them requires grad."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None",
                      stacklevel=2)  # fmt: skip


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The random states of other devices that `args` live on: there are none."""
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Puts back what `get_device_states` gave."""


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Whether checkpoints made in the block stop once all values are there again."""
    before, _Settings.early_stop = _Settings.early_stop, enable
    try:
        yield
    finally:
        _Settings.early_stop = before


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
               context_fn: Callable[[], Any] = noop_context_fn, determinism_check: str = "default",
               debug: bool = False, early_stop: bool = True, **kwargs: Any) -> Any:  # fmt: skip
    """checkpoint(function, *args, use_reentrant): runs `function` again in backward."""
    if use_reentrant is None:
        warnings.warn(_EXPLICIT.format("torch.utils.checkpoint"), stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when "
                             "use_reentrant=False.")  # fmt: skip
        if not is_recorded_with_history(args):
            return CheckpointFunction.apply(function, preserve, *args)
    contexts = context_fn()
    kept = RandomState() if preserve else None
    early_stop = early_stop if _Settings.early_stop is None else _Settings.early_stop
    frame = Frame(function, args, kwargs, kept, contexts, early_stop)
    with Recomputing(frame.pack, frame.unpack), contexts[0], doing_again(preserve):
        return function(*args, **kwargs)


def checkpoint_sequential(functions: Any, segments: int, input: Any,
                          use_reentrant: bool | None = None, **kwargs: Any) -> Any:  # fmt: skip
    """Checkpoints a sequence of functions in `segments` pieces; the last one is kept."""
    from ..nn.modules.container import Sequential

    if use_reentrant is None:
        warnings.warn(_EXPLICIT.format("torch.utils.checkpoint.checkpoint_sequential"),
                      stacklevel=2)  # fmt: skip
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if isinstance(functions, Sequential) else functions

    def run(start: int, stop: int) -> Callable[[Any], Any]:
        def piece(value: Any) -> Any:
            for function in functions[start:stop]:
                value = function(value)
            return value

        return piece

    size = len(functions) // segments
    stop = 0
    for start in range(0, size * (segments - 1), size):
        stop = start + size
        input = checkpoint(run(start, stop), input, use_reentrant=use_reentrant,
                           preserve_rng_state=preserve)  # fmt: skip
    return run(stop, len(functions))(input)
