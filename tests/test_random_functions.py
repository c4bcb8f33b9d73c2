"""Random functions of tensors and windows: torch's numbers for a seed, its nodes and errors."""

import numpy as np
import pytest
import wengert as torch

DRAWS = [
    ("torch.bernoulli(torch.full((6,), 0.4))", [0.0, 1.0, 0.0, 0.0, 1.0, 0.0]),
    ("torch.empty(6).bernoulli_(0.3)", [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]),
    ("torch.empty(4).exponential_(2.0)", [0.163822, 0.159892, 0.990588, 0.534558]),
    ("torch.empty(4).cauchy_(1.0, 2.0)", [-0.661112, -0.722406, 5.323784, 2.072567]),
    ("torch.empty(4).log_normal_(0.5, 0.25)", [1.589312, 2.006788, 2.089042, 1.24784]),
    ("torch.empty(5).geometric_(0.3)", [4.0, 4.0, 1.0, 2.0, 1.0]),
    ("torch.empty(5, dtype=torch.int64).random_(2, 9)", [7, 8, 8, 3, 3]),
    ("torch.multinomial(torch.tensor([0.1, 0.2, 0.7]), 2)", [1, 2]),
    ("torch.multinomial(torch.tensor([0.1, 0.2, 0.7]), 6, replacement=True)", [1, 1, 2, 2, 2, 2]),
    ("torch.normal(torch.tensor([1.0, 5.0]), torch.tensor([0.5, 2.0]))", [0.926602, 6.572283]),
    ("torch.normal(2.0, torch.tensor([0.5, 2.0]))", [1.926602, 3.572283]),
    ("torch.poisson(torch.tensor([0.5, 4.0, 30.0]))", [0.0, 7.0, 34.0]),
    ("torch.binomial(torch.tensor([10.0, 40.0]), torch.tensor([0.2, 0.6]))", [1.0, 20.0]),
    (
        "torch.empty(10, 2).t().normal_()",
        [
            -0.146795,
            0.946822,
            1.69079,
            -0.355625,
            0.138173,
            0.317678,
            0.137324,
            1.395451,
            2.438208,
            2.450541,
            0.786141,
            -1.114344,
            -0.894828,
            1.232386,
            -1.682199,
            0.132807,
            0.240546,
            1.347023,
            0.202758,
            2.025602,
        ],
    ),
    (
        "torch.rand_like(torch.empty(2, 3).t())",
        [0.534923, 0.65689, 0.198803, 0.232762, 0.659212, 0.425061],
    ),
]
WINDOWS = [
    ("torch.hann_window(5)", [0.0, 0.345492, 0.904508, 0.904508, 0.345491]),
    ("torch.hamming_window(4, False)", [0.08, 0.77, 0.77, 0.08]),
    ("torch.kaiser_window(5)", [5.3e-05, 0.10172, 0.792939, 0.792939, 0.10172]),
    ("torch.bartlett_window(5)", [0.0, 0.4, 0.8, 0.8, 0.4]),
    ("torch.blackman_window(4)", [-0.0, 0.34, 1.0, 0.34]),
    ("torch.signal.windows.nuttall(4)", [0.000363, 0.52923, 0.52923, 0.000363]),
    (
        "torch.signal.windows.exponential(4, sym=False, center=1.0)",
        [0.367879, 1.0, 0.367879, 0.135335],
    ),
    ("torch.signal.windows.gaussian(4, std=2.0)", [0.75484, 0.969233, 0.969233, 0.75484]),
    ("torch.signal.windows.cosine(3)", [0.5, 1.0, 0.5]),
]


@pytest.mark.parametrize(("call", "expected"), DRAWS + WINDOWS)
def test_numbers_are_torchs(call, expected):
    torch.manual_seed(7)
    found = eval(call, {"torch": torch}).flatten().tolist()
    assert found == pytest.approx(expected, abs=2e-6)


