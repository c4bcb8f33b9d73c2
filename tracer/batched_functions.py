"""Custom Functions inside vmap.

Note [Mapped functions]
    A Function is called once for the whole batch, by the interpreter below, where the batch may
    have history. Its own `vmap` says how; with `generate_vmap_rule` a Function of whole batches is
    derived, whose forward, setup_context and backward run the user's inside a vmap. Where a
    gradient is taken inside vmap as well, the user's setup_context and backward serve the wrappers
    too (Note [Levels] in `batching.py`): the values come from below all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..ir.bind import state
from .batching import BatchedTensor, Batching
from .function import Function, FunctionCtx, apply, backward_of, without_setup_context
from .modes import set_grad_mode
from .tensor import Tensor

_DETAILS = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"
_RETURNS = (
    "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree "
    "structure compatible with the output. "
)


class VmapInfo(NamedTuple):
    """What the `vmap` of a Function is told."""

    batch_size: int
    randomness: str


def check_rule(cls: Any, batched: bool) -> None:
    """Can `cls` be called inside vmap, with examples of the batch?"""
    if cls.setup_context is Function.setup_context:
        raise without_setup_context()
    own = cls.vmap is not Function.vmap
    if batched and own and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and "
            "an overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the "
            f"overridden vmap staticmethod to avoid ambiguity. {_DETAILS}"
        )
    if batched and not own and not cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please "
            f"override and implement the vmap staticmethod or set generate_vmap_rule=True. "
            f"{_DETAILS}"
        )


def run(level: Batching, cls: Any, args: Sequence[Any], enabled: bool) -> Any:
    """What the Function gives for a call in `level`, without history of the wrappers."""
    taken = [level.take(a) for a in args]
    values, flags = [v for v, _ in taken], [f for _, f in taken]
    check_rule(cls, True in flags)
    with _below(level, enabled):
        if True not in flags:
            result, dims = apply(cls, tuple(values)), None
        elif cls.generate_vmap_rule:
            plan = Plan(Batching(level.size, level.randomness), flags)
            result = apply(mapped(cls), (plan, *values))
            dims = tuple(0 if f else None for f in plan.results)
        else:
            info = VmapInfo(level.size, level.randomness)
            result, dims = _two(cls.vmap(info, tuple(0 if f else None for f in flags), *values))
    single = not isinstance(result, tuple)
    listed = (result,) if single else result
    places = dims if isinstance(dims, tuple) else (dims,) * len(listed)
    outputs = [_wrapped(level, v, dim) for v, dim in zip(listed, places)]
    return outputs[0] if single else tuple(outputs)


@contextmanager
def _below(level: Batching, enabled: bool) -> Iterator[None]:
    """The interpreter under `level`, with the grad mode of the call."""
    state.top = level.below
    try:
        with set_grad_mode(enabled):
            yield
    finally:
        state.top = level


def _two(returned: Any) -> tuple[Any, Any]:
    if not isinstance(returned, tuple):
        raise RuntimeError(f"{_RETURNS}Got a {type(returned)} instead")
    if len(returned) != 2:
        raise RuntimeError(f"{_RETURNS}Got {len(returned)} returns instead")
    return returned


def _wrapped(level: Batching, value: Any, dim: int | None) -> Any:
    if not isinstance(value, Tensor):
        return value
    if dim is not None:
        value = value.movedim(dim, 0) if dim else value
    return BatchedTensor._of(value, level, dim is not None)


class Plan:
    """One call of a mapped Function: its level, and which arguments and results are batched."""

    def __init__(self, level: Batching, arguments: list[bool]):
        self.level, self.arguments = level, arguments
        self.results: list[bool] = []

    def wrap(self, values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
        """Values of the batch as examples."""
        return [BatchedTensor._of(v, self.level, f) if isinstance(v, Tensor) else v
                for v, f in zip(values, flags)]  # fmt: skip

    def gradient(self, value: Any, flag: bool) -> Any:
        """What `backward` gave for an argument that is batched, or the same for all examples."""
        below, batched = self.level.take(value)
        if below is None or batched == flag:
            return below
        return below.sum(0) if batched else below.expand((self.level.size, *below.shape))


class _Context(FunctionCtx):
    """The context that the user's methods see; `saved_tensors` is set before backward."""

    saved_tensors: tuple[Any, ...] = ()


def mapped(cls: Any) -> Any:
    """The Function of whole batches that `cls` is of examples; made once."""
    found = cls.__dict__.get("_mapped")
    if found is None:
        methods = {"forward": _forward, "setup_context": _setup, "backward": _backward}
        body = {name: staticmethod(method(cls)) for name, method in methods.items()}
        found = cls._mapped = type(f"Vmapped{cls.__name__}", (Function,), body)
    return found


def _forward(cls: Any) -> Any:
    def forward(plan: Plan, *values: Any) -> Any:
        with plan.level as level:
            result = cls.forward(*plan.wrap(values, plan.arguments))
        single = not isinstance(result, tuple)
        taken = [level.take(r) for r in ((result,) if single else result)]
        plan.results = [f for _, f in taken]
        return taken[0][0] if single else tuple(v for v, _ in taken)

    return forward


def _setup(cls: Any) -> Any:
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        plan, *values = inputs
        single = not isinstance(output, tuple)
        inner = _Context()
        inner.needs_input_grad = ctx.needs_input_grad[1:]
        with plan.level as level:
            outputs = plan.wrap((output,) if single else output, plan.results)
            cls.setup_context(inner, tuple(plan.wrap(values, plan.arguments)),
                              outputs[0] if single else tuple(outputs))  # fmt: skip
        saved = [level.take(t) for t in inner.to_save or ()]
        ctx.save_for_backward(*(v for v, _ in saved))
        ctx.mark_non_differentiable(*(level.take(t)[0] for t in inner.non_differentiable or ()))
        ctx.mark_dirty(*(level.take(t)[0] for t in inner.dirty_tensors or ()))
        ctx.set_materialize_grads(inner.materialize_grads)
        inner.to_save = inner.non_differentiable = inner.dirty_tensors = None
        ctx.batch_plan, ctx.inner, ctx.flags = plan, inner, [f for _, f in saved]

    return setup_context


def _backward(cls: Any) -> Any:
    def backward(ctx: Any, *grads: Any) -> Any:
        plan, inner = ctx.batch_plan, ctx.inner
        saved = ctx.saved_tensors
        with plan.level:
            inner.saved_tensors = tuple(plan.wrap(saved, ctx.flags))
            results = backward_of(cls)(inner, *plan.wrap(grads, plan.results))
            inner.saved_tensors = ()
        listed = results if isinstance(results, tuple) else (results,)
        flags = [*plan.arguments, *(False for _ in listed[len(plan.arguments) :])]
        return (None, *(plan.gradient(g, f) for g, f in zip(listed, flags)))

    return backward
