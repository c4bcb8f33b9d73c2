"""Functions that look at the elements they are given do so at each call of a compiled function."""

import pytest
import wengert as torch
import wengert.nn.functional as F
from wengert import nn

ROWS = torch.eye(3)
# a body, arguments that are right, and such that are not
CASES = {
    "probabilities": (lambda x, t: F.binary_cross_entropy(x, t), ([0.5, 0.2], [0.0, 1.0]),
                      [([1.5, 0.2], [0.0, 1.0]), ([0.5, float("nan")], [0.0, 1.0]),
                       ([0.5, 0.2], [0.0, 2.0]), ([-0.5, 0.2], [0.0, -1.0])]),
    "each": (lambda x, t: F.binary_cross_entropy(x, t, reduction="none"), ([0.5], [0.0]),
             [([1.5], [0.0]), ([0.5], [-2.0])]),
    "labels": (lambda x, t: F.multilabel_margin_loss(x, t), ([0.5, 0.2], [1, -1]),
               [([0.5, 0.2], [-2, 1])]),
    "classes": (lambda x, t: F.multi_margin_loss(x, t), ([[0.5, 0.2]], [1]),
                [([[0.5, 0.2]], [-1]), ([[0.5, 0.2]], [2])]),
    "fractions": (lambda x, q: torch.quantile(x, q), ([0.5, 0.2], [0.5]),
                  [([0.5, 0.2], [-0.1]), ([0.5, 0.2], [1.5])]),
    "bags": (lambda i, o: F.embedding_bag(i, ROWS, o), ([0, 1, 2], [0, 2]),
             [([0, 1, 2], [0, 4]), ([0, 1, 2], [1, 2])]),
    "masks": (lambda m, s: torch.zeros(3).masked_scatter(m, s), ([True, False, True], [1.0, 2.0]),
              [([True, True, True], [1.0, 2.0])]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_call_is_checked(case):
    body, right, cases = CASES[case]
    compiled = torch.compile(body)
    for wrong in cases:
        for _ in range(3):
            given = [*map(torch.tensor, right)]
            assert torch.equal(compiled(*given), body(*given))
        given = [*map(torch.tensor, wrong)]
        with pytest.raises(RuntimeError) as said:
            body(*given)
        with pytest.raises(RuntimeError) as says:
            compiled(*given)
        assert str(said.value) == str(says.value)
    assert "runs its Python body" not in compiled.explain()


def test_new_sizes_are_checked():
    compiled = torch.compile(lambda x: F.binary_cross_entropy(x, torch.ones(x.shape)))
    for size in (2, 3, 4, 5):
        assert compiled(torch.full((size,), 0.5)).item() == pytest.approx(0.6931, abs=1e-3)
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        compiled(torch.full((6,), 1.5))


def test_a_step_that_is_refused_changes_nothing():
    layer = nn.Linear(2, 1)
    with torch.no_grad():
        layer.weight.fill_(0.5)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)

    @torch.compile
    def step(x, t):
        optimizer.zero_grad()
        loss = F.binary_cross_entropy(layer(x).sigmoid(), t)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(4):
        step(torch.ones(3, 2), torch.ones(3, 1))
    before = layer.weight.tolist()
    with pytest.raises(RuntimeError, match="all elements of target"):
        step(torch.ones(3, 2), torch.full((3, 1), 2.0))
    assert layer.weight.tolist() == before and layer.weight.grad is None
    assert "replayed" in step.explain()


@pytest.mark.parametrize("body", [
    lambda number: torch.full((2,), number, dtype=torch.int32),
    lambda number: torch.ones(2, dtype=torch.int32).fill_(number),
    lambda number: torch.ones(2, dtype=torch.int32).masked_fill(torch.tensor(True), number),
])  # fmt: skip
def test_numbers_that_integers_cannot_hold(body):
    compiled = torch.compile(lambda number: body(number))
    for number in (1.5, 2.5, -3.0):
        assert compiled(number).tolist() == body(number).tolist()
    for number in (1e30, float("nan"), -float("inf"), 1e30):
        with pytest.raises(RuntimeError, match="without overflow"):
            compiled(number)
    assert compiled(4.5).tolist() == [4, 4]


def test_fractions_that_are_floats():
    x = torch.tensor([1.0, 2.0, 4.0])
    compiled = torch.compile(lambda q: torch.quantile(x, q))
    for q in (0.5, 0.25, 1.0):
        assert compiled(q).item() == torch.quantile(x, q).item()
    with pytest.raises(RuntimeError, match="range"):
        compiled(1.5)
