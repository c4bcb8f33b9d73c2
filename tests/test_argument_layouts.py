"""How arguments lie in memory selects the trace: results and writes are eager's for each layout."""

import itertools

import pytest
import wengert as torch
from alike import differences, facts, outcome


def rows(k):
    return torch.arange(9.0).view(3, 3) + k


LAYOUTS = {
    "rows": rows,
    "columns": lambda k: rows(k).t(),
    "gaps": lambda k: (torch.arange(36.0).view(6, 6) + k)[::2, ::2],
    "turned_gaps": lambda k: (torch.arange(36.0).view(6, 6) + k)[::2, ::2].t(),
    "gaps_in_one_line": lambda k: (torch.arange(18.0).view(3, 3, 2) + k)[..., 0],
    "part_of_rows": lambda k: (torch.arange(12.0).view(3, 4) + k)[:, :3],
    "one_row": lambda k: (torch.arange(3.0) + k).expand(3, 3),
    "one_column": lambda k: (torch.arange(3.0) + k).view(3, 1).expand(3, 3),
}


def views_of_what_is_written(x):
    return x[1:].add_(1), x.t(), x[0], x.sum(0)


def results(x):
    return x * 2, x.reshape(-1), x[1:], (x + x.t()).reshape(9)


def one_element_at_a_time(x):
    for k, row in enumerate(x.unbind(0)):
        row.add_(k)
    return x, x.sum()


def either(x):
    x[0].add_(1)
    if x.sum() > 40:
        return x[1:].mul_(2), x
    return x.reshape(-1), x.t()


BODIES = (views_of_what_is_written, results, one_element_at_a_time, either)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
@pytest.mark.parametrize("layouts", [*itertools.permutations(LAYOUTS, 2)], ids="-".join)
def test_layouts_that_alternate(body, layouts):
    compiled = torch.compile(body)
    for k in range(3):
        for layout in layouts:
            eagerly, given = LAYOUTS[layout](k), LAYOUTS[layout](k)
            want = facts([outcome(lambda x=eagerly: body(x)), eagerly])
            got = facts([outcome(lambda x=given: compiled(x)), given])
            assert differences(want, got) == [], layout


def test_a_write_to_an_expanded_tensor_names_its_line():
    compiled = torch.compile(one_element_at_a_time)
    compiled(LAYOUTS["one_row"](0))
    assert "shows elements several times" in compiled.explain() and "[R132]" in compiled.explain()


def test_layouts_are_replayed():
    compiled = torch.compile(results)
    for k in range(4):
        for layout in ("gaps", "gaps_in_one_line"):
            compiled(LAYOUTS[layout](k))
    assert compiled.explain().count("replayed 3 times") == 2


def test_results_with_gaps():
    compiled = torch.compile(lambda: torch.empty_strided((2, 2), (4, 2)).fill_(1))
    for _ in range(3):
        assert compiled().stride() == (4, 2)


@pytest.mark.parametrize("name", ["pixel_shuffle", "pixel_unshuffle"])
def test_shuffles_by_one_have_memory_of_their_own(name):
    function, x = getattr(torch, name), torch.ones(1, 1, 2, 2)
    for shuffle in (function, torch.compile(function)):
        for _ in range(3):
            shuffle(x, 1).add_(1)
    assert x.sum().item() == 4


def test_solutions_of_lower_triangles_are_row_major():
    solve = torch.linalg.solve_triangular
    for function in (solve, torch.compile(solve)):
        for _ in range(2):
            found = function(torch.eye(3), torch.ones(3, 2), upper=False)
            assert found.stride() == (2, 1) and found.view(6).tolist() == [1] * 6


@pytest.mark.parametrize("twin", ["data", "detach"])
def test_twins_of_expanded_tensors_are_written_row_by_row_only(twin):
    def body(x):
        x[0].add_(1)
        return float(x.sum())  # runs in Python

    expanded = torch.ones(1, 3).expand(2, 3)
    x = getattr(expanded, twin)
    x = x() if twin == "detach" else x
    with pytest.raises(RuntimeError, match="more than one element"):
        x.add_(1)
    compiled = torch.compile(body)
    assert [compiled(x) for _ in range(4)] == [12.0, 18.0, 24.0, 30.0]


def test_results_lie_as_eager_says_where_the_body_runs():
    """Where a body is left to Python, arguments with gaps are told apart by their strides."""

    def body(a, b):
        with torch.no_grad():
            a.add_(1)
        return b[1:] * 3

    compiled = torch.compile(body)
    for _ in range(3):
        computed = torch.ones(3, 3, requires_grad=True) * 1
        assert compiled(computed, computed.detach().requires_grad_()).stride() == (3, 1)
        gaps = torch.arange(36.0).view(6, 6)[::2, ::2]
        assert compiled(gaps, gaps.t()).stride() == body(gaps, gaps.t()).stride() == (1, 2)
