"""Backward through compiled functions comes to leaves in eager's order."""

import pytest
import wengert as torch
import wengert.nn.functional as F
from wengert import nn

torch.manual_seed(0)
MODELS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.LayerNorm(4),
                                  nn.Linear(4, 1)), (2, 4)),
    "conv": (lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(inplace=True),
                                   nn.Flatten(), nn.Linear(8, 1)), (2, 1, 4, 4)),
    "attention": (lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), (2, 3, 4)),
    "recurrent": (lambda: nn.LSTMCell(4, 3), (2, 4)),
    "embedding": (lambda: nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 2)), None),
}  # fmt: skip


def result(found):
    return found[0].sum() + found[1].sum() if isinstance(found, tuple) else found.sum()


@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_hooks_run_in_eager_order(name, some):
    make, shape = MODELS[name]

    def run(wrap):
        torch.manual_seed(0)
        model = make().eval()
        f, log, parameters = wrap(model), [], list(model.parameters())
        x = torch.tensor([0, 3, 1]) if shape is None else torch.randn(*shape)
        for k, p in enumerate(parameters):
            if some and k % 2:
                continue
            p.register_hook(lambda g, k=k: log.append(k))
            p.register_post_accumulate_grad_hook(
                lambda t, k=k: log.append((k, [p.grad is None for p in parameters])))  # fmt: skip
        for _ in range(4):
            model.zero_grad()
            result(f(x)).backward()
        return log

    assert run(torch.compile) == run(lambda f: f)


def body(a, b, c, d):
    return ((((a * b).tanh() * c).sigmoid() + d.exp() * a) * F.relu(b)).sum()


@pytest.mark.parametrize("hooked", [range(4), [0], [1], [2], [3]])
@pytest.mark.parametrize("raising", range(4))
def test_a_hook_that_raises_stops_the_rest(hooked, raising):
    def run(wrap):
        torch.manual_seed(0)
        tensors = [torch.randn(3).requires_grad_() for _ in range(4)]
        f, log = wrap(body), []

        def hook_of(k):
            def hook(grad):
                log.append(k)
                if k == raising:
                    raise ValueError

            return hook

        for k in hooked:
            tensors[k].register_hook(hook_of(k))
        for _ in range(4):
            y = f(*tensors) + (tensors[2] * 2).sum()
            for _ in range(2):
                try:
                    y.backward(retain_graph=True)
                except ValueError:
                    log.append("raised")
                log.append([t.grad is None or t.grad._version for t in tensors])
        return log

    assert run(torch.compile) == run(lambda f: f)
