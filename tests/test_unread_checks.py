"""Ops that raise because of what their operands hold do so in compiled functions too, whether or
not somebody reads their results."""

import pytest
import wengert as torch
from wengert.ir import parse
from wengert.ir.op import TABLE
from wengert.ir.passes import dead_code

F = torch.nn.functional
L = torch.linalg
T = torch.tensor
LINE, ROWS = torch.arange(6.0), torch.arange(12.0).reshape(3, 4)
PARTS = T([0.5, 0.5, 1.0])
INTEGERS = T([4, 5, 6])
EYE, ONES = torch.eye(3), torch.ones(3, 3)
NAN = torch.full((3, 3), float("nan"))
COLUMN, BAD_COLUMN = T([[0], [1], [2]]), T([[0], [1], [5]])

# an op of two operands, the operands that it takes, and those that it refuses
INDICES = {
    "index": (lambda x, i: x[i], (LINE, T([0, 1])), (LINE, T([0, 9]))),
    "two indices": (lambda x, i: x[i, i], (ROWS, T([0, 1])), (ROWS, T([0, 3]))),
    "from the end": (lambda x, i: x[i], (ROWS, T([0, -3])), (ROWS, T([0, -4]))),
    "index_put": (lambda x, i: x.index_put((i,), T(1.0)), (ROWS, T([0])), (ROWS, T([3]))),
    "gather": (lambda x, i: x.gather(1, i), (ROWS, COLUMN), (ROWS, BAD_COLUMN)),
    "index_select": (lambda x, i: x.index_select(0, i), (ROWS, T([0])), (ROWS, T([3]))),
    "embedding": (lambda x, i: F.embedding(i, x), (ROWS, T([0])), (ROWS, T([-1]))),
    "bags": (lambda x, i: F.embedding_bag(i, x, T([0])), (ROWS, T([0])), (ROWS, T([3]))),
    "scatter": (lambda x, i: x.scatter(0, i, 1.0), (LINE, T([0])), (LINE, T([7]))),
    "sum of scatter": (
        lambda x, i: torch.zeros(3, 4).scatter(1, i, x).sum(1),
        (torch.ones(3, 1), COLUMN),
        (torch.ones(3, 1), BAD_COLUMN),
    ),
    "scatter_add": (lambda x, i: x.scatter_add(0, i, T([1.0])), (LINE, T([0])), (LINE, T([7]))),
    "scatter_reduce": (
        lambda x, i: x.scatter_reduce(0, i, T([1.0]), "amax"),
        (LINE, T([0])),
        (LINE, T([7])),
    ),
    "index_add": (lambda x, i: x.index_add(0, i, T([1.0])), (LINE, T([0])), (LINE, T([7]))),
    "index_copy": (lambda x, i: x.index_copy(0, i, T([1.0])), (LINE, T([0])), (LINE, T([7]))),
    "index_fill": (lambda x, i: x.index_fill(0, i, 1.0), (LINE, T([0])), (LINE, T([7]))),
    "index_reduce": (
        lambda x, i: x.index_reduce(0, i, T([1.0]), "prod"),
        (LINE, T([0])),
        (LINE, T([7])),
    ),
    "take": (lambda x, i: x.take(i), (LINE, T([0])), (LINE, T([7]))),
    "put": (lambda x, i: x.put(i, T([1.0])), (LINE, T([0])), (LINE, T([7]))),
    "cross_entropy": (F.cross_entropy, (ROWS, T([0, 1, 2])), (ROWS, T([0, 1, -3]))),
    "nll_loss": (F.nll_loss, (ROWS, T([0, 1, 2])), (ROWS, T([0, 1, 4]))),
    "multi_margin_loss": (F.multi_margin_loss, (ROWS, T([0, 1, 2])), (ROWS, T([0, 1, 4]))),
    "multilabel_margin_loss": (
        F.multilabel_margin_loss,
        (PARTS, T([0, -1, 0])),
        (PARTS, T([9, -1, 0])),
    ),
    "one_hot": (lambda x, i: F.one_hot(i, 4), (LINE, T([3])), (LINE, T([4]))),
    "max_unpool": (
        lambda x, i: F.max_unpool1d(x[None, None, :2], i[None, None], 2),
        (LINE, T([1, 2])),
        (LINE, T([1, 10])),
    ),
    "searchsorted": (
        lambda x, i: torch.searchsorted(x, T([1.0]), sorter=i),
        (PARTS, T([0, 1, 2])),
        (PARTS, T([0, 1, 9])),
    ),
}
VALUES = {
    "//": (lambda x, i: x // i, (INTEGERS, T([1, 2, 3])), (INTEGERS, T([1, 0, 3]))),
    "%": (lambda x, i: x % i, (INTEGERS, T([1, 2, 3])), (INTEGERS, T([1, 0, 3]))),
    "fmod": (torch.fmod, (INTEGERS, T([1, 2, 3])), (INTEGERS, T([1, 0, 3]))),
    "div": (
        lambda x, i: torch.div(x, i, rounding_mode="trunc"),
        (INTEGERS, T([1, 2, 3])),
        (INTEGERS, T([1, 0, 3])),
    ),
    "bernoulli": (lambda x, i: torch.bernoulli(x), (PARTS, T(0)), (PARTS + 1, T(0))),
    "multinomial": (lambda x, i: torch.multinomial(x, 1), (PARTS, T(0)), (PARTS - 1, T(0))),
    "binary_cross_entropy": (F.binary_cross_entropy, (PARTS, PARTS), (PARTS, PARTS + 1)),
    "masked_scatter": (
        lambda x, i: x.masked_scatter(i > 0, T([1.0])),
        (PARTS, T([0, 1, 0])),
        (PARTS, T([1, 1, 0])),
    ),
    "quantile": (lambda x, i: torch.quantile(LINE, x), (PARTS, T(0)), (PARTS + 1, T(0))),
}
MATRICES = {
    "inv": (L.inv, ONES), "cholesky": (L.cholesky, -EYE), "old cholesky": (torch.cholesky, -EYE),
    "solve": (lambda a: L.solve(a, torch.ones(3)), ONES), "eigh": (L.eigh, NAN),
    "eigvalsh": (L.eigvalsh, NAN), "eig": (L.eig, NAN), "eigvals": (L.eigvals, NAN),
    "svd": (L.svd, NAN), "svdvals": (L.svdvals, NAN), "lu_factor": (L.lu_factor, ONES),
    "ldl_factor": (L.ldl_factor, ONES), "matrix_power": (lambda a: L.matrix_power(a, -2), ONES),
    "lstsq": (lambda a: L.lstsq(a, torch.ones(3, 1)), NAN), "matrix_rank": (L.matrix_rank, NAN),
}  # fmt: skip
CASES = {**INDICES, **VALUES}
CASES |= {name: (lambda x, i, function=function: function(x), (EYE, T(0)), (bad, T(0)))
          for name, (function, bad) in MATRICES.items()}  # fmt: skip

USES = {
    "read": lambda op: op,
    "not read": lambda op: lambda x, i: (op(x, i), x + 1)[1],
    "read in part": lambda op: lambda x, i: first(op(x, i)).reshape(-1)[:1],
    "read by an op that nobody reads": lambda op: lambda x, i: (first(op(x, i)) * 2, x + 1)[1],
}


def first(results):
    return results[0] if isinstance(results, tuple) else results


def outcome(function, operands):
    torch.manual_seed(0)
    try:
        return first(function(*operands)).tolist()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("with_grad", [False, True], ids=["plain", "with grad"])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", CASES)
def test_what_eager_refuses_is_refused(name, use, with_grad, monkeypatch):
    monkeypatch.setenv("WENGERT_STRICT", "1")
    op, right, wrong = CASES[name]
    if with_grad and not right[0].is_floating_point():
        pytest.skip("integers have no gradients")
    right, wrong = ((x.clone().requires_grad_(with_grad), i) for x, i in (right, wrong))
    function = USES[use](op)
    compiled = torch.compile(function)
    for _ in range(3):
        assert not isinstance(outcome(compiled, right), tuple)
    expected = outcome(function, wrong)
    assert isinstance(expected, tuple), "eager must refuse it"
    assert outcome(compiled, wrong) == expected
    assert not isinstance(outcome(compiled, right), tuple)


def test_what_was_done_before_stays_done():
    def write(x, i, total):
        total += 1
        x[i]
        total += 1

    compiled, total = torch.compile(write), torch.zeros(())
    for _ in range(3):
        compiled(LINE, T([0]), total)
    with pytest.raises(IndexError):
        compiled(LINE, T([9]), total)
    assert total.item() == 7.0


def but_checks(text):
    return [node.op.name for node in dead_code.but_checks(parse(text)).nodes]


def test_an_index_is_looked_at_without_reading_the_rest():
    text = """
graph @g(%0: f32[5,64], %1: i64[3]) {
  %2: f32[3,64] = embedding %0, %1
  return %0
}
"""
    assert but_checks(text) == ["iota", "view", "gather"]


def test_an_index_that_another_op_looks_at_is_not_looked_at_again():
    text = """
graph @g(%0: f32[3,4], %1: i64[3], %2: f32[3,1]) {
  %3: i64[3,1] = unsqueeze %1 {dim=1}
  %4: f32[3,1] = gather %0, %3 {dim=1}
  %5: i64[3,1] = view %1 {size=(3, 1)}
  %6: f32[3,4] = scatter_add %0, %5, %2 {dim=1}
  return %4
}
"""
    assert but_checks(text) == ["unsqueeze", "gather"]
    smaller = text.replace("scatter_add %0, %5, %2 {dim=1}", "scatter_add %0, %5, %2 {dim=0}")
    assert but_checks(smaller)[-2:] == ["view", "gather"]


def test_division_by_a_constant_is_not_kept():
    text = """
graph @g(%0: i64[3]) {
  %1: i64[] = constant {dtype=i64, value=2}
  %2: i64[3] = floor_divide %0, %1
  return %0
}
"""
    assert but_checks(text) == []
    assert but_checks(text.replace("value=2", "value=0")) == ["constant", "floor_divide"]


def test_derivatives_are_not_kept():
    text = """
graph @g(%0: f32[3,4], %1: i64[3,1]) {
  %2: f32[3,1] = gather %0, %1 {dim=1} ^gather.0
  return %0
}
"""
    assert but_checks(text) == []


def test_facts_of_ops_are_functions_of_nodes():
    looks = [op.raises for op in TABLE.values() if op.raises is not None]
    assert len(looks) > 30
    assert all(look is True or callable(look) for look in looks)
