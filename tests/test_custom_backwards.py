"""Custom Functions in compiled functions whose backward reads Python's state, which may change
between forward and backward; eager is the oracle."""

import types

import pytest
import wengert as torch
from wengert.autograd import Function

SCALE = 2.0
POWER = 2
TABLE = {"power": 2}
HELD = torch.ones(3)
CONFIG = types.SimpleNamespace(rate=0.5)


def factor():
    return SCALE * POWER


class ByGlobals(Function):
    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x)
        ctx.a, ctx.shape, ctx.dims = a, x.shape, [0]
        return x.exp() * a

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if POWER > 2:  # what was not read while it was recorded
            return g * x.cos() * ctx.a, None
        return g * factor() * ctx.a, None


class ByContext(Function):
    @staticmethod
    def forward(ctx, x, config):
        ctx.config = config
        ctx.save_for_backward(x * 0.5)
        return x.clone(), x.sin()

    @staticmethod
    def backward(ctx, g, h):
        (half,) = ctx.saved_tensors
        return (g + h * half) * ctx.config.rate, None


class ByClass(Function):
    rate = 2.0

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g * ByClass.rate


class ByItem(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g * TABLE["power"]


class ByTensor(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g * HELD


def closing(factor):
    class Closed(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y * factor

    def change(value):
        nonlocal factor
        factor = value

    return (lambda x: Closed.apply(x * 2) * 3), change


def set_scale(value):
    global SCALE
    SCALE = value


def set_power(value):
    global POWER
    POWER = int(value)


def set_item(value):
    TABLE["power"] = value


def set_class(value):
    ByClass.rate = value


def set_rate(value):
    CONFIG.rate = value


def write_held(value):
    HELD.fill_(value)


closed, set_factor = closing(2.0)
CASES = {
    "a global": (lambda x: ByGlobals.apply(x * 2, 3.0), set_scale),
    "a branch by a global": (lambda x: ByGlobals.apply(x * 2, 3.0).sin(), set_power),
    "an item": (lambda x: ByItem.apply(x * 2), set_item),
    "of its class": (lambda x: ByClass.apply(x * 2), set_class),
    "an attribute": (lambda x: sum(ByContext.apply(x * 2, CONFIG)), set_rate),
    "a closure": (closed, set_factor),
    "a tensor": (lambda x: ByTensor.apply(x * 2), write_held),
    "twice": (lambda x: ByGlobals.apply(ByGlobals.apply(x, 2.0), 3.0), set_scale),
    "beside a branch": (lambda x: ByGlobals.apply(x, 2.0) if x.sum() > 0 else x * 3, set_scale),
}
VALUES = [2.0, 2.0, 2.0, 2.0, 4.0, 2.0, 5.0, 5.0, 2.0, 2.0]


def by_backward(y, x):
    y.sum().backward()
    return x.grad.tolist()


def at_once(y, x):
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return x.grad.tolist()


def by_grad(y, x):
    return torch.autograd.grad(y.sum(), x)[0].tolist()


def second(y, x):
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    return g.tolist(), torch.autograd.grad(g.sum(), x)[0].tolist() if g.requires_grad else None


def run(fn, change, how, between):
    found = []
    for value in VALUES:
        change(2.0 if between else value)
        x = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
        y = fn(x)
        change(value)
        found.append(how(y, x))
    change(2.0)
    return found


@pytest.mark.parametrize("between", [True, False])
@pytest.mark.parametrize("how", [by_backward, at_once, by_grad])
@pytest.mark.parametrize("name", CASES)
def test_backward_reads_what_is_there_when_it_runs(name, how, between):
    body, change = CASES[name]
    wanted = run(body, change, how, between)
    assert len({*map(str, wanted)}) > 1
    found = run(torch.compile(body), change, how, between)
    torch.testing.assert_close(torch.tensor(found), torch.tensor(wanted))


@pytest.mark.parametrize("name", ["a global", "an attribute"])
def test_second_derivatives_too(name):
    body, change = CASES[name]
    wanted = run(body, change, second, True)
    found = run(torch.compile(body), change, second, True)
    for a, b in zip(found, wanted):
        torch.testing.assert_close(torch.tensor(a), torch.tensor(b))


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"an item", "a tensor"}))
def test_what_stays_is_compiled(name):
    fn = torch.compile(CASES[name][0])
    x = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
    for _ in range(4):
        fn(x).sum().backward()
    assert fn(x).grad_fn.name() == "CompiledFunctionBackward"


def test_a_tensor_from_outside_is_read_by_python():
    fn = torch.compile(CASES["a tensor"][0])
    fn(torch.ones(3, requires_grad=True))
    assert "reads a tensor from outside; save it for backward" in fn.explain()


def test_errors_of_another_state_are_eagers():
    fn = torch.compile(CASES["a global"][0])
    for _ in range(3):
        y = fn(torch.ones(3, requires_grad=True))
    set_scale("two")
    try:
        with pytest.raises(TypeError):
            y.sum().backward()
    finally:
        set_scale(2.0)


class Exponential(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class Both(Function):
    @staticmethod
    def forward(ctx, x, y):
        s, p, kept = x.sin(), x * y, x.cos()
        ctx.save_for_backward(x, p, kept, s)
        return s, p

    @staticmethod
    def backward(ctx, g, h):
        x, p, kept, s = ctx.saved_tensors
        return g * kept * s + h * p, h * x * p * s


ORDERS = {
    "one": lambda x: Exponential.apply(x * 2).sum(),
    "in a chain": lambda x: Exponential.apply(Exponential.apply(x).sin()).sum(),
    "of several": lambda x: sum((t * t).sum() for t in Both.apply(x * 2, x.exp())),
}


def derivatives(fn):
    x = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
    found, y = [], fn(x)
    for _ in range(3):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        found.append(y.tolist())
        y = y.sum()
    return torch.tensor(found)


@pytest.mark.parametrize("name", ORDERS)
def test_derivatives_of_any_order_go_through_saved_outputs(name):
    fn = torch.compile(ORDERS[name])
    for _ in range(3):
        torch.testing.assert_close(derivatives(fn), derivatives(ORDERS[name]))
    assert "trace of" in fn.explain()
