"""`TransformedDistribution`: samples of a base distribution, sent through transforms."""

from __future__ import annotations

from typing import Any

from .. import Size
from ..tracer.modes import no_grad
from ..tracer.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost


class TransformedDistribution(Distribution):
    """TransformedDistribution(base_distribution, transforms): y = f(x), x of the base."""

    arg_constraints: dict[str, Any] = {}
    _own: tuple[str, ...] = ()  # parameters of a subclass, expanded with the base

    def __init__(self, base_distribution: Distribution, transforms: Any,
                 validate_args: bool | None = None) -> None:  # fmt: skip
        if isinstance(transforms, Transform):
            transforms = [transforms]
        elif not isinstance(transforms, list):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        if not all(isinstance(t, Transform) for t in transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        self.transforms = transforms
        batch_shape, event_shape = self._adopt(base_distribution, ComposeTransform(transforms))
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def _adopt(self, base: Distribution, transform: ComposeTransform) -> tuple[Size, Size]:
        """Keeps the base, shaped as the transforms need it; gives batch and event shape."""
        shape, event_dim = base.batch_shape + base.event_shape, len(base.event_shape)
        inner, outer = transform.domain.event_dim, transform.codomain.event_dim
        if len(shape) < inner:
            raise ValueError(f"base_distribution needs to have shape with size at least {inner}, "
                             f"but got {shape}.")  # fmt: skip
        forward = transform.forward_shape(shape)
        wanted = transform.inverse_shape(forward)
        if shape != wanted:
            base = base.expand(wanted[: len(wanted) - event_dim])
        if inner > event_dim:
            base = Independent(base, inner - event_dim)
        self.base_dist = base
        # either the transform or the base ties dimensions into events
        cut = len(forward) - max(outer, event_dim + outer - inner)
        return Size(forward[:cut]), Size(forward[cut:])

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(self._own_class(), _instance)
        batch_shape = Size(batch_shape)
        shape = batch_shape + self.event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        for name in self._own:
            setattr(new, name, getattr(self, name).expand(batch_shape))
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            x = self.base_dist.sample(sample_shape)
            for transform in self.transforms:
                x = transform(x)
            return x

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        x = self.base_dist.rsample(sample_shape)
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        """The base's density at the inverse, less the logarithm of the volume's growth."""
        self._check(value)
        event_dim, log_prob, y = len(self.event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            growth = transform.log_abs_det_jacobian(x, y)
            log_prob = log_prob - _sum_rightmost(growth, event_dim - transform.domain.event_dim)
            y = x
        base = self.base_dist.log_prob(y)
        return log_prob + _sum_rightmost(base, event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """Turns probabilities round where the transforms decrease."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        value = self.base_dist.icdf(self._monotonize_cdf(value))
        for transform in self.transforms:
            value = transform(value)
        return value
