"""SparseAdam: Adam of the rows that have a gradient; the others, and their moments, stay."""

from __future__ import annotations

from typing import Any

from ..tracer.tensor import Tensor
from .checks import require_betas
from .hyper import read
from .optimizer import Optimizer, zeros_for
from .stepping import add_rows


class SparseAdam(Optimizer):
    """SparseAdam(params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False)."""

    def __init__(self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8,
                 maximize: bool = False) -> None:  # fmt: skip
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr > 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        require_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse = [
            [number, place]
            for number, group in enumerate(self.param_groups)
            for place, parameter in enumerate(group["params"])
            if parameter.is_sparse
        ]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense "
                             "parameter tensors")  # fmt: skip

    def _wengert_start(self, group: Any, parameter: Tensor, grad: Tensor, kept: Any) -> None:
        kept["step"] = 0
        kept["exp_avg"], kept["exp_avg_sq"] = zeros_for(parameter), zeros_for(parameter)

    def _wengert_settings(self, group: dict[str, Any]) -> Any:
        return *(read(group, "betas", k) for k in (0, 1)), read(group, "lr"), read(group, "eps")

    def _wengert_update(self, settings: Any, param: Any, grad: Any, kept: Any) -> None:
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam "
                           "instead")  # fmt: skip

    def _wengert_require_sparse(self, group: dict[str, Any]) -> None:
        pass

    def _wengert_update_sparse(self, settings: Any, param: Any, grad: Any, kept: Any) -> None:
        beta1, beta2, lr, eps = settings
        kept["step"] += 1
        grad = grad.coalesce()  # the update is not linear in it
        rows = tuple(grad.indices())
        first, second = kept["exp_avg"][rows], kept["exp_avg_sq"][rows]
        toward = (grad.values() - first).mul_(1 - beta1)
        toward_square = grad.values().pow(2).sub_(second).mul_(1 - beta2)
        add_rows(kept["exp_avg"], grad.like(toward), 1)
        add_rows(kept["exp_avg_sq"], grad.like(toward_square), 1)
        size = lr * (1 - beta2 ** kept["step"]) ** 0.5 / (1 - beta1 ** kept["step"])
        slope = (toward + first).div_((toward_square + second).sqrt_().add_(eps))
        add_rows(param, grad.like(slope), -size)
