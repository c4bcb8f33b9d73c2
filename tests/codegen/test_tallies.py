"""Row kernels that reduce over their rows as well: Note [Tallies] in codegen/tally.py."""

import pytest
import wengert as torch

F = torch.nn.functional
ROWS, COLUMNS = 701, 389  # more than stays in cache, and no multiple of anything


def layer_norm(x, w, b, g):
    return torch.autograd.grad(F.layer_norm(x, (COLUMNS,), w, b), (x, w, b), g)


def softmax_bias(x, w, b, g):
    return torch.autograd.grad((x + b).softmax(1), (x, b), g)


def extremes(x, w, b, g):
    y = x - x.sum(1, keepdim=True)
    return y, y.amax(0), (y * g + w).sum(0), (y > 0).sum(0)


def after_the_last_pass(x, w, b, g):
    return x.sum(1), (x * x.sum(1, keepdim=True)).sum(0)


def three_dims(x, w, b, g):
    return layer_norm(x.view(1, ROWS, COLUMNS), w, b, g.view(1, ROWS, COLUMNS))


@pytest.fixture
def arguments():
    torch.manual_seed(3)
    x, g = torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)
    w, b = torch.randn(2, COLUMNS)
    return x.requires_grad_(), w.clone().requires_grad_(), b.clone().requires_grad_(), g


@pytest.mark.parametrize("function", [layer_norm, softmax_bias, extremes, after_the_last_pass,
                                      three_dims])  # fmt: skip
def test_results_are_eagers_and_the_same_bits_for_any_threads(function, arguments):
    before = torch.get_num_threads()
    compiled = torch.compile(function)
    expected = function(*arguments)
    compiled(*arguments)
    assert " of all %" in compiled.dump("kernels")
    found = []
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            found.append(compiled(*arguments))
    finally:
        torch.set_num_threads(before)
    for a, b in zip(found[0], expected):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-3)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other))


def test_what_only_tallies_read_is_not_stored(arguments):
    x, g = arguments[0], arguments[3]
    compiled = torch.compile(lambda x, g: ((x * x.sum(1, keepdim=True) * g).sum(0), x.sum(1)))
    compiled(x.detach(), g)
    compiled(x.detach(), g)
    kernels = compiled.dump("kernels")
    arena = int(kernels[kernels.index("arena ") + 6 :].split()[0])
    assert arena < x.numel() * 4
