"""Random functions of tensors: in-place draws (`uniform_` ...), bernoulli, normal, multinomial."""

from __future__ import annotations

from typing import Any

from ..ir.arguments import as_dtype
from ..ir.ops.creation import shape_of
from ..ir.ops.drawing import drawn
from ..ir.ops.implicit import standard_gamma as gamma_sample
from ..ir.ops.kinds import require_value
from ..ir.ops.layouts import fill_order_of, like_order_of
from ..ir.types import broadcast_shapes, default_dtype, int64, type_word
from ..ir.value import public
from .creation import deliver
from .random import draw_tensor, order_within
from .scalars import plain_number
from .tensor import Tensor, require_cpu

# --- in place ------------------------------------------------------------------------------------


def _fill(target: Tensor, node: str, distribution: str, parameters: tuple[Any, ...],
          generator: Any, *operands: Tensor) -> Tensor:  # fmt: skip
    """Overwrites `target` with a sample; the graph keeps torch's node, whose gradient is zero."""
    from .inplace import run_inplace

    order = fill_order_of(target)

    def copy(before: Tensor) -> Tensor:
        sample = draw_tensor(distribution, target.shape, target.dtype, *operands,
                             parameters=parameters, generator=generator, order=order)  # fmt: skip
        return drawn(before, sample, node=node)

    return run_inplace(copy, target, (), {})


def _method(function: Any) -> Any:
    setattr(Tensor, function.__name__, function)
    return function


def _between(args: tuple[Any, ...], named: dict[str, Any], name: str) -> tuple[Any, Any]:
    """`from` is a word of Python's, so these come positionally or by `**{"from": ...}`."""
    low = args[0] if args else named.pop("from", 0)
    high = args[1] if len(args) > 1 else named.pop("to", None)
    if named or len(args) > 2:
        raise TypeError(f"{name}() received an invalid combination of arguments")
    return low, high


@_method
def uniform_(self: Tensor, *args: Any, generator: Any = None, **named: Any) -> Tensor:
    """uniform_(from=0, to=1, *, generator=None)."""
    low, high = _between(args, named, "uniform_")
    low, high = float(low), 1.0 if high is None else float(high)
    if not low <= high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} "
                           f"> to={high:g}")  # fmt: skip
    return _fill(self, "UniformBackward0", "uniform", (low, high), generator)


@_method
def normal_(self: Tensor, mean: Any = 0.0, std: Any = 1.0, *, generator: Any = None) -> Tensor:
    """normal_(mean=0, std=1, *, generator=None)."""
    if not float(std) >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {float(std):g}")
    return _fill(self, "NormalBackward0", "normal", (float(mean), float(std)), generator)


@_method
def random_(self: Tensor, *args: Any, generator: Any = None, **named: Any) -> Tensor:
    """random_(from=0, to=None, *, generator=None): whole numbers; random_(to) starts at 0."""
    if not args and not named:
        return _fill(self, "RandomBackward2", "all_integers", (), generator)
    if len(args) == 1 and not named:
        return _fill(self, "RandomBackward1", "integers", (0, int(args[0])), generator)
    low, high = _between(args, named, "random_")
    bounds = (int(low), None if high is None else int(high))
    return _fill(self, "RandomBackward0", "integers", bounds, generator)


@_method
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Any = None) -> Tensor:
    """exponential_(lambd=1, *, generator=None)."""
    return _fill(self, "ExponentialBackward0", "exponential", (float(lambd),), generator)


@_method
def cauchy_(
    self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None
) -> Tensor:
    """cauchy_(median=0, sigma=1, *, generator=None)."""
    return _fill(self, "CauchyBackward0", "cauchy", (float(median), float(sigma)), generator)


@_method
def log_normal_(
    self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None
) -> Tensor:
    """log_normal_(mean=1, std=2, *, generator=None)."""
    return _fill(self, "LogNormalBackward0", "log_normal", (float(mean), float(std)), generator)


@_method
def geometric_(self: Tensor, p: float, *, generator: Any = None) -> Tensor:
    """geometric_(p, *, generator=None)."""
    return _fill(self, "GeometricBackward0", "geometric", (float(p),), generator)


@_method
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """bernoulli_(p=0.5, *, generator=None): p is a number or a tensor of probabilities."""
    if not isinstance(p, Tensor):
        return _fill(self, "BernoulliBackward2", "bernoulli", (float(p),), generator)
    given = p.detach()
    given.expand(tuple(self.shape))  # which says what does not fit
    return _fill(self, "BernoulliBackward1", "bernoulli", (), generator, given)


# --- functions -----------------------------------------------------------------------------------


def _keep(node: str, sample: Tensor, *operands: Any) -> Tensor:
    """The sample, in the graph of the tensors it was drawn for."""
    tensors = [v for v in operands if isinstance(v, Tensor)]
    return drawn(*tensors, sample, node=node) if any(t.requires_grad for t in tensors) else sample


