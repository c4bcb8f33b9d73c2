"""Modules whose methods put other tensors in the place of buffers: `self.mean = new`."""

import copy

import pytest
import wengert as torch
import wengert.nn.functional as F
from wengert import nn


class Running(nn.Module):
    """Averages what it sees; `mode` says how the buffers are replaced."""

    def __init__(self, mode):
        super().__init__()
        torch.manual_seed(1)
        self.inner, self.mode = nn.Linear(3, 2), mode
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("count", torch.tensor(0.0))
        self.register_buffer("late", None)
        self.also = self.mean if mode == "two names" else None

    def update(self, y):
        new = 0.9 * self.mean + 0.1 * y.detach().mean(0)
        if self.mode == "twice":
            self.mean = new
            new = self.mean * 1.5
        if self.mode == "history":
            new = 0.5 * self.mean.detach() + 0.1 * y.mean(0)
        if self.mode == "view":
            new = torch.stack([new, new * 2])[1]
        if self.mode == "late":
            self.late = new if self.late is None else self.late + new
        self.mean = new
        self.count = self.count + 1
        if self.mode == "branch" and self.count > 3:
            self.count = torch.zeros(())

    def forward(self, x):
        y = self.inner(x)
        if self.training:
            self.update(y)
        return y - self.mean + (0 if self.also is None else self.also) * self.count


def observed(module):
    return {name: tensor.tolist() for name, tensor in module.state_dict().items()}


def train(mode, wrap, whole):
    module = Running(mode)
    optimizer = torch.optim.SGD(module.parameters(), 0.1, momentum=0.5)

    def step(x):
        optimizer.zero_grad()
        loss = (module if whole else run)(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    run = wrap(module)
    step = wrap(step) if whole else step
    found, saved = [], None
    for k in range(12):
        if k == 4:
            saved = copy.deepcopy(module.state_dict())
        if k == 6:
            module.mean = torch.full((2,), 0.25)
        if k == 8:
            module.load_state_dict(saved)
        if k == 10:
            module.mean = module.mean.detach()
            module.eval()
        x = torch.linspace(-1, 1, 12 if k % 5 else 9).view(-1, 3) + k / 10
        before = module.mean
        found.append((step(x).item(), observed(module), module.mean is before))
    return found, step if whole else run


MODES = ["plain", "twice", "history", "view", "late", "branch", "two names"]


@pytest.mark.parametrize("whole", [False, True], ids=["module", "step"])
@pytest.mark.parametrize("mode", MODES)
def test_buffers_are_replaced_by_replays(mode, whole):
    want, _ = train(mode, lambda function: function, whole)
    got, compiled = train(mode, torch.compile, whole)
    for k, (mine, others) in enumerate(zip(got, want)):
        assert mine[0] == pytest.approx(others[0], rel=1e-4, abs=1e-6), k
        assert mine[1].keys() == others[1].keys() and mine[2] == others[2], k
        for name in mine[1]:
            assert torch.allclose(*map(torch.tensor, (mine[1][name], others[1][name])), 1e-4), k
    if mode == "plain":
        assert "at each call" not in compiled.explain()


def test_buffers_of_two_modules():
    def run(wrap):
        first, second = Running("plain"), Running("plain")
        second.mean = first.mean  # until the first replaces its own

        @wrap
        def both(x):
            return first(x) + second.eval()(x) * second.mean

        found = []
        for k in range(6):
            if k == 4:
                second.mean = first.mean
            found += [both(torch.ones(2, 3) * k).tolist(), observed(first), observed(second)]
        return str(found)

    def rounded(text):
        return [f"{float(word):.4g}" for word in text.replace("[", " ").replace("]", " ").replace(
            ",", " ").replace("}", " ").split() if word[-1].isdigit()]  # fmt: skip

    assert rounded(run(torch.compile)) == rounded(run(lambda function: function))


class Codes(nn.Module):
    """A codebook that follows its vectors, as those of a VQ-VAE do."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.register_buffer("codes", torch.randn(5, 3))
        self.register_buffer("sizes", torch.zeros(5))

    def forward(self, x):
        nearest = torch.cdist(x, self.codes).argmin(1)
        chosen = F.one_hot(nearest, 5).to(x.dtype)
        if self.training:
            with torch.no_grad():
                self.sizes = 0.9 * self.sizes + 0.1 * chosen.sum(0)
                self.codes = torch.lerp(self.codes, chosen.t() @ x / (self.sizes[:, None] + 1), 0.1)
        return x + (self.codes[nearest] - x).detach()


def test_a_codebook():
    def run(wrap):
        model = nn.Sequential(nn.Linear(4, 3), Codes(), nn.Linear(3, 4))
        for p in model.parameters():
            nn.init.constant_(p, 0.3)
        forward, found = wrap(model), []
        for k in range(7):
            model.train(k != 5)
            x = torch.linspace(-1, 1, 24).view(6, 4).sin() * (k + 1)
            model.zero_grad()
            forward(x).square().mean().backward()
            found += [model[0].weight.grad.clone(), model[1].codes, model[1].sizes]
        return found, forward

    want, _ = run(lambda function: function)
    got, compiled = run(torch.compile)
    assert all(torch.allclose(a, b, 1e-4, 1e-6) for a, b in zip(got, want))
    assert "replayed" in compiled.explain() and "at each call" not in compiled.explain()


def test_others_read_the_buffers_that_are_there():
    module = Running("plain")
    read = torch.compile(lambda x: x * module.mean + module.count)
    for k in range(6):
        module(torch.ones(2, 3) * k)
        want = torch.ones(2) * module.mean + module.count
        assert torch.equal(read(torch.ones(2)), want)
    assert read.explain().count("trace of") == 1
    module.mean = module.mean.double()
    assert read(torch.ones(2)).dtype is torch.float64
