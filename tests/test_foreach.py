"""`torch._foreach_*`: each is its op, for one tensor after the other. Answers are torch 2.13's."""

import pytest
import wengert as torch
from wengert import foreach

NAMES = sorted(name for name in vars(foreach) if name.startswith("_foreach_"))


def pair():
    return [torch.tensor([0.25, 0.5]), torch.tensor([[0.75, 1.0, 1.5]])]


def test_all_names_of_torch_are_there():
    assert len(NAMES) == 91 and all(callable(getattr(torch, name)) for name in NAMES)
    with pytest.raises(AttributeError, match="_foreach_nothing"):
        torch._foreach_nothing  # noqa: B018


@pytest.mark.parametrize("name", foreach.ALONE)
def test_ops_of_one_operand(name):
    if name in ("acos", "asin"):
        given = [torch.tensor([0.25, 0.5]), torch.tensor([[-0.75, 1.0]])]
    else:
        given = pair()
    want = [getattr(torch, name)(x) for x in given]
    got = getattr(torch, f"_foreach_{name}")(given)
    assert isinstance(got, tuple)
    for a, b in zip(got, want):
        assert torch.equal(a, b)
    versions = [x._version for x in given]
    assert getattr(torch, f"_foreach_{name}_")(given) is given
    assert all(torch.equal(a, b) for a, b in zip(given, want))
    assert [x._version for x in given] == [v + 1 for v in versions]


def columns(tensors):
    return [x.reshape(-1, 1) for x in tensors]


CASES = {
    "number": (lambda a: torch._foreach_add(a, 2), lambda x: x + 2),
    "numbers": (lambda a: torch._foreach_mul(a, [2.0, 2.0]), lambda x: x * 2),
    "tensor": (lambda a: torch._foreach_div(a, torch.tensor(2.0)), lambda x: x / 2),
    "tensors": (lambda a: torch._foreach_sub(a, a, alpha=3), lambda x: x - 3 * x),
    "powers": (lambda a: torch._foreach_pow(a, 2), lambda x: x**2),
    "powers of a number": (lambda a: torch._foreach_pow(2.0, a), lambda x: 2.0**x),
    "lerp": (lambda a: torch._foreach_lerp(a, [2 * x for x in a], 0.5), lambda x: 1.5 * x),
    "addcmul": (lambda a: torch._foreach_addcmul(a, a, a, value=2), lambda x: x + 2 * x * x),
    "addcdiv": (lambda a: torch._foreach_addcdiv(a, a, a, [3.0, 3.0]), lambda x: x + 3),
    "values": (lambda a: torch._foreach_addcmul(a, a, a, torch.tensor([2.0, 2.0])),
               lambda x: x + 2 * x * x),
    "maximum": (lambda a: torch._foreach_maximum(a, 0.5), lambda x: x.clamp(min=0.5)),
    "minima": (lambda a: torch._foreach_clamp_max(a, [x * 0 + 0.5 for x in a]),
               lambda x: x.clamp(max=0.5)),
    "norm": (torch._foreach_norm, lambda x: x.norm()),
    "norm of order 1": (lambda a: torch._foreach_norm(a, 1), lambda x: x.abs().sum()),
    "powsum": (lambda a: torch._foreach_powsum(a, 3), lambda x: (x**3).sum()),
    "max": (torch._foreach_max, lambda x: x.max()),
    "clone": (torch._foreach_clone, lambda x: x),
    "mm": (lambda a: torch._foreach_mm(columns(a), [x.t() for x in columns(a)]),
           lambda x: x.reshape(-1, 1) @ x.reshape(1, -1)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_operands(case):
    function, alone = CASES[case]
    for got, want in zip(function(pair()), map(alone, pair())):
        torch.testing.assert_close(got, want)


def test_writes():
    a, b = pair(), pair()
    assert torch._foreach_maximum_(a, [0.4, 0.9]) is a
    assert a[0].tolist() == [0.4000000059604645, 0.5] and a[1].tolist()[0][0] == 0.8999999761581421
    assert torch._foreach_copy_(a, b) is a and torch.equal(a[1], b[1])
    torch._foreach_minimum_(a, [x / 2 for x in b])
    assert torch.equal(a[0], b[0] / 2)
    torch._foreach_zero_(a)
    assert not any(x.any() for x in a)


@pytest.mark.parametrize("call, error, words", [
    (lambda a: torch._foreach_add([], [1.0]), RuntimeError, "must have at least one tensor"),
    (lambda a: torch._foreach_add(a, a[:1]), RuntimeError, "same number of tensors, got 2 and 1"),
    (lambda a: torch._foreach_add(a, [1.0] * 3), RuntimeError, "elements as scalar list"),
    (lambda a: torch._foreach_sqrt(a[0]), TypeError, "must be tuple of Tensors, not Tensor"),
])  # fmt: skip
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call(pair())


def test_averages_of_parameters_compiled():
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    params = [p.detach() for p in net.parameters()]
    averages, plain = [p.clone() for p in params], [p.clone() for p in params]

    def update(averages, decay):
        torch._foreach_lerp_(averages, params, 1 - decay)

    compiled = torch.compile(update)
    for turn in range(4):
        torch._foreach_add_(params, 0.5)
        compiled(averages, 0.9 + turn / 100)
        update(plain, 0.9 + turn / 100)
        for a, b in zip(averages, plain):
            torch.testing.assert_close(a, b)
    assert "Python" not in compiled.explain()
