"""Adam, and AdamW, which decays weights apart from the gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..tracer.creation import tensor
from ..tracer.tensor import Tensor
from .checks import require_betas, require_like_betas, require_non_negative, require_plain_fused
from .hyper import given, read
from .optimizer import Optimizer, counter, zeros_for


class Settings(NamedTuple):
    """Hyper-parameters of a step, `rest1` is 1 - `beta1`; `weight_decay` may be None."""

    lr: Any
    beta1: Any
    beta2: Any
    rest1: Any
    rest2: Any
    eps: Any
    weight_decay: Any
    decoupled: bool
    amsgrad: bool


class Adam(Optimizer):
    """Adam(params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, ...)."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        require_non_negative(lr=lr, eps=eps)
        require_betas(betas)
        require_non_negative(weight_decay=weight_decay)
        require_like_betas(betas, bool(foreach) and not capturable)
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                    "amsgrad": amsgrad, "maximize": maximize, "foreach": foreach,
                    "capturable": capturable, "differentiable": differentiable, "fused": fused,
                    "decoupled_weight_decay": decoupled_weight_decay}  # fmt: skip
        super().__init__(params, defaults)
        require_plain_fused(fused, foreach, differentiable)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name in ("amsgrad", "maximize", "capturable", "differentiable",
                         "decoupled_weight_decay"):  # fmt: skip
                group.setdefault(name, False)
            for name in ("foreach", "fused"):
                group.setdefault(name, None)
            tensor_steps(self, group)

    def _wengert_require_sparse(self, group: dict[str, Any]) -> None:
        raise RuntimeError("Adam does not support sparse gradients, please consider SparseAdam "
                           "instead")  # fmt: skip

    def _wengert_start(self, group: Any, parameter: Tensor, grad: Tensor, kept: Any) -> None:
        kept["step"] = counter()
        kept["exp_avg"] = zeros_for(parameter)
        kept["exp_avg_sq"] = zeros_for(parameter)
        if group["amsgrad"]:
            kept["max_exp_avg_sq"] = zeros_for(parameter)

    def _wengert_settings(self, group: dict[str, Any]) -> Settings:
        lr, beta1, beta2 = read(group, "lr"), read(group, "betas", 0), read(group, "betas", 1)
        return Settings(
            lr, beta1, beta2, 1 - beta1, 1 - beta2, read(group, "eps"),
            read(group, "weight_decay") if given(group, "weight_decay") else None,
            group["decoupled_weight_decay"], group["amsgrad"],
        )  # fmt: skip

    def _wengert_needed(self, h: Settings) -> tuple[str, ...]:
        largest = ("max_exp_avg_sq",) if h.amsgrad else ()
        return ("exp_avg", "exp_avg_sq", *largest, "step")

    def _wengert_update(self, h: Settings, param: Any, grad: Any, kept: Any) -> None:
        step = kept["step"].add_(1).value()
        if h.weight_decay is not None:
            if h.decoupled:
                param.mul_(1 - h.lr * h.weight_decay)
            else:
                grad = grad.add(param, alpha=h.weight_decay)
        mean, square = kept["exp_avg"], kept["exp_avg_sq"]
        mean.lerp_(grad, h.rest1)
        square.mul_(h.beta2).addcmul_(grad, grad, value=h.rest2)
        correction = (1 - h.beta2**step) ** 0.5
        if h.amsgrad:
            square = kept["max_exp_avg_sq"].maximum_(square)
        scale = square.sqrt().div_(correction).add_(h.eps)
        param.addcdiv_(mean, scale, value=h.lr / (h.beta1**step - 1))


class AdamW(Adam):
    """AdamW(params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, ...)."""

    def __init__(self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
                 foreach: bool | None = None, capturable: bool = False,
                 differentiable: bool = False, fused: bool | None = None) -> None:  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach,
                         maximize=maximize, capturable=capturable, differentiable=differentiable,
                         fused=fused, decoupled_weight_decay=True)  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


def tensor_steps(optimizer: Optimizer, group: dict[str, Any]) -> None:
    """Old files keep the step count as a number: it becomes a tensor."""
    for parameter in group["params"]:
        kept = optimizer.state.get(parameter)
        if kept and not isinstance(kept["step"], Tensor):
            kept["step"] = tensor(float(kept["step"]))
