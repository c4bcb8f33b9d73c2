"""einsum, tensordot and matrix products against NumPy."""

import numpy as np
import pytest
import wengert as torch
from gradients import check

rng = np.random.default_rng(3)
EQUATIONS = {
    "ij,jk->ik": [(2, 3), (3, 4)],
    "ij,jk": [(2, 3), (3, 4)],
    "ba": [(2, 3)],
    "ii": [(3, 3)],
    "ii->i": [(3, 3)],
    "iij->j": [(3, 3, 2)],
    "...ij,...jk->...ik": [(2, 1, 3, 4), (5, 4, 2)],
    "i...,i...->...": [(3, 2, 4), (3, 4)],
    "ij->": [(2, 3)],
    "i,j->ji": [(2,), (3,)],
    "bij,bij->b": [(2, 3, 4), (2, 3, 4)],
    "ab,bc,cd,da->": [(2, 3), (3, 4), (4, 5), (5, 2)],
    "bn,anm,bm->ba": [(2, 5), (3, 5, 4), (2, 4)],
    "ij,kj->kij": [(2, 3), (4, 3)],
    "ij,j->i": [(2, 3), (1,)],
    " i j , j ->i": [(2, 3), (3,)],
    "i,i,i->i": [(3,), (3,), (3,)],
    ",i->i": [(), (3,)],
    "ij,jk->ki": [(2, 0), (0, 4)],
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation):
    arrays = [rng.standard_normal(shape) for shape in EQUATIONS[equation]]
    found = torch.einsum(equation, *map(torch.tensor, arrays))
    np.testing.assert_allclose(found.numpy(), np.einsum(equation.replace(" ", ""), *arrays),
                               rtol=1e-10, atol=1e-12)  # fmt: skip
    if all(a.size for a in arrays):
        check(lambda *xs: torch.einsum(equation, *xs), *arrays)


def test_sublists_are_another_spelling():
    a, b = torch.tensor(rng.standard_normal((2, 3))), torch.tensor(rng.standard_normal((3, 4)))
    expected = (a @ b).tolist()
    assert torch.einsum(a, [0, 1], b, [1, 2], [0, 2]).tolist() == expected
    assert torch.einsum(a, [0, 1], b, [1, 2]).tolist() == expected
    assert torch.einsum(a, [..., 1], b, [1, 2], [..., 2]).tolist() == expected
    assert torch.einsum("ij,jk", [a, b]).tolist() == expected


def test_an_order_is_chosen_by_size():
    """Left to right this chain would make a 400 x 400 x 400 table of 64 million numbers."""
    a, b, c = (rng.standard_normal(shape) for shape in ((400, 2), (400, 2), (400, 2)))
    found = torch.einsum("ax,bx,cy->xy", *map(torch.tensor, (a, b, c)))
    np.testing.assert_allclose(found.numpy(), np.outer(a.sum(0) * b.sum(0), c.sum(0)))


def test_the_result_is_never_the_operand():
    a = torch.ones(2, 2)
    assert torch.einsum("ij->ij", a) is not a


@pytest.mark.parametrize("equation, shapes, message", [
    ("ij,jk->ik", [(2, 3)], "fewer operands"),
    ("ij->ik", [(2, 3)], "does not appear in the equation"),
    ("ij->ii", [(2, 3)], "appears more than once"),
    ("ij,jk", [(2, 3), (2, 3)], "does not broadcast"),
    ("ii", [(2, 3)], "sizes don't match"),
    ("ijk", [(2, 3)], "is more than the number of dimensions"),
    ("i", [(2, 3)], "no ellipsis was given"),
    ("i.j", [(2, 3)], "not part of any ellipsis"),
    ("i1", [(2, 3)], "invalid subscript"),
])  # fmt: skip
def test_equations_that_make_no_sense(equation, shapes, message):
    with pytest.raises(RuntimeError, match=message):
        torch.einsum(equation, *[torch.ones(shape) for shape in shapes])


@pytest.mark.parametrize("dims", [0, 1, 2, ([0], [2]), ([0, 1], [1, 0]), ([-1, 0], [0, -1])])
def test_tensordot(dims):
    a, b = rng.standard_normal((3, 3, 3)), rng.standard_normal((3, 3, 3))
    found = torch.tensordot(torch.tensor(a), torch.tensor(b), dims)
    np.testing.assert_allclose(found.numpy(), np.tensordot(a, b, dims))


@pytest.mark.parametrize("left, right", [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 1, 2, 3), (4, 3, 2)),
    ((2, 0), (0, 3)), ((0, 2, 3), (3, 4)),
])  # fmt: skip
def test_matmul_in_all_shapes(left, right):
    a, b = rng.standard_normal(left), rng.standard_normal(right)
    np.testing.assert_allclose((torch.tensor(a) @ torch.tensor(b)).numpy(), a @ b, atol=1e-12)
    if a.size and b.size:
        check(torch.matmul, a, b)


def test_products_refuse_what_torch_refuses():
    a = torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        a @ a
    with pytest.raises(RuntimeError, match="same dtype"):
        a.mm(torch.ones(3, 2, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="at least 1D"):
        a @ torch.tensor(1.0)
    with pytest.raises(RuntimeError, match="expanded size"):
        torch.addmm(torch.ones(4), a, torch.ones(3, 2))


def test_beta_zero_ignores_nan():
    nan = torch.full((2, 2), float("nan"))
    assert torch.addmm(nan, torch.eye(2), torch.eye(2), beta=0).tolist() == [[1, 0], [0, 1]]
    assert torch.baddbmm(nan, torch.eye(2)[None], torch.eye(2)[None], beta=0).sum().item() == 2
