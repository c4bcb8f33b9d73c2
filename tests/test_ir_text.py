"""The text form: whatever can be made is read back, and whatever can't be read is refused."""

import re
from pathlib import Path

import pytest
import wengert as torch
from hypothesis import given, settings
from hypothesis import strategies as st
from wengert import ir
from wengert.ir import passes
from wengert.ir.builder import Builder
from wengert.ir.graph import INPUT_KINDS, Graph, Input, Node, Origin, Output, Place, Var
from wengert.ir.instantiate import is_symbolic
from wengert.ir.op import TABLE
from wengert.ir.types import BY_SHORT, TensorType, float32
from wengert.ir.verify import verify

GOLDENS = sorted((Path(__file__).parent / "goldens").rglob("*.ir"))
TEXTS = [path.read_text() for path in GOLDENS]

# --- what can be made ----------------------------------------------------------------------------

types = st.builds(TensorType, st.sampled_from(list(BY_SHORT.values())),
                  st.lists(st.integers(0, 10**5), max_size=3).map(tuple))  # fmt: skip
numbers = st.one_of(st.integers(), st.floats(), st.booleans(), st.complex_numbers())
values = st.recursive(
    st.one_of(numbers, st.none(), st.text(), st.sampled_from(list(BY_SHORT.values()))),
    lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5,
)  # fmt: skip
places = st.one_of(st.none(), st.builds(Place, st.text(), st.integers(0, 10**6)))
origins = st.one_of(st.none(), st.builds(Origin, st.sampled_from(list(TABLE)), st.integers(0, 99)))


@st.composite
def graphs(draw):
    """Graphs that need not make sense: nodes of any op, with any attributes and operands."""
    kinds = st.sampled_from(INPUT_KINDS)
    inputs = [Input(Var(draw(types)), draw(kinds), draw(st.text(max_size=5))) for _ in range(2)]
    known = [item.var for item in inputs]
    nodes = []
    for op in draw(st.lists(st.sampled_from(list(TABLE.values())), max_size=4)):
        names = st.lists(st.sampled_from(op.attributes), unique=True) if op.attributes else st.just(
            [])  # fmt: skip
        attrs = tuple(sorted((name, draw(values)) for name in draw(names)))
        operands = tuple(draw(st.lists(st.sampled_from([None, *known]), max_size=3)))
        outputs = tuple(Var(draw(types)) for _ in range(draw(st.integers(0, 2))))
        over = tuple(k for k, v in enumerate(operands) if v and operands.index(v) == k)
        over = draw(st.sampled_from([(), over]))
        nodes.append(Node(op, operands, outputs, attrs, draw(places), draw(origins), over))
        known += outputs
    outputs = tuple(draw(st.lists(st.one_of(
        st.builds(Output, st.sampled_from(known)),
        st.builds(Output, st.sampled_from(known), st.just("write"), st.just(1), st.booleans()),
    ), max_size=3)))  # fmt: skip
    notes = tuple(draw(st.lists(st.text(), max_size=2)))
    return Graph(draw(st.sampled_from(["f", "größe", "_1"])), tuple(inputs), tuple(nodes), outputs,
                 notes)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(graphs())
def test_any_graph_is_read_back(graph):
    text = graph.print()
    again = ir.parse(text)
    assert again == graph
    assert again.print() == text
    assert [n.place for n in again.nodes] == [n.place for n in graph.nodes]


def function_with_graph(name, scale):
    """A graph from a custom Function: its `call` holds the backward."""

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * scale

        @staticmethod
        def backward(ctx, grad):
            return grad * scale

    Scaled.__name__ = name
    return Scaled.apply


def test_nested_graphs_of_one_name_stay_apart():
    two, three = function_with_graph("Scaled", 2), function_with_graph("Scaled", 3)
    x = torch.ones(3, requires_grad=True)
    graph = ir.trace(lambda x: three(two(two(x))))(x)
    text = graph.print()
    assert text.count("graph @") == 4
    again = ir.parse(text)
    assert again == graph
    (slope,) = ir.run(ir.grad(again), [x, torch.ones(3)])
    assert slope.tolist() == [12.0] * 3
    assert again.compile()(x).tolist() == [12.0] * 3


