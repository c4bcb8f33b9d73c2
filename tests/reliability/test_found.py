"""Faults that the fuzzer found, each as the small program it was reduced to.

A program is run eagerly and compiled, several times; results, gradients and inputs must agree.
"""

import pytest
import wengert as torch


def outcome(function, arguments):
    """Results, inputs afterwards and gradients of one call."""
    results = function(*arguments)
    results = results if isinstance(results, (list, tuple)) else [results]
    roots = [r for r in results if r.requires_grad]
    torch.autograd.backward(roots, [torch.ones_like(r) for r in roots])
    tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
    return [r.detach() for r in results], tensors, [t.grad for t in tensors]


def assert_same(eager, compiled):
    for group_a, group_b in zip(eager, compiled):
        for a, b in zip(group_a, group_b):
            assert (a is None) == (b is None), "a gradient on one side only"
            if a is not None:
                assert (a.dtype, a.shape) == (b.dtype, b.shape)
                assert torch.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True), (a, b)


def check(function, make, monkeypatch, calls=3):
    """Eager and compiled agree on `calls` calls with the arguments that `make` gives."""
    monkeypatch.setenv("WENGERT_STRICT", "1")
    for backend in ("interpreter", "llvm"):
        monkeypatch.setenv("WENGERT_BACKEND", backend)
        compiled = torch.compile(function)
        for _ in range(calls):
            assert_same(outcome(function, make()), outcome(compiled, make()))


def leaf(*shape, dtype=torch.float32):
    torch.manual_seed(0)
    return torch.randn(*shape).to(dtype).requires_grad_()


def test_no_gradient_where_none_arrives(monkeypatch):
    def program(x, y):
        x[..., ::2]
        return y.exp()

    check(program, lambda: [leaf(3), leaf(2)], monkeypatch)


def test_inplace_refuses_what_the_function_refuses():
    with pytest.raises(TypeError, match="must be Tensor, not float"):
        torch.ones(2).atan2_(0.5)
