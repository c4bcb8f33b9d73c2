"""Values that reach Python inside compiled functions are seen anew at every call."""

import array
import copy
import io
import math
import pickle
import random
import sys

import numpy as np
import pytest
import wengert as torch
import wengert.nn.functional as F
from comparing import close
from wengert import nn
from wengert.runtime import watch

ROUNDS = 4


def inputs():
    torch.manual_seed(3)
    return [torch.randn(4) for _ in range(ROUNDS)]


def plain(value):
    """Tensors and arrays as lists, for comparing."""
    if isinstance(value, torch.Tensor | np.ndarray):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    return {k: plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def helper(t):
    return t.sum().item()


def returned_item(x):
    return (x * 2).sum().item()


def returned_later(x):
    y = (x * 2).sum()
    value = y.item()
    z = y + 1
    return value, z


def returned_in_a_dict(x):
    return {"loss": (x**2).mean().item(), "rest": [x * 2, x.sum().item()]}


def returned_float(x):
    return float((x * 3).sum())


def returned_list(x):
    return (x * 3).tolist()


def returned_array(x):
    return (x * 3).numpy()


def returned_by_a_helper(x):
    return helper(x * x), 3


def returned_before_a_write(x):
    x = x.clone()
    value = x.sum().item()
    x.add_(1)
    return value, x.sum()


def returned_by_either_branch(x):
    s = (x * 2).sum()
    if x.sum() > 0:
        return s.item()
    return s.item(), 1


def returned_small_int(x):
    return (x > 0).sum().item()


def returned_inside_with(x):
    with torch.no_grad():
        y = x * 2
        return y.sum().item(), (y > 0).sum().item(), y


def seen_of_python_data(x):
    lengths = torch.tensor([3, 1]) * 2 - 1
    total = int(lengths.sum())
    if lengths.max() > 4:
        total += 1
    return [x[:n].sum() for n in lengths.tolist() if n < 4], x * total


def used_by_max(x):
    return max((x * x).sum().item(), 1.0)


def used_as_operand(x):
    return x * (x * x).sum().item() + 1


def used_in_arithmetic(x):
    value = (x * 2).sum().item()
    return value * 2


def used_in_a_branch(x):
    y = x * 2
    if y.sum().item() > 0:
        return y + 1
    return y - 1


def looped(x):
    total = 0.0
    while x.norm().item() < 20:
        x = x * 2
        total += x.sum().item()
    return x, total


def clipped(x):
    return x * min(1.0, 2.0 / (x.norm().item() + 1e-6))


def grown(x):
    total = best = 0.0
    for row in (x, x * 2, x * 3):
        value = row.sum().item()
        best = max(best, value)
        total += value
    return x / total, [best, -total], {"total": total**2}


def of_other_kinds(x):
    total = x.double().sum().item() + x.half().sum().item() * x.bfloat16().sum().item()
    return x * total, total // 2, total % 3, not total


def before_a_write(x):
    total = x.sum()
    value = total.item()
    total.add_(1)
    return x * value, total * value


def dropped(x):
    x.sum().item()
    return x * 2


NATIVE = [returned_item, returned_later, returned_in_a_dict, returned_float, returned_list,
          returned_array, returned_by_a_helper, returned_before_a_write, returned_by_either_branch,
          returned_small_int, returned_inside_with, seen_of_python_data, used_by_max,
          used_as_operand, used_in_arithmetic, used_in_a_branch, looped, clipped, grown,
          of_other_kinds, before_a_write, dropped]  # fmt: skip


@pytest.mark.parametrize("function", NATIVE, ids=lambda f: f.__name__)
def test_values_that_need_no_python(function):
    compiled = torch.compile(function)
    for x in inputs():
        assert close(plain(compiled(x)), plain(function(x)))
    if sys.version_info < (3, 13):  # whose bytecode tells less: there bodies may run
        assert "Python body" not in compiled.explain(), compiled.explain()
        assert "replayed" in compiled.explain()


def used_by_math(x):
    return math.sqrt((x * x).sum())


def used_as_a_slice(x):
    n = int((x > 0).sum())
    return (x * 2)[:n] + 1


def used_in_a_comprehension(x):
    return [round(t.item(), 3) for t in x * 2]


def used_by_map(x):
    return list(map(torch.Tensor.item, x * 2))


def used_by_numpy(x):
    return x + torch.from_numpy(np.cumsum((x * 2).numpy()))


def copied(x):
    y = x * 2
    twin, same = copy.deepcopy(y), copy.copy(y)
    y.add_(1)
    again = pickle.loads(pickle.dumps(y * 3))
    return print(end=""), twin, same, again, [t.__class__ is torch.Tensor for t in (twin, same)]


def seen_through_storages(x):
    y = x * 2
    storage = y.untyped_storage()
    z = y + 1
    y.add_(1)
    first = list(storage)[:4]
    z.resize_(2)
    return print(end=""), first, list(storage)[:4], z


def converted_by_type(x):
    return print(end=""), (x * 2).type(torch.float64) + 1


def strided(x):
    pair = torch.stack([x[0], x[0]]).narrow(-1, 0, 1)
    return print(end=""), pair.as_strided((2,), (1,), 0) + 0


def used_in_text(x):
    return f"{(x * 2).sum():.2f}", x + 1


def shapes_from_values(x):
    return x[x > 0] * 2, x.nonzero().shape, (x * 2).round().unique()


def used_as_a_float(x):
    return x * float((x * x).sum()) + 1


def used_later(x):
    value = (x * x).sum().item() * 2
    return x * math.sqrt(value)


def shown(x):
    return f"{(x * 2).sum().item() + 1:.3f}", x * 2


def used_by_a_helper(x):
    return x * helper(x)


def used_where_an_error_is_met(x):
    value = (x * 2).sum().item()
    try:
        return x * value
    finally:
        str(value)


IN_SEGMENTS = [used_by_math, used_as_a_slice, used_in_a_comprehension, used_by_map, used_by_numpy,
               copied, seen_through_storages, strided, converted_by_type, used_in_text,
               shapes_from_values, used_as_a_float, used_later, shown, used_by_a_helper,
               used_where_an_error_is_met]  # fmt: skip


@pytest.mark.parametrize("function", IN_SEGMENTS, ids=lambda f: f.__name__)
def test_values_that_python_uses_are_seen_with_segments_around(function):
    compiled = torch.compile(function)
    for x in inputs():
        assert close(plain(compiled(x)), plain(function(x)))
    text = compiled.explain()
    assert "test_escapes.py:" in text
    if compiled.body.pieces.functions:  # see test_pieces.py
        assert "leaves a statement to Python at each call" in text and "is compiled:" in text
    else:
        assert "runs its Python body at each call" in text and "compiled segments" in text
        assert compiled.body.windows


def test_effects_of_python_happen_at_every_call(capsys):
    kept, numbers = array.array("d"), []

    @torch.compile
    def step(x):
        y = x * 2
        print("sum", y.sum().item())
        kept.append(y.sum())
        numbers.append(y[0].item())
        return y + 1

    for k in range(ROUNDS):
        step(torch.full((3,), float(k)))
    assert capsys.readouterr().out == "".join(f"sum {6.0 * k}\n" for k in range(ROUNDS))
    assert list(kept) == [6.0 * k for k in range(ROUNDS)]
    assert numbers == [2.0 * k for k in range(ROUNDS)]


def test_pythons_own_random_numbers_are_drawn_at_every_call():
    def choose(x):
        return x * 2 if random.random() < 0.5 else x * 3

    compiled = torch.compile(choose)
    drawn = []
    for function in (choose, compiled):
        random.seed(5)
        drawn.append([function(torch.ones(1)).item() for _ in range(12)])
    assert drawn[0] == drawn[1] and len(set(drawn[0])) == 2


def test_a_body_that_only_prints_prints_at_every_call(capsys):
    @torch.compile
    def speak(x):
        print("here")
        return x + 1

    for _ in range(3):
        speak(torch.ones(2))
    assert capsys.readouterr().out == "here\n" * 3
    assert "[R115]" in speak.explain()


def training(optimizer_class, looks, compiled):
    torch.manual_seed(0)
    layers = [nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.2)]
    model = nn.Sequential(*layers, nn.Linear(8, 3))
    optimizer = optimizer_class(model.parameters(), lr=0.05)
    best, log = [float("inf")], []

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        if looks:
            log.append(loss.item())
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if looks and norm.item() > 0.5:
            log.append(float(norm))
        optimizer.step()
        if looks and loss.item() < best[0]:
            best[0] = loss.item()
        return loss

    return model, optimizer, log, torch.compile(step) if compiled else step


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop])
def test_training_steps_that_log_train_as_eager_ones(kind):
    sides = [training(kind, True, compiled) for compiled in (False, True)]
    torch.manual_seed(1)
    x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))
    for k in range(6):
        losses = []
        for _, _, _, step in sides:
            torch.manual_seed(k)
            losses.append(step(x, y))
        torch.testing.assert_close(*losses)
        assert type(losses[1]) is torch.Tensor
    (m1, _, log1, _), (m2, _, log2, compiled) = sides
    assert log1 == pytest.approx(log2, rel=1e-4)
    for a, b in zip(m1.state_dict().values(), m2.state_dict().values()):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    for a, b in zip(m1.parameters(), m2.parameters()):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-5)
        assert type(b) is nn.Parameter and type(b.grad) is torch.Tensor
    assert compiled.body.calls == 5


