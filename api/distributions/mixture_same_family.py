"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

from .. import Size, gather
from ..tracer.modes import no_grad
from ..tracer.tensor import Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution


class MixtureSameFamily(Distribution):
    """MixtureSameFamily(mixture_distribution, component_distribution).

    The last batch dimension of the components is what the categorical mixture chooses from.
    """

    arg_constraints: dict[str, Any] = {}
    has_rsample = False

    def __init__(self, mixture_distribution: Categorical, component_distribution: Distribution,
                 validate_args: bool | None = None) -> None:  # fmt: skip
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of "
                             "torch.distributions.Categorical")  # fmt: skip
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of "
                             "torch.distributions.Distribution")  # fmt: skip
        batch, shape = mixture_distribution.batch_shape, component_distribution.batch_shape
        for size1, size2 in zip(reversed(batch), reversed(shape[:-1])):
            if size1 != 1 and size2 != 1 and size1 != size2:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({batch}) is not compatible with "
                    f"`component_distribution.batch_shape`({shape[:-1]})"
                )
        count = mixture_distribution.logits.shape[-1]
        if count != shape[-1]:
            raise ValueError(f"`mixture_distribution component` ({count}) does not equal "
                             f"`component_distribution.batch_shape[-1]` ({shape[-1]})")  # fmt: skip
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = count
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(shape[:-1], component_distribution.event_shape,
                         validate_args=validate_args)  # fmt: skip

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = Size(batch_shape)
        components = self._component_distribution.expand((*batch_shape, self._num_component))
        new._component_distribution = components
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        Distribution.__init__(new, batch_shape, components.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """Which component is chosen."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components, along the last batch dimension."""
        return self._component_distribution

    @property
    def _dim(self) -> int:
        return -1 - self._event_ndims

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self.component_distribution.mean).sum(self._dim)

    @property
    def variance(self) -> Tensor:
        # the law of total variance
        weights, components = self._weights(), self.component_distribution
        within = (weights * components.variance).sum(self._dim)
        return within + (weights * (components.mean - self._pad(self.mean)).pow(2.0)).sum(self._dim)

    def cdf(self, x: Tensor) -> Tensor:
        probs = self.mixture_distribution.probs
        return (self.component_distribution.cdf(self._pad(x)) * probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        self._check(x)
        each = self.component_distribution.log_prob(self._pad(x))
        return (each + self.mixture_distribution.logits.log_softmax(dim=-1)).logsumexp(dim=-1)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            chosen = self.mixture_distribution.sample(sample_shape)
            samples = self.component_distribution.sample(sample_shape)
            index = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1))
            index = index.repeat((1,) * chosen.dim() + (1, *self.event_shape))
            return gather(samples, dim, index).squeeze(dim)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(self._dim)

    def _weights(self) -> Tensor:
        """The mixture's probabilities, shaped to multiply the components' events."""
        probs = self.mixture_distribution.probs
        own = len(self.mixture_distribution.batch_shape)
        missing = 0 if own == 1 else len(self.batch_shape) - own
        ones = (1,) * self._event_ndims
        return probs.reshape(probs.shape[:-1] + (1,) * missing + probs.shape[-1:] + ones)

    def __repr__(self) -> str:
        return (f"MixtureSameFamily(\n  {self.mixture_distribution},"
                f"\n  {self.component_distribution})")  # fmt: skip
