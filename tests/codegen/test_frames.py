"""Mirrored padding, windows as columns and adaptive pools, natively, forward and backward."""

import numpy as np
import pytest
import wengert as torch
import wengert.nn.functional as F

CASES = {
    "reflect": lambda x: F.pad(x, (2, 1, 0, 3), mode="reflect"),
    "replicate": lambda x: F.pad(x, (0, 2, 1, 1), mode="replicate"),
    "circular": lambda x: F.pad(x, (2, 0, 1, 3), mode="circular"),
    "columns": lambda x: F.unfold(x, (2, 3), dilation=(1, 2), padding=(1, 2), stride=(2, 1)),
    "fold": lambda x: F.fold(F.unfold(x, 3, padding=1), (6, 8), 3, padding=1),
    "windows": lambda x: x.unfold(3, 3, 2).unfold(2, 2, 1),
    "average": lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "nearest exact": lambda x: F.interpolate(x, size=(18, 8), mode="nearest-exact"),
    "average of all": lambda x: F.adaptive_avg_pool2d(x, 1),
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_frames(case, dtype):
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.integers(-8, 8, (2, 3, 6, 8)) / 4.0).to(getattr(torch, dtype))
    x.requires_grad_()

    def loss(x):
        made = CASES[case](x)
        return made, (made * made).sum()

    compiled = torch.compile(loss, fullgraph=True)
    got, expected = compiled(x), loss(x)
    assert torch.allclose(got[0], expected[0], rtol=1e-3 if dtype == "float16" else 1e-6)
    gradients = [torch.autograd.grad(r[1], x)[0] for r in (got, expected)]
    assert torch.allclose(*gradients, rtol=2e-3 if dtype == "float16" else 1e-6)
    assert "host call" not in compiled.dump("kernels")
