"""Random programs over random sizes: compiled for all sizes, they give what eager gives."""

import pytest
import wengert as torch
import wengert.nn.functional as F
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st


def branch(x):
    return x * 2 if x.shape[0] > 3 else x - 1


def written(x):
    y = x.clone()
    y[0] = x.shape[0]
    y[1:].mul_(2)
    return y


def looped(x):
    for _ in range(x.shape[1] % 3):
        x = x + 1
    return x


def decided(x):
    return x / x.numel() if x.sum() > 0 else x


# Each takes a matrix and gives one. What eager refuses, compiled code must refuse alike.
STEPS = {
    "scale": lambda x: torch.tanh(x) / x.shape[0],
    "center": lambda x: x - x.mean(0),
    "softmax": lambda x: x.softmax(1),
    "tail": lambda x: x[1:],
    "head": lambda x: x[:-1],
    "first rows": lambda x: x[:3],
    "last row": lambda x: x[-1:],
    "every other": lambda x: x[::2],
    "transpose": lambda x: x.t(),
    "twice": lambda x: torch.cat([x, x * 2]),
    "reshape": lambda x: x.reshape(x.shape[1], -1),
    "pairs": lambda x: x.reshape(-1, 2),
    "view": lambda x: x.view(-1, x.shape[1]),
    "count": lambda x: x + torch.arange(x.shape[0])[:, None],
    "mask": lambda x: x.masked_fill(torch.arange(x.shape[1]) > x.shape[0] // 2, 0.5),
    "gram": lambda x: x @ x.t() / x.shape[1],
    "pad": lambda x: F.pad(x, (1, 0)),
    "chunk": lambda x: x.chunk(2)[-1],
    "split": lambda x: sum(x.split(2, dim=1)),
    "repeat": lambda x: x.unsqueeze(0).expand(2, -1, -1).reshape(-1, x.shape[1]),
    "rolled": lambda x: x.roll(x.shape[0] // 2, 0).flip(1),
    "sum rows": lambda x: x.sum(0, keepdim=True),
    "normal": lambda x: F.layer_norm(x, x.shape[1:]),
    "branch": branch,
    "written": written,
    "looped": looped,
    "decided": decided,
}
SIZE = st.integers(0, 9)
PROGRAMS = st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=6)


def outcome(function, n, m):
    """What a call gives: the value and the gradient, or the kind of error."""
    torch.manual_seed(10 * n + m)
    x = torch.randn(n, m, requires_grad=True)
    try:
        y = function(x)
        y.sum().backward()
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        return type(error)
    return y.detach(), x.grad


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    PROGRAMS, st.lists(st.tuples(SIZE, SIZE), min_size=3, max_size=6), st.sampled_from([None, True])
)
@example(["transpose", "pairs"], [(0, 0), (2, 2), (3, 2)], None)
@example(["tail", "reshape"], [(4, 3), (5, 3), (7, 3), (4, 6)], None)
@example(["chunk", "gram"], [(2, 2), (3, 3), (9, 4), (4, 9)], True)
def test_programs_of_random_sizes(names, sizes, dynamic):
    def program(x):
        for name in names:
            x = STEPS[name](x)
        return x

    compiled = torch.compile(program, dynamic=dynamic)
    for n, m in (*sizes, sizes[0]):
        expected, found = outcome(program, n, m), outcome(compiled, n, m)
        if isinstance(expected, type):
            assert found is expected, (n, m)
            continue
        for a, b in zip(found, expected):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
    assert "stay plain" not in compiled.explain()
    assert "no instance" not in compiled.explain()


@pytest.fixture(autouse=True, scope="module")
def interpreted():
    """Kernels are not what is looked at here."""
    patch = pytest.MonkeyPatch()
    patch.setenv("WENGERT_BACKEND", "interpreter")
    patch.setenv("WENGERT_STRICT", "1")
    patch.setenv("WENGERT_CHECK", "0")
    yield
    patch.undo()
