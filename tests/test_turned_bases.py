"""Views among results whose memory has its dimensions in another order; see Note [Turned results].

Their base is what eager has there: of the same shape and strides, and one for all of them.
"""

import pytest
import wengert as torch
from alike import differences, facts, outcome


def doubled(x):
    return x.t() * 2


def backward_inside(x):
    y = doubled(x)
    if y.requires_grad:
        y.sum().backward()
    return y, y[1:]


def under_no_grad(x):
    y = doubled(x)
    with torch.no_grad():
        part = y[1:]
    return y[0], part


def written(x):
    y = doubled(x)
    y[0].mul_(3)
    return y[1:], y


BODIES = {
    "part": lambda x: (doubled(x)[1:],),
    "turned back": lambda x: (doubled(x).t(),),
    "part of it turned back": lambda x: (doubled(x).t()[0][1:],),
    "expanded": lambda x: (doubled(x).expand(2, 3, 4).transpose(0, 1),),
    "of several": lambda x: doubled(x).unbind(1),
    "and itself": lambda x: (lambda y: (y, y[1:], y.t()[0]))(doubled(x)),
    "and all but that": lambda x: (lambda y: (y.t(), y[1:]))(doubled(x)),
    "twice": lambda x: (lambda y: (y, y))(doubled(x)[1:]),
    "detached": lambda x: (lambda y: (y, y.detach(), y[0]))(doubled(x)),
    "part detached": lambda x: (lambda y: (y[:1], y[1:].detach()))(doubled(x)),
    "computed with": lambda x: (lambda y: (y[1:], y.sin(), y[1:] * 3))(doubled(x)),
    "after a branch": lambda x: (lambda y: (y[1:], y) if y.sum() > 0 else y)(doubled(x)),
    "beside a number": lambda x: (lambda y: (y[1:], y.sum().item()))(doubled(x)),
    "backward inside": backward_inside,
    "under no_grad": under_no_grad,
    "written": written,
}
LATER = {
    "nothing": lambda first: None,
    "written": lambda first: first.mul_(2),
    "base written": lambda first: (first if first._base is None else first._base).mul_(2),
    "data": lambda first: first.data.mul_(2),
}


@pytest.mark.parametrize("later", LATER)
@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize("name", BODIES)
def test_bases(name, tracked, later):
    if name in ("under no_grad", "of several") and later.endswith("written"):
        pytest.skip("eager raises when such a part is looked at")
    body = BODIES[name]
    compiled = torch.compile(body)
    for k in range(5):
        seen = []
        for function in (body, compiled):
            x = torch.arange(12.0).add(k).view(4, 3).requires_grad_(tracked)
            made = function(x * 1.5 if k % 2 else x)
            outcome(lambda made=made: LATER[later](made[0]))
            found = [facts([x, made])]
            with_history = [t for t in made if isinstance(t, torch.Tensor) and t.requires_grad]
            if with_history:
                squares = sum([(t * t).sum() for t in with_history])
                found.append(facts([outcome(squares.backward), x.grad, made]))
            seen.append(found)
        assert [differences(*pair) for pair in zip(*seen)] == [[]] * len(seen[0])
