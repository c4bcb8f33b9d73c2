"""The walk over parameters of a step: state at the first, then the formula, on buffers.

Functions, not methods: a user's optimizer may have methods of any name.

Note [State made in a step]
    The first step makes the state of each parameter by `_wengert_start`, which looks at sizes,
    dtypes and options only, and then runs the formula that all later steps run. So a recording of
    it need not wait for the second step: state is made outside of what is recorded, and the
    formula finds it as tensors from outside, as it will at every later call. State that a formula
    itself adds (the momentum of `SGD`, which begins as a gradient) makes the first step one of its
    own kind.
"""

from __future__ import annotations

from typing import Any

from .. import view_as_complex, view_as_real
from ..ir.bind import interpreting, state
from ..tracer.accumulate import is_sparse
from ..tracer.large import LARGE
from ..tracer.tensor import Tensor
from .buffers import ArrayBuffer, TensorBuffer, finish, runs_on_arrays


def step_group(optimizer: Any, group: dict[str, Any]) -> None:
    """Updates the parameters of one group, once the state of all is seen to be there."""
    settings = optimizer._wengert_settings(group)
    maximize = group.get("maximize", False)
    needed = optimizer._wengert_needed(settings)
    found = []
    for parameter in group["params"]:
        grad = parameter._grad if state.top is state.bottom else parameter.grad
        if grad is None:
            continue
        if is_sparse(grad):
            optimizer._wengert_require_sparse(group)
        kept = optimizer._wengert_kept(group, parameter)
        if not kept:
            _begin(optimizer, group, parameter, grad, kept)
        for name in needed:
            kept[name]  # an option set since asks for state that was not made: KeyError
        found.append((parameter, grad, kept))
    for parameter, grad, kept in found:
        if is_sparse(grad):
            slope = -grad if maximize else grad
            optimizer._wengert_update_sparse(settings, parameter, slope, kept)
            continue
        optimizer._wengert_update_one(settings, maximize, parameter, grad, kept)


def _begin(optimizer: Any, group: Any, parameter: Tensor, grad: Tensor, kept: Any) -> None:
    """Makes the state of a parameter; see Note [State made in a step]."""
    listener = getattr(state.top, "state_begins", None)
    apart = listener is not None and listener(optimizer, parameter)
    with interpreting(state.bottom if apart else state.top):
        optimizer._wengert_start(group, parameter, grad, kept)


def update_one(
    optimizer: Any, settings: Any, maximize: bool, parameter: Any, grad: Any, kept: Any
) -> None:
    """Runs the formula on buffers of the parameter, its gradient and its state."""
    values = {k: v for k, v in kept.items() if isinstance(v, Tensor)}
    if runs_on_arrays((parameter, grad, *values.values())):
        if parameter._array.size >= LARGE and _update_large(
            optimizer, settings, maximize, parameter, grad, values
        ):
            return
        buffers = {k: ArrayBuffer(v._array) for k, v in values.items()}
        target, slope = ArrayBuffer(parameter._array), ArrayBuffer(grad._array)
        optimizer._wengert_update(settings, target, slope.neg() if maximize else slope, buffers)
        finish([(parameter, target), *((values[k], buffers[k]) for k in values)])
        _keep(kept, buffers, parameter)
        return
    parts = {"": parameter, " ": grad, **values}
    if parameter.is_complex():
        parts = {k: view_as_real(v) if v.is_complex() else v for k, v in parts.items()}
    wrapped = {k: TensorBuffer(v) for k, v in parts.items()}
    target, slope = wrapped.pop(""), wrapped.pop(" ")
    optimizer._wengert_update(settings, target, slope.neg() if maximize else slope, wrapped)
    _keep(kept, wrapped, parameter)


def _update_large(
    optimizer: Any, settings: Any, maximize: bool, parameter: Any, grad: Any, values: Any
) -> bool:
    """Runs the formula as one native kernel, if it can; see written.py."""
    from . import written

    def formula(buffers: dict[str, Any]) -> None:
        target, slope = buffers.pop(""), buffers.pop(" ")
        optimizer._wengert_update(settings, target, slope.neg() if maximize else slope, buffers)
        buffers.update({"": target, " ": slope})

    tensors = {"": parameter, " ": grad, **values}
    writes = written.update(formula, {name: t._array for name, t in tensors.items()})
    if writes is None:
        return False
    for name, count in writes.items():
        if count:
            tensors[name].storage_.version += count
    return True


def _keep(kept: dict[str, Any], buffers: dict[str, Any], parameter: Tensor) -> None:
    """State the formula added becomes tensors."""
    for name, buffer in buffers.items():
        if name not in kept or kept[name] is None:
            if isinstance(buffer, ArrayBuffer):
                kept[name] = Tensor._wrap(buffer.array, parameter.dtype)
            else:
                made = buffer.tensor.detach()
                kept[name] = view_as_complex(made) if parameter.is_complex() else made


def add_rows(parameter: Tensor, grad: Any, alpha: Any) -> None:
    """parameter += alpha * grad, for a sparse gradient."""
    parameter.index_put_(tuple(grad._indices()), grad._values() * alpha, accumulate=True)
