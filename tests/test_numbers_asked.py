"""Numbers of tensors that `math.isfinite` asks for, or that a comprehension collects."""

import math
import sys
from math import isnan

import pytest
import wengert as torch
from wengert.runtime import watch

if watch.trouble() or sys.version_info >= (3, 12):
    pytest.skip("bodies that see such numbers run here", allow_module_level=True)

KEPT = []
W = torch.tensor([1.0, 2.0], requires_grad=True)


def finite(x):
    loss = (x * 2).sum()
    if not math.isfinite(loss.item()):
        return x * 0
    return loss / 2


def of_the_tensor(x):
    loss = x.sum()
    if math.isnan(loss) or math.isinf(x.max()):
        return x, True
    return loss, False


def by_name(x):
    value = x.sum().item() * 2
    return x * value, isnan(value), math.isinf(value + 1)


def in_a_step(x):
    W.grad = None
    loss = (W * x).sum()
    if not math.isfinite(loss.item()):
        return loss.detach()
    loss.backward()
    with_step(W)
    return loss.detach()


def with_step(w):
    w.data -= 0.01 * w.grad.nan_to_num()


def in_a_loop(x):
    for part in x:
        if math.isnan(part.item()):
            return part
    return x * 3


def returned(x):
    y = x * 2
    return math.isfinite(y.sum().item()), y


def mean_of(x):
    losses = [part.sum() * 2 for part in x.chunk(2)]
    values = [loss.item() for loss in losses]
    return sum(values) / len(values), x * 2


def collected(x):
    return [part.item() for part in x * 2], x


def under_a_name(x):
    values = [part.item() + 1 for part in x * 2]
    y = x * sum(values)
    return y, values, len(values)


def nested(x):
    return [[p.item() * 2 for p in part] for part in (x * 3).chunk(2)]


def two(x):
    a, b = [p.item() for p in x], [p.item() for p in x * 2]
    return sum(a) - sum(b), x


REPLAYED = [finite, of_the_tensor, by_name, in_a_step, in_a_loop, returned, mean_of, collected,
            under_a_name, two]  # fmt: skip


def kept(x):
    KEPT.append([p.item() for p in x])
    return x * 2


def printed(x):
    values = [p.item() for p in x]
    return f"{values[0]:.2f}", x


def sorted_(x):
    return sorted([p.item() for p in x]), x


def joined(x):
    values = [p.item() for p in x]
    values += [1.0]
    KEPT.append(values)
    return sum(values, 0.5), x


def other_questions(x):
    return math.sqrt(abs(x.sum().item())), math.copysign(1, x.max().item()), x


def summed_with_others(x):
    return sum([p.item() for p in x], start=1.5), x * 2


def compared_whole(x):
    return [p.item() for p in x] == [1.0, 2.0], x


def max_of(x):
    return max([p.item() for p in x]), x


def in_a_generator(x):
    return sum(p.item() for p in x), all(math.isfinite(p.item()) for p in x), x


OTHERS = [kept, printed, sorted_, joined, other_questions, summed_with_others, compared_whole,
          max_of, in_a_generator, nested]  # fmt: skip
VALUES = [1.0, 3.0, math.nan, -2.0, math.inf, 5.0, math.nan, 4.0]


def run(body, function):
    KEPT.clear()
    with torch.no_grad():
        W.copy_(torch.tensor([1.0, 2.0]))
    found = [function(torch.tensor([value, 2.0])) for value in VALUES]
    return found, [*KEPT], W.detach().clone()


@pytest.mark.parametrize("body", REPLAYED + OTHERS)
def test_values_are_those_of_the_call(body):
    want, compiled = run(body, body), torch.compile(body)
    got = run(body, compiled)
    assert str(got) == str(want)
    assert kinds(got) == kinds(want)
    if body in REPLAYED:
        assert not compiled.refusals, compiled.refusals
        assert sum(t.hits for ts in compiled.traces.values() for t in ts) > 2


def kinds(value):
    return [*map(kinds, value)] if isinstance(value, list | tuple) else type(value)
