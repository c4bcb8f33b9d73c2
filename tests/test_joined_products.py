"""Sums of products of one shape become one product; what they add up to stays."""

import numpy as np
import pytest
import wengert as torch
from wengert import ir
from wengert.ir.passes import joins
from wengert.ir.verify import verify


def text_of(terms, k=2, turned=False, dtype="f32", m=16, n=12):
    """A graph that adds products, and one value more."""
    inputs, lines, total = [], [], f"%{3 * terms}"
    shape = (n, m) if turned else (m, n)
    out = f"{dtype}[{shape[0]},{shape[1]}]"
    number = 3 * terms + 1
    for i in range(terms):
        a, b = f"%{2 * i}", f"%{2 * i + 1}"
        inputs += [f"{a}: {dtype}[{m},{k}]", f"{b}: {dtype}[{k},{n}]"]
        term = f"%{number}"
        lines.append(f"{term}: {dtype}[{m},{n}] = mm {a}, {b}")
        if turned:
            lines.append(f"%{number + 1}: {out} = permute {term} {{dims=(1, 0)}}")
            number, term = number + 1, f"%{number + 1}"
        lines.append(f"%{number + 1}: {out} = add {total}, {term}")
        total, number = f"%{number + 1}", number + 2
    inputs.append(f"%{3 * terms}: {out}")
    body = "\n  ".join(lines)
    return f"graph @f({', '.join(inputs)}) {{\n  {body}\n  return {total}\n}}\n"


def products(graph):
    return [node for node in graph.nodes if node.op.name == "mm"]


def run(graph, seed=0):
    rng = np.random.default_rng(seed)
    kinds = {"f32": "float32", "f64": "float64"}
    given = [rng.standard_normal(i.var.shape).astype(kinds[i.var.dtype.short])
             for i in graph.inputs]  # fmt: skip
    return ir.run(graph, given)[0]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_many_small_products_are_one(turned, dtype):
    graph = verify(ir.parse(text_of(5, turned=turned, dtype=dtype)))
    result = verify(joins.run(graph))
    (product,) = products(result)
    assert product.inputs[0].shape == (16, 10) and product.inputs[1].shape == (10, 12)
    np.testing.assert_allclose(run(result), run(graph), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("text", [
    text_of(3),  # too few
    text_of(6, k=8),  # joining copies more than it saves
    text_of(5, dtype="bf16"),  # each product rounds
], ids=["few", "long", "halves"])  # fmt: skip
def test_others_stay(text):
    graph = verify(ir.parse(text))
    assert joins.run(graph) is graph


def test_products_that_somebody_else_reads_stay():
    text = text_of(5).replace("return %", "return %16, %")
    result = verify(joins.run(verify(ir.parse(text))))
    assert len(products(result)) == 2  # four are joined; the one that is returned is not


def test_a_value_that_is_added_twice():
    text = """
graph @f(%0: f32[16,2], %1: f32[2,12]) {
  %2: f32[16,12] = mm %0, %1
  %3: f32[16,12] = add %2, %2
  %4: f32[16,12] = add %3, %2
  %5: f32[16,12] = add %4, %2
  return %5
}
"""
    graph = verify(ir.parse(text))
    np.testing.assert_allclose(run(joins.run(graph)), run(graph), rtol=1e-6)


def cell_loop(w, u, steps=6):
    def step(x):
        h = torch.zeros(3, 32)
        for t in range(steps):
            h = torch.tanh(h @ w.t() + x[t] @ u.t())
        loss = (h * h).mean()
        w.grad = u.grad = None
        loss.backward()
        return loss

    return step


def test_gradients_of_a_loop_over_a_cell():
    torch.manual_seed(0)
    w, u = (torch.randn(32, n).mul(0.1).requires_grad_() for n in (32, 40))
    step, x = cell_loop(w, u), torch.randn(6, 3, 40)
    compiled = torch.compile(step)
    for _ in range(3):
        loss = compiled(x)
    found = loss, w.grad.clone(), u.grad.clone()
    for got, want in zip(found, (step(x), w.grad, u.grad)):
        torch.testing.assert_close(got, want)
    assert "cat" in compiled.dump("forward") and "joins" in compiled.dump("passes")


def test_strict_numerics_add_as_eager_adds():
    w, u = torch.randn(32, 32, requires_grad=True), torch.randn(32, 40, requires_grad=True)
    compiled = torch.compile(cell_loop(w, u), numerics="strict")
    compiled(torch.randn(6, 3, 40))
    assert "cat" not in compiled.dump("forward")
