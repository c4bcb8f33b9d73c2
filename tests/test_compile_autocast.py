"""Calls of compiled functions inside `torch.autocast`; see Note [Calls inside autocast]."""

import pytest
import wengert as torch
from scenarios import close, plain
from wengert import nn
from wengert.utils.checkpoint import checkpoint


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.2), nn.Tanh(), nn.Linear(6, 2))


def inputs(k, rows=5):
    return torch.randn(rows, 4, generator=torch.Generator().manual_seed(k))


def both(run):
    """What a program gives eagerly and compiled, and the compiled functions."""
    made = []

    def compiled(function):
        made.append(torch.compile(function))
        return made[-1]

    return run(lambda function: function), run(compiled), made


def text_of_replays(function, *texts):
    found = function.explain()
    assert "runs" not in found and all(text in found for text in texts), found


def test_a_model_called_inside_autocast_is_replayed():
    def run(wrap):
        model = net()
        call, seen = wrap(model), []
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for k in range(6):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = call(inputs(k))
                loss = y.float().square().mean()
            loss.backward()
            optimizer.step()
            seen += [y.dtype is torch.bfloat16, loss.item()]
        return seen, [p.detach() for p in model.parameters()], torch.rand(2)

    want, got, (function,) = both(run)
    assert close(plain(got), plain(want))
    text_of_replays(function, "in autocast to bfloat16", "replayed 5 times")


def test_calls_in_and_out_of_autocast_and_of_either_dtype_alternate():
    def run(wrap):
        model, seen = net().eval(), []
        call = wrap(lambda x: (model(x), torch.is_autocast_enabled("cpu")))
        for k in range(12):
            with torch.autocast("cpu", (torch.bfloat16, torch.float16)[k % 2], enabled=k % 3 > 0):
                y, inside = call(inputs(k))
            seen += [y.dtype, inside, y.float().detach()]
        return seen

    want, got, (function,) = both(run)
    assert close(plain(got), plain(want))
    text_of_replays(function, "to bfloat16:\n", "to float16:\n", "replayed 3 times")
    function.cache_clear()
    assert function.explain().endswith("not called yet")


def test_whole_steps_in_grad_modes_and_of_several_sizes():
    def run(wrap):
        model, seen = net(), []
        optimizer = torch.optim.AdamW(model.parameters(), 0.01)

        def step(x):
            if torch.is_grad_enabled():
                loss = model(x).float().square().mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                return loss
            return model(x)

        call = wrap(step)
        with torch.autocast("cpu"):
            for k in range(12):
                with torch.inference_mode(k % 4 == 3):
                    result = call(inputs(k, 5 + k % 4))
                    seen += [result.is_inference(), result.detach().float()]
        return seen, [p.detach() for p in model.parameters()]

    want, got, (function,) = both(run)
    assert close(plain(got), plain(want))
    text_of_replays(function, "symbolic trace")


def test_errors_and_bodies_in_python_find_autocast_as_it_was():
    def run(wrap):
        model, seen = net().eval(), []

        def body(x, rows):
            seen.append(torch.is_autocast_enabled("cpu"))  # Python at every call
            return model(x)[rows]

        call = wrap(body)
        with torch.autocast("cpu"):
            for k in range(6):
                try:
                    seen.append(call(inputs(k), torch.tensor([k])).detach().float())
                except IndexError as error:
                    seen.append(str(error))
                seen.append(torch.is_autocast_enabled("cpu"))
        return seen

    want, got, _ = both(run)
    assert close(plain(got), plain(want))


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_inside_autocast(reentrant):
    def run(wrap):
        model, seen = net(), []
        call = wrap(lambda x: model(x).sin())
        for k in range(5):
            x = inputs(k).requires_grad_()
            with torch.autocast("cpu"):
                y = checkpoint(call, x, use_reentrant=reentrant)
            y.float().square().sum().backward()
            seen += [y.detach().float(), x.grad]
        return seen, [p.grad for p in model.parameters()]

    want, got, _ = both(run)
    assert close(plain(got), plain(want))
