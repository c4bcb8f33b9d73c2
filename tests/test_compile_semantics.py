"""Compiling never changes meaning: scenarios run with eager functions and with compiled ones.

A scenario gets `wrap`, which is `compile` or nothing, and returns what can be observed.
"""

import copy
import dataclasses
import functools
import threading
import typing

import numpy as np
import pytest
import wengert as torch
import wengert.nn.functional as F
from wengert import nn
from wengert.utils.checkpoint import checkpoint

SCENARIOS = []


def scenario(function):
    SCENARIOS.append(function)
    return function


def plain(value):
    if isinstance(value, torch.Tensor):
        history = None if value.grad_fn is None else "history"
        return ("tensor", str(value.dtype), tuple(value.shape), value.requires_grad, history,
                value.detach().tolist())  # fmt: skip
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.name, value.tolist())
    if isinstance(value, tuple | list):
        return [type(value).__name__, *map(plain, value)]
    if isinstance(value, dict):
        return [type(value).__name__, *((k, plain(v)) for k, v in value.items())]
    if dataclasses.is_dataclass(value):
        return [type(value).__name__, plain(vars(value))]
    if isinstance(value, BaseException):
        return (type(value).__name__, str(value).split("\n")[0])
    return value


def close(a, b):
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, float | complex) and isinstance(b, float | complex):
        return a == b or a == pytest.approx(b, rel=2e-4, abs=2e-5, nan_ok=True)
    return a == b


@pytest.mark.parametrize("run", SCENARIOS, ids=lambda f: f.__name__)
def test_scenario(run):
    torch.manual_seed(0)
    want = plain(run(lambda f, **options: f))
    torch.manual_seed(0)
    got = plain(run(torch.compile))
    assert close(got, want), f"\ncompiled: {got}\neager:    {want}"


def grads_of(*tensors):
    return [None if t.grad is None else t.grad.clone() for t in tensors]


def data(*shape, k=0, grad=False):
    generator = np.random.default_rng(k)
    made = torch.tensor(generator.standard_normal(shape).astype(np.float32))
    return made.requires_grad_(grad)


