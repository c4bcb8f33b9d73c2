"""Checks of hyper-parameters that optimizers share, in torch's words."""

from __future__ import annotations

from typing import Any

from ..tracer.tensor import Tensor

_WORDS = {
    "lr": "learning rate", "eps": "epsilon value", "weight_decay": "weight_decay value",
    "momentum": "momentum value", "alpha": "alpha value", "lr_decay": "lr_decay value",
    "momentum_decay": "momentum_decay value",
    "initial_accumulator_value": "initial_accumulator_value value",
}  # fmt: skip


def require_non_negative(**values: Any) -> None:
    """Raises "Invalid learning rate: -1" and the like."""
    lr = values.get("lr")
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    for name, value in values.items():
        if not value >= 0.0:
            raise ValueError(f"Invalid {_WORDS[name]}: {value}; it must be >= 0")


def require_betas(betas: Any) -> None:
    """Both betas in [0, 1)."""
    for k in (0, 1):
        if not 0.0 <= betas[k] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {k}: {betas[k]}; use [0, 1)")


def require_like_betas(betas: Any, numbers_only: bool) -> None:
    """Both betas floats or, unless `numbers_only`, both tensors."""
    tensors = all(isinstance(beta, Tensor) for beta in betas)
    if not tensors and not all(isinstance(beta, float) for beta in betas):
        raise ValueError("betas must be either both floats or both Tensors")
    if tensors and numbers_only:
        raise ValueError(
            "betas[0] as a Tensor is not supported for capturable=False and foreach=True"
        )


def require_plain_fused(fused: Any, foreach: Any, differentiable: bool) -> None:
    """torch's limits on `fused`, which changes nothing here."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
