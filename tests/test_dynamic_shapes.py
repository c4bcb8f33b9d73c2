"""Dynamic shapes: new sizes are served without running the body again, and right; eager is the
oracle. A counter in the body tells how often it ran."""

import sys

import pytest
import wengert as torch
import wengert.nn as nn
import wengert.nn.functional as F
from dynamic_cases import Watched, over, rows, same
from wengert.ir.parser import parse


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setenv("WENGERT_STRICT", "1")


# --- which calls run the body --------------------------------------------------------------------


def test_the_third_size_does_not_run_the_body():
    f = lambda x: torch.tanh(x) * 2  # noqa: E731
    watched = Watched(f)
    for size, runs in ((4, 1), (5, 2), (6, 2), (4, 2), (1, 3), (0, 4), (17, 4), (1, 4)):
        watched.check(*rows(size))
        assert watched.runs == runs, size


def test_modes():
    over(torch.tanh, rows, (4, 5, 6, 7), runs=1, dynamic=True)
    over(torch.tanh, rows, (4, 5, 6, 7), runs=2, dynamic=None)
    over(torch.tanh, rows, (4, 5, 6, 7), runs=4, dynamic=False)


def test_only_dimensions_that_varied_are_symbolic():
    watched = over(lambda x: x * 2, rows, ((4, 3), (5, 3), (6, 3)), runs=2)
    assert ".shape[0]" in watched.explain() and ".shape[1]" not in watched.explain()
    watched.check(*rows(7, 4))
    assert watched.runs == 3
    watched.check(*rows(8, 5))
    assert watched.runs == 3


def test_sizes_that_were_equal_are_not_taken_for_one():
    def f(x, y):
        return x.sum() + y.sum()

    make = lambda n, m: (*rows(n), *rows(m))  # noqa: E731
    watched = over(f, make, ((4, 4), (5, 5), (6, 6)), runs=2)
    watched.check(*make(6, 7))
    assert watched.runs == 3
    watched.check(*make(8, 9))
    assert watched.runs == 3


# --- shapes in the body --------------------------------------------------------------------------


def test_shape_functions():
    def f(x):
        n, m = x.shape
        return (x.view(-1), x.reshape(n, 1, -1), x.reshape(-1, m), x.expand(2, *x.shape), x.t(),
                torch.cat([x, x * 2]), torch.stack([x, x], 1), x.flatten(), x[1:], x[:-1], x[-1],
                x.unsqueeze(0).expand(-1, n, m), x.permute(1, 0).reshape(m, -1, 1))  # fmt: skip

    over(f, rows, (4, 5, 7, 13, 3), runs=2)


