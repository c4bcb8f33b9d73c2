"""`Distribution`, the base of all; `Elementwise`, whose parameters broadcast to the batch shape."""

from __future__ import annotations

import warnings
from typing import Any

from .. import Size
from ..tracer.modes import no_grad
from ..tracer.scalars import is_tensor
from ..tracer.tensor import Tensor
from ..unwritten import unwritten
from . import constraints
from .utils import broadcast_all, lazy_property


class Distribution:
    """A probability distribution over events of `event_shape`, one for each of `batch_shape`."""

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Says whether arguments are checked where `validate_args` is not given."""
        if value not in (True, False):
            raise ValueError(f"expected True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = Size(), event_shape: Any = Size(),
                 validate_args: bool | None = None) -> None:  # fmt: skip
        self._batch_shape, self._event_shape = batch_shape, event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            _check_parameters(self)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with its batch dimensions expanded to `batch_shape`."""
        raise unwritten(self, "expand")

    @property
    def batch_shape(self) -> Size:
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The region each parameter must lie in."""
        raise unwritten(self, "arg_constraints")

    @property
    def support(self) -> Any:
        """The region samples lie in."""
        raise unwritten(self, "support")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise unwritten(self, "mean")

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise unwritten(self, "variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        """Samples of shape `sample_shape + batch_shape + event_shape`, without gradients."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        """Samples through which gradients flow to the parameters."""
        raise unwritten(self, "rsample")

    def sample_n(self, n: int) -> Tensor:
        """sample((n,)), under its old name."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
                      FutureWarning, stacklevel=2)  # fmt: skip
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or mass at `value`."""
        raise unwritten(self, "log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most `value`."""
        raise unwritten(self, "cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`."""
        raise unwritten(self, "icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a new first dimension."""
        raise unwritten(self, "enumerate_support")

    def entropy(self) -> Tensor:
        """The entropy, of shape `batch_shape`."""
        raise unwritten(self, "entropy")

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Any = Size()) -> Size:
        return Size(tuple(sample_shape) + tuple(self._batch_shape) + tuple(self._event_shape))

    def _check(self, value: Any) -> None:
        """Validates an argument of `log_prob` or `cdf`, where that is asked for."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Any) -> None:
        if not is_tensor(value):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = value.dim() - len(self._event_shape)
        if start < 0 or value.shape[start:] != self._event_shape:
            raise ValueError("The right-most size of value must match event_shape: "
                             f"{value.size()} vs {self._event_shape}.")  # fmt: skip
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.shape), reversed(expected)):
            if i != 1 and j != 1 and i != j:
                raise ValueError("Value is not broadcastable with batch_shape+event_shape: "
                                 f"{value.size()} vs {expected}.")  # fmt: skip
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(f"{self.__class__} does not define `support` to enable sample "
                          "validation. Please initialize the distribution with "
                          "`validate_args=False` to turn off validation.",
                          stacklevel=3)  # fmt: skip
            return
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, but found "
                f"invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def _own_class(self) -> type:
        """The class of this package that the distribution is, or derives from."""
        package = __package__ or ""
        return next(c for c in type(self).__mro__ if c.__module__.startswith(package))

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        values = [self.__dict__[name] for name in names]
        shown = [f"{n}: {v if v.numel() == 1 else v.size()}" for n, v in zip(names, values)]
        return f"{type(self).__name__}({', '.join(shown)})"


class Elementwise(Distribution):
    """Parameters are tensors whose leading dimensions are the batch shape."""

    _kept: tuple[str, ...] = ()  # attributes that `expand` hands on as they are

    def _set(self, validate_args: bool | None, **parameters: Any) -> None:
        """Broadcasts the parameters, keeps them and finishes construction."""
        values = broadcast_all(*parameters.values())
        for name, value in zip(parameters, values):
            setattr(self, name, value)
        Distribution.__init__(self, values[0].size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with its batch dimensions expanded to `batch_shape`."""
        new = self._get_checked_instance(self._own_class(), _instance)
        batch_shape, before = Size(batch_shape), len(self._batch_shape)
        for name in self.arg_constraints:
            if name in self.__dict__:
                value = self.__dict__[name]
                setattr(new, name, value.expand(batch_shape + value.shape[before:]))
        for name in self._kept:
            setattr(new, name, getattr(self, name))
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new


def _check_parameters(distribution: Any) -> None:
    try:
        wanted = distribution.arg_constraints
    except NotImplementedError:
        wanted = {}
        warnings.warn(f"{distribution.__class__} does not define `arg_constraints`. Please set "
                      "`arg_constraints = {}` or initialize the distribution with "
                      "`validate_args=False` to turn off validation.",
                      stacklevel=3)  # fmt: skip
    for name, constraint in wanted.items():
        unknown = constraints.is_dependent(constraint)
        lazy = isinstance(getattr(type(distribution), name, None), lazy_property)
        if unknown or (lazy and name not in distribution.__dict__):
            continue
        value = getattr(distribution, name)
        if not constraint.check(value).all():
            raise ValueError(
                f"Expected parameter {name} ({type(value).__name__} of shape "
                f"{tuple(value.shape)}) of distribution {distribution!r} to satisfy the constraint "
                f"{constraint!r}, but found invalid values:\n{value}"
            )
