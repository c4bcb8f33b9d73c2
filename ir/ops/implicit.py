"""Samples that move with their parameters: gamma draws, and the slopes of gamma and beta samples.

The draws themselves are `draw` (`drawing.py`); `standard_gamma` puts a gamma sample into the graph
of its concentrations, with the gradient of Figurnov et al., "Implicit reparameterization
gradients" (2018).
"""

from __future__ import annotations

from typing import Any

from ..numerics import implicit
from ..op import Decompose, define
from ..value import public
from .kinds import no_derivative, pointwise, refusing, require_value
from .special import in_double

_NONE = "the derivative for '{}' is not implemented."


standard_gamma_grad = pointwise(
    "standard_gamma_grad", "self output -> result", publish=False, domain=(0.3, 4),
    numpy=refusing("_standard_gamma_grad", "iub", in_double("_standard_gamma_grad",
                                                            implicit.gamma_slope)),
    vjp=dict(self=no_derivative(_NONE.format("_standard_gamma_grad")),
             output=no_derivative(_NONE.format("_standard_gamma_grad"))),
)  # fmt: skip
dirichlet_grad = pointwise(
    "dirichlet_grad", "x alpha total -> result", publish=False, domain=(0.2, 0.8),
    numpy=refusing("_dirichlet_grad", "iub", in_double(
        "_dirichlet_grad", lambda x, alpha, total: implicit.beta_slope(x, alpha, total - alpha))),
)  # fmt: skip
# random: its value is a sample, which no difference quotient can follow
standard_gamma = define(
    "standard_gamma", "self sample -> result", numpy=lambda self, sample: sample,
    infer=lambda self, sample: sample, lower=Decompose(lambda self, sample: sample),
    kind="random", random=True,
    vjp=dict(self=lambda grad, self, result: grad * standard_gamma_grad(self, result)),
)  # fmt: skip


@public("_standard_gamma_grad", method=False)
def gamma_slope(input: Any, output: Any) -> Any:
    """_standard_gamma_grad(input, output): how samples `output` move with concentrations."""
    require_value("_standard_gamma_grad", input)
    return standard_gamma_grad(input, output)


@public("_dirichlet_grad", method=False)
def dirichlet_slope(x: Any, alpha: Any, total: Any) -> Any:
    """_dirichlet_grad(x, alpha, total): how shares x move with their concentrations alpha."""
    require_value("_dirichlet_grad", x, "x")
    return dirichlet_grad(x, alpha, total)
