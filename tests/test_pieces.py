"""Bodies with statements that need Python: what is around them is compiled, and nobody sees it."""

import linecache
import math
import sys
import traceback

import numpy as np
import pytest
import wengert as torch
from scenarios import Scenarios, check, close, plain
from wengert import nn

ROUNDS = 5
logs, totals = [], {"loss": 0.0}
count = 0


def net():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def stepper(report):
    """A training step that ends with `report` of the loss; the values that were seen."""

    def run(wrap):
        model, optimizer = net()
        seen = []

        def forward(x):
            return (model(x) - 1).square().mean()

        function = wrap(report(model, optimizer, forward, seen))
        results = [function(torch.randn(5, 3)) for _ in range(ROUNDS)]
        return results, seen, [*model.parameters()]

    return run


def appended(model, optimizer, forward, seen):
    def step(x):
        optimizer.zero_grad()
        loss = forward(x)
        loss.backward()
        optimizer.step()
        seen.append(float(loss))
        return loss

    return step


def computed_on_the_way(model, optimizer, forward, seen):
    def step(x):
        optimizer.zero_grad()
        seen.append(float(forward(x).detach()))
        loss = forward(x)
        loss.backward()
        optimizer.step()

    return step


def between_forward_and_backward(model, optimizer, forward, seen):
    def step(x):
        loss = forward(x)
        optimizer.zero_grad()
        seen.append(round(loss.item(), 3))
        loss.backward()
        optimizer.step()
        return loss.detach() * 2

    return step


def in_a_loop(model, optimizer, forward, seen):
    def step(x):
        total = 0.0
        for part in x.split(2):
            optimizer.zero_grad()
            loss = forward(part)
            loss.backward()
            optimizer.step()
            total += float(loss) * len(part)
        seen.append(total)
        return total / len(x)

    return step


def counted(model, optimizer, forward, seen):
    def step(x):
        right = 0
        with torch.no_grad():
            right += (model(x) > 0).sum().item()
        optimizer.zero_grad()
        forward(x).backward()
        optimizer.step()
        seen.append(right / len(x))
        return right

    return step


def in_text(model, optimizer, forward, seen):
    def step(x):
        optimizer.zero_grad()
        loss = forward(x)
        loss.backward()
        optimizer.step()
        seen.append(f"loss {loss.item():.4f}")
        return math.sqrt(loss.item()), np.mean([loss.item()])

    return step


STEPS = [appended, computed_on_the_way, between_forward_and_backward, in_a_loop, counted, in_text]


@pytest.mark.parametrize("report", STEPS, ids=lambda f: f.__name__)
def test_training_steps_that_report(report):
    check(stepper(report))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code does not tell columns")
@pytest.mark.parametrize("report", STEPS, ids=lambda f: f.__name__)
def test_what_is_around_is_replayed(report):
    model, optimizer = net()
    step = torch.compile(report(model, optimizer, lambda x: (model(x) - 1).square().mean(), []))
    for _ in range(ROUNDS):
        step(torch.randn(5, 3))
    text = step.explain()
    assert "leaves a statement to Python" in text and "[R101]" in text and "test_pieces.py:" in text
    pieces = step.body.pieces.functions
    assert pieces and any(trace.replays for piece in pieces for trace in piece.all_traces())
    assert "trace of" in text and step.dump("forward")


scenarios = Scenarios()


def calls(wrap, function, *arguments):
    """What several calls give, or raise."""
    function, seen = wrap(function), []
    for given in arguments or [(torch.full((3,), float(k)),) for k in range(ROUNDS)]:
        try:
            seen.append(function(*given))
        except Exception as error:
            seen.append(error)
    return seen


@scenarios
def names_that_are_bound_on_some_ways(wrap):
    def f(x):
        y = x * 2
        if float(y.sum()) > 6:
            z = y + 1
        y = y - 1
        float(y.sum())
        return z * 2

    return calls(wrap, f)


@scenarios
def names_that_are_used_again_by_loops(wrap):
    def f(x):
        for k in range(2):
            x = x + k
        s = float(x.sum())
        for k in x.unbind():
            s = s + k
        return s, k

    return calls(wrap, f)


@scenarios
def values_carried_through_a_loop(wrap):
    def f(x):
        last, best = x, math.inf
        while float(last.sum()) < 20:
            last = last * 1.5 + 1
            if last.sum() > 15:
                best = float(last.max())
                continue
            if best < 3:
                break
        else:
            last = last - 1
        return last, best

    return calls(wrap, f)


@scenarios
def results_on_early_ways(wrap):
    def f(x, flag=True, *, scale=2.0):
        y = x * scale
        if y.sum().item() > 4:
            if not flag:
                return y
            y = y + 1
            return y.exp(), float(y[0])
        return None

    given = [(torch.full((3,), float(k)), bool(k % 2)) for k in range(6)]
    return calls(wrap, f, *given)


