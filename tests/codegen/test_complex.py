"""Complex numbers in native code: as pairs of real ones, without the host."""

import numpy as np
import pytest
import wengert as torch
from graphs import build, check, of
from wengert.backend import compile_graph
from wengert.ir import passes
from wengert.ir.types import TensorType, complex64

EDGES = [0.0, -0.0, 1.0, -2.5, 1e-40, 3e38, -3e38, np.inf, -np.inf, np.nan]


def drawn(rng, *shape, dtype=np.complex64):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def check_native(function, *arrays, tolerance=2e-5):
    """Compiled without host calls, it computes what NumPy does; gradients too."""
    tensors = [torch.tensor(a, requires_grad=a.dtype.kind == "c") for a in arrays]

    def step(*tensors):
        results = function(*tensors)
        results = results if isinstance(results, tuple) else (results,)
        loss = sum(r.abs().sum() for r in results if r.requires_grad)
        wanted = [t for t in tensors if t.requires_grad]
        gradients = torch.autograd.grad(loss, wanted, allow_unused=True)
        return *results, *(g for g in gradients if g is not None)

    compiled = torch.compile(step)
    found = [compiled(*tensors) for _ in range(2)][1]
    assert "host" not in compiled.dump("kernels")
    for got, expected in zip(found, step(*tensors), strict=True):
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        got, expected = got.detach().numpy(), expected.detach().numpy()
        atol = tolerance * np.abs(expected).max(initial=1.0)
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=atol)


@pytest.mark.parametrize("function", [
    lambda z, w: (z + w, z - 2j * w, z * w, z / w, 1 / z, -z, z * 1.5),
    lambda z, w: (z.exp(), (z + 3).log(), z.sqrt(), z.rsqrt(), z.sin(), z.tanh(), z.tan()),
    lambda z, w: (z**3, z**-2, z ** (0.5 + 1j), z**w, z.log2(), z.sigmoid(), z.sgn()),
    lambda z, w: (z.real * w.imag, z.conj() * w, z.abs(), z.angle(), torch.polar(z.abs(), w.real)),
    lambda z, w: (torch.view_as_real(z * w).sum(-1), torch.complex(z.real, w.imag) * z),
    lambda z, w: (z.sum(), (z * w).mean(0), z.cumsum(1), z.norm(), z.any()),
    lambda z, w: (z @ w.mH, torch.einsum("ij,kj->ik", z, w), (z @ w.T).real),
    lambda z, w: (torch.cat([z, w]), z.flip(0), z[1:, ::2] * w.T[1:3, 2:3], z.index_select(
        0, torch.tensor([2, 0, 2])), z.masked_fill(w.real > 0, 1j), torch.where(z.imag > 0, z, w)),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_ops_and_their_gradients(function, dtype):
    rng = np.random.default_rng(1)
    check_native(function, drawn(rng, 3, 5, dtype=dtype), drawn(rng, 3, 5, dtype=dtype))


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (17,), (7, 13)])
def test_sizes_and_convolutions(shape):
    rng = np.random.default_rng(2)
    check_native(lambda z: (z * z.conj(), z.sum()), drawn(rng, *shape))
    if not shape:
        z, w, bias = drawn(rng, 2, 3, 9), drawn(rng, 4, 3, 3), drawn(rng, 4)
        check_native(lambda z, w, b: torch.nn.functional.conv1d(z, w, b, padding=1), z, w, bias)


@pytest.mark.parametrize("name", ["mul", "div", "exp", "log", "sqrt", "abs", "angle", "sgn"])
def test_edges_are_numpys(name):
    """Infinities, NaN and zeros of both signs, where NumPy's answer is one number."""
    parts = np.array(EDGES, np.float32)
    z = np.empty(len(parts) ** 2, np.complex64)
    z.real, z.imag = np.repeat(parts, len(parts)), np.tile(parts, len(parts))
    tensors = [torch.tensor(a) for a in ((z, z[::-1].copy()) if name in ("mul", "div") else (z,))]
    compiled = torch.compile(getattr(torch, name))
    got = [compiled(*tensors) for _ in range(2)][1].numpy()
    expected = getattr(torch, name)(*tensors).numpy()
    plain = np.isfinite(z) & (np.abs(z) < 1e30) & ((np.abs(z) > 1e-30) | (z == 0))
    if len(tensors) == 2:
        plain &= plain[::-1]
    np.testing.assert_allclose(got[plain], expected[plain], rtol=1e-5, atol=1e-6)
    if name in ("abs", "angle"):  # products that overflow depend on how they are added
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))


def test_the_host_takes_and_gives_complex_values():
    def function(z):
        spectrum = torch.fft.fft(z * 2)
        return torch.fft.ifft(spectrum * spectrum.conj()).real, spectrum

    z = torch.tensor(drawn(np.random.default_rng(3), 4, 8))
    compiled = torch.compile(function)
    for got, expected in zip([compiled(z) for _ in range(2)][1], function(z)):
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-4, atol=1e-3)


def test_inputs_are_written_in_place():
    def step(z, w):
        z.mul_(w).add_(1j)
        z.real.copy_(w.imag)
        return z.sum()

    rng = np.random.default_rng(4)
    arrays = drawn(rng, 6, 3), drawn(rng, 6, 3)
    compiled = torch.compile(step)
    for _ in range(3):
        ours, theirs = ([torch.tensor(a) for a in arrays] for _ in range(2))
        np.testing.assert_allclose(compiled(*ours).numpy(), step(*theirs).numpy(), rtol=1e-4)
        np.testing.assert_allclose(ours[0].numpy(), theirs[0].numpy(), rtol=1e-5)


def test_an_input_is_also_a_result():
    type_ = TensorType(complex64, (3, 2))
    graph = build(lambda z, x: (z, z.conj(), z.T, z * x), type_, of("float32", 3, 2))
    rng = np.random.default_rng(5)
    compiled = compile_graph(passes.optimise(graph))
    assert not compiled.host_calls
    z, x = drawn(rng, 3, 2), rng.standard_normal((3, 2)).astype("f")
    for got, expected in zip(compiled(z, x), (z, z.conj(), z.T, z * x)):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_real_kernels_are_as_before():
    check(build(lambda x: (x.exp() @ x.T).sum(0), of("float32", 5, 4)))


def test_powers_of_zero():
    exponents = torch.tensor([0j, 1 + 0j, 2 + 1j, -0.6 + 0.4j, -1 + 0j, 0.5j, 0.45 + 1.1j])
    zero = torch.zeros_like(exponents)
    for function in (torch.pow, lambda a, b: a ** (-0.5 + 1j), lambda a, b: a ** (0.5 + 1j)):
        compiled = torch.compile(function)
        for _ in range(3):
            torch.testing.assert_close(
                compiled(zero, exponents), function(zero, exponents), equal_nan=True
            )
