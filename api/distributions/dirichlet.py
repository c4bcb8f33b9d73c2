"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

from .. import Size, _dirichlet_grad, _sample_dirichlet, lgamma, xlogy
from ..autograd import Function
from ..autograd.function import once_differentiable
from ..nn.functional import one_hot
from ..tracer.tensor import Tensor
from . import constraints
from .distribution import Distribution, Elementwise
from .exp_family import ExponentialFamily


class _Dirichlet(Function):
    """Samples that move with their concentrations; the shares keep their sum."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        x = _sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        x, concentration = ctx.saved_tensors
        total = concentration.sum(-1, True).expand_as(concentration)
        return _dirichlet_grad(x, concentration, total) * (grad - (x * grad).sum(-1, True))


class Dirichlet(Elementwise, ExponentialFamily):
    """Dirichlet(concentration): shares along the last dimension, which sum to one."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        Distribution.__init__(self, concentration.shape[:-1], concentration.shape[-1:],
                              validate_args=validate_args)  # fmt: skip

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        return _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        powers = xlogy(self.concentration - 1.0, value).sum(-1)
        return powers + lgamma(self.concentration.sum(-1)) - lgamma(self.concentration).sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        excess = (self.concentration - 1).clamp(min=0.0)
        mode = excess / excess.sum(-1, True)
        spread = (self.concentration < 1).all(dim=-1)
        mode[spread] = one_hot(mode[spread].argmax(dim=-1), excess.shape[-1]).to(mode)
        return mode

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        k, total = self.concentration.size(-1), self.concentration.sum(-1)
        return (
            lgamma(self.concentration).sum(-1)
            - lgamma(total)
            - (k - total) * total.digamma()
            - ((self.concentration - 1.0) * self.concentration.digamma()).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.lgamma().sum(-1) - lgamma(x.sum(-1))
