"""The first slice: ops run, record torch's nodes, and differentiate."""

import subprocess
import sys

import wengert as torch


def test_the_documents_first_example():
    x = torch.ones(2, 2, requires_grad=True)
    out = ((x + 2) * (x + 2) * 3).mean()
    assert repr(out) == "tensor(27., grad_fn=<MeanBackward0>)"
    out.backward()
    assert x.grad.tolist() == [[4.5, 4.5], [4.5, 4.5]]


def test_second_order():
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert first.tolist() == [12.0, 27.0]
    assert second.tolist() == [12.0, 18.0]


def test_writing_through_a_view_rebases_the_base():
    x = torch.ones(2, 3, requires_grad=True)
    y = x * 1
    y[0].mul_(2)
    assert type(y.grad_fn).__name__ == "CopySlices"
    y.sum().backward()
    assert x.grad.tolist() == [[2, 2, 2], [1, 1, 1]]


def test_sparse_tensors_need_no_import():
    """Where nothing else has loaded what can be done with them."""
    code = (
        "import wengert as t; assert t.equal((t.eye(2).to_sparse() * 2).to_dense(), 2 * t.eye(2))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
