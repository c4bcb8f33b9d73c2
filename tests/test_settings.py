"""compile(numerics="strict", threads=...)."""

import numpy as np
import pytest
import wengert as torch
import wengert.nn.functional as F
from wengert.ir.op import TABLE
from wengert.runtime import threads as pool


def bits(tensor):
    return tensor.detach().numpy().tobytes()


def takes(op, count):
    """Does the op take so many float tensors and nothing else?"""
    x = torch.rand(3) + 0.25
    try:
        return len(op.inputs) == count and op(*[x] * count).dtype is torch.float32
    except Exception:
        return False


def pointwise(count):
    return [op for op in TABLE.values()
            if op.kind == "pointwise" and op.variadic is None and takes(op, count)]  # fmt: skip


@pytest.mark.parametrize("size", [37, 70_000])  # eager has other kernels for large tensors
def test_strict_pointwise_results_are_eagers_bits(size):
    unary, binary = pointwise(1), pointwise(2)
    assert len(unary) > 40 and len(binary) > 15

    def everything(x, y):
        chain = torch.exp(-x * x) * torch.sin(y) + x * 0.3 - y / 7
        more = [F.gelu(x), F.softplus(x), x**2.5, torch.addcmul(x, y, chain, value=0.3),
                F.smooth_l1_loss(x, y, reduction="none", beta=0.3), F.glu(torch.cat([x, y])),
                F.binary_cross_entropy_with_logits(x, y, reduction="none")]  # fmt: skip
        return [*(op(x) for op in unary), *(op(x, y) for op in binary), chain * x + y, *more]

    generator = np.random.default_rng(0)
    x, y = (torch.tensor(generator.uniform(0.1, 0.9, size).astype(np.float32)) for _ in range(2))
    compiled = torch.compile(everything, numerics="strict")
    compiled(x, y)
    names = [op.name for op in (*unary, *binary)] + ["chain", "gelu", "softplus", "pow", "addcmul"]
    names += ["smooth_l1_loss", "glu", "binary_cross_entropy"]
    found = compiled(x, y)
    assert "replayed 1 times" in compiled.explain(), compiled.explain()
    for name, got, want in zip(names, found, everything(x, y), strict=True):
        assert bits(got) == bits(want), name


def test_strict_gradients_and_segments_are_eagers_bits():
    def body(x, look):
        y = torch.tanh(x * 1.3) * torch.exp(-x)
        if look and float(y.sum()) > 1e9:
            y = y * 2
        return y * x

    compiled = torch.compile(body, numerics="strict")
    for look in (False, True):
        for _ in range(3):
            grads = []
            for function in (body, compiled):
                x = torch.linspace(-2, 2, 41).requires_grad_()
                y = function(x, look)
                y.backward(torch.ones(41))
                grads.append((bits(y), bits(x.grad)))
            assert grads[0] == grads[1]
    assert compiled.body.windows


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_strict_operands_beside_complex_ones(dtype, monkeypatch):
    def body(x, z):
        return x * z, x + z, z - x, x / z, x == z, x**z, x * 2j

    monkeypatch.setenv("WENGERT_STRICT", "1")
    compiled = torch.compile(body, numerics="strict")
    x, z = torch.linspace(1, 3, 5).to(dtype), torch.complex(torch.ones(5), torch.linspace(-1, 1, 5))
    for _ in range(4):
        for found, expected in zip(compiled(x, z), body(x, z), strict=True):
            assert found.dtype is expected.dtype and torch.equal(found, expected)


def test_threads_are_those_asked_for():
    seen = []
    x = torch.randn(400, 300)
    results = []
    for count in (1, 2):
        compiled = torch.compile(lambda x: (x * 2).exp().sum(1), threads=count)
        compiled(x)
        compiled(x)  # loads what the first call recorded
        executor = compiled.latest().root.function.plain()
        run = executor.direct
        executor.direct = lambda *arrays, run=run: (seen.append(pool.get_num_threads()),
                                                    run(*arrays))[1]  # fmt: skip
        before = pool.get_num_threads()
        results.append(bits(compiled(x)))
        assert pool.get_num_threads() == before
    assert seen == [1, 2] and results[0] == results[1]


def test_options_are_checked():
    with pytest.raises(ValueError, match="numerics must be"):
        torch.compile(lambda x: x, numerics="fast")
    with pytest.raises(ValueError, match="positive integer"):
        torch.compile(lambda x: x, threads=0)


HALVES = {
    "numbers": lambda x, y, s: (x * 2.7 + 0.1) / 3 - (0.3 - x),
    "run-time numbers": lambda x, y, s: (x * s + y) / (s * 2) - s,
    "chains": lambda x, y, s: ((x * 1.1 + y * 0.3) / 1.7 - 0.2).tanh(),
    "other tensors": lambda x, y, s: x * torch.tensor(0.1) + y[0] * 0.7,
    "in place": lambda x, y, s: x.clone().mul_(0.3).add_(y, alpha=0.7).fmod_(0.9),
    "choices": lambda x, y, s: torch.where(x > 0.1, torch.maximum(x * 0.3, y), x.clamp(-0.33, 0.7)),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("body", HALVES.values(), ids=HALVES.keys())
def test_strict_halves_take_numbers_as_eager_does(body, dtype):
    x, y = (torch.linspace(*ends, 300).to(dtype) for ends in ((-3, 3), (2, -1)))
    compiled = torch.compile(body, numerics="strict")
    for number in (0.37, 0.1, 2.9):
        expected = body(x, y, number)
        found = compiled(x, y, number)
        assert found.dtype is dtype and torch.equal(found, expected)