@scenarios
def functions_made_inside(wrap):
    def f(x):
        y = x * 2
        scale = float(y.sum())
        double = lambda t: t * scale  # noqa: E731
        y = double(y) + 1
        scale = 3.0
        return double(y), [t * scale for t in (x, y)]

    return calls(wrap, f)


@scenarios
def generators_that_are_asked_later(wrap):
    def f(x):
        scale = 2.0
        later = (t * scale for t in x.unbind())
        float(x.sum())
        scale = 3.0
        return list(later)

    return calls(wrap, f)


@scenarios
def errors_that_are_caught_inside(wrap):
    def f(x):
        done = "nothing"
        try:
            y = x * 2
            done = "twice"
            if float(y.sum()) > 6:
                raise ValueError("large")
            done = y.reshape(2 if float(y[0]) > 2 else 3)
        except (ValueError, RuntimeError) as error:
            return done, type(error).__name__
        return done

    return calls(wrap, f)


@scenarios
def names_of_outer_functions(wrap):
    total, seen = 0.0, []

    def f(x):
        nonlocal total
        y = x * 2
        total = total + float(y.sum())
        z = y * total
        seen.append(z.sum().item())
        return z + 1

    return calls(wrap, f), total, seen


@scenarios
def global_names(wrap):
    def f(x):
        global count
        y = x * 3
        count += float(y.max())
        return y * count

    global count
    count = 0
    return calls(wrap, f), count


@scenarios
def names_within_expressions(wrap):
    def f(x):
        if (s := float((x * 2).sum())) > 6:
            x = x * s
        values = [y := x + 1, float(y.sum()), y * 2]
        return values, s

    return calls(wrap, f)


@scenarios
def any_number_of_arguments(wrap):
    def f(first, /, *rest, scale=1.0, **others):
        total = first * scale
        for value in (*rest, *others.values()):
            total = total + value
        print(end=f"{float(total.sum())}"[:0])
        return total * 2, len(rest), sorted(others)

    def g(x):
        return wrapped(x, x * 2, scale=3.0, k=x, j=x + 1), wrapped(x)

    wrapped = wrap(f)
    return calls(lambda function: function, g)


