"""Compiling never changes meaning: what a body does, and what it hands back."""

import contextlib
import logging
import math
import tempfile
import warnings

import numpy as np
import pytest
import wengert as torch
from scenarios import Scenarios, attempt, check, data, filled
from wengert import nn
from wengert.nn import functional as F

scenario = Scenarios()


@scenario
def generators_as_bodies(wrap):
    def gen(x):
        for k in range(3):
            yield x * k

    f = wrap(gen)
    g = wrap(lambda x: sum(t.sum() for t in gen(x)))
    return [list(f(data(3))), list(f(data(3))), g(data(3)), g(data(3))]


@scenario
def returns_generators(wrap):
    f = wrap(lambda x: (t * 2 for t in x))
    return [list(f(data(3))), list(f(data(3, k=2))), list(f(data(3, k=3)))]


@scenario
def returns_closures(wrap):
    def body(x):
        y = x * 2
        return lambda z: y + z

    f = wrap(body)
    return [f(data(3, k=k))(1.0) for k in range(4)]


@scenario
def returns_objects(wrap):
    class Box:
        def __init__(self, t):
            self.t = t

    f = wrap(lambda x: Box(x * 2))
    return [f(data(3, k=k)).t for k in range(4)]


@scenario
def containers_returned_in_two_places(wrap):
    def body(x):
        both = [x * 2]
        return both, {"again": both}

    f = wrap(body)
    results = [f(data(3)) for _ in range(4)]
    return [(r, r[0] is r[1]["again"]) for r in results]


@scenario
def fresh_objects_each_call(wrap):
    f = wrap(lambda x: [x * 2, []])
    a, b, c = f(data(3)), f(data(3)), f(data(3))
    b[1].append(1)
    return a, b, c, f(data(3))


@scenario
def returns_mutable_globals(wrap):
    keep = []
    f = wrap(lambda x: (x * 2, keep))
    r = [f(data(3)) for _ in range(3)]
    r[0][1].append(1)
    return [x[1] is keep for x in r], f(data(3))[1] is keep


@scenario
def handed_back_containers(wrap):
    f = wrap(lambda d, x: (d, x * 2))
    out = []
    for _ in range(3):
        d = {"a": data(3)}
        r = f(d, data(3))
        out.append(r[0] is d)
    g = wrap(lambda x: ({1, 2}, np.zeros(2), x * 1))
    b, c = g(data(3)), g(data(3))
    c[0].add(3)
    c[1][0] = 5
    return out, g(data(3))[:2], b[:2]


@scenario
def seed_inside(wrap):
    def body(x):
        torch.manual_seed(7)
        return x + torch.rand(3)

    f = wrap(body)
    return [f(data(3)) for _ in range(4)], torch.rand(2)


@scenario
def fork_rng_inside(wrap):
    def body(x):
        with torch.random.fork_rng():
            torch.manual_seed(1)
            y = torch.rand(3)
        return x + y, torch.rand(3)

    f = wrap(body)
    return [f(data(3)) for _ in range(4)], torch.rand(2)


@scenario
def warnings_inside(wrap):
    def body(x):
        warnings.warn("careful", stacklevel=1)
        return x * 2

    f = wrap(body)
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always")
        r = [f(data(3)) for _ in range(4)]
    return r, len(w)


@scenario
def warnings_of_functions(wrap):
    counts = []
    for body in (lambda x: F.mse_loss(x, torch.ones(1, 3)), lambda x: x.resize(3),
                 lambda x: torch.tensor(x), lambda x: ((x * 2).grad, x * 3)[1]):  # fmt: skip
        f = wrap(body)
        with warnings.catch_warnings(record=True) as w:
            warnings.simplefilter("always")
            results = [f(data(3, grad=True)) for _ in range(4)]
        counts.append((results, [(x.category, x.filename, x.lineno) for x in w]))
    return counts


@scenario
def logging_handlers(wrap):
    seen = []

    class H(logging.Handler):
        def emit(self, r):
            seen.append(r.getMessage())

    log = logging.getLogger("test")
    log.setLevel(logging.INFO)
    log.handlers = [H()]

    def body(x):
        log.info("called")
        return x * 2

    f = wrap(body)
    return [f(data(3)) for _ in range(4)], seen


@scenario
def files_inside(wrap):
    file = tempfile.TemporaryFile("w+")  # noqa: SIM115

    def body(x):
        file.write("a")
        return x * 2

    f = wrap(body)
    results = [f(data(3)) for _ in range(4)]
    with file:
        file.seek(0)
        return results, file.read()