def test_a_graph_that_draws_is_read_back_and_draws_the_same():
    generator = torch.Generator().manual_seed(5)
    tracing = ir.trace(lambda x: x + torch.rand(3, generator=generator))
    graph = tracing(torch.zeros(3))
    again = ir.parse(graph.print())
    assert again == graph
    generator.manual_seed(5)
    assert ir.run(again, tracing.inputs)[0].tolist() == torch.rand(3, generator=generator).tolist()


# --- what can't be read --------------------------------------------------------------------------

edits = st.lists(
    st.tuples(
        st.sampled_from(["delete", "insert", "replace", "swap lines", "repeat line", "cut"]),
        st.integers(0, 10**6),
        st.one_of(
            st.sampled_from([*"%{}()[],:=@^#\"\\-. \n", "%0", "%999", "none", "graph", "return",
                             "@mlp", "f32", "1e999", "-inf", "nan", "True", "(1,)", "write=0",
                             "9" * 500, "\x00", "é", *list(TABLE)[:40]]),
            st.text(max_size=3),
        ),
    ),
    min_size=1, max_size=4,
)  # fmt: skip


def edited(text, changes):
    for kind, where, piece in changes:
        at = where % (len(text) + 1)
        lines = text.split("\n")
        line = where % len(lines)
        if kind == "delete":
            text = text[:at] + text[at + 1 + where % 7 :]
        elif kind == "insert":
            text = text[:at] + piece + text[at:]
        elif kind == "replace":
            text = text[:at] + piece + text[at + len(piece) :]
        elif kind == "swap lines":
            lines[line], lines[line - 1] = lines[line - 1], lines[line]
            text = "\n".join(lines)
        elif kind == "repeat line":
            text = "\n".join([*lines[: line + 1], *lines[line:]])
        else:
            text = text[:at]
    return text


def test_graphs_whose_sizes_have_names_run_and_compile():
    f = torch.compile(lambda x: (x[1:] @ x[1:].t()).tanh().mean(0) * x.shape[0])
    for n in (8, 6):
        f(torch.randn(n, 3))
    graph = ir.parse(f.graph("symbolic").print())
    compiled = graph.compile()
    for n in (5, 9):
        x = torch.randn(n, 3, requires_grad=True)
        y, want = compiled(x), f(x)
        torch.testing.assert_close(y, want)
        torch.testing.assert_close(ir.run(graph, [x.detach()])[0], want.detach())
        slopes = [torch.autograd.grad(v.sum(), x)[0] for v in (y, want)]
        torch.testing.assert_close(*slopes)
        assert ir.grad(ir.instance_for(graph, [(n, 3)])).inputs[0].var.type.shape == (n, 3)
    with pytest.raises(ir.VerifyError, match="its sizes have names"):
        ir.grad(graph)
    with pytest.raises(TypeError, match="must be f32"):
        compiled(torch.ones(4))
    with pytest.raises(TypeError, match="takes 1 inputs, got 0"):
        compiled()
    with pytest.raises(TypeError, match=r"the size n of .* is not the size of an input"):
        ir.run(ir.parse("graph @g(%0: f32[`n + 1`]) {\n  return %0\n}"), [torch.ones(2)])


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(TEXTS), edits)
def test_damaged_text_is_refused_with_a_place(text, changes):
    try:
        graph = ir.parse(edited(text, changes))
    except ir.ParseError as error:
        assert re.match(r"line \d+, column \d+: ", str(error))
        return
    assert ir.parse(graph.print()) == graph
    try:
        verify(graph)
    except ir.VerifyError as error:
        assert f"@{graph.name}" in str(error)
        with pytest.raises(TypeError if is_symbolic(graph) else ir.VerifyError):
            ir.run(graph, [])
        with pytest.raises(ir.VerifyError):
            ir.grad(graph)
        return
    passes.optimise(graph)
    ir.grad(graph)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: expected 'graph'"),
        ("graph @g() {\n  return\n}\ngraph @h() {\n return\n}", "line 4, column 7: .*not part"),
        ("graph @g() {\n return\n}\ngraph @g() {\n return\n}", "line 4, column 7: .*twice"),
        ("graph @g(%0: f32[2], %0: f32[2]) {\n  return\n}", "line 1, column 22: %0 is defined"),
        ("graph @g(%0: f32[2) {\n  return\n}", "line 1, column 19: expected ']'"),
        ("graph @g(%0: f32[99999999999999999999]) {\n  return\n}", "larger than any memory"),
        ("graph @g() {\n  %0: f32[] = constant {value=1, value=2}\n  return\n}",
         "line 2, column 34: .*given twice"),
        ("graph @g() {\n  %0: f32[] = constant {value=complex(1)}\n  return\n}",
         "line 2, column 38: expected 2 numbers"),
        ("graph @g() {\n  %0: f32[] = constant {value=" + "(" * 99 + ")" * 99 + "}\n  return\n}",
         "nested too deeply"),
        ("graph @g(%0: f32[]) {\n  %1: f32[] = call %0 {backward=@g}\n  return\n}",
         "line 2, column 33: graph @g contains itself"),
        ("graph @g(%0: f32[]) {\n  %1: f32[] = call %0 {backward=@h}\n  return\n}",
         "line 2, column 33: unknown graph @h"),
        ("graph @g(%0: f32[]) {\n  return %0 write=1\n}", "line 2, column 19: there is no input 1"),
    ],
)  # fmt: skip
def test_errors_say_where_and_what(text, message):
    with pytest.raises(ir.ParseError, match=message):
        ir.parse(text)


