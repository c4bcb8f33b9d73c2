"""Weights as length times direction: the old form with hooks, and the arithmetic of both."""

from __future__ import annotations

import warnings
from typing import Any

from ...tracer.tensor import Tensor
from ..parameter import Parameter


def norm_except_dim(v: Tensor, power: int = 2, dim: int = 0) -> Tensor:
    """The norm of each slice along `dim`, shaped to broadcast; of everything where dim is -1."""
    if dim == -1:
        return v.norm(power)
    dims = [k for k in range(v.ndim) if k != dim]
    return v.norm(power, dims, keepdim=True) if dims else v.abs()


def weight_of(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """v * (g / |v|)."""
    return v * (g / norm_except_dim(v, 2, dim))


class WeightNorm:
    """The hook that computes the weight before each forward."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Tensor:
        """The weight from its length and direction."""
        return weight_of(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"),
                         self.dim)  # fmt: skip

    @staticmethod
    def apply(module: Any, name: str, dim: int | None) -> WeightNorm:
        """Replaces the parameter by two and installs the hook."""
        warnings.warn("`torch.nn.utils.weight_norm` is deprecated in favor of "
                      "`torch.nn.utils.parametrizations.weight_norm`.",
                      FutureWarning, stacklevel=3)  # fmt: skip
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two weight_norm hooks on the same parameter {name}"
                )
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        del module._parameters[name]
        length = norm_except_dim(weight, 2, hook.dim)
        module.register_parameter(name + "_g", Parameter(length.data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Any) -> None:
        """Puts the plain parameter back."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """weight_norm(module, name="weight", dim=0): the old form; see parametrizations."""
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Takes `weight_norm` away."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
