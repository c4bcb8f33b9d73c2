"""Elementwise semantics that the catalogue walk does not see: promotion, numbers, NaN, errors."""

import math

import pytest
import wengert as torch

NAN, INF = math.nan, math.inf


def gradients(function, *values, dtype=torch.float64):
    leaves = [torch.tensor(v, dtype=dtype, requires_grad=True) for v in values]
    function(*leaves).sum().backward()
    return [leaf.grad.tolist() for leaf in leaves]


@pytest.mark.parametrize(("call", "dtype"), [
    ("torch.ldexp(f16, i64)", "float16"), ("torch.copysign(i64, -1)", "float32"),
    ("torch.float_power(f32, 2)", "float64"), ("torch.float_power(i64, 2j)", "complex128"),
    ("torch.xlogy(i64, i64)", "float32"), ("torch.addcmul(i64, f32, i64)", "float32"),
    ("torch.heaviside(i64, i64)", "int64"), ("torch.add(2, 3)", "int64"),
    ("torch.floor_divide(7.0, 2)", "float32"), ("f16 * 2.5", "float16"),
    ("f16[0] * 2.5", "float16"),
    ("i64.bfloat16()", "bfloat16"), ("torch.angle(i64)", "float32"), ("c64.angle()", "float32"),
    ("torch.clamp(i64, 0.5)", "float32"), ("torch.gcd(i64, i64.int())", "int64"),
    ("b ** True", "bool"), ("i64.isposinf()", "bool"), ("torch.polygamma(1, i64)", "float32"),
])  # fmt: skip
def test_result_types(call, dtype):
    names = {
        "torch": torch, "f16": torch.ones(2, dtype=torch.float16), "f32": torch.ones(2),
        "i64": torch.tensor([1, 2]), "c64": torch.tensor([1j]), "b": torch.tensor([True]),
    }  # fmt: skip
    assert eval(call, names).dtype is getattr(torch, dtype)


@pytest.mark.parametrize(("call", "error"), [
    ("torch.atan2(x, 2.0)", TypeError), ("torch.eq(2, x)", TypeError),
    ("torch.logical_and(x, 1)", TypeError), ("torch.maximum(x, 1)", TypeError),
    ("torch.clamp(x, 0, x)", TypeError), ("torch.exp(2.0)", TypeError),
    ("x.bool() - 1", RuntimeError), ("x - True", RuntimeError), ("-x.bool()", RuntimeError),
    ("+x.bool()", RuntimeError), ("torch.heaviside(x, x.double())", RuntimeError),
    ("torch.lerp(x, x.double(), 0.5)", RuntimeError),
    ("torch.complex(x, x.double())", RuntimeError),
    ("torch.addcdiv(x.int(), x.int(), x.int())", RuntimeError),
    ("torch.frexp(x.int())", RuntimeError),
    ("x.int().lgamma_()", RuntimeError), ("x.float_power_(2)", RuntimeError),
    ("torch.floor(x + 1j)", NotImplementedError), ("torch.sign(x + 1j)", NotImplementedError),
    ("(x + 1j) < x", NotImplementedError), ("torch.bitwise_not(x)", NotImplementedError),
    ("torch.imag(x)", RuntimeError), ("torch.view_as_real(x)", RuntimeError),
    ("x.int() // 0", RuntimeError), ("x.int() ** -1", RuntimeError),
])  # fmt: skip
def test_errors(call, error):
    with pytest.raises(error):
        eval(call, {"torch": torch, "x": torch.ones(3)})


def test_ties_and_nan():
    assert gradients(torch.maximum, [1.0, NAN, 2.0], [1.0, 1.0, 3.0]) == [
        [0.5, 1, 0], [0.5, 1, 1]]  # fmt: skip
    assert gradients(torch.fmax, [1.0, NAN, 1.0], [1.0, 1.0, NAN]) == [[1, 0, 1], [0, 1, 0]]
    assert gradients(torch.clamp_min, [NAN, 1.0, 0.0], [1.0, 1.0, 1.0]) == [[0, 1, 0], [0, 0, 1]]
    assert gradients(torch.nextafter, [1.0, 1.0], [1.0, 2.0]) == [[0, 1], [0, 0]]
    assert gradients(torch.copysign, [0.0, 2.0], [-1.0, -1.0]) == [[0, -1], [0, 0]]
    assert gradients(torch.nan_to_num, [NAN, INF, 1.0]) == [[0, 0, 1]]
    assert gradients(torch.atan2, [0.0], [0.0]) == [[0], [0]]
    assert gradients(torch.special.i1, [0.0, NAN]) == [[0.5, 0.5]]
    assert gradients(torch.sinc, [0.0]) == [[0]]
    assert gradients(lambda x: torch.pow(x, 0), [0.0, INF]) == [[0, 0]]


def test_shifts_beyond_the_width():
    x, count = torch.tensor([1, 2, -8]), torch.tensor([64, -1, 70])
    assert (x << count).tolist() == [0, 0, 0]
    assert (x >> count).tolist() == [0, 0, -1]


