"""What draws random numbers in nn.functional: dropout in its forms, rrelu, gumbel_softmax."""

from __future__ import annotations

import math
from typing import Any

from ..arguments import warn
from ..types import FLOAT, DType, bool_, normalize_dim, type_word
from ..value import public
from .drawing import draw
from .layouts import like_order_of
from .nn_activations import rrelu_mean, rrelu_with_noise
from .nn_common import check_value, floats_only, maybe_inplace

Ints = tuple[int, ...]


# --- dropout -------------------------------------------------------------------------------------

ALPHA = 1.7580993408473766  # minus the limit of selu at minus infinity


def _drop(input: Any, p: float, feature: bool, alpha: bool) -> Any:
    """torch's dropout on the CPU: a product with drawn noise, plus an offset for alpha dropout."""
    shape = tuple(input.shape)
    order = None if feature else like_order_of(input)
    if p == 1.0:
        return input * input.new_zeros(())
    if feature:
        shape = (*shape[:2], *(1,) * (len(shape) - 2))
    mask = draw(distribution="bernoulli", size=shape, dtype=bool_, parameters=(1.0 - p,),
                order=order).to(input.dtype)  # fmt: skip
    if input.dtype.category < FLOAT:
        raise RuntimeError("result type Float can't be cast to the desired output type "
                           f"{type_word(input.dtype)}")  # fmt: skip
    if not alpha:
        return input * (mask / (1 - p))
    scale = 1.0 / math.sqrt((ALPHA * ALPHA * p + 1) * (1 - p))
    offset = (mask + -1) * (ALPHA * scale) + ALPHA * scale * p
    return input * (mask * scale) + offset


def _dropout(
    input: Any, p: float, training: bool, inplace: bool, feature: bool = False, alpha: bool = False
) -> Any:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    check_value("dropout", input=input)
    if p == 0 or not training or not math.prod(input.shape):
        return input
    if feature and input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return maybe_inplace(lambda x: _drop(x, p, feature, alpha), inplace, input)


@public("dropout", spaces="nn.functional", method=False)
def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """dropout(input, p=0.5, training=True, inplace=False)."""
    return _dropout(input, p, training, inplace)


@public("alpha_dropout", spaces="nn.functional", method=False)
def alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """alpha_dropout(input, p=0.5, training=False, inplace=False): keeps mean and variance."""
    return _dropout(input, p, training, inplace, alpha=True)


@public("feature_alpha_dropout", spaces="nn.functional", method=False)
def feature_alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Any:
    """feature_alpha_dropout(input, p=0.5, training=False, inplace=False): whole channels."""
    return _dropout(input, p, training, inplace, feature=True, alpha=True)


def _torch_twin(name: str, **kind: bool) -> None:
    """torch.dropout(input, p, train) and its relatives, with their in-place forms."""

    def function(input: Any, p: float, train: bool) -> Any:
        return _dropout(input, p, train, False, **kind)

    def in_place(input: Any, p: float, train: bool) -> Any:
        return _dropout(input, p, train, True, **kind)

    function.__name__ = function.__qualname__ = name
    in_place.__name__ = in_place.__qualname__ = name + "_"
    function.__doc__, in_place.__doc__ = f"{name}(input, p, train).", f"{name}_(input, p, train)."
    public(name, method=False)(function)
    public(name + "_", method=False)(in_place)


_torch_twin("dropout")
_torch_twin("feature_dropout", feature=True)
_torch_twin("alpha_dropout", alpha=True)
_torch_twin("feature_alpha_dropout", feature=True, alpha=True)


@public("dropout1d", spaces="nn.functional", method=False)
def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """dropout1d(input, p=0.5, training=True, inplace=False): whole channels of (N, C, L)."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that "
            "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, a"
            " channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    if input.ndim == 3:
        return _dropout(input, p, training, inplace, feature=True)
    return _unbatched(input, p, training, inplace)


def _unbatched(input: Any, p: float, training: bool, inplace: bool) -> Any:
    target = input if inplace else input.unsqueeze(0)
    if inplace:
        _dropout(target.unsqueeze(0), p, training, True, feature=True)
        return input
    return _dropout(target, p, training, False, feature=True).squeeze(0)


@public("dropout2d", spaces="nn.functional", method=False)
def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """dropout2d(input, p=0.5, training=True, inplace=False): whole channels of (N, C, H, W)."""
    if input.ndim not in (3, 4):
        warn(f"dropout2d: Received a {input.ndim}-D input to dropout2d, which is deprecated and "
             "will result in an error in a future release. To retain the behavior and silence this "
             "warning, please use dropout instead. Note that dropout2d exists to provide "
             "channel-wise dropout on inputs with 2 spatial dimensions, a channel dimension, and "
             "an optional batch dimension (i.e. 3D or 4D inputs).")  # fmt: skip
    return _dropout(input, p, training, inplace, feature=True)


@public("dropout3d", spaces="nn.functional", method=False)
def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """dropout3d(input, p=0.5, training=True, inplace=False): whole channels of (N, C, D, H, W)."""
    if input.ndim == 5:
        return _dropout(input, p, training, inplace, feature=True)
    return _unbatched(input, p, training, inplace)


# --- rrelu and gumbel softmax --------------------------------------------------------------------


def _slopes(x: Any, lower: float, upper: float) -> Any:
    """A slope for each element that is not positive; the others draw none."""
    return draw(x.detach(), distribution="rrelu", size=tuple(x.shape), dtype=x.dtype,
                parameters=(lower, upper))  # fmt: skip


@public("rrelu", spaces="torch nn.functional", method=False)
def rrelu(
    input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
    inplace: bool = False,
) -> Any:  # fmt: skip
    """rrelu(input, lower=1./8, upper=1./3, training=False, inplace=False)."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise RuntimeError("rrelu: bounds must be finite")
    floats_only("rrelu_with_noise_out_cpu" if training else "leaky_relu_cpu", input.dtype)

    def call(x: Any) -> Any:
        if not training:
            return rrelu_mean(x, slope=(lower + upper) / 2)
        return rrelu_with_noise(x, _slopes(x, lower, upper))

    return maybe_inplace(call, inplace, input)


@public("rrelu_", spaces="torch nn.functional", method=False)
def rrelu_(
    input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Any:
    """rrelu_(input, lower=1./8, upper=1./3, training=False): in place."""
    return rrelu(input, lower, upper, training, True)


@public("gumbel_softmax", spaces="nn.functional", method=False)
def gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1): a relaxed sample; with `hard`
    a one-hot one whose gradient is the relaxed one's."""
    dtype: DType = logits.dtype
    drawn = draw(distribution="exponential", size=tuple(logits.shape), dtype=dtype)
    gumbels = -drawn.log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    dim = normalize_dim(dim, logits.ndim)
    index = soft.max(dim, keepdim=True)[1]
    chosen = logits.new_zeros(tuple(logits.shape)).scatter(dim, index, 1.0)
    return chosen - soft.detach() + soft
