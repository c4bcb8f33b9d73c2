"""as_strided_ on tensors with views and history; the numbers are torch's."""

import pytest
import wengert as torch

FORMS = {"moved": ((2, 3), (4, 1), 1), "rows": ((2, 4), (4, 1), 4), "folded": ((2, 2), (1, 1), 3)}


@pytest.mark.parametrize("grad", [False, True])
def test_each_form_counts_from_where_the_memory_begins(grad):
    y = torch.arange(12.0).requires_grad_(grad) * 1
    y.as_strided_((2, 4), (4, 1), 4)
    assert y.tolist() == [[4, 5, 6, 7], [8, 9, 10, 11]]
    y.as_strided_((3, 2), (4, 2), 0)
    assert y.tolist() == [[0, 2], [4, 6], [8, 10]]
    y.as_strided_((2, 3), (4, 1), 1)
    assert y.tolist() == [[1, 2, 3], [5, 6, 7]]
    y.as_strided_((2, 2), (2, 1))
    assert y.tolist() == [[1, 2], [3, 4]]
    assert y.storage_offset() == 1


def gradient(act):
    """Of x, where y = 2 x has a flat view and a strided one; the squares of all are summed."""
    x = (torch.arange(12.0) + 1).view(3, 4).requires_grad_()
    y = x * 2
    flat, part = y.view(-1), y.as_strided((2, 2), (1, 4), 1)
    act(y, flat, part)
    (y.sum() + (flat * flat).sum() + (part * part).sum()).backward()
    return x.grad.flatten().tolist()


@pytest.mark.parametrize(("form", "expected"), [
    ("moved", [0, 34, 50, 34, 0, 98, 114, 66, 0, 0, 0, 0]),
    ("rows", [0, 0, 0, 0, 42, 98, 114, 66, 74, 82, 90, 98]),
    ("folded", [0, 0, 0, 34, 44, 98, 0, 0, 0, 0, 0, 0]),
])  # fmt: skip
def test_views_made_before(form, expected):
    assert gradient(lambda y, *views: y.as_strided_(*FORMS[form])) == expected


@pytest.mark.parametrize(("form", "expected"), [
    ("moved", [0, 294, 438, 294, 0, 870, 1014, 582, 0, 0, 0, 0]),
    ("rows", [0, 0, 0, 0, 366, 870, 1014, 582, 654, 726, 798, 870]),
])  # fmt: skip
def test_views_that_were_written_before(form, expected):
    def act(y, flat, part):
        flat.mul_(3)
        y.as_strided_(*FORMS[form])

    assert gradient(act) == expected


def test_writes_to_elements_that_share_memory_come_one_after_another():
    y = torch.arange(12.0, requires_grad=True) * 1
    y.as_strided_((2, 2), (1, 1), 3)
    y.mul_(2)
    assert y.tolist() == [[6, 16], [16, 10]]
