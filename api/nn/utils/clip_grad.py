"""Limits on gradients."""

from __future__ import annotations

import types
import warnings
from typing import Any

from ... import stack
from ...tracer.creation import tensor
from ...tracer.modes import no_grad
from ...tracer.tensor import Tensor


def _vector_norm(value: Tensor, order: float) -> Tensor:
    from ... import linalg

    return linalg.vector_norm(value, order)


def get_total_norm(tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                   foreach: bool | None = None) -> Tensor:  # fmt: skip
    """The norm of the norms of `tensors`."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return tensor(0.0)
    with no_grad():
        total = _vector_norm(stack([_vector_norm(t, norm_type) for t in tensors]), norm_type)
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def as_float(value: Any) -> Any:
    """A number as a float; one that is known at run time only stays what it is."""
    return value if isinstance(value, float) else float(value)


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scales gradients so that a total norm above `max_norm` becomes it."""
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    grads = [p.grad for p in parameters if p.grad is not None]
    with no_grad():
        # The factor 1 is applied too: a branch would make the value of the norm decide the code.
        factor = (as_float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for grad in grads:
            grad.mul_(factor)


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Clips the norm of all gradients together; returns the norm before."""
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    else:
        generator = isinstance(parameters, types.GeneratorType)
        parameters = list(parameters)
        if generator and not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.",
                          stacklevel=2)  # fmt: skip
    grads = [p.grad for p in parameters if p.grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(*args: Any, **kwargs: Any) -> Tensor:
    """The old name of `clip_grad_norm_`."""
    warnings.warn("`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
                  "`torch.nn.utils.clip_grad_norm_`.", FutureWarning, stacklevel=2)  # fmt: skip
    return clip_grad_norm_(*args, **kwargs)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Clamps every element of the gradients to [-clip_value, clip_value]."""
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    limit = as_float(clip_value)
    with no_grad():
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.clamp_(min=-limit, max=limit)
