"""In-place changes of shape: what views of the tensor show, and their gradients."""

import pytest
import wengert as torch


@pytest.mark.parametrize("written", ["before", "after", "whole"])
@pytest.mark.parametrize("change", [
    lambda y: y.transpose_(1, 2), lambda y: y.squeeze_(), lambda y: y.squeeze_(0).t_(),
    lambda y: y.unsqueeze_(1),
])  # fmt: skip
def test_views_are_what_they_were_when_their_base_changes_its_shape(change, written):
    def loss(x, change):
        y = x * 2
        row = y[:, 1]
        if written == "before":
            row.mul_(3)
        change(y)
        if written == "after":
            row.mul_(3)
        if written == "whole":
            y.mul_(3)
        return (row * row).sum() + (y * y * y).sum()

    grads = []
    for how in (change, lambda y: y):
        x = torch.arange(12.0).reshape(1, 3, 4).requires_grad_()
        loss(x, how).backward()
        grads.append(x.grad)
    assert torch.equal(*grads)
