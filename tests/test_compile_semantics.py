"""Compiling never changes meaning: forms of functions, arguments, what changes between calls."""

import copy
import dataclasses
import functools
import typing

import numpy as np
import pytest
import wengert as torch
from scenarios import Net, Scenarios, check, data, filled, grads_of, plain
from wengert import nn

scenario = Scenarios()


# --- forms and arguments -------------------------------------------------------------------------


@scenario
def lambdas_methods_and_partials(wrap):
    class Scaler:
        def __init__(self, factor):
            self.factor = factor

        def scale(self, x, more=1.0):
            return x * self.factor + more

    one, two = Scaler(2.0), Scaler(3.0)
    seen, x = [], data(3)
    f, g, h = wrap(one.scale), wrap(lambda x: x.sin()), wrap(functools.partial(two.scale, more=5.0))
    for k in range(4):
        one.factor, two.factor = 2.0 + k // 2, 3.0 + k
        seen += [f(x), f(x, more=float(k)), g(x), h(x)]
    return seen


@scenario
def decorated_methods_keep_instances_apart(wrap):
    class Cell:
        def __init__(self, w):
            self.w = w

        @wrap
        def step(self, x):
            return x * self.w + 1

    a, b = Cell(data(3, k=1)), Cell(data(3, k=2))
    return [c.step(data(3, k=k)) for k in range(3) for c in (a, b)]


@scenario
def defaults_varargs_and_keywords(wrap):
    def body(x, *rest, scale=2.0, flag=True, **more):
        for t in rest:
            x = x + t
        for name in sorted(more):
            x = x * more[name]
        return x * scale if flag else x / scale

    f = wrap(body)
    x, y = data(3), data(3, k=1)
    seen = []
    for k in range(3):
        seen += [f(x), f(x, y), f(x, y, y, scale=1.5 + k), f(x, flag=False), f(x, b=y, a=2.0 + k),
                 f(x, a=2.0, b=y)]  # fmt: skip
    return seen


@scenario
def a_default_list_that_is_changed(wrap):
    def body(x, seen=[]):  # noqa: B006
        seen.append(len(seen))
        return x + len(seen)

    f = wrap(body)
    return [f(data(2)) for _ in range(4)]


class Point(typing.NamedTuple):
    x: object
    y: object


@dataclasses.dataclass
class Batch:
    data: object
    scale: float
    tags: list


@scenario
def nested_containers_of_any_order(wrap):
    def body(batch, table, point):
        total = batch.data * batch.scale + table["b"] - table["a"]
        return {
            "z": total,
            "a": [point.y, Point(total, batch.tags)],
            "batch": Batch(total, 1.0, []),
        }

    f = wrap(body)
    seen = []
    for k in range(3):
        x, y = data(2, k=k), data(2, k=k + 9)
        seen.append(f(Batch(x, 1.0 + k, ["t"]), {"a": x, "b": y}, Point(x, y)))
        seen.append(f(Batch(x, 1.0 + k, []), {"b": x, "a": y}, Point(y, x)))
    return seen


@scenario
def containers_changed_by_the_body(wrap):
    def body(batch, log):
        batch["out"] = batch["x"] * batch["scale"]
        log.append(batch["out"].sum())
        return batch

    f, log, seen = wrap(body), [], []
    for k in range(4):
        batch = {"x": data(2, k=k), "scale": 1.0 + k}
        out = f(batch, log)
        seen += [out, list(batch), len(log)]
    return [*seen, log]


@scenario
def generators_and_comprehensions(wrap):
    def parts(x):
        for k in range(3):
            yield x[k] * k

    f = wrap(lambda x: sum(parts(x)) + sum(t for t in [x[0], x[1]]))
    return [f(data(4, k=k)) for k in range(3)]


@scenario
def recursion_and_nested_compilation(wrap):
    @wrap
    def inner(x):
        return x * 2 + 1

    @wrap
    def power(x, n):
        return x if n == 0 else power(inner(x), n - 1)

    return [power(data(2, k=k), n) for k in range(3) for n in (0, 1, 3)]


@scenario
def numpy_inputs(wrap):
    f = wrap(lambda x, a: x + torch.as_tensor(a) * 2)
    return [f(data(3), np.full(3, float(k), np.float32)) for k in range(4)]


@scenario
def numbers_of_all_kinds(wrap):
    f = wrap(lambda x, n: (x * n, n, n + 1))
    values = [1, 2, 1.0, 2.5, True, False, -0.0, float("inf"), float("nan"), 3 + 2j]
    return [f(data(2), n) for _ in range(2) for n in values]


@scenario
def numbers_that_are_equal_and_differ(wrap):
    ratio = wrap(lambda x, n: (x / n.real, repr(n), type(n).__name__))
    zeros = [kind(zero) for kind in (np.float16, np.float32, np.float64) for zero in (0.0, -0.0)]
    zeros += [0.0, -0.0, complex(0.0, 0.0), complex(0.0, -0.0), complex(-0.0, 0.0)]
    ends = wrap(lambda x, r: (x * len(r), r.stop))
    ranges = [range(0, 3, 2), range(0, 4, 2), range(0), range(1, 1)]
    keys = wrap(lambda x, d: (x * 2, [repr(k) for k in d]))
    tables = [{k: 1.0} for k in (1, True, 1.0, np.int64(1), 0.0, -0.0, (1, 2), (True, 2), None)]
    cut = wrap(lambda x, s: (x[s], repr(s)))
    slices = [slice(1, 2), slice(True, 2), slice(0, 2), slice(False, 2)]
    seen, x = [], data(3)
    for _ in range(4):
        for f, values in ((ratio, zeros), (ends, ranges), (keys, tables), (cut, slices)):
            seen += [f(x, value) for value in values]
    return seen