def test_a_generator_of_ones_own():
    own = torch.Generator().manual_seed(7)
    before = torch.get_rng_state()
    first = torch.bernoulli(torch.full((20,), 0.5), generator=own)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(7)
    assert torch.equal(first, torch.bernoulli(torch.full((20,), 0.5)))


def test_draws_stay_in_the_graph_with_zero_gradients():
    x = torch.tensor([0.3, 0.6], requires_grad=True)
    drawn = [torch.bernoulli(x), torch.poisson(x), torch.normal(x, x), torch.normal(x, 1.0),
             (x * 1).uniform_(), (x * 1).random_(3), (x * 1).bernoulli_(0.5)]  # fmt: skip
    assert [type(y.grad_fn).__name__ for y in drawn] == [
        "BernoulliBackward0", "PoissonBackward0", "NormalBackward3", "NormalBackward1",
        "UniformBackward0", "RandomBackward1", "BernoulliBackward2"]  # fmt: skip
    for y in drawn:
        (grad,) = torch.autograd.grad(y.sum(), x)
        assert grad.tolist() == [0, 0]
    assert not torch.bernoulli(x.detach()).requires_grad


def test_recorded_as_ops():
    seen = []
    from wengert.ir.bind import interpreting, state

    below = state.top

    def watch(op, inputs, attrs):
        seen.append((op.name, attrs.get("distribution")))
        return below(op, inputs, attrs)

    with interpreting(watch):
        torch.rand(3)
        torch.empty(2).cauchy_()
        torch.multinomial(torch.ones(3), 1)
    assert [s for s in seen if s[0] == "draw"] == [
        ("draw", "uniform"), ("draw", "cauchy"), ("draw", "multinomial")]  # fmt: skip


@pytest.mark.parametrize(("call", "error"), [
    ("torch.empty(3).bernoulli_(1.5)", RuntimeError),
    ("torch.bernoulli(torch.tensor([1.5]))", RuntimeError),
    ("torch.empty(3).random_(5, 2)", RuntimeError),
    ("torch.empty(3, dtype=torch.int64).exponential_()", RuntimeError),
    ("torch.empty(3).geometric_(0.0)", RuntimeError),
    ("torch.multinomial(torch.ones(3), 4)", RuntimeError),
    ("torch.multinomial(torch.ones(3, dtype=torch.int64), 1)", RuntimeError),
    ("torch.normal(1.0, torch.tensor([1.0, -2.0]))", RuntimeError),
    ("torch.poisson(torch.tensor([-1.0]))", RuntimeError),
    ("torch.binomial(torch.tensor([3]), torch.tensor([0.5]))", ValueError),
    ("torch.rand(2, dtype=torch.int64)", NotImplementedError),
    ("torch.hann_window(-1)", RuntimeError),
    ("torch.signal.windows.hann(-1)", ValueError),
    ("torch.signal.windows.kaiser(3, beta=-1.0)", ValueError),
    ("torch.signal.windows.exponential(3, center=1.0)", ValueError),
])  # fmt: skip
def test_errors(call, error):
    with pytest.raises(error):
        eval(call, {"torch": torch})


def test_half_precision_is_rounded_once():
    torch.manual_seed(0)
    wide = torch.empty(8).uniform_()
    torch.manual_seed(0)
    half = torch.empty(8, dtype=torch.float16).uniform_()
    assert half.dtype is torch.float16
    assert np.abs(half.float().numpy() - wide.numpy()).max() < 1e-3


def test_compiled_fills_of_parts_are_eagers():
    def fill(x):
        x[:, :2].normal_()
        x.t()[:, ::2].uniform_()
        return x * 1.0

    found = []
    for function in (fill, *[torch.compile(fill)] * 3):
        torch.manual_seed(0)
        found.append(function(torch.zeros(20, 3)))
    assert all(torch.equal(found[0], other) for other in found[1:])