def test_nodes_have_torchs_names():
    x = torch.tensor([0.5], requires_grad=True)
    found = [x.clamp(0), x.clamp(x, x), x.clamp_max(1), x.clamp_min(x), x.round(decimals=1),
             torch.lerp(x, x, 0.5), torch.lerp(x, x, x), x.fmod(2), x.fmod(x), 2 - x, 2**x,
             x.deg2rad(), x.copysign(-1.0), x.div(x, rounding_mode="floor")]  # fmt: skip
    assert [type(y.grad_fn).__name__.replace("Backward", "") for y in found] == [
        "Clamp1", "Clamp0", "ClampMax0", "ClampMin1", "Round1", "Lerp0", "Lerp1", "Fmod0", "Fmod1",
        "Rsub1", "Pow2", "Deg2Rad0", "Copysign1", "Div2"]  # fmt: skip


def test_parts_of_complex_numbers_are_views():
    z = torch.tensor([1 + 2j, 3 - 1j])
    z.real.mul_(10)
    z.imag = torch.tensor([5.0, 6.0])
    assert z.tolist() == [10 + 5j, 30 + 6j]
    pairs = torch.zeros(2, 2)
    torch.view_as_complex(pairs).add_(1 + 2j)
    assert pairs.tolist() == [[1, 2], [1, 2]]


def test_gradients_of_pairs_come_in_any_layout():
    # the gradient of `turned` reaches view_as_real transposed, and again when rules are written out
    pairs = torch.arange(12.0).view(3, 2, 2).requires_grad_()
    turn = torch.tensor([1j, 2.0])
    for call in range(1, 6):
        turned = torch.view_as_real(torch.view_as_complex(pairs) * turn)
        (turned.permute(2, 0, 1) * torch.arange(12.0).view(2, 3, 2)).sum().backward()
        assert pairs.grad[1].tolist() == [[8.0 * call, -2.0 * call], [6.0 * call, 18.0 * call]]


def test_conjugates():
    z = torch.tensor([[1 + 2j, 3j]], requires_grad=True)
    assert z.conj().is_conj() and not z.conj().resolve_conj().is_conj()
    assert not z.conj().conj().is_conj()
    assert z.mH.shape == (2, 1) and z.H.tolist() == [[1 - 2j], [-3j]]
    assert z.real.grad_fn.name() == "SelectBackward0"
    (z.conj() * z).real.sum().backward()
    assert z.grad.tolist() == [[2 + 4j, 6j]]
    x = torch.ones(2)
    assert x.conj() is x and x.real is x and x.resolve_conj() is x


def test_gradients_of_complex_functions_are_conjugated():
    z = torch.tensor([0.4 + 1j, 0.7 - 2j], dtype=torch.complex128, requires_grad=True)
    (grad,) = torch.autograd.grad(z.angle().sum(), z)
    assert grad.tolist() == pytest.approx([-0.8620689655 + 0.3448275862j, 0.4454342984
                                           + 0.1559020045j])  # fmt: skip
    (grad,) = torch.autograd.grad(z.abs().sum(), z)
    assert grad.tolist() == pytest.approx([v / abs(v) for v in z.tolist()])


# What torch gives for x = [1.7, 3.3] in float16 and bfloat16, y and z = 0.30012 (tensor, number)
BESIDE_HALVES = {
    "x * y": ([0.51025390625, 0.99072265625], [0.51171875, 0.98828125]),
    "y * x": ([0.51025390625, 0.990234375], [0.51171875, 0.9921875]),
    "x / y": ([5.6640625, 11.0], [5.6875, 11.0]),
    "x + y": ([2.0, 3.6015625], [2.0, 3.59375]),
    "x - y": ([1.400390625, 3.0], [1.40625, 3.0]),
    "x + z": ([2.0, 3.6015625], [2.0, 3.59375]),
    "x * z": ([0.51025390625, 0.99072265625], [0.51171875, 0.98828125]),
    "z * x": ([0.51025390625, 0.99072265625], [0.51171875, 0.98828125]),
    "z / x": ([0.1766357421875, 0.0909423828125], [0.17578125, 0.0908203125]),
}


@pytest.mark.parametrize("numerics", ["eager", "default", "strict"])
@pytest.mark.parametrize("text", BESIDE_HALVES)
def test_numbers_beside_halves(text, numerics):
    function = eval(f"lambda x, y, z: {text}")
    if numerics != "eager":
        function = torch.compile(function, numerics=numerics)
    for dtype, expected in zip((torch.float16, torch.bfloat16), BESIDE_HALVES[text]):
        x = torch.tensor([1.7, 3.3], dtype=dtype)
        for _ in range(2):
            assert function(x, torch.tensor(0.30012), 0.30012).tolist() == expected


@pytest.mark.parametrize(("x", "words"), [
    (torch.ones(2), "For non-complex input tensors"), (torch.ones(2).long(), "For integral input"),
    (torch.ones(2).bool(), "For integral input"),
])  # fmt: skip
def test_complex_factors_need_complex_tensors(x, words):
    with pytest.raises(RuntimeError, match=words):
        torch.add(x, x, alpha=1j)
    z = torch.complex(torch.ones(2), torch.zeros(2))
    assert torch.add(z, z, alpha=1j).tolist() == [1 + 1j] * 2
