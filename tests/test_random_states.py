"""Random states as values of graphs: each draw takes one and gives the next."""

import pytest
import wengert as torch
from wengert import ir
from wengert.ir import passes
from wengert.ir.graph import RANDOM
from wengert.ir.verify import VerifyError, verify

F = torch.nn.functional


def noisy(x):
    """Draws of several kinds, one of them for nothing."""
    torch.rand(2)
    hidden = F.dropout(x, 0.5) + torch.rand_like(x)
    return hidden * torch.bernoulli(x.sigmoid()) + torch.randn(3)  # of which one waits in the state


def run_eagerly(function, *arguments, seed=3):
    torch.manual_seed(seed)
    return function(*arguments), torch.get_rng_state()


@pytest.fixture
def traced():
    torch.manual_seed(3)
    tracing = ir.trace(noisy)
    return tracing(torch.ones(3)), tracing.inputs


def test_the_state_goes_in_and_is_written_back(traced):
    graph = traced[0]
    (place,) = [k for k, item in enumerate(graph.inputs) if item.kind == RANDOM]
    assert f'%{place}: u8[5056] random "default"' in graph.print()
    assert graph.outputs[-1].target == place and graph.outputs[-1].kind == "write"
    draws = [node for node in graph.nodes if node.op.name == "sample"]
    assert len(draws) == 5
    states = [graph.inputs[place].var, *(node.outputs[1] for node in draws)]
    assert [node.inputs[0] for node in draws] == states[:-1]
    assert graph.outputs[-1].var is states[-1]
    assert verify(ir.parse(graph.print())) == graph


@pytest.mark.parametrize("how", [lambda g: g, passes.optimise, lambda g: ir.parse(g.print())])
def test_a_graph_that_draws_is_a_function(traced, how):
    graph, inputs = traced
    expected, state = run_eagerly(noisy, torch.ones(3))
    for _ in range(2):
        result, after = ir.run(how(graph), inputs)
        assert torch.equal(result, expected)
        assert torch.equal(after, state)


def test_it_runs_on_states_and_on_generators(traced):
    compiled = traced[0].compile()
    expected, after = run_eagerly(noisy, torch.ones(3))
    torch.manual_seed(3)
    state, generator = torch.get_rng_state(), torch.Generator().manual_seed(3)
    assert torch.equal(compiled(torch.ones(3), state), expected)
    assert torch.equal(state, after)
    assert torch.equal(compiled(torch.ones(3), generator), expected)
    assert torch.equal(generator.get_state(), after)
    assert torch.equal(ir.run(traced[0], [torch.ones(3), generator])[1], compiled_twice(compiled))


def compiled_twice(compiled):
    """The state after two runs."""
    generator = torch.Generator().manual_seed(3)
    compiled(torch.ones(3), generator), compiled(torch.ones(3), generator)
    return generator.get_state()


def test_each_generator_has_a_state_of_its_own():
    first, second = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)

    def both(x):
        x = x + torch.rand(2, generator=first)
        return x + torch.rand(2, generator=second) * torch.rand(2, generator=first)

    compiled = torch.compile(both)
    for call in range(4):
        first.manual_seed(call), second.manual_seed(call + 1)
        expected = both(torch.zeros(2))
        first.manual_seed(call), second.manual_seed(call + 1)
        assert torch.equal(compiled(torch.zeros(2)), expected)
    assert compiled.graph("forward").print(places=False).count("u8[5056] random") == 2


def test_draws_on_both_sides_of_a_branch():
    def branching(x):
        x = x * torch.rand(3)
        x = x + torch.randn(3) if x.sum() > 1.5 else x - torch.rand(3)
        return F.dropout(x, 0.5)

    compiled = torch.compile(branching)
    for seed in range(12):
        expected, after = run_eagerly(branching, torch.ones(3), seed=seed)
        result, state = run_eagerly(compiled, torch.ones(3), seed=seed)
        assert torch.equal(result, expected) and torch.equal(state, after)


def test_second_derivatives_see_the_numbers_that_were_drawn():
    def loss(x):
        return (F.dropout(x, 0.5) * x.sin()).sum()

    def derivatives(function):
        x = torch.linspace(-1, 1, 8).double().requires_grad_()
        (slope,) = torch.autograd.grad(function(x), x, create_graph=True)
        return slope.detach(), torch.autograd.grad(slope.sum(), x)[0]

    compiled = torch.compile(loss)
    for seed in range(3):
        expected, after = run_eagerly(derivatives, loss, seed=seed)
        found, state = run_eagerly(derivatives, compiled, seed=seed)
        torch.testing.assert_close(found, expected)
        assert torch.equal(state, after)


