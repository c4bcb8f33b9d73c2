"""torch.fft and the short-time transforms: NumPy is the oracle."""

import math

import numpy as np
import pytest
import wengert as torch
from gradients import check

rng = np.random.default_rng(5)
NORMS = (None, "ortho", "forward", "backward")


def real(*shape):
    return rng.standard_normal(shape)


def complex_(*shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def same(found, expected):
    expected = np.asarray(expected)
    assert found.numpy().dtype == expected.dtype
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [None, 3, 4, 9])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_one_dimension(name, n, norm):
    makers = {"rfft": [real], "ihfft": [real]}.get(name, [real, complex_])
    for make in makers:
        for dim in (0, -1):
            a = make(5, 6)
            found = getattr(torch.fft, name)(torch.tensor(a), n, dim, norm)
            same(found, getattr(np.fft, name)(a, n, dim, norm))
    check(lambda x: getattr(torch.fft, name)(x, n, 0, norm), makers[-1](5, 2))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("s, dim", [(None, (-2, -1)), ((3, 6), (0, 2)), ((2, 3), (2, 1))])
@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "rfftn", "irfftn"])
def test_several_dimensions(name, s, dim, norm):
    a = (real if name.startswith("r") else complex_)(3, 4, 5)
    found = getattr(torch.fft, name)(torch.tensor(a), s, dim, norm)
    same(found, getattr(np.fft, name)(a, s, dim, norm))


@pytest.mark.parametrize("dim", [(1,), (0, 1), (1, 0)])
@pytest.mark.parametrize("name", ["rfftn", "irfftn", "hfftn", "ihfftn", "fftn"])
def test_gradients_of_several_dimensions(name, dim):
    a = (real if name in ("rfftn", "ihfftn") else complex_)(4, 3)
    check(lambda x: getattr(torch.fft, name)(x, dim=dim, norm="ortho"), a)


def test_hermitian_transforms_are_inverses():
    a = torch.tensor(real(4, 6))
    same(torch.fft.hfftn(torch.fft.ihfftn(a)), a.numpy())
    same(torch.fft.hfft2(torch.fft.ihfft2(a)), a.numpy())


def test_integers_and_single_precision():
    assert torch.fft.fft(torch.arange(4)).dtype is torch.complex64
    assert torch.fft.rfft(torch.ones(4)).dtype is torch.complex64
    assert torch.fft.irfft(torch.ones(4, dtype=torch.complex64)).dtype is torch.float32


def test_frequencies_and_shifts():
    for n in (1, 4, 5):
        same(torch.fft.fftfreq(n, 0.5, dtype=torch.float64), np.fft.fftfreq(n, 0.5))
        same(torch.fft.rfftfreq(n, 0.5, dtype=torch.float64), np.fft.rfftfreq(n, 0.5))
    a = real(4, 5)
    for dim in (None, 0, (0, 1)):
        same(torch.fft.fftshift(torch.tensor(a), dim), np.fft.fftshift(a, dim))
        same(torch.fft.ifftshift(torch.tensor(a), dim), np.fft.ifftshift(a, dim))


def test_errors():
    with pytest.raises(IndexError):
        torch.fft.fft(torch.tensor(1.0))
    with pytest.raises(RuntimeError, match="Invalid number of data points"):
        torch.fft.fft(torch.ones(3), n=0)
    with pytest.raises(RuntimeError, match="Invalid normalization mode"):
        torch.fft.fft(torch.ones(3), norm="x")
    with pytest.raises(RuntimeError, match="dims must be unique"):
        torch.fft.fftn(torch.ones(3, 3), dim=(0, 0))
    with pytest.raises(RuntimeError, match="expects a real input"):
        torch.fft.rfft(torch.ones(3, dtype=torch.complex64))
    with pytest.raises(RuntimeError, match="Unsupported dtype Half"):
        torch.fft.fft(torch.ones(3, dtype=torch.float16))


# --- short-time transforms -----------------------------------------------------------------------


def frames_of(signal, size, hop):
    return np.stack([signal[k : k + size] for k in range(0, len(signal) - size + 1, hop)])


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("hop", [1, 3, 8])
def test_stft_transforms_frames(center, hop):
    signal, window = real(30), np.hanning(8) + 0.1
    found = torch.stft(torch.tensor(signal), 8, hop, window=torch.tensor(window), center=center,
                       return_complex=True)  # fmt: skip
    padded = np.pad(signal, 4, mode="reflect") if center else signal
    same(found, np.fft.rfft(frames_of(padded, 8, hop) * window).T)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("onesided", [True, False])
def test_istft_undoes_stft(normalized, onesided):
    signal = torch.tensor(real(2, 40))
    window = torch.tensor(np.hanning(6) + 0.1)
    settings = dict(n_fft=8, hop_length=2, win_length=6, window=window, normalized=normalized,
                    onesided=onesided)  # fmt: skip
    spectrum = torch.stft(signal, **settings, return_complex=True)
    same(torch.istft(spectrum, **settings, length=40), signal.numpy())


def test_short_time_gradients():
    window = np.hanning(4) + 0.2
    check(lambda x, w: torch.stft(x, 4, 2, window=w, return_complex=True), real(11), window)
    check(lambda z, w: torch.istft(z, 4, 1, window=w), complex_(2, 3, 6), window)


def test_windows_must_overlap():
    spectrum = torch.ones(3, 5, dtype=torch.complex64)
    with pytest.raises(RuntimeError, match="window overlap add min"):
        torch.istft(spectrum, 4, window=torch.zeros(4))
    with pytest.raises(RuntimeError, match="return_complex parameter be given"):
        torch.stft(torch.ones(10), 4)
    assert math.isclose(torch.stft(torch.ones(10), 4, return_complex=True)[0, 0].real.item(), 4)
