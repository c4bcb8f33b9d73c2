"""Sample calls of every op in the catalogue, for the tests that walk it.

Regular ops (pointwise, reductions) are sampled from their `domain`; irregular ones give `samples`:
a function of a NumPy Generator that returns (inputs, attributes) pairs. Each op has a generator of
its own, so that its draws do not depend on which others exist.
"""

import zlib

import numpy as np
import wengert as torch
from wengert.ir.op import TABLE, Scalar

DEFAULT_DOMAIN = (-2.0, 2.0)
REGULAR = ("pointwise", "reduction")


class Case:
    """One call: an op, NumPy inputs (or None), attributes."""

    def __init__(self, op, inputs, attrs):
        absent = () if op.variadic is not None else (None,) * (len(op.inputs) - len(inputs))
        self.op, self.inputs, self.attrs = op, (*inputs, *absent), dict(attrs)

    def __str__(self):
        shapes = ",".join("-" if x is None else str(list(np.shape(x))) for x in self.inputs)
        attrs = ",".join(f"{k}={v}" for k, v in self.attrs.items())
        return f"{self.op.name}({shapes};{attrs})"


def generator(name):
    return np.random.default_rng(zlib.crc32(name.encode()))


def is_number(x):
    """A Python number; NumPy's scalars are arrays of no dimensions here."""
    return type(x) in (bool, int, float, complex)


def leaf(x, needs=True):
    """An operand as eager calls take it: a tensor that needs a gradient, where it can."""
    if x is None or is_number(x):
        return x
    made = torch.tensor(np.asarray(x))
    return made.requires_grad_() if needs and made.dtype.is_differentiable else made


def is_regular(op):
    """Can inputs be drawn without knowing more? Then all attributes have defaults."""
    if op.samples is not None or op.kind not in REGULAR or op.variadic is not None:
        return False
    free = set(op.attributes) - set(op.defaults)
    return free <= ({"dim", "keepdim"} if op.kind == "reduction" else set())


def draw(op, rng, shape):
    low, high = op.domain or DEFAULT_DOMAIN
    return np.asarray(rng.uniform(low, high, shape))


def regular_cases(op):
    rng = generator(op.name)
    if op.kind == "reduction":
        x = draw(op, rng, (3, 4, 2))
        choices = [((1,), False), ((0, 2), True), ((0, 1, 2), False)]
        yield from (Case(op, [x], {"dim": d, "keepdim": k}) for d, k in choices)
        yield Case(op, [draw(op, rng, ())], {"dim": (), "keepdim": False})
        return
    count = len(op.inputs)
    yield Case(op, [draw(op, rng, (2, 3)) for _ in range(count)], {})
    yield Case(op, [draw(op, rng, ()) for _ in range(count)], {})
    yield Case(op, [draw(op, rng, (0, 2)) for _ in range(count)], {})
    if count > 1:
        shapes = [(2, 1, 3), (4, 1), (3,)]
        yield Case(op, [draw(op, rng, shapes[k % 3]) for k in range(count)], {})
    if op.optional:
        kept = [draw(op, rng, (2, 3)) for _ in range(count)]
        for absent in op.optional:
            yield Case(op, [None if k == absent else x for k, x in enumerate(kept)], {})


def cases_of(op):
    """All sample calls of an op, [] where it gives none."""
    if op.samples is not None:
        return [Case(op, inputs, attrs) for inputs, attrs in op.samples(generator(op.name))]
    return list(regular_cases(op)) if is_regular(op) else []


def ops(*, differentiable=False, scalar=False, sampled=True):
    """The catalogue's ops that the tests walk, by name."""
    for name, op in sorted(TABLE.items()):
        if op.random or (differentiable and not op.rules):
            continue
        if scalar and not isinstance(op.lower, Scalar):
            continue
        if sampled and op.samples is None and not is_regular(op):
            continue
        yield name
