"""Marks of whose memory may be taken: where they stand, and what codegen makes of them."""

import pytest
import wengert as torch
from wengert import ir
from wengert.backend import compile_graph
from wengert.ir.passes import in_place, optimise
from wengert.ir.verify import VerifyError, verify


def marks(text):
    """The lines of a graph that end in a mark, after the pass."""
    return in_place.run(verify(ir.parse(text))).print()


def test_an_operand_that_dies_may_be_written_over():
    text = marks("""
graph @f(%0: f32[4,6]) {
  %1: f32[4,6] = sin %0
  %2: f32[4,6] = cos %1
  %3: f32[4,6] = mul %1, %2
  %4: f32[4,6] = mul %3, %3
  return %4
}
""")
    assert [line.partition(" = ")[2] for line in text.splitlines()[1:-2]] == [
        "sin %0", "cos %1", "mul %1, %2 over %1, %2", "mul %3, %3 over %3"]  # fmt: skip


@pytest.mark.parametrize(("nodes", "output"), [
    ("%3: f32[4] = view %2 {size=(4,)}\n  %4: f32[2,2] = neg %2\n"
     "  %5: f32[4] = add %3, %1", "%4, %5"),
    ("%4: f32[2,2] = neg %2", "%4, %2"),  # it leaves
    ("%3: f32[2,2] = permute %2 {dims=(1, 0)}\n  %4: f32[2,2] = neg %3", "%4"),  # other order
    ("%4: f64[2,2] = cast %2 {dtype=f64}", "%4"),  # other type
    ("%4: f32[2,2] = mm %2, %2", "%4"),  # reads elements after it wrote others
])  # fmt: skip
def test_nothing_is_written_over_that_is_read_later_or_elsewhere(nodes, output):
    text = marks(f"""
graph @f(%0: f32[2,2], %1: f32[4]) {{
  %2: f32[2,2] = sin %0
  {nodes}
  return {output}
}}
""")
    assert "neg %2 over" not in text and "over %2," not in text
    assert text.count("over") == text.count("add")  # the view's reader is the last one


SWAP = """
graph @swap(%0: f32[4] "a", %1: f32[4] "b") {
  %2: f32[4] = neg %0
  %3: f32[4] = neg %1
  return %2 write=1, %3 write=0
}
"""


def test_an_input_is_donated_once_nobody_reads_it():
    text = marks(SWAP)
    assert "return %2 write=1, %3 write=0 donated" in text
    assert ir.parse(text).print() == text


@pytest.mark.parametrize(("before", "after", "message"), [
    ("%3 write=0", "%2 write=1 donated, %3 write=0", "marked as donated, but its input is still"),
    ("neg %1", "neg %1 over %1", "neg may not be written over %1, which is read later"),
])  # fmt: skip
def test_the_verifier_refuses_marks_that_do_not_hold(before, after, message):
    text = SWAP.replace("%2 write=1, ", "" if "donated" in after else "%2 write=1, ")
    with pytest.raises(VerifyError, match=message):
        verify(ir.parse(text.replace(before, after)))


def test_the_parser_refuses_marks_on_what_is_no_operand():
    with pytest.raises(ir.ParseError, match=r"line 4, column 28: %0 is no operand here"):
        ir.parse(SWAP.replace("neg %1", "neg %1 over %0"))


def test_marks_do_not_outlive_what_they_are_about():
    graph = in_place.run(ir.parse(marks(SWAP)))
    (joint,) = [ir.grad(graph.replace(outputs=graph.outputs[:0]), [])]
    assert "over" not in joint.print()
    assert optimise(ir.parse(marks(SWAP))).print() == optimise(ir.parse(SWAP)).print()


def swapped(a, b):
    old = a.clone()
    a.copy_(b * 3)
    b.copy_(old * 2)
    return old * b


@pytest.mark.parametrize("size", [5, 300, 100_000])
def test_old_values_are_read_before_they_are_overwritten(size):
    compiled = torch.compile(swapped)
    for _ in range(3):
        a, b = torch.randn(size), torch.randn(size)
        c, d = a.clone(), b.clone()
        assert torch.equal(compiled(a, b), swapped(c, d))
        assert torch.equal(a, c) and torch.equal(b, d)


def test_temporaries_take_the_memory_of_those_that_die():
    text = """
graph @f(%0: f32[64,64], %1: f32[64,64]) {
  %2: f32[64,64] = mm %0, %1
  %3: f32[64,1] = sum %2 {dim=(1,), keepdim=True}
  %4: f32[64,64] = expand %3 {size=(64, 64)}
  %5: f32[64,64] = div %2, %4
  %6: f32[64,64] = mm %5, %1
  return %6
}
"""
    graph = optimise(ir.parse(text))
    with_marks, without = map(compile_graph, (graph, graph.unmarked()))
    assert with_marks.runnable.plan.total < without.runnable.plan.total


@pytest.mark.parametrize("rows, inner, columns", [(2, 64, 256), (1, 64, 256), (40, 300, 30),
                                                  (3, 20, 40), (64, 128, 96)])  # fmt: skip
def test_a_product_is_not_stored_over_what_its_tail_reads(rows, inner, columns):
    """Some kernels store sums where the result goes, and do the tail in a loop after that."""

    def write(p, x, w):
        p.copy_(p * 0.5 + x @ w.t())

    def temporary(p, x, w):
        y = (p + 1).matmul(torch.eye(columns))
        return (y + x @ w.t()).exp().sum(), y.shape

    shapes = (rows, columns), (rows, inner), (columns, inner)
    p, x, w = (torch.linspace(-1, 1, a * b).reshape(a, b) / 8 for a, b in shapes)
    for function in (write, temporary):
        compiled, q = torch.compile(function), p.clone()
        for _ in range(4):
            expected, found = function(p, x, w), compiled(q, x, w)
            torch.testing.assert_close(q, p)
            if expected is not None:
                torch.testing.assert_close(found[0], expected[0])
