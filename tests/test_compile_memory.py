"""Compiling never changes meaning: memory, layouts, errors, randomness, threads."""

import threading

import pytest
import wengert as torch
import wengert.nn.functional as F
from scenarios import Scenarios, attempt, check, data
from wengert import nn

scenario = Scenarios()


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
def captured_tensors_that_leave_each_others_memory(wrap):
    whole = data(3, 2, k=1)
    part, same = whole[0], whole.detach()
    f, seen = wrap(lambda x: (x * whole, x * part, same * x, whole[0] * x)), []
    for k in range(6):
        if k == 2:
            whole.data = data(3, 2, k=7)
        if k == 3:
            part.data = data(2, k=8)
        if k == 4:
            whole.data.mul_(2)
        if k == 5:
            whole = data(3, 2, k=9)
        seen.append(f(data(2, k=k)))
    return seen


@scenario
def data_replaced_and_written_inside(wrap):
    def replaced(x, t):
        view = t[:1]
        t.data = x * 2
        view.add_(1)
        return t + 1, view

    def written(x, t):
        t.data += x
        t.data *= 2
        return t + 1

    f, g, seen = wrap(replaced), wrap(written), []
    for k in range(4):
        for function in (f, g):
            t = data(2, k=3, grad=function is g)
            before = t.detach()
            out = function(data(2, k=k), t)
            seen += [out, t, before, t._version]
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


@pytest.mark.parametrize("run", scenario, ids=lambda f: f.__name__)
def test_scenario(run):
    check(run)
