"""torch.fft: discrete Fourier transforms, with gradients."""

from .ir.value import namespace as _namespace

globals().update(_namespace("fft"))
__all__ = sorted(_namespace("fft"))
