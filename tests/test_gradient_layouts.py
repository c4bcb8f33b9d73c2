"""Gradients of compiled functions lie in memory as eager's do: strides, and whose memory it is."""

import pytest
import wengert as torch
from wengert.nn import functional as F

SEES = []


class Seen(torch.autograd.Function):
    """Notes how a gradient lies that goes on to eager's ops."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        SEES.append(grad.stride())
        return grad


def sums(x, y):
    return (x + y).sum() + x.mean(0).sum()


def both_the_same(x, y):
    return (x + y).sum()


def expanded_rows(x, y):
    return x.sum(1) * 2 + y.mean(1)


def turned(x, y):
    return (x.t() * 3).sin().sum() + (y.t() * 2).sum()


def views_of_what_arrives(x, y):
    return torch.cat([x.t(), y.t()], 1)


def parts_of_one_memory(x, y):
    return torch.cat([x, y], 1) * 3


def products(x, y):
    return x @ y.t()


def transposed_product(x, y):
    return (x.t() @ y).t()


def layer(x, y):
    return F.linear(x.view(2, 2, 3), y).relu()


def handed_on(x, y):
    return x.clone() + y


def written_part(x, y):
    whole = x * 2
    whole[1] = y[0]
    return whole.sum(1)


BODIES = (sums, both_the_same, expanded_rows, turned, views_of_what_arrives, parts_of_one_memory,
          products, transposed_product, written_part, layer, handed_on)  # fmt: skip
LIES = {"rows": lambda x: x, "columns": lambda x: x.t().contiguous().t()}
ARRIVING = {
    "rows": torch.ones_like,
    "one_number": lambda y: torch.ones(()).expand(y.shape),
    "turned": lambda y: torch.ones(y.shape[::-1]).permute(*range(y.ndim)[::-1]),
}


def operands(k, lies="rows"):
    x = torch.arange(12.0).view(4, 3) + k
    y = torch.arange(12.0, 24.0).view(4, 3) - k
    return [LIES[lies](t).detach().requires_grad_() for t in (x, y)]


def facts(gradients, given):
    """Values and strides, which of them are one tensor, and which begin in one memory."""
    known = [*gradients, given]
    same = [[a is b for a in gradients] for b in gradients]
    together = [[a.data_ptr() == b.data_ptr() for a in known] for b in known]
    return [(g.tolist(), g.stride()) for g in gradients], same, together


@pytest.mark.parametrize("again", [False, True], ids=["", "create_graph"])
@pytest.mark.parametrize("arriving", ARRIVING)
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_gradients_that_are_asked_for(body, arriving, again):
    compiled = torch.compile(body)

    def gradients(function, inputs):
        y = function(*inputs)
        given = ARRIVING[arriving](y)
        return facts(torch.autograd.grad(y, inputs, given, create_graph=again), given)

    for k in range(4):
        for lies in LIES:
            if body is layer and lies == "columns":
                continue  # no such view
            want, got = (gradients(f, operands(k, lies)) for f in (body, compiled))
            assert want == got, (k, lies)


def test_layouts_of_what_arrives_alternate():
    compiled = torch.compile(transposed_product)
    for k in range(4):
        for arriving in ARRIVING.values():
            found = []
            for function in (transposed_product, compiled):
                inputs = operands(k)
                y = function(*inputs)
                found.append(facts(torch.autograd.grad(y, inputs, given := arriving(y)), given))
            assert found[0] == found[1]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_hooks_and_functions_before(body):
    compiled = torch.compile(body)

    def seen(function, k):
        SEES.clear()
        inputs = operands(k)
        for tensor in inputs:
            tensor.register_hook(lambda grad: SEES.append(("leaf", grad.stride())))
        between = [Seen.apply(inputs[0] * 1), inputs[1] * 1]
        between[1].register_hook(lambda grad: SEES.append(("between", grad.stride())))
        y = function(*between)
        y.register_hook(lambda grad: SEES.append(("result", grad.stride())))
        y.sum().backward()
        return SEES[:], [(t.grad.tolist(), t.grad.stride()) for t in inputs]

    for k in range(4):
        assert seen(body, k) == seen(compiled, k)


@pytest.mark.parametrize("lies", LIES)
@pytest.mark.parametrize("body", BODIES[:-2], ids=lambda body: body.__name__)
def test_fields_of_leaves(body, lies):
    compiled = torch.compile(body)

    def fields(function, k):
        inputs = operands(k, lies)
        inputs[1].register_hook(lambda grad: None)
        function(*inputs).sum().backward()
        first = [(t.grad.tolist(), t.grad.stride()) for t in inputs]
        function(*inputs).sum().backward()
        return first, [(t.grad.tolist(), t.grad.stride(), t.grad._version) for t in inputs]

    for k in range(4):
        assert fields(body, k) == fields(compiled, k)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_gradients_that_a_body_takes(body):
    def inner(x, y):
        return torch.autograd.grad(body(x, y).sum(), (x, y))

    compiled = torch.compile(inner)
    for k in range(4):
        want, got = (function(*operands(k)) for function in (inner, compiled))
        assert [(g.tolist(), g.stride()) for g in want] == [(g.tolist(), g.stride()) for g in got]


def test_writes_to_a_gradient_reach_what_arrived():
    compiled = torch.compile(handed_on)
    for _ in range(4):
        x, y = operands(0)
        given = torch.ones(4, 3)
        first, second = torch.autograd.grad(compiled(x, y), (x, y), given)
        first.mul_(5)
        assert first is second is given
        assert given.tolist() == [[5.0] * 3] * 4


def test_inverses_have_layouts_though_zeros_have_none():
    def body(x):
        return torch.linalg.inv(x.t()).t() * 2

    compiled = torch.compile(body)
    for k in range(4):
        found = []
        for function in (body, compiled):
            x = (torch.eye(3) * 2 + torch.arange(9.0).view(3, 3) / (10 + k)).requires_grad_()
            y = function(x)
            found.append(torch.autograd.grad(y, x, torch.ones(3, 3))[0])
        assert found[0].stride() == found[1].stride()
        assert torch.allclose(*found)


ODD = {
    "empty": (lambda x: x.t() * 2, lambda: torch.ones(0, 3)),
    "complex": (torch.view_as_real, lambda: torch.ones(2, 3, dtype=torch.complex64)),
    "pairs": (lambda x: torch.view_as_complex(x).t(), lambda: torch.ones(2, 3, 2)),
    "real parts": (lambda x: torch.complex(x, torch.ones(2, 3)), lambda: torch.ones(2, 3)),
    "bfloat16": (lambda x: (x.t() * 2).sum(0), lambda: torch.ones(2, 3, dtype=torch.bfloat16)),
    "branch": (lambda x: x.t() * 2 if x.sum() > 0 else x, lambda: torch.ones(2, 3)),
    "overlapping": (lambda x: x.as_strided((2, 2), (1, 1)), lambda: torch.ones(5)),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_tensors(case):
    body, make = ODD[case]
    compiled = torch.compile(body)
    for _ in range(4):
        found = []
        for function in (body, compiled):
            x = make().requires_grad_()
            y = function(x)
            (grad,) = torch.autograd.grad(y, x, torch.ones_like(y))
            found.append((grad.dtype, grad.stride(), grad.tolist()))
        assert found[0] == found[1]


def test_gradients_that_arrive_with_gaps_of_any_size():
    compiled = torch.compile(parts_of_one_memory)
    for n in range(6, 76):
        inputs = operands(n)
        given = torch.arange(4.0 * n).view(4, n)[:, :6]
        want, got = (torch.autograd.grad(function(*inputs), inputs, given)
                     for function in (parts_of_one_memory, compiled))  # fmt: skip
        assert [(g.tolist(), g.stride()) for g in want] == [(g.tolist(), g.stride()) for g in got]


def test_sizes_that_vary():
    def body(x):
        return (x.t() * 2).sum()

    compiled = torch.compile(body, dynamic=True)
    for n in (2, 3, 4, 5, 6):
        x = torch.ones(n, 3, requires_grad=True)
        want, got = (torch.autograd.grad(function(x), x)[0] for function in (body, compiled))
        assert want.stride() == got.stride() and torch.equal(want, got)
