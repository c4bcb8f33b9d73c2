"""Arguments that share memory, compiled: results are those of eager calls in every order."""

import itertools

import pytest
import wengert as torch

SIZE = 6
OUTSIDE = torch.ones(SIZE)


def read(x, y):
    return x + 2 * y


def write(x, y):
    x.add_(1)
    return y * 2


def capture(x, y):
    return x * 2 + y + OUTSIDE


def same():
    tensor = torch.arange(float(SIZE))
    return tensor, tensor


def apart():
    return torch.arange(float(SIZE)), 3 * torch.arange(float(SIZE))


def overlapping():
    tensor = torch.arange(SIZE + 1.0)
    return tensor[:SIZE], tensor[1:]


def base_and_view():
    tensor = torch.arange(float(SIZE))
    return tensor, tensor[:]


def outside():
    return OUTSIDE, torch.arange(float(SIZE))


@pytest.mark.parametrize("function", [read, write, capture])
@pytest.mark.parametrize(
    "calls", list(itertools.permutations([same, apart, overlapping, base_and_view, outside], 2))
)
def test_sharing_selects_the_trace(function, calls):
    if function is write and outside in calls:
        pytest.skip("writes into the tensor that other cases read")
    compiled = torch.compile(function)
    for arguments in (*calls, *calls):
        for _ in range(2):
            assert compiled(*arguments()).tolist() == function(*arguments()).tolist()


def test_windows_of_one_tensor_are_compiled():
    text = torch.arange(40.0)
    compiled = torch.compile(read)
    for start in range(8):
        x, y = text[start : start + 8], text[start + 1 : start + 9]
        assert compiled(x, y).tolist() == read(x, y).tolist()
    assert "eagerly" not in compiled.explain() and "replayed 7 times" in compiled.explain()


def test_gradients_of_shared_arguments():
    leaf = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    compiled = torch.compile(lambda x, y: (x * y).sum())
    for _ in range(3):
        for x, y, slope in ((leaf, leaf, [2.0, 4, 6]), (leaf[:2], leaf[1:], [2.0, 4, 2]),
                            (leaf, leaf.detach(), [1.0, 2, 3])):  # fmt: skip
            assert torch.autograd.grad(compiled(x, y), leaf)[0].tolist() == slope


def leaf():
    return torch.tensor([1.0, 2.0], requires_grad=True)


TWINS = {
    "itself": lambda x: x,
    "view": lambda x: x.view(2),
    "leaf": lambda x: x.detach().requires_grad_(),
    "view_of_a_leaf": lambda x: x.detach().requires_grad_().view(2),
    "detached": lambda x: x.detach(),
    "data": lambda x: x.data,
}
PAIRS = [*itertools.product(TWINS, TWINS)]


@pytest.mark.parametrize("twins", PAIRS, ids="-".join)
def test_tensors_of_one_extent_have_their_own_histories(twins):
    def body(x, y):
        return (x * 2 + y * 3).sum() * (5 if x is y else 1), y

    compiled = torch.compile(body)
    for twin in twins * 3:
        slopes = []
        for function in (body, compiled):
            x = leaf()
            y = TWINS[twin](x)
            if y.requires_grad:
                y.retain_grad()
            loss, same = function(x, y)
            loss.backward()
            slopes.append((x.grad.tolist(), y.grad is not None and y.grad.tolist(), same is y))
        assert slopes[0] == slopes[1], twin


@pytest.mark.parametrize("twins", PAIRS, ids="-".join)
def test_writes_count_in_the_versions_of_their_own(twins):
    def body(x, y):
        with torch.no_grad():
            x.add_(1)
            y.mul_(2)
        return x.detach() * 1

    compiled = torch.compile(body)
    for twin in twins * 3:
        seen = []
        for function in (body, compiled):
            x = leaf().detach()
            y = TWINS[twin](x).detach() if twin == "view_of_a_leaf" else TWINS[twin](x)
            result = function(x, y)
            seen.append((result.tolist(), x.tolist(), x._version, y._version))
        assert seen[0] == seen[1], twin


@pytest.mark.parametrize("twin", TWINS)
def test_an_argument_beside_a_captured_tensor_of_its_extent(twin):
    weight = leaf()

    def body(x):
        return (x * 2 + weight * 3).sum() * (5 if x is weight else 1)

    compiled = torch.compile(body)
    for kind in ("itself", twin, "itself", twin):
        slopes = []
        for function in (body, compiled):
            weight.grad = None
            x = TWINS[kind](weight)
            if x.requires_grad:
                x.retain_grad()
            function(x).backward()
            slopes.append((weight.grad.tolist(), x.grad is not None and x.grad.tolist()))
        assert slopes[0] == slopes[1]


def test_captured_tensors_of_one_extent_have_their_own_histories():
    weight = leaf()
    other = weight.detach().requires_grad_()
    row, part = other.view(1, 2), weight.view(2)
    compiled = torch.compile(lambda x: ((x * weight + 3 * other + 5 * row + 7 * part).sum(), part))
    for _ in range(3):
        loss, same = compiled(torch.tensor([1.0, 2.0]))
        found = torch.autograd.grad(loss, (weight, other, row, part))
        assert [g.tolist() for g in found] == [[8, 9], [8, 8], [[5, 5]], [7, 7]]
        assert same is part
    assert "replayed 2 times" in compiled.explain()


def test_an_argument_that_is_a_gradient():
    def run(wrap):
        weight, seen = leaf(), []
        weight.sum().backward()

        @wrap
        def body(gradient, x):
            (weight * x).sum().backward()
            return gradient.mul_(2), weight.grad

        for k in range(6):
            gradient = weight.grad if k % 3 else torch.ones(2)
            made, kept = body(gradient, torch.tensor([1.0, k]))
            seen.append((made.tolist(), kept.tolist(), made is gradient, kept is weight.grad))
        return seen

    assert run(torch.compile) == run(lambda body: body)


def test_a_gradient_that_is_also_held_elsewhere():
    def run(wrap):
        weight, seen = leaf(), []
        weight.sum().backward()
        held = [weight.grad]

        @wrap
        def body(x):
            (weight * x).sum().backward()
            return held[0] * 2 + weight.grad

        for k in range(6):
            if k == 3:
                weight.grad = torch.zeros(2)
            seen.append((body(torch.tensor([1.0, k])).tolist(), held[0].tolist()))
        return seen

    assert run(torch.compile) == run(lambda body: body)


def test_writes_into_memory_that_nobody_else_knows():
    def body(x, batch):
        y = x.clone()
        y.addbmm_(batch, batch, beta=0.5, alpha=2.0)
        return y

    compiled, batch = torch.compile(body), torch.ones(2, 3, 3)
    for _ in range(3):
        assert compiled(torch.ones(3, 3), batch).tolist() == body(torch.ones(3, 3), batch).tolist()
