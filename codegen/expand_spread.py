"""The gradient of a convolution's input, and so transposed convolutions, said in products.

Two ways: convolutions with the kernel turned round, one for each phase of the steps, or a product
of which each row is added to its place; see Note [The input's gradient].
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from .affine import strides_of
from .expand import filled, rule
from .expand_windows import FLOATS, add_windows, bordered
from .private import CONTRACTION, JOINED, PRODUCT, WINDOW, Ints, numel

MOST_PHASES = 16  # each has a product and a region of the result


@rule("conv_input")
def conv_input(grad: Any, weight: Any, bias: Any, *, size: Ints, stride: Ints, padding: Ints,
               dilation: Ints, groups: int) -> Any:  # fmt: skip
    kernel, out, dtype = tuple(weight.shape[2:]), tuple(grad.shape[2:]), grad.dtype
    batch, outputs, channels = grad.shape[0], grad.shape[1], weight.shape[1] * groups
    if dtype.name not in FLOATS or not numel((batch, channels, outputs, *out, *kernel, *size)):
        return None
    single, result = groups > 1 and channels == groups == outputs, None
    overlap = set(dilation) == {1} and any(k > s for k, s in zip(kernel, stride))
    few = set(stride) == {1} or (overlap and numel(stride) <= MOST_PHASES)
    each = numel(size) // numel(stride)
    if not single and few and turning_pays(channels // groups, outputs // groups, each, numel(out)):
        result = turned(grad, weight, size, stride, padding, dilation, groups)
    if result is None:
        columns = spread_single(grad, weight) if single else spread(grad, weight, groups)
        result = add_windows(columns, size, kernel, stride, padding, dilation, out)
    if bias is not None:
        result = result + bias.view((1, channels, *(1,) * len(size)))
    return result


def spread_single(grad: Any, weight: Any) -> Any:
    """What each position of each window adds to the input, one channel per group."""
    kernel, out = tuple(weight.shape[2:]), tuple(grad.shape[2:])
    scale = weight.view((1, grad.shape[1], *kernel, *(1,) * len(out)))
    return grad.view((*grad.shape[:2], *(1,) * len(kernel), *out)) * scale


def spread(grad: Any, weight: Any, groups: int) -> Any:
    """What each position of each window adds to the input."""
    kernel, out = tuple(weight.shape[2:]), tuple(grad.shape[2:])
    batch, outputs, channels = grad.shape[0], grad.shape[1] // groups, weight.shape[1]
    rows = channels * numel(kernel)
    matrix = weight.view((1, groups, outputs, rows)).permute((0, 1, 3, 2)).expand(
        (batch, groups, rows, outputs))  # fmt: skip
    product = PRODUCT(matrix, grad.view((batch, groups, outputs, numel(out))))
    return product.view((batch, groups * channels, *kernel, *out))


# Note [The input's gradient]
# With strides of 1 it is a convolution of the bordered gradient with the kernel turned round, or a
# product of which each row is added to its place. One thread, float32, batch 8, GF/s:
#   channels, size, kernel     turned   added
#   64x56x56, 64, 3x3            77       61
#   128x28x28, 128, 3x3          75       66
#   256x14x14, 256, 3x3          77       65
#   512x7x7, 512, 3x3            63       45
#   128x28x28 in 4 groups, 3x3   59       41
#   6x14x14, 16, 5x5             21       50
#   1x28x28, 6, 5x5               9       37
# Turned, the sums run over the border too, rows fill tiles of 6 and windows are packed, at the
# price of 4 rows; adding costs as much as 16 sums.
# With steps there is a turned product for each phase, of as many sums together; where windows do
# not overlap all is added to its own place anyway. One thread of a Zen 5, by phases and added:
#   64x56x56, 128, 3x3/2, batch 8   204  167
#   256x14x14, 512, 3x3/2, batch 4  188  170
#   32x28x28, 32, 5x5/2, batch 8    188  104
#   32x57x57, 64, 7x7/4, batch 8    203  137
#   16x32x32, 32, 3x3/2, batch 8     96  103


def turning_pays(channels: int, outputs: int, size: int, out: int) -> bool:
    """See Note [The input's gradient]."""
    turned = outputs * size * (-(-channels // 6) * 6 + 4)
    return turned < channels * out * (outputs + 16)


def turned(grad: Any, weight: Any, size: Ints, stride: Ints, padding: Ints, dilation: Ints,
           groups: int) -> Any:  # fmt: skip
    """The input's gradient as convolutions with the kernel turned round.

    Elements that lie as far after a step meet the same part of the kernel, so those of such a phase
    are a convolution with steps of 1; phases take turns in the result. Without steps there is one.
    """
    kernel, out = tuple(weight.shape[2:]), tuple(grad.shape[2:])
    phases = [[phase(*sides, after) for after in range(sides[3])]
              for sides in zip(size, kernel, padding, stride)]  # fmt: skip
    low = [max(0, *(d * (p.taps - 1) - p.base for p in of)) for of, d in zip(phases, dilation)]
    high = [max(0, *(p.count + p.base - o for p in of)) for of, o in zip(phases, out)]
    grad = bordered(grad, list(zip(low, high)), 0)
    if grad is None:
        return None
    whole, parts, regions = (grad.shape[0], groups * weight.shape[1], *size), [], []
    across = strides_of(whole)
    rows = (*across[:2], *(s * t for s, t in zip(across[2:], stride)))
    for at in itertools.product(*phases):
        shape = (*whole[:2], *(p.count for p in at))
        if numel(shape):
            regions.append((sum(p.first * s for p, s in zip(at, across[2:])), rows))
            part = of_phase(grad, weight, at, low, stride, dilation, groups)
            parts.append(filled(shape, 0, grad.dtype) if part is None else part.view(shape))
    if len(parts) == 1:
        return parts[0]
    return JOINED(*parts, size=whole, regions=tuple(regions))


class Phase(NamedTuple):
    """Elements that lie as far `after` the starts of windows, along one dimension: the first, how
    many, the last window over the first (`base`), and how many of the kernel they meet."""

    first: int
    count: int
    base: int
    after: int
    taps: int


def phase(size: int, kernel: int, padding: int, stride: int, after: int) -> Phase:
    first = (after - padding) % stride
    count = max(0, -(-(size - first) // stride))
    taps = max(0, -(-(kernel - after) // stride))
    return Phase(first, count, (first + padding - after) // stride, after, taps)


def of_phase(grad: Any, weight: Any, at: tuple[Phase, ...], low: list[int], stride: Ints,
             dilation: Ints, groups: int) -> Any:  # fmt: skip
    """The product of one phase in each dimension; None where it meets nothing of the kernel.

    `low` is how far the gradient's border reaches before it. Windows are gone through backwards,
    rather than the kernel: its runs are long, and are packed.
    """
    batch, outputs, channels = grad.shape[0], grad.shape[1] // groups, weight.shape[1]
    taps, count = tuple(p.taps for p in at), tuple(p.count for p in at)
    if not numel(taps):
        return None
    steps = strides_of(tuple(weight.shape))
    shape = (groups, channels, outputs, *taps)
    matrix = WINDOW(
        weight, size=shape,
        strides=(outputs * steps[0], steps[1], steps[0],
                 *(s * t for s, t in zip(steps[2:], stride))),
        offset=sum(p.after * s for p, s in zip(at, steps[2:])))  # fmt: skip
    lead, *inner = strides_of(tuple(grad.shape))[1:]
    columns = WINDOW(
        grad, size=(batch, groups, outputs, *taps, *count),
        strides=(lead * grad.shape[1], lead * outputs, lead,
                 *(-s * d for s, d in zip(inner, dilation)), *inner),
        offset=sum(s * (b + p.base) for s, b, p in zip(inner, low, at)))  # fmt: skip
    return CONTRACTION(matrix.view((1, *shape)).expand((batch, *shape)), columns, batch=2,
                       inner=1 + len(at))  # fmt: skip