def test_what_numpy_writes_is_not_postponed():
    buffer = np.zeros(3, np.float32)
    shared = torch.from_numpy(buffer)

    def body(x):
        x.sum().item()
        y = shared * 2 + x
        buffer[:] += 1
        shared.add_(1)
        view = x.numpy()
        z = x + 1
        view[0] = 7
        return y, z, x * 1

    compiled = torch.compile(body)
    for _ in range(ROUNDS):
        buffer[:] = 0
        want = plain(body(torch.zeros(3)))
        buffer[:] = 0
        assert plain(compiled(torch.zeros(3))) == want


def test_errors_of_postponed_work_leave_what_came_before():
    def body(x, i):
        x.sum().item()
        x.add_(1)
        y = x[i] * 2
        x.add_(10)
        return y.sum().item()

    compiled = torch.compile(body)
    for _ in range(3):
        compiled(torch.zeros(3), torch.tensor([1]))
    x = torch.zeros(3)
    with pytest.raises(IndexError, match=r"out of (bounds|range)"):
        compiled(x, torch.tensor([5]))
    assert x.tolist() == [1, 1, 1]


def test_history_hooks_and_double_backward_through_segments():
    def body(x, seen):
        y = (x * 2).tanh()
        y.register_hook(lambda g: seen.append(g.sum().item()))
        z = (y * y).sum()
        if z.item() > 0:
            z = z * 2
        (g,) = torch.autograd.grad(z, x, create_graph=True)
        return g.pow(2).sum()

    compiled = torch.compile(body)
    for data in inputs():
        results = []
        for function in (body, compiled):
            x, seen = data.clone().requires_grad_(), []
            function(x, seen).backward()
            results.append((x.grad.tolist(), seen))
        assert results[0][0] == pytest.approx(results[1][0], rel=1e-4)
        assert results[0][1] == pytest.approx(results[1][1], rel=1e-4)