@public("bernoulli", out="any")
def bernoulli(input: Any, p: Any = None, *, generator: Any = None) -> Tensor:
    """bernoulli(input, *, generator=None): ones with the probabilities in `input`."""
    require_value("bernoulli", input)
    if p is None:
        sample = draw_tensor("bernoulli", input.shape, input.dtype, input.detach(),
                             generator=generator)  # fmt: skip
        return _keep("BernoulliBackward0", sample, input)
    sample = draw_tensor("bernoulli", input.shape, input.dtype, parameters=(float(p),),
                         generator=generator)  # fmt: skip
    return _keep("NotImplemented", sample, input)


@public("normal", method=False)
def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None,
           dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
           requires_grad: bool = False, out: Any = None) -> Tensor:  # fmt: skip
    """normal(mean, std), tensors or numbers; with numbers for both, normal(mean, std, size)."""
    require_cpu(device)
    mean, std = plain_number(mean), plain_number(std)
    tensors = [v for v in (mean, std) if isinstance(v, Tensor)]
    if size is not None and not tensors:
        wanted = as_dtype(dtype) or (default_dtype() if out is None else out.dtype)
        shape = shape_of("normal", (size,), 3)
        sample = draw_tensor("normal", shape, wanted, generator=generator,
                             parameters=(float(mean), float(std)),
                             order=order_within(out, shape))  # fmt: skip
        return deliver(sample, requires_grad, out, "normal")
    if not tensors:
        raise TypeError("normal() received an invalid combination of arguments: give tensors for "
                        "mean or std, or a size")  # fmt: skip
    numbers = tuple(None if isinstance(v, Tensor) else float(v) for v in (mean, std))
    shape = broadcast_shapes(*(tuple(t.shape) for t in tensors))
    sample = draw_tensor("normal_around", shape, tensors[0].dtype, *(t.detach() for t in tensors),
                         parameters=numbers, generator=generator)  # fmt: skip
    node = "NormalBackward3" if len(tensors) == 2 else (
        "NormalBackward1" if isinstance(mean, Tensor) else "NormalBackward2")  # fmt: skip
    if out is not None and any(t.requires_grad for t in tensors):
        raise RuntimeError("normal(): functions with out=... arguments don't support automatic "
                           "differentiation, but one of the arguments requires grad.")  # fmt: skip
    return deliver(_keep(node, sample, *tensors), requires_grad, out, "normal")


@public("multinomial")
def multinomial(
    input: Any, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    """multinomial(input, num_samples, replacement=False, *, generator=None): indices by weight."""
    require_value("multinomial", input)
    if not input.dtype.is_floating_point:
        raise RuntimeError("multinomial only supports floating-point dtypes for input, got: "
                           f"{type_word(input.dtype)}")  # fmt: skip
    shape = (*input.shape[:-1], num_samples)
    parameters: tuple[Any, ...] = (int(num_samples), bool(replacement), input.dtype.name)
    if (order := like_order_of(input)) is not None:
        parameters = (*parameters, order)
    return draw_tensor("multinomial", shape, int64, input.detach(), parameters=parameters,
                       generator=generator)  # fmt: skip


@public("poisson", method=False)
def poisson(input: Any, generator: Any = None) -> Tensor:
    """poisson(input, generator=None): counts with the rates in `input`."""
    require_value("poisson", input)
    sample = draw_tensor("poisson", input.shape, input.dtype, input.detach(), generator=generator)
    return _keep("PoissonBackward0", sample, input)


@public("binomial", method=False)
def binomial(count: Any, prob: Any, generator: Any = None) -> Tensor:
    """binomial(count, prob, generator=None): successes among `count` trials."""
    for position, (word, value) in enumerate((("count", count), ("prob", prob))):
        require_value("binomial", value, word, position)
        if not value.dtype.is_floating_point:
            raise ValueError(f"binomial only supports floating-point dtypes for {word}, got: "
                             f"{type_word(value.dtype)}")  # fmt: skip
    shape = broadcast_shapes(tuple(count.shape), tuple(prob.shape))
    sample = draw_tensor("binomial", shape, count.dtype, count.detach(), prob.detach(),
                         generator=generator)  # fmt: skip
    return _keep("NotImplemented", sample, count, prob)


@public("_standard_gamma", method=False)
def standard_gamma(input: Any, generator: Any = None) -> Tensor:
    """_standard_gamma(input, generator=None): gamma samples of unit scale, with gradients."""
    sample = draw_tensor("gamma", input.shape, input.dtype, input.detach(), generator=generator)
    return gamma_sample(input, sample) if input.requires_grad else sample


@public("_sample_dirichlet", method=False)
def sample_dirichlet(input: Any, generator: Any = None) -> Tensor:
    """_sample_dirichlet(input, generator=None): shares that sum to one."""
    sample = draw_tensor("dirichlet", input.shape, input.dtype, input.detach(),
                         generator=generator)  # fmt: skip
    return _keep("NotImplemented", sample, input)
