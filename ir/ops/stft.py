"""Short-time Fourier transforms: stft, istft, on frames of a signal and their overlap-add."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arguments import warn
from ..op import Op, define
from ..types import FLOAT, TensorType
from ..value import Value, public
from .complexes import view_as_real_
from .fft import BY_N, BY_ROOT_N, NONE, c2c_op, c2r_op, r2c_op
from .nn_pad import constant_pad_op
from .precision import full_precision
from .products import drawn, unsafe_view

# --- frames --------------------------------------------------------------------------------------


def _frames(x: np.ndarray, *, size: int, step: int) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=-1)
    return np.array(windows[..., ::step, :])


def _frames_infer(self: TensorType, *, size: int, step: int) -> TensorType:
    count = (self.shape[-1] - size) // step + 1
    return TensorType(self.dtype, (*self.shape[:-1], count, size))


def _overlap_add(x: np.ndarray, *, step: int, length: int) -> np.ndarray:
    """Adds all frames into one signal: a loop over the pieces of a frame, not over the frames."""
    *lead, count, size = x.shape
    pieces = -(-size // step)
    total = np.zeros((*lead, max(count + pieces, -(-length // step)), step), x.dtype)
    for k in range(pieces):
        part = x[..., k * step : (k + 1) * step]
        total[..., k : k + count, : part.shape[-1]] += part
    return np.ascontiguousarray(total.reshape(*lead, -1)[..., :length])


frames_op = define(
    "frames", "self -> result", numpy=_frames, infer=_frames_infer, node="AsStridedBackward0",
    samples=drawn(((2, 11), {"size": 4, "step": 3}), ((9,), {"size": 3, "step": 1})),
    vjp=dict(self=lambda grad, self_type, step: overlap_add_op(
        grad, step=step, length=self_type.shape[-1])),
)  # fmt: skip


def _overlap_add_rule(grad: Any, self_type: TensorType, step: int) -> Any:
    count, size = self_type.shape[-2:]
    needed = (count - 1) * step + size
    return frames_op(grad.narrow(-1, 0, needed), size=size, step=step)


overlap_add_op: Op = define(
    "overlap_add", "self -> result", numpy=_overlap_add, node="UnfoldBackwardBackward0",
    samples=drawn(((2, 3, 4), {"step": 3, "length": 11}), ((3, 4), {"step": 1, "length": 6})),
    infer=lambda self, *, step, length: TensorType(self.dtype, (*self.shape[:-2], length)),
    vjp=dict(self=_overlap_add_rule),
)  # fmt: skip


# --- stft ----------------------------------------------------------------------------------------


def _check_frame(name: str, hop: int, width: int, n_fft: int, window: Any) -> None:
    if hop <= 0:
        raise RuntimeError(f"{name} : expected hop_length > 0, but got hop_length={hop}")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{name} : expected 0 < win_length <= n_fft, but got win_length={width}")
    if window is not None and tuple(window.shape) != (width,):
        raise RuntimeError(f"{name} : expected a 1D window tensor of size equal to win_length="
                           f"{width}, but got window with size {list(window.shape)}")  # fmt: skip


def _centred(window: Any, width: int, n_fft: int, like: Any) -> Any:
    """The window with zeros around it, n_fft long; None if it is all ones."""
    if width == n_fft:
        return window
    left = (n_fft - width) // 2
    window = like.new_ones((width,)) if window is None else window
    return constant_pad_op(window, pad=(left, n_fft - width - left))


def _prepared(input: Any, n_fft: int, center: bool, pad_mode: str) -> Any:
    """A batch of signals, padded so that frames are centred."""
    if center:
        half = n_fft // 2
        if pad_mode == "constant":
            return constant_pad_op(input, pad=(half, half))
        from ..value import FUNCTIONS

        pad = FUNCTIONS["nn.functional.pad"].call
        shape = tuple(input.shape)
        lifted = input.view((1,) * (3 - len(shape)) + shape)
        input = pad(lifted, (half, half), pad_mode)
        return input.view((*shape[:-1], shape[-1] + 2 * half))
    return input


@public("stft")
@full_precision
def stft(
    input: Any, n_fft: int, hop_length: Any = None, win_length: Any = None, window: Any = None,
    center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: Any = None,
    return_complex: Any = None, align_to_window: Any = None,
) -> Any:  # fmt: skip
    """stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True,
    pad_mode='reflect', normalized=False, onesided=None, return_complex=None)."""
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if input.ndim not in (1, 2):
        raise RuntimeError(f"stft({list(input.shape)}) : expected a 1D or 2D tensor")
    if input.dtype.category < FLOAT:
        raise RuntimeError("stft : expected a tensor of floating point or complex values")
    input = _prepared(input, n_fft, center, pad_mode)
    hop, width = hop_length if hop_length is not None else n_fft // 4, win_length or n_fft
    complex_ = input.dtype.is_complex or (isinstance(window, Value) and window.dtype.is_complex)
    if return_complex is None:
        if not complex_:
            raise RuntimeError("stft requires the return_complex parameter be given for real "
                               "inputs, and will further require that return_complex=True in a "
                               "future PyTorch release.")  # fmt: skip
        return_complex = True
    batch = input if input.ndim == 2 else input.unsqueeze(0)
    if align_to_window:
        left = (n_fft - width) // 2
        batch = constant_pad_op(batch, pad=(left, n_fft - width - left))
    if not 0 < n_fft <= batch.shape[-1]:
        raise RuntimeError(f"stft({list(input.shape)}, n_fft={n_fft}) : expected 0 < n_fft <= "
                           f"{batch.shape[-1]}, but got n_fft={n_fft}")  # fmt: skip
    _check_frame("stft", hop, width, n_fft, window)
    if complex_ and onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    frames = frames_op(batch, size=n_fft, step=hop)
    window = _centred(window, width, n_fft, batch)
    frames = frames if window is None else frames * window
    result = _spectra(frames, normalized, not complex_ if onesided is None else onesided)
    result = result.transpose(1, 2)
    if input.ndim == 1:
        result = unsafe_view(result, size=tuple(result.shape[1:]), squeezed=True)
    return result if return_complex else view_as_real_(result)


def _spectra(frames: Any, normalized: bool, onesided: bool) -> Any:
    normalization, dim = BY_ROOT_N if normalized else NONE, (frames.ndim - 1,)
    if frames.dtype.is_complex:
        return c2c_op(frames, dim=dim, normalization=normalization, forward=True)
    return r2c_op(frames, dim=dim, normalization=normalization, onesided=onesided)


# --- istft ---------------------------------------------------------------------------------------


def _check_envelope(x: np.ndarray) -> np.ndarray:
    if not (np.abs(x) > 1e-11).all():
        raise RuntimeError("istft : window overlap add min: 1; the window leaves gaps, where the "
                           "signal cannot be known")  # fmt: skip
    return x


envelope_check_op = define(
    "envelope_check", "self -> result", raises=True, numpy=_check_envelope, infer=lambda self: self,
    samples=drawn(((3,), {})), vjp=dict(self=lambda grad: grad),
)  # fmt: skip


def _check_spectra(input: Any, n_fft: int, onesided: bool, return_complex: bool) -> None:
    if not input.dtype.is_complex:
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from "
                           "stft with return_complex=True.")  # fmt: skip
    if input.ndim not in (2, 3):
        raise RuntimeError("istft : expected a tensor with 2 or 3 dimensions, but got "
                           f"{input.ndim}")  # fmt: skip
    if not math.prod(input.shape):
        raise RuntimeError("istft : input tensor cannot be empty.")
    have, wanted = input.shape[-2], n_fft // 2 + 1 if onesided else n_fft
    if have != wanted:
        what = "n_fft / 2 + 1 when onesided=True" if onesided else "n_fft when onesided=False"
        raise RuntimeError("istft : expected the frequency dimension (3rd to the last) of the "
                           f"input tensor to match {what}, but got {have}")  # fmt: skip
    if return_complex and onesided:
        raise RuntimeError("istft : cannot have onesided output if window or input is complex")


def _signals(spectra: Any, n_fft: int, normalized: bool, return_complex: bool) -> Any:
    """The frames of the signal: spectra stand along the last dimension."""
    normalization, dim = BY_ROOT_N if normalized else BY_N, (spectra.ndim - 1,)
    if return_complex:
        return c2c_op(spectra, dim=dim, normalization=normalization, forward=False)
    half = n_fft // 2 + 1
    if spectra.shape[-1] > half:
        spectra = spectra.narrow(-1, 0, half)
    return c2r_op(spectra, dim=dim, normalization=normalization, last_dim_size=n_fft)


@public("istft")
def istft(
    input: Any, n_fft: int, hop_length: Any = None, win_length: Any = None, window: Any = None,
    center: bool = True, normalized: bool = False, onesided: Any = None, length: Any = None,
    return_complex: bool = False,
) -> Any:  # fmt: skip
    """istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True,
    normalized=False, onesided=None, length=None, return_complex=False)."""
    if onesided is None:
        onesided = not return_complex and tuple(input.shape[-2:-1]) != (n_fft,)
    _check_spectra(input, n_fft, onesided, return_complex)
    hop, width = hop_length if hop_length is not None else n_fft // 4, win_length or n_fft
    _check_frame("istft", hop, width, n_fft, window)
    batch = input if input.ndim == 3 else input.unsqueeze(0)
    count = batch.shape[-1]
    whole = n_fft + hop * (count - 1)
    frames = _signals(batch.transpose(1, 2), n_fft, normalized, return_complex)
    window = _centred(window, width, n_fft, frames)
    window = frames.new_ones((n_fft,)) if window is None else window
    signal = overlap_add_op(frames * window, step=hop, length=whole)
    squares = (window * window).expand((1, count, n_fft))
    envelope = overlap_add_op(squares, step=hop, length=whole)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else whole - start
    kept = min(end, whole) - start
    envelope = envelope_check_op(envelope.narrow(-1, start, kept))
    signal = signal.narrow(-1, start, kept) / envelope
    signal = signal.squeeze(0) if input.ndim == 2 else signal
    if end <= whole:
        return signal
    warn("The length of signal is shorter than the length parameter. Result is being "
                  "padded with zeros in the tail. Please check your center, hop_length and window "
                  "settings")  # fmt: skip
    return constant_pad_op(signal, pad=(0, end - whole))