def test_long_loops_on_values_share_one_segment():
    def grow(x, limit):
        rounds = 0
        while x.norm() < limit:
            x = x * 1.01
            rounds += 1
        return x, rounds

    compiled = torch.compile(grow)
    for limit in (3.0, 5.0, 4.0, 6.0):
        want, got = grow(torch.ones(4), limit), compiled(torch.ones(4), limit)
        assert want[1] == got[1]
        torch.testing.assert_close(got[0], want[0])
    assert "[R120]" in compiled.explain()
    assert len(compiled.body.windows) < 6


def test_a_line_search_that_moves_parameters_back_and_forth():
    def search():
        x = torch.tensor([-1.5, 2.0], requires_grad=True)
        optimizer = torch.optim.LBFGS([x], max_iter=5, line_search_fn="strong_wolfe")

        def closure():
            optimizer.zero_grad()
            loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
            loss.backward()
            return loss

        return [round(optimizer.step(closure).item(), 4) for _ in range(3)], x.tolist()

    compiled = torch.compile(search)
    want = search()
    for _ in range(3):
        got = compiled()
        assert got[0] == pytest.approx(want[0], rel=1e-3)
        assert got[1] == pytest.approx(want[1], rel=1e-3)


def test_views_of_memory_that_numpy_writes_show_what_is_there():
    def body():
        array = np.zeros(3, np.float32)
        shared = torch.from_numpy(array)
        view = shared[:2]
        array[0] = 5
        first = (view * 2).tolist()
        shared[1] = 7
        return first, array.tolist(), view.tolist()

    compiled = torch.compile(body)
    assert [compiled() for _ in range(3)] == [body()] * 3