@scenario
def modes(wrap):
    def body(x):
        with torch.no_grad():
            a = x * 2
        with torch.enable_grad():
            b = x * 3
        with torch.inference_mode():
            c = x * 4
        return a.requires_grad, b.requires_grad, a, b, torch.is_grad_enabled(), c.is_inference()

    f = wrap(body)
    out = []
    for k in range(3):
        out.append(f(data(3, grad=True)))
        with torch.no_grad():
            out.append(f(data(3, grad=True)))
        with torch.inference_mode():
            r = f(data(3, grad=True))
            out.append(r)
            out.append(r[2].is_inference())
        with torch.set_grad_enabled(k % 2 == 0):
            out.append(f(data(3, grad=True)))
    return out


@scenario
def leaves_grad_mode_changed(wrap):
    def body(x, flag):
        torch.set_grad_enabled(flag)
        return x * 2

    f = wrap(body)
    out = []
    for flag in (True, False, True, False, False, True):
        out.append(f(data(3, grad=True), flag))
        out.append(torch.is_grad_enabled())
    torch.set_grad_enabled(True)
    return out


@scenario
def default_dtype_changed(wrap):
    f = wrap(lambda x: torch.ones(3) + torch.tensor(2.0) + x)
    out = [f(1.0), f(1.0)]
    torch.set_default_dtype(torch.float64)
    out += [f(1.0), f(1.0)]
    torch.set_default_dtype(torch.float32)
    return out, f(1.0)


@scenario
def scheduler_inside(wrap):
    m = filled(nn.Linear(3, 1))
    opt = torch.optim.SGD(m.parameters(), lr=0.1)
    sched = torch.optim.lr_scheduler.StepLR(opt, 2)

    def step(x):
        opt.zero_grad()
        l = m(x).pow(2).mean()
        l.backward()
        opt.step()
        sched.step()
        return l

    f = wrap(step)
    return (
        [f(data(4, 3, k=k)).detach() for k in range(8)],
        opt.param_groups[0]["lr"],
        sched.last_epoch,
    )


@scenario
def float_results(wrap):
    f = wrap(
        lambda s, t: (
            s * 2,
            s + t,
            s**2,
            -s,
            abs(s),
            s // 1,
            s % 2,
            round(s, 1),
            s > 1,
            min(s, t),
            max(s, t),
            math.sqrt(abs(s)),
            int(s),
            f"{s}",
        )
    )
    return [f(s, t) for s, t in ((1.5, 2.0), (2.5, 3.0), (-3.5, 1.0), (1.5, 2.0), (0.0, -1.0))]


@scenario
def float_in_shapes_and_keys(wrap):
    d = {0.5: 2.0, 1.5: 3.0}
    f = wrap(lambda x, s: x * d[s] + int(s * 2))
    return [f(data(3), s) for s in (0.5, 1.5, 0.5, 1.5, 0.5)]


@scenario
def with_statement_custom(wrap):
    log = []

    @contextlib.contextmanager
    def ctx(n):
        log.append(n)
        yield n * 2
        log.append(-n)

    def body(x):
        with ctx(3) as k:
            return x * k

    f = wrap(body)
    return [f(data(3)) for _ in range(4)], log


@scenario
def object_methods_that_mutate(wrap):
    class Meter:
        def __init__(self):
            self.total = 0.0
            self.n = 0

        def update(self, v):
            self.total += float(v)
            self.n += 1

    m = Meter()

    def body(x):
        m.update(x.sum())
        return x * 2

    f = wrap(body)
    return [f(data(3, k=k)) for k in range(5)], m.total, m.n


@scenario
def raise_custom(wrap):
    class Stop(Exception):
        def __init__(self, t):
            super().__init__("stop")
            self.t = t

    def body(x, n):
        y = x * 2
        if n > 2:
            raise Stop(y)
        return y

    f = wrap(body)
    out = []
    for n in (1, 3, 2, 5, 1):
        try:
            out.append(f(data(3), n))
        except Stop as e:
            out.append(e.t)
    return out


@scenario
def returns_default_object(wrap):
    class K:
        pass

    k = K()
    f = wrap(lambda x, o: (x + 1, o))
    return [f(data(3), k)[1] is k for _ in range(3)], f(data(3), K())[1] is not k


@scenario
def numbers_kept_in_state(wrap):
    class State:
        last, table, seen = None, {}, []

    state, nested = State(), []
    held = 0.0

    def body(x, rate):
        nonlocal held
        state.last, held = rate, rate * 2
        state.table["rate"] = rate + 1
        state.seen.append((rate, [rate * 3]))
        nested.append({"rates": (rate, rate)})
        return x * rate

    def raising(x, rate):
        state.last = rate
        raise ValueError("not today")

    f, g, out = wrap(body), wrap(raising), []
    for k in range(4):
        out.append(f(data(2), 0.5 * k))
        out += [state.last, held, dict(state.table), list(state.seen), list(nested)]
        out += [attempt(g, data(2), 0.25 * k), state.last]
    return out


@pytest.mark.parametrize("run", scenario, ids=lambda f: f.__name__)
def test_scenario(run):
    check(run)
