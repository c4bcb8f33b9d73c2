"""`ExponentialFamily`: entropy and divergence from the log normalizer, by differentiation."""

from __future__ import annotations

from typing import Any

from .. import autograd
from ..tracer.tensor import Tensor
from ..unwritten import unwritten
from .distribution import Distribution


class ExponentialFamily(Distribution):
    """Densities exp(<t(x), theta> - F(theta) + k(x)) with natural parameters theta."""

    @property
    def _mean_carrier_measure(self) -> Any:
        raise unwritten(self, "_mean_carrier_measure")

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise unwritten(self, "_natural_params")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise unwritten(self, "_log_normalizer")

    def entropy(self) -> Tensor:
        """F(theta) - <theta, grad F(theta)> - E[k(x)]."""
        parameters = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*parameters)
        slopes = autograd.grad(normalizer.sum(), parameters, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for parameter, slope in zip(parameters, slopes):
            result = result - (parameter * slope).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