def test_rounds_of_a_loop_share_their_segments():
    def body(x):
        while x.sum() < 1e4:
            x = x * 1.05
        return x

    compiled = torch.compile(body)
    for scale in (1.0, 2.0, 0.5, 3.0):
        x = torch.full((3,), scale)
        assert close(compiled(x).tolist(), body(x).tolist())
    assert "such calls, 2 compiled segments" in compiled.explain()
    assert compiled.body.tree.size < 10


def test_windows_of_small_tensors_are_not_worth_it(monkeypatch):
    monkeypatch.setattr("wengert.bodies.WORTH", 1000)
    postponed = []

    def function(x):
        y = (x * 2).tanh()
        postponed.append(y.__class__ is not torch.Tensor)
        return y * float(y.sum()) + len(postponed)

    compiled = torch.compile(function, numerics="strict")  # which is not taken apart
    for shape in ((4,), (4,), (4,), (4000,), (4000,), (4000,), (4,)):
        x = torch.linspace(0, 1, *shape)
        before = len(postponed)
        found = compiled(x)
        expected = (x * 2).tanh()
        expected = expected * expected.sum().item() + len(postponed)
        assert len(postponed) == before + 1
        torch.testing.assert_close(found, expected)
    # small: recorded, learned, eager; large: recorded or learned, learned, postponed; eager
    assert postponed[:3] == [False] * 3 and postponed[5] and not postponed[6]
    assert "fewer than 1,000 elements" in compiled.explain()


@pytest.mark.skipif(bool(watch.trouble()), reason="calls are not bound here")
def test_small_bodies_are_known_again_by_native_code(monkeypatch):
    monkeypatch.setattr("wengert.bodies.WORTH", 1000)

    def function(x, scale=1.0, *, names=("a",), rows=None):
        return x * float(x.sum()) * scale, names, rows

    compiled = torch.compile(function)
    x, turned = torch.ones(2, 3), torch.arange(6.0).view(3, 2).t()
    calls = [((x,), {}), ((x, 2.0), {}), ((turned,), {}), ((x.double(),), {"scale": 0.5}),
             ((x,), {"rows": [x, {"a": 1}]}), ((x.clone().requires_grad_(),), {})]  # fmt: skip
    for args, kwargs in calls * 4:
        found, wanted = compiled(*args, **kwargs), function(*args, **kwargs)
        assert torch.equal(found[0], wanted[0]) and found[1:] == wanted[1:]
        assert found[0].stride() == wanted[0].stride()
        assert found[0].requires_grad == wanted[0].requires_grad
    assert 1 <= len(compiled.body.eager) <= 4
    before = compiled.body.calls
    compiled.key_of = None  # is not asked
    compiled(x), compiled(torch.zeros(2, 3))
    assert compiled.body.calls == before + 2
    with pytest.raises(TypeError, match="NoneType"), torch.no_grad():
        compiled(x)  # another kind
    del compiled.key_of

    def failing(x, log):
        log.append(float(x.sum()))
        raise ValueError("mine")

    compiled, log = torch.compile(failing), []
    for _ in range(5):
        with pytest.raises(ValueError, match="mine"):
            compiled(x, log)
    assert len(log) == 5  # errors are the body's, which ran once
    compiled.cache_clear()
    assert not compiled.body.eager


# --- copies and new tensors ----------------------------------------------------------------------

LAST = torch.tensor([1.0, 2.0, 3.0, 4.0])


def deep_copy(x):
    return copy.deepcopy(x * 2) + copy.deepcopy(LAST).add_(x)


def pickled(x):
    return pickle.loads(pickle.dumps(x)) * 2


def saved_and_loaded(x):
    file = io.BytesIO()
    torch.save({"x": x * 2}, file)
    file.seek(0)
    return torch.load(file)["x"]


def state_of_the_generator(x):
    torch.rand(2)
    return torch.get_rng_state().clone()


def writes_new_tensors(x):
    made = [torch.as_tensor([1.0, 2.0, 3.0, 4.0]), torch.Tensor([1, 2, 3, 4]),
            torch.FloatTensor([1, 2, 3, 4])]  # fmt: skip
    return [t.add_(x) for t in made], torch.tril_indices(2, 2).add_(1)


@pytest.mark.parametrize("function", [deep_copy, pickled, saved_and_loaded, state_of_the_generator,
                                      writes_new_tensors], ids=lambda f: f.__name__)  # fmt: skip
def test_copies_and_new_tensors_are_made_anew(function):
    compiled = torch.compile(function)
    results = []
    for called in (compiled, function):
        torch.manual_seed(0)
        results.append([plain(called(x)) for x in inputs()])
    assert close(*results)