def test_a_custom_backward_that_draws_runs_as_it_is():
    class Noise(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * torch.rand(3)

    def slopes(function):
        x = torch.ones(3, requires_grad=True)
        function(x).sum().backward()
        return x.grad

    compiled = torch.compile(lambda x: Noise.apply(x) + 1)
    for seed in range(3):
        expected, after = run_eagerly(slopes, lambda x: Noise.apply(x) + 1, seed=seed)
        found, state = run_eagerly(slopes, compiled, seed=seed)
        assert torch.equal(found, expected) and torch.equal(state, after)
    assert "draws random numbers" in str(compiled.explain())


TWICE = """
graph @f(%0: u8[5056] random) {
  %1: f32[3], %2: u8[5056] = sample %0 {distribution="uniform", dtype=f32, size=(3,)}
  %3: f32[3], %4: u8[5056] = sample %0 {distribution="uniform", dtype=f32, size=(3,)}
  return %1, %3
}
"""


@pytest.mark.parametrize(("text", "message"), [
    (TWICE, "sample: its random state was drawn from before"),
    (TWICE.replace("%0: u8[5056]", "%0: u8[7]"), r"a random state is u8\[5056\], not u8\[7\]"),
    (TWICE.replace("%0: u8[5056] random", "%0: f32[2]"), r"a random state is u8\[5056\]"),
])  # fmt: skip
def test_the_verifier_knows_states(text, message):
    with pytest.raises(VerifyError, match=message):
        verify(ir.parse(text))


DRAWN = {
    "dropout": lambda x: F.dropout(x * 2, 0.3) + 1,
    "alpha dropout": lambda x: F.alpha_dropout(x, 0.4, training=True),
    "uniform": lambda x: x + torch.rand(x.shape),
    "uniform doubles": lambda x: x + torch.rand(x.shape, dtype=torch.float64),
    "bernoulli": lambda x: x * torch.empty(x.shape).bernoulli_(0.2),
    "several": lambda x: (torch.rand(3), F.dropout(x, 0.5), torch.rand(2, dtype=torch.float64)),
    "unused": lambda x: (torch.rand(7), x * 2)[1],
    "normal": lambda x: x * torch.randn(5, 2, 3),
    "normal, no whole block": lambda x: (torch.randn(21), torch.empty(16).normal_(2, 0.3), x),
    "uniform between bounds": lambda x: x + torch.empty(40).uniform_(-1.3, 2.7).sum(),
    "doubles between bounds": lambda x: (torch.empty(9, dtype=torch.float64).uniform_(-3, 2), x),
    "integers": lambda x: (torch.randint(-5, 17, (33,)), x),
    "permutation": lambda x: (torch.randperm(30), torch.randperm(1), torch.randperm(0), x),
    "many normals": lambda x: x + torch.randn(100, 2, 3) / torch.randn_like(x.expand(100, 2, 3)),
    "many": lambda x: F.dropout(x.expand(300, 2, 3), 0.1),
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("grad", [False, True])
def test_native_draws_are_the_generators_own(name, grad):
    """The engine's words are made anew after 624: calls come to that place in all ways."""
    function = DRAWN[name]
    compiled = torch.compile(function)
    found = []
    for call in (function, compiled):
        torch.manual_seed(7)
        seen = [call(torch.ones(2, 3, requires_grad=grad)) for _ in range(60)]
        found.append((seen, torch.get_rng_state(), torch.randn(3)))
    (eager, *after), (native, *then) = found
    assert all(map(torch.equal, after, then))
    for a, b in zip(eager, native):
        a, b = (v if isinstance(v, tuple) else (v,) for v in (a, b))
        assert all(map(torch.equal, a, b) if "bounds" not in name else map(torch.allclose, a, b))
    executors = compiled.traces[next(iter(compiled.traces))][0].root.function.ready(())
    assert grad or not any(e.native.host_calls for e in executors)


def test_native_draws_of_a_generator_of_ones_own():
    generator = torch.Generator()
    compiled = torch.compile(lambda x: x + torch.rand(312, generator=generator))
    for count in (1, 2, 3, 5):  # two of them are 624 words
        states = []
        for call in (compiled, lambda x: x + torch.rand(312, generator=generator)):
            generator.manual_seed(count)
            values = [call(torch.zeros(312)) for _ in range(count)]
            states += [values[-1].tolist(), generator.get_state().tolist()]
        assert states[:2] == states[2:]