def test_pieces():
    make = lambda n: rows(2 * n)  # noqa: E731
    over(lambda x: x.chunk(2), make, (4, 5, 7, 13), runs=2)
    over(lambda x: x.split(x.shape[0] // 2), make, (4, 5, 7, 13), runs=2)
    over(lambda x: x.split([2, x.shape[0] - 2]), make, (4, 5, 7, 13), runs=2)
    over(lambda x: x.unbind(0), rows, (4, 5, 6), runs=3)  # as many results as rows


def test_tensors_of_a_size():
    def f(x):
        n = x.shape[0]
        mask = torch.arange(n)[:, None] >= torch.arange(n)
        made = torch.ones(n + 1), x.new_zeros(2 * n), mask.tril(-1), torch.arange(1, n, 2)
        return (x + torch.arange(n)[:, None], torch.zeros(n, n) + mask, torch.full((n, 2), 3.0),
                *made)  # fmt: skip

    over(f, rows, (4, 5, 7, 13, 6), runs=2)


def test_numbers_made_from_sizes_are_not_frozen():
    def f(x):
        n = x.shape[0]
        return (x.mean(), x.mean(0), x.var(0), x.sum() / n, x * (1 / n), x / x.numel(), x * n**-0.5,
                x + n // 2, x - n % 3, n, x.shape, x.numel() + 1, 1.0 / n, divmod(n, 2),
                {"rows": x.size(0) * 2, "ratio": -n / 3}, F.mse_loss(x, x * 2))  # fmt: skip

    over(f, rows, (4, 5, 7, 13, 2, 3), runs=2)


def test_branches_on_sizes():
    f = lambda x: x * 2 if x.shape[0] > 4 else x - 1  # noqa: E731
    watched = over(f, rows, (4, 5, 6, 9, 3, 2, 4), runs=3)
    assert "n >= 5" in watched.explain()
    assert "test_dynamic_shapes.py:" in watched.explain()


def test_values_of_sizes_that_python_sees():
    for f in (lambda x: x * len(x), lambda x: x * float(x.shape[0]), lambda x: x + int(f"{len(x)}"),
              lambda x: sum(x[k] for k in range(x.shape[0])),
              lambda x: x * {4: 2.0, 5: 3.0}.get(x.shape[0], 1.0)):  # fmt: skip
        watched = over(f, rows, (4, 5, 6, 7), runs=4)
    assert "all sizes specialise" in watched.explain()
    assert "n == 5" in watched.explain()


def test_backward_inside():
    def f(x):
        y = (x * x).mean(0).sum() + x[1:].sum() / x.shape[0]
        y.backward()
        return y.detach()

    over(f, rows, (4, 5, 7, 13, 3), runs=2)


def test_writes_and_aliases():
    def f(x, out):
        y = x * 1
        y[0] = 3
        y[1:] *= 2
        y.view(-1)[2:] += 1
        out[1:].copy_(y.detach()[1:])
        return y, y[1:], x.detach()[1:], x, x.data

    make = lambda n: (*rows(n), torch.zeros(n, 3))  # noqa: E731
    watched = Watched(f)
    for n in (4, 5, 7, 13):
        x, out = make(n)
        y, part, detached, whole, data = watched.check(x, out)
        assert whole is x
        for view, base in ((part, y), (detached, x), (data, x)):
            assert view.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    assert watched.runs == 2


def test_random_numbers():
    f = lambda x: F.dropout(x, 0.5) + torch.randn(x.shape) + torch.rand(x.shape[0], 1)  # noqa: E731
    over(f, rows, (4, 5, 7, 13), runs=2)


def test_branches_on_values_at_new_sizes():
    def f(x):
        y = x * 2
        while y.sum() < 50:
            y = y * 2
        return y

    watched = Watched(f)
    for n, start in ((4, 1.0), (5, 1.0), (6, 1.0), (6, 0.1), (7, 0.1), (8, 1.0)):
        watched.check(torch.full((n, 2), start, requires_grad=True))
    assert watched.runs <= 5, watched.explain()


def test_containers_floats_and_settings():
    def f(batch, scale):
        return {"sum": batch["x"] @ batch["w"][0] * scale, "size": batch["x"].shape[0]}

    compiled = torch.compile(f)
    w = torch.randn(3, 2)
    for n, scale in ((4, 0.5), (5, 2.0), (7, 3.0), (9, 0.25)):
        batch = {"x": torch.randn(n, 3), "w": [w]}
        same(compiled(batch, scale), f(batch, scale))
    assert "n = batch.0.shape[0]" in compiled.explain()


def test_sizes_kept_on_objects():
    class Model(nn.Module):
        def forward(self, x):
            self.rows = x.shape[0]
            return x * self.rows

    model = Model()
    compiled = torch.compile(model)
    for n in (4, 5, 6, 7, 7):
        x = torch.ones(n, 2)
        same(compiled(x), x * n)
        assert type(model.rows) is int and model.rows == n


def test_sizes_kept_in_containers():
    seen = {}

    def f(batch):
        batch["rows"] = batch["x"].shape[0]
        seen["shape"] = batch["x"].shape
        return batch["x"] * 2

    compiled = torch.compile(f)
    for n in (4, 5, 6, 7):
        batch = {"x": torch.ones(n, 2), "rows": 0}
        same(compiled(batch), torch.full((n, 2), 2.0))
        assert type(batch["rows"]) is type(seen["shape"][0]) is int
        assert (batch["rows"], 2) == seen["shape"] == (n, 2)


def test_custom_functions():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.rows = x.shape[0]
            ctx.save_for_backward(x)
            return x.sum(0) * 2

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad.expand(ctx.rows, -1) * x / x.shape[0]

    watched = over(lambda x: Double.apply(x[1:]), rows, (4, 5, 6, 9, 13), runs=2)
    graph = watched.compiled.graph("symbolic")
    assert "backward=@DoubleBackward_1" in graph.print()
    assert parse(graph.print()) == graph


def test_transforms_inside():
    over(lambda x: torch.vmap(lambda r: r * r.shape[0] + r.sum())(x), rows, (4, 5, 6), runs=2)
    over(lambda x: torch.func.grad(lambda t: (t * t).mean())(x), rows, (4, 5, 6), runs=2)


# --- errors --------------------------------------------------------------------------------------


def test_errors_at_new_sizes_are_eagers():
    def f(x):
        return x.view(2, -1) + x[3].sum()

    watched = Watched(f)
    for n in (4, 6, 8, 5, 7, 2, 10, 3):
        x = torch.randn(n, 3)
        try:
            expected = f(x)
        except (RuntimeError, IndexError) as error:
            with pytest.raises(type(error), match=str(error)[:20].replace("[", r"\[")):
                watched.compiled(x)
        else:
            same(watched.compiled(x), expected)


# --- looking at it -------------------------------------------------------------------------------


def test_a_symbolic_graph_prints_and_parses():
    watched = over(lambda x: x[1:].reshape(-1) / x.shape[0] ** 0.5, rows, (4, 5, 6), runs=2)
    graph = watched.compiled.graph("symbolic")
    assert "f32[n,3]" in graph.print() and "`n - 1`" in graph.print() and "`n ** 0.5`" in str(graph)
    assert parse(graph.print()) == graph


def test_old_kinds_of_call_are_dropped(monkeypatch):
    monkeypatch.setattr(sys.modules[torch.compile.__module__], "MAX_KINDS", 3)
    watched = over(lambda x: x * 2, rows, (2, 3, 4, 5, 6, 2, 3), runs=2)
    assert len(watched.compiled.traces) == 3
    assert "kinds of call were dropped" in watched.explain()


def test_what_is_known_of_dropped_kinds_is_dropped(monkeypatch):
    monkeypatch.setattr(sys.modules[torch.compile.__module__], "MAX_KINDS", 2)
    compiled = torch.compile(lambda x, k: x * k)
    for k in range(4):
        for n in (2, 3, 4):
            same(compiled(torch.ones(n), k), torch.ones(n) * k)
    dynamic = compiled.dynamic
    assert max(map(len, (dynamic.seen, dynamic.paths, dynamic.fixed, dynamic.placed))) <= 2


def test_an_index_that_is_too_large_at_a_new_size():
    watched = Watched(lambda x, i: x.scatter(0, i, 1.0), dynamic=True)
    for columns in (5, 4, 3):
        x, index = torch.randn(6, columns), torch.zeros(2, 4, dtype=torch.int64)
        if columns < 4:
            with pytest.raises(RuntimeError, match="to be no larger than self"):
                watched.compiled(x, index)
        else:
            watched.check(x, index)


@pytest.mark.parametrize("reshaped", [
    lambda x: x.t().reshape(-1, 2),
    lambda x: x.t().view(-1, 2) if x.shape[0] == 2 else x * 2,
    lambda x: x[:, :2].reshape(-1, x.shape[0]),
    lambda x: x.unsqueeze(1).reshape(-1, 2) if x.numel() % 2 == 0 else x + 0,
])  # fmt: skip
def test_whether_a_reshape_shares_memory_is_decided_by_the_sizes(reshaped):
    compiled = torch.compile(reshaped, dynamic=True)
    for n, m in ((3, 4), (6, 5), (2, 2), (2, 4), (4, 2), (2, 6)):
        seen = []
        for function in (reshaped, compiled):
            x = torch.arange(1.0 * n * m).view(n, m)
            y = function(x)
            y[(0,) * y.ndim] = 100
            seen.append((x.tolist(), y.tolist(), y.stride()))
        assert seen[0] == seen[1], (n, m)
