"""Dynamic shapes in models: layers, losses, training; eager is the oracle."""

import math

import pytest
import wengert as torch
import wengert.nn as nn
import wengert.nn.functional as F
from dynamic_cases import SIZES, Watched, over, rows, same


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setenv("WENGERT_STRICT", "1")


# --- models --------------------------------------------------------------------------------------


def test_mlp_and_loss():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4))
    make = lambda n: (*rows(n), torch.randint(0, 4, (n,)))  # noqa: E731
    over(lambda x, y: F.cross_entropy(net(x), y), make, SIZES, runs=4)


@pytest.mark.parametrize("momentum", [0.1, None])
def test_batch_norm_statistics(momentum):
    def make_net():
        return nn.Sequential(nn.BatchNorm1d(3, momentum=momentum), nn.Dropout(0.4))

    eager, other = make_net(), make_net()
    compiled = torch.compile(other)
    for n in (4, 5, 7, 11):
        x = torch.randn(n, 3)
        torch.manual_seed(n)
        expected = eager(x)
        torch.manual_seed(n)
        same(compiled(x), expected)
        same(list(other.buffers()), list(eager.buffers()))
    assert "Python body" not in compiled.explain()


def test_convolutions():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1, stride=2), nn.ReLU(), nn.MaxPool2d(2),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 3))  # fmt: skip
    make = lambda n, h: (torch.randn(n, 1, h, h + 2, requires_grad=True),)  # noqa: E731
    over(net, make, ((2, 8), (3, 9), (4, 12), (5, 7)), runs=2)


class Attention(nn.Module):
    def __init__(self, width=8, heads=2, longest=16):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.register_buffer("mask", torch.tril(torch.ones(longest, longest)))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2)
                   for t in self.qkv(x).split(C, dim=2))  # fmt: skip
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.mask[:T, :T] == 0, float("-inf"))
        y = F.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).contiguous().view(B, T, C))


def test_attention_with_a_mask():
    torch.manual_seed(0)
    make = lambda b, t: (torch.randn(b, t, 8, requires_grad=True),)  # noqa: E731
    watched = over(Attention(), make, ((2, 5), (3, 6), (4, 7), (5, 11), (7, 7), (7, 8)), runs=2)
    assert "m <= 15" in watched.explain()


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_a_recurrent_layer_is_recorded_once_for_all_lengths(kind):
    torch.manual_seed(0)
    layer = kind(3, 4, batch_first=True)
    make = lambda b, t: (torch.randn(b, t, 3, requires_grad=True),)  # noqa: E731
    sizes = ((2, 3), (3, 3), (4, 3), (5, 4), (6, 4), (7, 5), (8, 5), (8, 17))
    over(lambda x: layer(x)[0], make, sizes, runs=3)


def test_a_loop_over_time_is_recorded_for_each_length():
    torch.manual_seed(0)
    cell = nn.LSTMCell(3, 4)

    def run(x):
        state = None
        for part in x.unbind(1):
            state = cell(part, state)
        return state[0]

    make = lambda b, t: (torch.randn(b, t, 3),)  # noqa: E731
    sizes = ((2, 3), (3, 3), (4, 3), (5, 4), (6, 4), (7, 5), (8, 5))
    watched = over(run, make, sizes, runs=4)
    assert "m == 4" in watched.explain()


def training_step(dropout=0.3):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 6, bias=False), nn.BatchNorm1d(6), nn.Dropout(dropout),
                        nn.Linear(6, 2))  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    return net, step


def test_training_with_a_smaller_last_batch():
    (eager_net, eager), (net, body) = training_step(), training_step()
    step, seen = Watched(body), []
    for n in (8, 8, 8, 5, 8, 5, 7, 2):
        x, y = torch.randn(n, 3), torch.randint(0, 2, (n,))
        torch.manual_seed(n)
        expected = eager(x, y)
        torch.manual_seed(n)
        same(step.compiled(x, y), expected)
        same([*net.parameters(), *net.buffers()], [*eager_net.parameters(), *eager_net.buffers()])
        seen.append(step.runs)
    assert seen[3:] == [seen[3]] * 5, seen


TRIANGLES = {
    "causal": lambda x: torch.ones(2, x.shape[1], dtype=torch.bool).tril(x.shape[1] - 2),
    "additive": lambda x: torch.full((2, x.shape[1]), -9.0).triu(diagonal=1 + x.shape[1] - 2),
    "of the input": lambda x: (x.tril(x.shape[1] - 4), x.triu(1 - x.shape[1])),
    "in place": lambda x: (x * 1).tril_(x.shape[1] // 2),
    "of many": lambda x: torch.stack([x, x * 2]).triu(x.shape[1] - x.shape[0]),
}


@pytest.mark.parametrize("case", TRIANGLES)
def test_triangles_whose_diagonal_is_a_size(case):
    make = lambda n: (torch.randn(3, n, requires_grad=True),)  # noqa: E731
    over(TRIANGLES[case], make, ((5,), (6,), (4,), (9,), (7,), (12,)), runs=2)


def test_a_cache_of_keys_that_grows():
    torch.manual_seed(0)
    inner = nn.Linear(4, 12)

    def attend(x, keys, values):
        q, k, v = inner(x).chunk(3, -1)
        keys, values = torch.cat([keys, k], 1), torch.cat([values, v], 1)
        new, known = x.shape[1], keys.shape[1]
        mask = torch.ones(new, known, dtype=torch.bool).tril(known - new)
        return F.scaled_dot_product_attention(q, keys, values, attn_mask=mask), keys, values

    watched = Watched(attend)
    kept = mine = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    for _ in range(8):
        x = torch.randn(2, 2, 4)
        expected, *kept = attend(x, *kept)
        found, *mine = watched.compiled(x, *mine)
        same([found, *mine], [expected, *kept])
    assert watched.runs <= 4, watched.compiled.explain()
