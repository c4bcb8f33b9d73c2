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


PROGRAMS = {
    "a bool is true unless zero": (
        lambda x: x.logical_or(x).masked_fill(x > 9, 0.5).logical_and(torch.full((3,), True)),
        lambda: [torch.arange(3)]),
    "a bool filled with a half": (
        lambda x: torch.nn.functional.pad(x > 1, (0, 2), value=0.5), lambda: [torch.arange(3)]),
    "signs of halves that were doubles or integers": (
        lambda x: (x.half().atan(), x.half().copysign(x.half()), x.long().half().atan()),
        lambda: [torch.linspace(-3, 3, 5, dtype=torch.float64)]),
    "logsumexp of nothing": (lambda x: x.logsumexp(0), lambda: [torch.empty(0)]),
    "logsumexp of complex numbers": (
        lambda x: x.logsumexp(0), lambda: [torch.tensor([-20 + 9j, 1 + 20j], requires_grad=True)]),
    "numbers that do not fit the dtype": (
        lambda x: [x / -1, x < -1, x + -1],
        lambda: [torch.tensor([1, 7], dtype=torch.uint8)]),
    "a reduction of a constant": (
        lambda x: x.unsqueeze(-1).expand(8, 3).angle(), lambda: [leaf(8)]),
    "a complex copy of a view": (lambda x: x.tile(2), lambda: [leaf(2, dtype=torch.complex64)]),
    "an uninteresting argument": (lambda x, y: [x[..., ::2].detach(), y.exp()],
                                  lambda: [leaf(3), leaf(2)]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, monkeypatch):
    check(*PROGRAMS[name], monkeypatch)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_results_on_one_memory_keep_their_own_history(order, monkeypatch):
    def program(x):
        y = x * 2
        results = [y, y.data, y.detach()]
        return [results[k] for k in order]

    check(program, lambda: [leaf(3)], monkeypatch)
    compiled = torch.compile(program)
    for _ in range(3):
        results = compiled(leaf(3))
    assert [r.requires_grad for r in results] == [k == 0 for k in order]


@pytest.mark.parametrize("view", [torch.clone, torch.atleast_1d, torch.atleast_2d])
@pytest.mark.parametrize("name", ["eq", "gt", "le", "logical_not"])
def test_history_of_comparisons_in_place(name, view, monkeypatch):
    def program(x):
        y = view(x * 2)
        getattr(y, name + "_")(*([] if name == "logical_not" else [x]))
        return y

    check(program, lambda: [leaf(3)], monkeypatch)
    x = leaf(3)
    program(x).sum().backward()
    # torch sees a comparison in place, of slope zero, and does not see logic in place
    assert x.grad.tolist() == [2.0 if name == "logical_not" else 0.0] * 3


def test_a_write_through_an_expanded_view_runs_eagerly():
    def program(x):
        x.unsqueeze(-1).expand(2, 3)[..., 0].add_(1)
        return x * 2

    compiled, x = torch.compile(program), torch.zeros(2)
    assert [compiled(x).tolist() for _ in range(3)] == [[2.0, 2.0], [4.0, 4.0], [6.0, 6.0]]
    assert "writing through this view" in compiled.explain()


OVERLAPS = [
    lambda x: x[1:].add_(x[:-1]), lambda x: x.view(-1)[1:].copy_(x.view(-1)[:-1]),
    lambda x: x.mT.copy_(x), lambda x: x.add_(x[0]),
]  # fmt: skip


@pytest.mark.parametrize("write", OVERLAPS)
def test_writes_may_not_overlap_what_they_read(write):
    x = torch.arange(9.0).view(3, 3)
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to"):
        write(x)
    assert x.flatten().tolist() == list(range(9))


def test_copying_back_is_a_write(monkeypatch):
    def program(x):
        x.t()[0].add_(1)
        x.copy_(x.clone().mT)
        x[:, ::2].copy_(x[:, ::2])
        return x

    check(program, lambda: [torch.arange(9.0).view(3, 3)], monkeypatch)


def test_inplace_refuses_what_the_function_refuses():
    with pytest.raises(TypeError, match="must be Tensor, not float"):
        torch.ones(2).atan2_(0.5)


@pytest.mark.parametrize("size", [1, 5])
def test_elements_of_an_index_of_a_maximum(size, monkeypatch):
    def program(x):
        return x.max(-1).indices[[0, -1]]

    check(program, lambda: [torch.arange(3 * size).view(size, 3) % 4], monkeypatch)


def test_backward_of_a_power_of_a_run_time_number(monkeypatch):
    def program(x, exponent):
        return x**exponent

    for exponent in (1.125, 0.0, 2.0):
        check(program, lambda: [leaf(3), exponent], monkeypatch)  # noqa: B023


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_run_time_number_beside_one_element(dtype, monkeypatch):
    """A number never widens a tensor, however few dimensions that has."""

    def program(x, number):
        return number + x, x / number, x.clamp(number)

    check(program, lambda: [torch.tensor(1.5, dtype=dtype), 0.5], monkeypatch)


def test_pieces_of_nothing_are_none_however_often():
    for _ in range(8):
        assert torch.empty(0).unbind() == ()
        with pytest.raises(RuntimeError, match="non-empty TensorList"):
            torch.hstack(torch.empty(0))


def test_branches_of_a_function_without_arguments(monkeypatch):
    x = torch.tensor([1.0, -2.0])

    def program():
        return x.relu() if (x > 0).any() else x - 1

    check(program, list, monkeypatch, calls=5)


def test_calls_without_ops_however_often():
    transform = torch.distributions.AffineTransform(torch.zeros(2), torch.ones(2))
    for _ in range(8):
        assert tuple(transform.forward_shape((1,))) == (2,)


def test_strides_that_show_memory_beside_the_elements():
    """The graph's input is the tensor, so what lies beside it cannot be read from there."""
    function = torch.compile(lambda x: x.as_strided((2,), (1,), 0).sin())
    for first in range(1, 4):
        x = torch.arange(float(first), first + 4).reshape(2, 2)[:, 0]
        assert torch.equal(function(x), torch.tensor([first, first + 1.0]).sin())


@pytest.mark.parametrize("name", ["fmod", "mul", "atan2", "remainder"])
def test_a_write_of_a_wider_result_saves_the_value_before_it(name):
    def gradient(inplace):
        x = leaf(3)
        y = x * 2
        wide = y.double()
        (getattr(y, f"{name}_")(wide) if inplace else getattr(y, name)(wide)).sum().backward()
        return x.grad

    assert torch.equal(gradient(True), gradient(False))


def test_a_view_that_is_stored_for_a_later_reader():
    """A call of the host reads the copy as well, so it comes after it."""

    def body(x):
        view = x.select(2, 0)
        made = torch.igammac(view, view.atan() * 0.75 + 1.75)
        return view.sort(-1).values, made

    function = torch.compile(body)
    for first in range(1, 5):
        x = torch.arange(float(first), first + 4).reshape(1, 2, 2, 1)
        for found, expected in zip(function(x), body(x)):
            assert torch.allclose(found, expected, atol=1e-5)
