"""What is told before a graph is planned is what the plan has."""

import pytest
import wengert as torch
from wengert.codegen.assemble import assemble
from wengert.codegen.gemm_shared import expected
from wengert.codegen.target import DEFAULT


def graph_of(function, *args):
    compiled = torch.compile(function)
    compiled(*args)
    return compiled.graph("forward")


LAYOUTS = {
    "NN": lambda a, b: a @ b,
    "NT": lambda a, b: a @ b.t().contiguous().t(),
    "TN": lambda a, b: a.t().contiguous().t() @ b,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("m, n, k", [(128, 256, 784), (64, 60, 1024), (64, 48, 1024), (8, 8, 8),
                                     (784, 256, 128), (1, 512, 784), (16, 1024, 1024),
                                     (47, 300, 300)])  # fmt: skip
def test_only_what_any_plan_has_is_expected(layout, m, n, k):
    graph = graph_of(LAYOUTS[layout], torch.randn(m, k), torch.randn(k, n))
    early = {module.identity for module in expected(graph, DEFAULT)}
    assert early <= {module.identity for module in assemble(graph, DEFAULT).modules}
    assert bool(early) == (min(m, n) >= 60)


def test_each_dtype_has_its_own():
    a, b = torch.randn(128, 512), torch.randn(512, 128)
    graph = graph_of(lambda a, b: (a @ b).sum() + (a.double() @ b.double()).sum(), a, b)
    symbols = [module.symbols[0] for module in expected(graph, DEFAULT)]
    assert symbols == ["wengert_turn_f32", "wengert_gemm_f32", "wengert_turn_f64",
                       "wengert_gemm_f64"]  # fmt: skip


def test_products_of_other_dtypes_expect_nothing():
    a = torch.ones(128, 512, dtype=torch.int64)
    assert not expected(graph_of(lambda a: a @ a.t(), a), DEFAULT)
