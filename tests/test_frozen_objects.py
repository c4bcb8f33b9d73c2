"""Objects that `gc.freeze()` has set aside: what compiled bodies put there is Python's own, and
views of tensors among them are found."""

import gc

import wengert as torch

LOG = []


def test_numbers_left_in_lists():
    def body(x, s):
        LOG.append(s * 2)
        return x * s

    LOG.clear()
    gc.freeze()
    compiled = torch.compile(body)
    for k in range(5):
        assert compiled(torch.ones(2), 0.5 + k).tolist() == [0.5 + k] * 2
    assert LOG == [1.0, 3.0, 5.0, 7.0, 9.0] and {*map(type, LOG)} == {float}


def test_containers_that_are_kept():
    def body(box, s):
        LOG.append(box)
        return box[0] * s

    LOG.clear()
    box = [torch.ones(2), 3.0]
    gc.freeze()
    compiled = torch.compile(body)
    for k in range(5):
        compiled(box, 0.5 + k)
    assert [kept is box for kept in LOG] == [True] * 5
    assert type(box[1]) is float


def test_views_of_what_is_turned():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 1.0
    row = y[0]
    gc.freeze()
    y.t_()
    row.mul_(2.0)
    y.sum().backward()
    assert x.grad.tolist() == [[2.0] * 3, [1.0] * 3]
