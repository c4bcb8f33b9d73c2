"""What a call of a compiled function costs beside its arithmetic, by kind of call.

    python benchmarks/call_overhead.py              all kinds
    python benchmarks/call_overhead.py dropout      those whose name has this word

Nanoseconds of CPU time per call on 4 elements, the least of several batches, one thread: without
and with history (inputs or parameters require grad). A call should stay under 1,000 + 100 for each
argument. `way` says how calls with history were served: by native code alone, by code written for
the trace around it, or otherwise.
"""

import argparse
import dataclasses
import time

import wengert as torch
from wengert import nn
from wengert.nn import functional as F


@dataclasses.dataclass
class Pair:
    a: object
    b: object


class Scaled(nn.Module):
    """A module with a method that is compiled."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def scale(self, x):
        return x * self.weight


def into(out, x):
    out.mul_(0.5).add_(x)


def in_the_middle(x):
    return x * x.sum().item()


def in_python(x):
    return x * float(x.sum())


def branched(x, y):
    return x * y if x.sum() > 0 else x + y


def twice_branched(x, y):
    z = x * y if x.sum() > 0 else x + y
    return z * 2 if z.sum() > 100 else z - 1


def tensors(grad, *shapes):
    return [torch.ones(*shape).requires_grad_(grad) for shape in shapes or ((4,), (4,))]


def plain_cases(grad):
    """name: (function, how many arguments)."""
    x, y = tensors(grad)
    compiled = torch.compile
    product = compiled(lambda x, y: x * y)
    named = compiled(lambda x, other: x * other)
    two = compiled(lambda x, y: (x * y, x + y))
    five = compiled(lambda x, y: (x * y, x + y, x - y, x * 2, y * 2))
    scaled = compiled(lambda x, s: x * s)
    flagged = compiled(lambda x, n, flag: x * n if flag else x + n)
    default = compiled(lambda x, y, scale=2.0, flag=True: x * y * scale)
    optional = compiled(lambda x, y=None: x * 2 if y is None else x * y)
    clock = iter(range(1, 10**9))
    eight = [torch.ones(4).requires_grad_(grad) for _ in range(8)]
    total = compiled(lambda *xs: sum(xs[1:], xs[0]))
    chosen = compiled(lambda x, mode: x * 2 if mode == "twice" else x)
    return {
        "x * y": (lambda: product(x, y), 2),
        "sum of 8 arguments": (lambda: total(*eight), 8),
        "keyword": (lambda: named(x, other=y), 2),
        "defaults": (lambda: default(x, y), 2),
        "None": (lambda: optional(x, None), 2),
        "a string": (lambda: chosen(x, "twice"), 2),
        "two results": (lambda: two(x, y), 2),
        "five results": (lambda: five(x, y), 2),
        "float": (lambda: scaled(x, 2.5), 2),
        "float that changes": (lambda: scaled(x, next(clock) * 0.5), 2),
        "int and flag": (lambda: flagged(x, 3, True), 3),
    }


def container_cases(grad):
    x, y = tensors(grad)
    compiled = torch.compile
    from_list = compiled(lambda xs: xs[0] * xs[1])
    from_dict = compiled(lambda d: d["a"] * d["b"])
    from_data = compiled(lambda p: p.a * p.b)
    to_list = compiled(lambda x, y: [x * y, x + y])
    to_dict = compiled(lambda x, y: {"a": x * y, "b": x + y})
    to_data = compiled(lambda x, y: Pair(x * y, x + y))
    nested = compiled(lambda x, d: (x, {"y": [d["a"][0] * x]}))
    xs, d, p = [x, y], {"a": x, "b": y}, Pair(x, y)
    deep = {"a": (y,)}
    return {
        "list": (lambda: from_list(xs), 2),
        "tuple": (lambda: from_list((x, y)), 2),
        "dict": (lambda: from_dict(d), 2),
        "dataclass": (lambda: from_data(p), 2),
        "list result": (lambda: to_list(x, y), 2),
        "dict result": (lambda: to_dict(x, y), 2),
        "dataclass result": (lambda: to_data(x, y), 2),
        "nested": (lambda: nested(x, deep), 2),
    }


def result_cases(grad):
    x, y = tensors(grad)
    compiled = torch.compile
    given = compiled(lambda x, y: (x, x * y))
    viewed = compiled(lambda x: x.view(2, 2))
    computed = compiled(lambda x, y: (x * y).view(2, 2))
    transposed = compiled(lambda x, y: (x * y).view(2, 2).t())
    same_view = compiled(lambda x, y: (x * y).chunk(2))
    with_number = compiled(lambda x, y: (x * y, 3, None))
    detached = compiled(lambda x, y: (x * y).detach())
    item = compiled(lambda x: (x * 2).sum().item())
    middle = compiled(in_the_middle)
    out = torch.zeros(4)
    writes, source = compiled(into), torch.ones(4)
    base = compiled(lambda x: x)
    held = compiled(lambda x: x.tanh())
    number = compiled(in_python)
    return {
        "argument as a result": (lambda: given(x, y), 2),
        "identity": (lambda: base(x), 1),
        "held for backward": (lambda: held(x), 1),
        "view of an argument": (lambda: viewed(x), 1),
        "view of a result": (lambda: computed(x, y), 2),
        "transposed result": (lambda: transposed(x, y), 2),
        "chunks of a result": (lambda: same_view(x, y), 2),
        "numbers among results": (lambda: with_number(x, y), 2),
        "detached result": (lambda: detached(x, y), 2),
        "item() returned": (lambda: item(x), 1),
        "item() in the middle": (lambda: middle(x), 1),
        "float() in the middle": (lambda: number(x), 1),
        "written argument": (lambda: writes(out, source), 2),
    }


def value_cases(grad):
    x, y = tensors(grad)
    compiled = torch.compile
    dropped = compiled(lambda x: F.dropout(x, 0.5))
    noisy = compiled(lambda x: x + torch.randn(16))
    branch = compiled(branched)
    branches = compiled(twice_branched)
    nets = compiled(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1)))
    for p in nets.parameters():
        p.requires_grad_(grad)
    row, wide = torch.ones(1, 4), torch.ones(16).requires_grad_(grad)
    sizes = compiled(lambda x: x * 2 + 1)
    few, more = torch.ones(4).requires_grad_(grad), torch.ones(6).requires_grad_(grad)
    turn = iter(range(10**9))

    return {
        "dropout": (lambda: dropped(x), 1),
        "randn": (lambda: noisy(wide), 1),
        "net with dropout": (lambda: nets(row), 1),
        "branch on a value": (lambda: branch(x, y), 2),
        "two branches": (lambda: branches(x, y), 2),
        "two sizes in turn": (lambda: sizes(more if next(turn) & 1 else few), 1),
    }


def module_cases(grad):
    compiled = torch.compile
    layer = compiled(nn.Linear(4, 4))
    scaled = Scaled()
    method = compiled(scaled.scale)
    mlp = compiled(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)))
    norm = compiled(nn.BatchNorm1d(4))
    calm = nn.BatchNorm1d(4).eval()
    still = compiled(calm)
    embedding = compiled(nn.Embedding(10, 4))
    closed = torch.ones(4).requires_grad_(grad)
    closure = compiled(lambda x: x * closed)
    layer_norm = compiled(nn.LayerNorm(4))
    for module in (layer, scaled, mlp, norm, calm, embedding, layer_norm):
        for p in module.parameters():
            p.requires_grad_(grad)
    x, row, rows, index = torch.ones(4), torch.ones(1, 4), torch.rand(2, 4), torch.tensor([1, 2])
    return {
        "Linear": (lambda: layer(row), 1),
        "method of a module": (lambda: method(x), 1),
        "closure": (lambda: closure(x), 1),
        "MLP": (lambda: mlp(row), 1),
        "LayerNorm": (lambda: layer_norm(row), 1),
        "batch norm, training": (lambda: norm(rows), 1),
        "batch norm, eval": (lambda: still(rows), 1),
        "Embedding": (lambda: embedding(index), 1),
    }


def training_cases(grad):
    if not grad:
        return {}
    cases = {}
    optimizers = {
        "SGD": torch.optim.SGD,
        "SGD, momentum": lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9),
        "Adam": torch.optim.Adam,
        "AdamW": torch.optim.AdamW,
    }
    for name, make in optimizers.items():
        for dropout in (False, True):
            layers = [nn.Linear(4, 4), nn.ReLU(), *[nn.Dropout(0.1)] * dropout, nn.Linear(4, 2)]
            case = step_of(nn.Sequential(*layers), make)
            cases[f"step of {name}{', dropout' * dropout}"] = (case, 2)
    cases["step of SGD, batch norm"] = (
        step_of(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)),
                torch.optim.SGD), 2)  # fmt: skip
    return cases


def step_of(model, make):
    optimizer = make(model.parameters(), 1e-3)
    rows, target = torch.rand(2, 4), torch.rand(2, 2)

    @torch.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return lambda: step(rows, target)


GROUPS = (plain_cases, container_cases, result_cases, value_cases, module_cases, training_cases)


def all_cases(grad):
    return {name: case for group in GROUPS for name, case in group(grad).items()}


def way_of(function):
    """How the calls in a case are served: the kinds of shortcuts of the function it closes over."""
    ways = set()
    for cell in function.__closure__ or ():
        inner = getattr(cell.cell_contents, "_compiled", cell.cell_contents)
        for hot in getattr(inner, "hot", None) or getattr(inner, "_hot", ()):
            native = type(hot).__name__ == "builtin_function_or_method"
            ways.add("native" if native else hot.__name__)
    return ", ".join(sorted(ways)) or "general"


def measure(function, batches=12, seconds=0.004):
    """Nanoseconds of CPU time per call, of the quickest batch."""
    for _ in range(12):
        function()
    clock = time.process_time_ns
    start = clock()
    for _ in range(50):
        function()
    count = max(20, int(seconds * 50e9 / max(clock() - start, 1)))
    best = float("inf")
    for _ in range(batches):
        start = clock()
        for _ in range(count):
            function()
        best = min(best, clock() - start)
    return best / count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("word", nargs="?", default="", help="only kinds whose name has it")
    options = parser.parse_args()
    torch.set_num_threads(1)
    empty = measure(lambda: None)
    without, having = all_cases(False), all_cases(True)
    print(f"{'ns per call':26s}{'plain':>8s}{'history':>9s}{'limit':>7s}  way")
    for name, (function, arguments) in having.items():
        if options.word not in name:
            continue
        texts = [f"{measure(without[name][0]) - empty:8.0f}" if name in without else " " * 8,
                 f"{measure(function) - empty:9.0f}", f"{1000 + 100 * arguments:7d}"]  # fmt: skip
        print(f"{name:26s}{''.join(texts)}  {way_of(function)}", flush=True)


if __name__ == "__main__":
    main()