# --- invalid graphs ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%1: f32[3] = neg %0", r"expected f32\[2\], got f32\[3\]"),
        ("%1: i64[2] = neg %0", r"expected f32\[2\], got i64\[2\]"),
        ("%1: f32[2] = neg %0, %0", "neg takes 1 operands, got 2"),
        ("%1: f32[2] = neg none", "operand 'self' may not be none"),
        ("%1: f32[] = sum %0", "attribute 'dim' is missing"),
        ("%1: f32[] = sum %0 {dim=(7,)}", "inference refuses"),
        ("%1: f32[2], %2: f32[2] = neg %0", r"expected f32\[2\], got f32\[2\], f32\[2\]"),
        ("%1: f32[2] = cast %0 {dtype=4}", "4 is no element type"),
        ("%1: f32[2] = call %0, %0 {backward=1, count=1, outputs=1}", "backward must be a graph"),
    ],
)
def test_the_verifier_shows_the_wrong_node(line, message):
    graph = ir.parse(f"graph @g(%0: f32[2]) {{\n  {line}\n  return %0\n}}")
    with pytest.raises(ir.VerifyError, match=message) as caught:
        verify(graph)
    assert f"> {line}" in str(caught.value)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ("%0 write", "write names no input"),
        ("%1 write=0", r"write of f32\[3\] for input 0 of type f32\[2\]"),
        ("%0 result=0", "kind result has no target"),
    ],
)
def test_outputs_are_verified(outputs, message):
    with pytest.raises(ir.VerifyError, match=message):
        verify(ir.parse(f"graph @g(%0: f32[2], %1: f32[3]) {{\n  return {outputs}\n}}"))


def test_a_graph_inside_is_verified_too():
    x = torch.ones(3, requires_grad=True)
    graph = ir.trace(function_with_graph("Wrong", 2))(x)
    text = re.sub(r"f32\[3\] = mul", "f32[4] = mul", graph.print())
    with pytest.raises(ir.VerifyError, match=r"@Wrong\w*: mul: expected f32\[3\]|@\w+: mul"):
        verify(ir.parse(text))


def test_names_of_graphs_are_words():
    builder = Builder("not a word")
    builder.output(builder.input(TensorType(float32, ())))
    with pytest.raises(ir.VerifyError, match="must be a word"):
        verify(builder.graph())


def test_factors_of_norms_have_a_size():
    text = """graph @g(%0: f32[2,3,4], %1: f32[]) {
  %2: f32[2,3,4], %3: f32[2,3,1], %4: f32[2,3,1] = layer_norm %0, %1, none {count=1, eps=1e-05}
  return %2
}"""
    with pytest.raises(ir.VerifyError, match="must have 4 elements"):
        verify(ir.parse(text))
