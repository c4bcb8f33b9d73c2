"""Where results lie in memory: strides decide which `view()` is possible, as in torch 2.13."""

import pytest
import wengert as torch
from wengert.nn import functional as F

REDUCTIONS = {
    name: lambda x, dim, name=name: getattr(torch, name)(x, dim=dim)
    for name in ("sum", "mean", "prod", "amax", "amin", "var", "std", "logsumexp", "norm", "nansum",
                 "all", "any", "argmax", "count_nonzero", "nanmean")
}  # fmt: skip
REDUCTIONS |= {
    "max": lambda x, dim: x.max(dim)[0],
    "aminmax": lambda x, dim: torch.aminmax(x, dim=dim)[0],
    "var_mean": lambda x, dim: torch.var_mean(x, dim)[1],
}

POINTWISE = {
    "exp": torch.exp, "erf": torch.erf, "lgamma": torch.lgamma, "digamma": torch.digamma,
    "gelu": F.gelu, "silu": F.silu, "softplus": F.softplus, "dropout": F.dropout,
    "zeros_like": torch.zeros_like, "ones_like": torch.ones_like, "rand_like": torch.rand_like,
    "full_like": lambda x: torch.full_like(x, 3),
    "clone": torch.clone, "product": lambda x: x * x, "to": lambda x: x.double(),
    "where": lambda x: torch.where(x > 0, x, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_reductions_are_row_major(name, dim):
    x = torch.rand(4, 3, 2).permute(1, 2, 0)
    reduced = REDUCTIONS[name](x, dim)
    assert reduced.is_contiguous()
    assert torch.equal(reduced, REDUCTIONS[name](x.contiguous(), dim)) or name in ("var", "std")
    reduced.view(-1)


@pytest.mark.parametrize("name", POINTWISE)
def test_pointwise_results_lie_as_their_operand(name):
    x = torch.rand(4, 3, 2).permute(1, 2, 0)
    for function in (POINTWISE[name], torch.compile(POINTWISE[name])):
        for _ in range(3):
            result = function(x)
            assert result.stride() == x.stride() == (2, 1, 6)
            result.permute(2, 0, 1).view(-1)


def test_layouts_that_are_asked_for():
    x = torch.rand(2, 3, 4, 5)
    last = torch.zeros_like(x, memory_format=torch.channels_last)
    assert last.is_contiguous(memory_format=torch.channels_last)
    turned = x.permute(0, 2, 3, 1)
    assert torch.ones_like(turned, memory_format=torch.contiguous_format).is_contiguous()
    # the order is kept where memory has gaps, and the gaps are not
    assert torch.ones_like(turned[:, ::2]).stride() == (30, 5, 1, 10)
    assert F.one_hot((turned > 0.5).long(), 2).is_contiguous()