def attempt(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return error


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


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.norm = nn.BatchNorm1d(6)
        self.drop = nn.Dropout(0.4)
        self.last = nn.Linear(6, 2)
        self.scale = 1.0

    def forward(self, x):
        return self.last(self.drop(torch.relu(self.norm(self.first(x))))) * self.scale


def filled(module, k=5):
    generator = np.random.default_rng(k)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.tensor(generator.standard_normal(tuple(p.shape)).astype(np.float32)))
    return module


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
    names = [n for n, _ in f.named_parameters()]
    before = f.state_dict()["first.bias"].clone()
    f(data(3, 4)), f(data(3, 4))
    f.load_state_dict(filled(Net(), 8).state_dict())
    return [names, net.scale, net.training, before, f(data(3, 4)), len(list(f.children())),
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


# --- training ------------------------------------------------------------------------------------


def optimizers():
    chosen = []
    for name in ("SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta",
                 "RMSprop", "Rprop", "ASGD"):  # fmt: skip
        chosen.append((getattr(torch.optim, name), {"lr": 0.02}))
    return [*chosen, (torch.optim.SGD, {"lr": 0.02, "momentum": 0.9, "nesterov": True})]


def train(wrap, make, steps=6, accumulate=1, set_to_none=True, schedule=None, add_group=False):
    net = filled(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)))
    extra = data(2, k=3, grad=True)
    optimizer = make(net.parameters())
    scheduler = None if schedule is None else schedule(optimizer)

    def step(x, y):
        loss = F.mse_loss(net(x) + extra, y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad(set_to_none=set_to_none)
        return loss

    f, losses = wrap(step), []
    pointers = [p.data_ptr() for p in net.parameters()]
    for k in range(steps):
        losses.append(f(data(6, 4, k=k % 2), data(6, 2, k=9)))
        if scheduler is not None:
            scheduler.step()
        if add_group and k == 3:
            optimizer.add_param_group({"params": [extra], "lr": 0.3})
    kept = [p.data_ptr() for p in net.parameters()] == pointers
    return [losses, [p.detach() for p in net.parameters()], extra.detach(), kept,
            [p.grad for p in net.parameters()]], f  # fmt: skip


@pytest.mark.parametrize("kind", optimizers(), ids=lambda k: k[0].__name__)
def test_every_optimizer_under_a_schedule_is_one_trace(kind):
    optimizer, options = kind

    def schedule(o):
        return torch.optim.lr_scheduler.CosineAnnealingLR(o, 8)

    def run(wrap):
        return train(wrap, lambda p: optimizer(p, **options), 8, schedule=schedule)

    want, _ = run(lambda f: f)
    got, compiled = run(torch.compile)
    assert close(plain(got), plain(want))
    text = compiled.explain()
    assert "Python body" not in text and "eagerly" not in text, text
    assert sum(line.startswith("  trace of") for line in text.splitlines()) <= 2, text


@scenario
def gradients_set_to_zero_or_none(wrap):
    return [train(wrap, lambda p: torch.optim.Adam(p, lr=0.05), set_to_none=flag)[0]
            for flag in (False, True)]  # fmt: skip


@scenario
def a_group_added_in_between(wrap):
    return train(wrap, lambda p: torch.optim.SGD(p, lr=0.05), 8, add_group=True)[0]


@scenario
def gradients_accumulated_over_calls(wrap):
    net = filled(nn.Linear(3, 2))
    seen = []

    def forward_backward(x):
        loss = net(x).pow(2).mean()
        loss.backward()
        return loss

    f = wrap(forward_backward)
    for k in range(6):
        seen.append(f(data(4, 3, k=k)))
        seen.append(grads_of(*net.parameters()))
        if k == 3:
            net.zero_grad()
    return seen


@scenario
def averages_of_weights(wrap):
    net, ema = filled(nn.Linear(3, 2)), filled(nn.Linear(3, 2), 7)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = net(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for a, b in zip(ema.parameters(), net.parameters()):
                a.mul_(0.9).add_(b, alpha=0.1)
        return loss

    f = wrap(step)
    return [[f(data(4, 3, k=k)), *(p.detach().clone() for p in ema.parameters())]
            for k in range(4)]  # fmt: skip


# --- autograd across the border ------------------------------------------------------------------


@scenario
def retained_and_higher_order_gradients(wrap):
    w = data(3, k=1, grad=True)
    f, seen = wrap(lambda x: (x * w).tanh() * w), []
    for k in range(3):
        x = data(3, k=k, grad=True)
        y = f(x * 2).sum()
        y.backward(retain_graph=True)
        y.backward()
        seen += [grads_of(x, w), attempt(y.backward)]
        z = f(x).sum()
        (g,) = torch.autograd.grad(z, x, create_graph=True)
        (g.pow(2).sum() + f(g).sum()).backward()
        seen.append(grads_of(x, w))
    return seen


@scenario
def saved_tensor_hooks_checkpoints_and_custom_functions(wrap):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x

    f = wrap(lambda x: Double.apply(x.sin()) + checkpoint(torch.tanh, x, use_reentrant=False))
    seen = []
    for k in range(4):
        x = data(3, k=k, grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy(), torch.tensor):
            y = f(x * 1)
        y.sum().backward()
        seen += [y, x.grad]
    return seen


@scenario
def grad_modes_inside_and_outside(wrap):
    w = data(3, k=1, grad=True)

    def body(x):
        with torch.no_grad():
            a = x * w
        with torch.enable_grad():
            b = x * w
        return a, b + a, torch.is_grad_enabled(), x.detach() * w

    f, seen = wrap(body), []
    for _ in range(3):
        seen.append(f(data(3)))
        with torch.no_grad():
            seen.append(f(data(3)))
        with torch.inference_mode():
            out = f(data(3))
            seen += [out, [t.is_inference() for t in out if isinstance(t, torch.Tensor)]]
    return seen


@scenario
def leaves_made_and_flags_changed_inside(wrap):
    def body(x):
        leaf = (x * 2).detach().requires_grad_()
        (leaf * leaf).sum().backward()
        return leaf.grad, leaf

    def flips(x):
        x.requires_grad_(True)
        (x * 3).sum().backward()
        return x.grad

    f, g = wrap(body), wrap(flips)
    return [[*f(data(2, k=k)), g(data(2, k=k))] for k in range(4)]


# --- memory --------------------------------------------------------------------------------------


@scenario
def views_and_arguments_handed_back(wrap):
    def body(x, y):
        z = x * 2
        return x, x[1:], y.t(), z, z[0], z.view(-1), x.detach(), y

    f, seen = wrap(body), []
    for k in range(3):
        x, y = data(3, 2, k=k), data(2, 3, k=k)
        out = f(x, y)
        seen.append([out[0] is x, out[7] is y, out[6] is x, out[1].data_ptr() == x[1:].data_ptr(),
                     out[4].data_ptr() == out[3].data_ptr() == out[5].data_ptr(),
                     out[1]._base is x, out[4]._base is out[3]])  # fmt: skip
        out[1].fill_(7)
        out[5].add_(1)
        out[6].mul_(2)
        seen += [x.clone(), *out]
    return seen


@scenario
def the_same_tensor_twice_and_overlapping_views(wrap):
    def body(x, y):
        x.add_(1)
        return x * y

    f, seen = wrap(body), []
    for k in range(3):
        a, b = data(4, k=k), data(4, k=k + 5)
        seen += [f(a, b), f(a, a), f(a[:2], a[1:3]), f(a[:2], b[:2]), f(a[:3], a[:3]), a, b]
    return seen


@scenario
def captured_tensors_that_become_arguments(wrap):
    w, v = data(3, k=1), data(3, k=2)

    def body(x):
        x.mul_(2)
        return x + w + v

    f, seen = wrap(body), []
    for x in (data(3), w, data(3, k=3), v, w, data(3, k=4)):
        seen += [f(x), w.clone(), v.clone()]
    return seen


@scenario
def captured_tensors_that_come_to_share_memory(wrap):
    class Holder:
        pass

    holder = Holder()
    holder.a, holder.b = data(3, k=1), data(3, k=2)

    def body(x):
        holder.a.add_(x)
        return holder.b * 2

    f, seen = wrap(body), []
    for k in range(6):
        if k == 2:
            holder.b = holder.a
        if k == 4:
            holder.b = holder.a[:]
        seen += [f(data(3, k=k)), holder.a.clone()]
    return seen


@scenario
def data_swapped_under_captured_tensors(wrap):
    w = nn.Parameter(data(3, k=1))
    other = data(3, k=2)
    f, seen = wrap(lambda x: x * w), []
    for k in range(6):
        if k == 2:
            w.data = other
        if k == 4:
            other.fill_(5)
        seen += [f(data(3)), w.detach().clone()]
    return seen


@scenario
def layouts_and_sizes(wrap):
    f, g, seen = wrap(lambda x: x.exp() + 1), wrap(lambda x: x.mul_(2)), []
    base = data(4, 6)
    inputs = [base, base.t(), base[::2, 1::2], base[:, 0].expand(3, 4), torch.tensor(2.0),
              torch.zeros(0, 3), base.double(), base.half(), base.bfloat16()]  # fmt: skip
    for _ in range(2):
        for x in inputs:
            seen += [f(x), attempt(g, x.clone().t() if x.ndim == 2 else x.clone())]
    seen += [attempt(g, base[:, 0].expand(3, 4)), attempt(g, base[:, 0].expand(3, 4))]
    return seen


@scenario
def dtypes(wrap):
    f, seen = wrap(lambda x, y: (x + y, x * 2, x == y, (x * 1.5).sum())), []
    kinds = [torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16, torch.float32,
             torch.float64, torch.complex64]  # fmt: skip
    for kind in kinds * 2:
        seen.append(f(torch.tensor([1, 0, 1]).to(kind), torch.tensor([1, 1, 0]).to(kind)))
    return seen


# --- errors, randomness, threads -----------------------------------------------------------------


@scenario
def errors_in_the_middle_of_writes(wrap):
    count = torch.zeros(1)

    def body(x, i, fail):
        count.add_(1)
        x.mul_(2)
        y = x[i]
        x.add_(1)
        if fail:
            raise KeyError("asked for")
        return y @ x

    f, seen = wrap(body), []
    for k in range(3):
        for i, fail in ((0, False), (9, False), (1, True)):
            x = data(3, k=k)
            seen += [attempt(f, x, torch.tensor([i]), fail), x, count.clone()]
    seen.append(attempt(f, data(2, 2), torch.tensor([0]), False))
    return seen


@scenario
def random_numbers(wrap):
    generator = torch.Generator()

    def body(x):
        noise = torch.randn(3) + torch.rand(3, generator=generator)
        return F.dropout(x, 0.5) + noise, torch.randperm(4), torch.bernoulli(x.sigmoid())

    f, seen = wrap(body), []
    for k in range(4):
        torch.manual_seed(k)
        generator.manual_seed(k)
        seen += [f(data(3)), torch.rand(1), torch.rand(1, generator=generator)]
    return seen


@scenario
def several_threads(wrap):
    w = data(8, k=1, grad=True)
    f = wrap(lambda x, look: (x * w).tanh() * (2 if look and x.sum().item() > 0 else 1))
    results = {}

    def work(n):
        x = data(8, k=n)
        for k in range(12):
            y = f(x, k % 2 == 0)
        results[n] = [y, torch.autograd.grad(y.sum(), w)[0]]

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return [results[n] for n in range(4)]


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
def mixed_precision(wrap):
    net = filled(nn.Linear(3, 2))

    def body(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = net(x)
        return y, y.float().sum()

    f, seen = wrap(body), []
    for k in range(3):
        y, s = f(data(2, 3, k=k))
        s.backward()
        seen += [y.float(), s, net.weight.grad.clone()]
    return seen
