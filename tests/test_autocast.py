"""What runs in which precision inside `torch.autocast("cpu")`."""

import pytest
import wengert as torch
import wengert.nn.functional as F
from wengert.utils.checkpoint import checkpoint

LOW, SINGLE = torch.bfloat16, torch.float32
HALVES = [torch.bfloat16, torch.float16]
CLASSES = torch.tensor([0, 1, 2])


def matrix(dtype):
    torch.manual_seed(0)
    a = torch.randn(3, 3)
    return (a @ a.T + 3 * torch.eye(3)).to(dtype)


def dtypes(result):
    values = result if isinstance(result, tuple) else (result,)
    return {v.dtype for v in values if v.is_floating_point()}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(
    "function",
    [
        torch.linalg.inv,
        torch.linalg.eigh,
        torch.linalg.svd,
        torch.linalg.qr,
        torch.linalg.cholesky,
        torch.linalg.cond,
        torch.geqrf,
        lambda x: torch.linalg.solve(x, x),
        lambda x: torch.linalg.lstsq(x, x).solution,
        lambda x: torch.quantile(x, 0.5),
        lambda x: torch.stft(x.flatten(), 4, return_complex=True).real,
        lambda x: F.l1_loss(x, x),
        lambda x: F.kl_div(x, x, reduction="sum"),
        lambda x: F.multi_margin_loss(x, CLASSES),
        lambda x: F.triplet_margin_loss(x, x, x),
        lambda x: F.pad(x[None], (1, 1), mode="reflect"),
        lambda x: F.avg_pool3d(x.expand(1, 1, 3, 3, 3), 2),
        lambda x: F.adaptive_avg_pool3d(x.expand(1, 1, 3, 3, 3), 2),
        lambda x: F.grid_sample(x[None, None], x.new_zeros(1, 2, 2, 2), align_corners=False),
    ],
)
def test_halves_are_computed_in_float32(function, dtype):
    x = matrix(dtype)
    with torch.autocast("cpu", dtype=LOW):
        assert dtypes(function(x)) == {SINGLE}


def test_what_runs_in_float32_equals_the_cast_by_hand():
    x = matrix(LOW)
    with torch.autocast("cpu", dtype=LOW):
        inside = torch.linalg.inv(x)
    assert torch.equal(inside, torch.linalg.inv(x.float()))
    with pytest.raises(RuntimeError, match="Low precision dtypes not supported"):
        torch.linalg.inv(x)


@pytest.mark.parametrize("dtype", [SINGLE, *HALVES])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x @ x,
        lambda x: F.linear(x, x),
        lambda x: torch.addmm(x, x, x),
        lambda x: F.conv1d(x[None], x[None]),
        lambda x: F.prelu(x, x[0]),
        lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    ],
)
def test_products_take_the_lower_precision(function, dtype):
    x = matrix(dtype)
    with torch.autocast("cpu", dtype=LOW):
        assert dtypes(function(x)) == {LOW}


def test_doubles_stay_and_do_not_mix():
    x = matrix(torch.float64)
    with torch.autocast("cpu", dtype=LOW):
        assert dtypes(x @ x) == {torch.float64}
        with pytest.raises(RuntimeError, match="must have the same dtype, but got Double and BFlo"):
            torch.nn.Linear(3, 2)(x)


@pytest.mark.parametrize(
    ("layer", "given", "wanted"),
    [
        (torch.nn.LSTM, SINGLE, LOW),  # fused in torch: one product of the list
        (torch.nn.LSTM, LOW, LOW),
        (torch.nn.GRU, LOW, LOW),
        (torch.nn.RNN, LOW, LOW),
    ],
)
def test_recurrent_layers(layer, given, wanted):
    model = layer(3, 2, num_layers=2)
    with torch.autocast("cpu", dtype=LOW):
        output, _ = model(matrix(given)[None])
    assert output.dtype is wanted
    output.float().sum().backward()
    assert {p.grad.dtype for p in model.parameters()} == {SINGLE}


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_compute_again_as_they_did(reentrant):
    model = torch.nn.Linear(3, 3)

    def gradients(*how):
        x = matrix(SINGLE).requires_grad_()
        with torch.autocast("cpu", dtype=LOW):
            y = checkpoint(model, x, use_reentrant=reentrant) if how else model(x)
        y.float().square().sum().backward()
        return x.grad

    assert torch.equal(gradients("again"), gradients())