@scenarios
def methods(wrap):
    class Meter(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.seen = nn.Linear(3, 2), []

        def forward(self, x):
            y = self.layer(x).relu()
            self.seen.append(y.sum().item())
            return y * 2

        def measure(self, x):
            y = self.layer(x)
            self.last = float(y.detach().norm())
            return y / self.last

    torch.manual_seed(3)
    meter = Meter()
    measure, forward = wrap(meter.measure), wrap(meter)
    x = torch.ones(2, 3)
    return [(measure(x * k), meter.last, forward(x * k), meter.seen[:]) for k in range(1, 6)]


@scenarios
def memory_that_is_shared_between_pieces(wrap):
    def f(x):
        y = x * 2
        part, flat = y[1:], y.view(-1)
        float(y.sum())
        part.add_(1)
        flat.mul_(2)
        s = float(flat.sum())
        x.add_(s)
        return y, part, flat, part._base is y, x

    return calls(wrap, f)


@scenarios
def gradients_through_several_pieces(wrap):
    def f(x, w):
        y = (x * w).sin()
        s = float(y.sum())
        z = (y * s).exp()
        t = z.sum().item()
        return (z * w).sum() / t, y

    function, seen = wrap(f), []
    w = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
    for k in range(ROUNDS):
        out, y = function(torch.full((3,), 0.1 * k), w)
        (out + y.sum()).backward()
        seen += [out, w.grad.clone()]
        w.grad = None
    return seen


@scenarios
def lists_that_grow_inside(wrap):
    def f(x):
        outs, same = [], {}
        for k in range(3):
            outs.append(x * k)
            same[k] = outs
        float(x.sum())
        outs.append(x)
        return outs, len(same[0]), same[1] is outs

    return calls(wrap, f)


@scenarios
def numbers_that_are_no_floats(wrap):
    def f(x):
        n = int(x.sum())
        return (x * 2).repeat(n % 4 + 1)[: n % 5 + 1], n

    return calls(wrap, f, *[(torch.full((3,), float(k)),) for k in range(15)])


@scenarios
def nodes_that_the_body_looks_at(wrap):
    names = []

    def f(x, w):
        y = (x * w).sin()
        names.append(f"{y}")
        z = y * 2
        names.append((z.grad_fn.name(), type(z.grad_fn.next_functions[0][0]).__name__))
        return z + float(y.sum().detach())

    w = torch.ones(3, requires_grad=True)
    return calls(wrap, f, *[(torch.full((3,), float(k)), w) for k in range(ROUNDS)]), names


@scenarios
def attributes_of_numbers(wrap):
    def f(x, a):
        def first(value):
            try:
                return value.item()
            except AttributeError as error:
                return str(error)

        found = [getattr(a, "data", 7.0), first(a), first(x.sum()), a.is_integer(), a.real * x]
        for take in (len, iter, lambda value: value[0]):
            try:
                take(a)
            except TypeError as error:
                found.append(str(error))
        return found, x * a

    return calls(wrap, f, *[(torch.ones(3), 0.5 * k) for k in range(ROUNDS)])


@pytest.mark.parametrize("scenario", scenarios, ids=lambda f: f.__name__)
def test_scenario(scenario):
    check(scenario)


def test_the_order_of_what_python_does():
    """A call on the way may change what was looked up before it."""

    def run(wrap):
        global logs
        first = logs = []
        second = []

        def value(x):
            global logs
            logs = second
            return (x * 2).sum()

        def f(x):
            logs.append(float(value(x)))
            return x + 1

        function = wrap(f)
        for k in range(ROUNDS):
            logs = first
            function(torch.full((2,), float(k)))
        return first, second

    check(run)


def test_subscripts_are_looked_up_before_what_is_added():
    def run(wrap):
        totals = {"loss": 0.0}

        def value(x):
            totals["loss"] += 10
            return (x * 2).sum()

        def f(x):
            totals["loss"] += value(x).item()
            return x + 1

        return calls(wrap, f), totals

    check(run)


def test_errors_name_the_lines_of_the_body():
    def f(x, y):
        z = x * 2
        float(z.sum())
        z = z + 1
        return z @ y

    compiled, places = torch.compile(f), []
    for _ in range(4):
        compiled(torch.ones(3), torch.ones(3))
    for function in (f, compiled):
        with pytest.raises(RuntimeError) as caught:
            function(torch.ones(3), torch.ones(4))
        frames = traceback.extract_tb(caught.tb)
        own = [frame for frame in frames if frame.filename == __file__ and frame.name == "f"]
        places.append((own[-1].lineno, own[-1].line))
    assert places[0] == places[1] and places[0][1] == "return z @ y"


def test_source_that_is_not_that_of_the_function():
    """A file that was changed since, or is not there: the body runs as it is."""
    text = "def f(x):\n    y = x * 2\n    s = float(y.sum())\n    return y * s\n"
    for name, shown in (("<no such file>", None), ("<another>", text.replace("2", "3"))):
        space = {}
        exec(compile(text, name, "exec"), space)
        if shown is not None:
            linecache.cache[name] = (len(shown), None, shown.splitlines(True), name)
        compiled = torch.compile(space["f"])
        for k in range(ROUNDS):
            x = torch.full((3,), float(k))
            assert close(plain(compiled(x)), plain(x * 2 * float((x * 2).sum())))
        assert not compiled.body.pieces.functions


def test_numbers_that_differ_are_not_recorded_for_ever():
    def f(x):
        n = x.sum().int().item()
        return x * n

    compiled = torch.compile(f)
    for k in range(40):
        assert compiled(torch.full((2,), float(k))).tolist() == [2.0 * k * k] * 2
    traces = compiled.all_traces()
    assert len(traces) <= 10


def test_a_library_is_made_of_whole_functions_only(tmp_path):
    def f(x):
        y = x * 2
        logs.append(float(y.sum()))
        return y + 1

    compiled = torch.compile(f)
    for _ in range(3):
        compiled(torch.ones(2))
    with pytest.raises(RuntimeError, match="no compiled trace: float"):
        compiled.export(str(tmp_path / "library"))
    assert "[R101]" in compiled.explain() and compiled.dump("llvm")


def test_backward_of_what_was_computed_outside():
    w = torch.ones(3, requires_grad=True)

    @torch.compile
    def finish(loss):
        loss.backward()
        return w.grad * 2

    @torch.compile
    def gradient(y):
        return torch.autograd.grad(y.sum() * 2, w)[0]

    captured = [None]

    @torch.compile
    def head(x):
        (captured[0] * x).sum().backward()

    for k in range(ROUNDS):
        x = torch.full((3,), float(k))
        w.grad = None
        assert close(finish((w * x).exp().sum()).tolist(), (x * x.exp() * 2).tolist())
        assert gradient(w * x).tolist() == [2.0 * k] * 3
        captured[0], w.grad = w * 2, None
        head(x)
        assert w.grad.tolist() == [2.0 * k] * 3
    assert "[R134]" in finish.explain() and "[R134]" in gradient.explain()