@scenario
def numbers_found_that_are_equal_and_differ(wrap):
    class Config:
        n = 1.0

    table, seen = {}, []
    closed = 1.0
    functions = [wrap(lambda x: (x / closed.real, repr(closed))), wrap(lambda x: repr([*table])),
                 wrap(lambda x: (x / Config.n.real, x / table["n"].real))]  # fmt: skip
    zeros = [kind(zero) for kind in (np.float32, complex) for zero in (0.0, -0.0)]
    for closed in [*zeros, complex(0.0, -0.0), *zeros]:
        Config.n = table["n"] = closed
        seen += [f(data(2)) for f in functions]
    for key in (1, True, 1, 1.0, 1):
        table.clear()
        table[key] = 2.0
        seen.append(functions[1](data(2)))
    return seen


# --- what can change between calls ---------------------------------------------------------------


FACTOR = 2.0


@scenario
def globals_closures_and_attributes(wrap):
    global FACTOR
    shift, settings = 1.0, {"power": 2}

    class Config:
        bias = 0.5

    config = Config()
    config.items = [1.0, 2.0]

    def body(x):
        return (x * FACTOR + shift) ** settings["power"] + config.bias + config.items[1]

    f, seen = wrap(body), []
    for k in range(6):
        FACTOR, shift = 2.0 + k // 2, 1.0 + k // 3
        settings["power"] = 2 + k % 2
        config.bias, config.items[1] = 0.5 * k, float(k)
        seen.append(f(data(3)))
    FACTOR = 2.0
    return seen


@scenario
def modules_changed_between_calls(wrap):
    net = filled(Net())
    f, seen = wrap(net), []

    def call(label):
        torch.manual_seed(1)
        out = f(data(5, 4))
        out.sum().backward()
        seen.append((label, out, net.norm.running_mean.clone(), grads_of(*net.parameters())))
        net.zero_grad()

    for change in (
        lambda: None, net.eval, net.train, lambda: setattr(net, "scale", 3.0),
        lambda: net.load_state_dict(filled(Net(), 6).state_dict()),
        lambda: net.first.weight.requires_grad_(False),
        lambda: net.first.weight.requires_grad_(True),
        lambda: setattr(net, "last", filled(nn.Linear(6, 3), 7)),
        lambda: setattr(net.first, "bias", None),
        lambda: net.first.register_forward_hook(lambda m, i, o: o * 2),
        lambda: setattr(net.drop, "p", 0.1),
    ):  # fmt: skip
        change()
        call("first")
        call("again")
    return seen


@scenario
def compiled_modules_are_the_modules(wrap):
    net = filled(Net())
    f = wrap(net)
    f.eval()
    f.scale = 2.0
    names = [n.removeprefix("_orig_mod.") for n, _ in f.named_parameters()]
    before = next(v for k, v in f.state_dict().items() if k.endswith("first.bias")).clone()
    f(data(3, 4)), f(data(3, 4))
    f.load_state_dict(wrap(filled(Net(), 8)).state_dict())
    return [names, net.scale, net.training, before, f(data(3, 4)),
            isinstance(f, nn.Module), f.first.weight is net.first.weight]  # fmt: skip


@scenario
def hooks_added_later(wrap):
    x, w, seen = data(3), data(3, k=1, grad=True), []
    f = wrap(lambda x: (x * w).sin())
    for k in range(6):
        w.grad = None
        y = f(x)
        if k == 2:
            handle = w.register_hook(lambda g: g * 10)
        if k == 4:
            handle.remove()
        y.register_hook(lambda g: seen.append(("out", g.clone())))
        y.sum().backward()
        seen.append(w.grad.clone())
    return seen


@scenario
def copies_of_compiled_modules(wrap):
    net = filled(Net()).eval()
    f = wrap(net)
    first = f(data(3, 4))
    twin = copy.deepcopy(net)
    with torch.no_grad():
        twin.last.bias.add_(1)
    return [first, wrap(twin)(data(3, 4)), f(data(3, 4))]


@scenario
def sparse_arguments_and_results(wrap):
    positions, w = torch.tensor([[0, 1, 1], [2, 0, 2]]), data(3, grad=True)

    @wrap
    def f(a, x):
        return a * 2, (a @ x).sum()

    seen = []
    for k in range(4):
        doubled, total = f(torch.sparse_coo_tensor(positions, w * k, (2, 3)), data(3, 2, k=k))
        total.backward()
        seen += [doubled.to_dense().detach(), total, w.grad.clone(), str(doubled.detach())]
    return seen


@pytest.mark.parametrize("run", scenario, ids=lambda f: f.__name__)
def test_scenario(run):
    check(run)


@pytest.mark.parametrize("make", [
    lambda: torch.device("cpu"), lambda: frozenset([1, 2]), lambda: np.float32("nan"),
    lambda: complex("nan"), lambda: range(3),
], ids=["device", "frozenset", "NaN", "complex NaN", "range"])  # fmt: skip
def test_values_made_anew_are_known_again(make):
    f = torch.compile(lambda x, value: (x * 2, str(value)))
    for k in range(5):
        value = make()
        assert plain(f(data(3, k=k), value)) == plain((data(3, k=k) * 2, str(value)))
    assert len(f.traces) == 1
