"""`allow_mutation_on_saved_tensors`: backward sees values as they were when they were saved."""

import pytest
import wengert as torch
from wengert.autograd.graph import allow_mutation_on_saved_tensors

WRITES = [
    lambda b: b.sin_(), lambda b: b.zero_(), lambda b: b.add_(1), lambda b: b.copy_(b * 2),
    lambda b: b.__setitem__(0, 7.0), lambda b: b[1:].mul_(3), lambda b: b.view(6)[2].fill_(4),
    lambda b: torch.add(b, 1, out=b) if not b.requires_grad else b.add_(1),
    lambda b: b.detach().neg_(),
]  # fmt: skip


@pytest.mark.parametrize("write", WRITES)
def test_values_are_copied_before_they_are_written(write):
    a = torch.arange(1.0, 7.0).reshape(2, 3).requires_grad_()
    with allow_mutation_on_saved_tensors() as saved:
        b = a.clone()
        out = (b**2).sum() + b.exp().sum() * 0 + (b * b[0]).sum()
        write(b)
        assert saved.cloned
        out.backward()
    expected = a.detach().clone().requires_grad_()
    ((expected**2).sum() + (expected * expected[0]).sum()).backward()
    torch.testing.assert_close(a.grad, expected.grad)


def test_what_is_not_written_is_not_copied():
    a = torch.ones(3, requires_grad=True)
    with allow_mutation_on_saved_tensors() as saved:
        out = (a.clone() ** 2).sum()
        torch.zeros(3).add_(1)
        assert saved.original and not saved.cloned
        out.backward()
        assert not saved.original  # the graph was freed
    assert a.grad.tolist() == [2, 2, 2]


def test_second_order_and_outputs():
    a = torch.tensor([0.5, 1.0], requires_grad=True, dtype=torch.float64)
    with allow_mutation_on_saved_tensors():
        b = a.exp()
        (grad,) = torch.autograd.grad(b.sum(), a, create_graph=True)
        b.mul_(0)
        (second,) = torch.autograd.grad(grad.sum(), a)
    torch.testing.assert_close(second, a.detach().exp())


def test_compiled_functions_keep_their_values():
    f = torch.compile(lambda x: (x * x).sin())
    a = torch.tensor([0.5, 1.0], requires_grad=True)
    for _ in range(3):
        a.grad = None
        with allow_mutation_on_saved_tensors():
            b = a.clone()
            out = f(b).sum()
            b.zero_()
            out.backward()
        torch.testing.assert_close(a.grad, (2 * a * (a * a).cos()).detach())


def test_outside_and_inside():
    a = torch.ones(2, requires_grad=True)
    with allow_mutation_on_saved_tensors():
        out = (a.clone() ** 2).sum()
        with pytest.raises(RuntimeError, match="contexts cannot be nested"):
            allow_mutation_on_saved_tensors().__enter__()
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation_on_saved_tensors'"):
        out.backward()
    b = a.clone()
    out = (b**2).sum()
    b.sin_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_the_old_value_that_a_write_itself_needs_is_kept():
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        x.clone().pow_(3).sum().backward()
    assert x.grad.tolist() == [3, 12, 27]
