"""pad: constant, reflect, replicate, circular."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import kind_of, must_be
from ..bind import casting
from ..dims import whole
from ..op import define
from ..types import TensorType
from ..value import public
from .nn_common import formally
from .precision import raised
from .windows import pad_spatial

Ints = tuple[int, ...]

# `pad` lists (before, after) from the last dimension backwards, as torch's argument does.


def _pairs(pad: Ints) -> tuple[tuple[int, int], ...]:
    """(before, after) per padded dimension, first to last."""
    return tuple((pad[k], pad[k + 1]) for k in range(len(pad) - 2, -1, -2))


def _padded_shape(shape: Any, pad: Ints) -> Ints:
    pairs = _pairs(pad)
    lead = len(shape) - len(pairs)
    return (*shape[:lead], *(n + b + a for n, (b, a) in zip(shape[lead:], pairs)))


def _negated(pad: Ints) -> Ints:
    return tuple(-n for n in pad)


constant_pad_op: Any = define(
    "constant_pad_nd", "self -> result",
    numpy=lambda x, *, pad, value=0: np.array(pad_spatial(x, _pairs(pad), value)),
    infer=lambda self, *, pad, value=0: TensorType(self.dtype, _padded_shape(self.shape, pad)),
    samples=lambda rng: [((rng.standard_normal((2, 3, 4)),), {"pad": (1, 2)}),
                         ((rng.standard_normal((2, 3, 4)),), {"pad": (-1, 2, 1, -1)})],
    vjp=dict(self=lambda grad, pad: constant_pad_op(grad, pad=_negated(pad))),
)  # fmt: skip


def constant_pad(input: Any, pad: Ints, value: Any = 0) -> Any:
    """`input` with `value` around it; negative pads cut."""
    for n, (before, after) in zip(reversed(input.shape), reversed(_pairs(pad))):
        if n + before + after < 0:
            raise RuntimeError(
                f"The input size {n}, plus negative padding {before} and {after} resulted in a "
                "negative output size, which is invalid. Check dimension "
                f"{input.ndim - 1} of your input."
            )
    return constant_pad_op(input, pad=pad, value=value)


# --- padding with the tensor's own elements ------------------------------------------------------


def _sources(mode: str, size: int, before: int, after: int) -> np.ndarray:
    """For each place of the padded dimension, the place it is copied from."""
    places = np.arange(-before, size + after)
    if mode == "replicate":
        return np.clip(places, 0, max(0, size - 1))
    if mode == "circular":  # what negative pads cut off is gone before the rest goes round
        cut, kept = max(-before, 0), max(1, size + min(before, 0) + min(after, 0))
        return (places - cut) % kept + cut
    mirrored = np.abs(places)
    return np.where(mirrored >= size, 2 * (size - 1) - mirrored, mirrored)


def _mirror(x: np.ndarray, *, pad: Ints, mode: str) -> np.ndarray:
    pairs = _pairs(pad)
    lead = x.ndim - len(pairs)
    for k, (before, after) in enumerate(pairs):
        if before or after:
            x = np.take(x, _sources(mode, x.shape[lead + k], before, after), axis=lead + k)
    return np.array(x)


def _fold_mirror(grad: np.ndarray, *, pad: Ints, mode: str, size: Ints) -> np.ndarray:
    """The adjoint: what was copied several times is summed."""
    pairs = _pairs(pad)
    lead = grad.ndim - len(pairs)
    for k, (before, after) in enumerate(pairs):
        if not (before or after):
            continue
        length = size[lead + k]
        total = np.zeros((*grad.shape[: lead + k], length, *grad.shape[lead + k + 1 :]), grad.dtype)
        source, target = np.moveaxis(grad, lead + k, 0), np.moveaxis(total, lead + k, 0)
        cut, kept = max(-before, 0), length + min(0, before) + min(0, after)
        start = max(0, before)
        target[cut : cut + kept] = source[start : start + kept]  # most is copied once
        places = _sources(mode, length, before, after)
        for place in (*range(start), *range(start + kept, len(places))):
            target[places[place]] += source[place]
        grad = total
    return grad


def _mirror_node(attrs: dict[str, Any]) -> str:
    if attrs["mode"] == "circular":  # torch writes the parts into an empty tensor
        return "CopySlices"
    word = {"reflect": "Reflection", "replicate": "Replication"}
    return f"{word[attrs['mode']]}Pad{len(attrs['pad']) // 2}DBackward0"


def _mirror_samples(rng: np.random.Generator) -> list[Any]:
    x = rng.standard_normal((2, 2, 4, 5))
    return [((x,), {"pad": (1, 2, 2, 0), "mode": mode})
            for mode in ("reflect", "replicate", "circular")]  # fmt: skip


mirror_pad = define(
    "mirror_pad", "self -> result", numpy=_mirror, node=_mirror_node, samples=_mirror_samples,
    second=True, shown={"pad": "padding", "mode": None},
    infer=lambda self, *, pad, mode: TensorType(self.dtype, _padded_shape(self.shape, pad)),
    vjp=dict(self=lambda grad, self, pad, mode: formally(mirror_fold(
        grad, pad=pad, mode=mode, size=tuple(self.shape)), self)),
)  # fmt: skip
mirror_fold: Any = define(
    "mirror_fold", "self -> result", numpy=_fold_mirror,
    infer=lambda self, *, pad, mode, size: TensorType(self.dtype, size),
    samples=lambda rng: [((rng.standard_normal((2, 2, 6, 8)),), {
        "pad": (1, 2, 2, 0), "mode": "reflect", "size": (2, 2, 4, 5)})],
    vjp=dict(self=lambda grad, pad, mode: mirror_pad(grad, pad=pad, mode=mode)),
)  # fmt: skip


def _check_mirror(input: Any, pad: Ints, mode: str) -> None:
    dims = len(pad) // 2
    if not dims or input.ndim not in (dims + 1, dims + 2):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {input.ndim}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    lead = input.ndim - dims
    if 0 in input.shape[1 if input.ndim == dims + 2 else 0 :]:
        raise RuntimeError(f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly "
                           f"0 batch size and other non-zero dimensions for input, but got: "
                           f"{list(input.shape)}")  # fmt: skip
    for k, (before, after) in reversed(list(enumerate(_pairs(pad)))):
        size = input.shape[lead + k]
        if mode == "reflect" and (before >= size or after >= size):
            raise RuntimeError(
                f"Argument #{2 + 2 * (dims - k)}: Padding size should be less than the "
                f"corresponding input dimension, but got: padding ({before}, {after}) at dimension "
                f"{lead + k} of input {list(input.shape)}"
            )
        if mode == "circular" and (before > size or after > size):
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if size + before + after < 1:
            raise RuntimeError(f"input ({list(input.shape)}) is too small. Calculated output size "
                               f"at dimension {lead + k}: {size + before + after}")  # fmt: skip


def _widths(pad: Any) -> Ints:
    if not isinstance(pad, list | tuple):
        raise must_be("pad", "pad", "tuple of ints", pad, 2)
    for place, width in enumerate(pad):
        if isinstance(width, bool | float):
            raise TypeError("pad(): argument 'pad' (position 2) must be tuple of ints, but found "
                            f"element of type {kind_of(width)} at pos {place}")  # fmt: skip
    return tuple(map(whole, pad))


@public("pad", spaces="nn.functional", method=False)
def pad(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    """pad(input, pad, mode='constant', value=None): `pad` begins with the last dimension."""
    widths = _widths(pad)
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}; use constant, reflect, "
                                  "replicate or circular")  # fmt: skip
    if len(widths) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(widths) > 2 * input.ndim:
        raise RuntimeError("Padding length should be less than or equal to two times the input "
                           f"dimension but got padding length {len(widths)} and input of dimension "
                           f"{input.ndim}")  # fmt: skip
    if mode == "constant":
        return constant_pad(input, widths, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    _check_mirror(input, widths, mode)
    if mode != "circular" and casting():
        input = raised(input)
    return mirror_pad(input, pad=widths, mode=mode)


@public("constant_pad_nd", method=False)
def constant_pad_nd(input: Any, pad: Any, value: Any = 0) -> Any:
    """constant_pad_nd(input, pad, value=0)."""
    return constant_pad(input, _widths(pad), value)
