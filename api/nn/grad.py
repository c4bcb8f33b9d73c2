"""`torch.nn.grad`: gradients of convolutions for given inputs and weights, without a graph."""

from __future__ import annotations

from typing import Any

from ..tracer.backward import grad as gradient
from ..tracer.creation import zeros
from ..tracer.modes import enable_grad
from . import functional as F


def _gradient(convolution: Any, input: Any, weight: Any, wanted: int, grad_output: Any,
              *settings: Any) -> Any:  # fmt: skip
    """The gradient of `convolution` for its input (0) or its weight (1)."""
    operands = [input.detach(), weight.detach()]
    operands[wanted].requires_grad_()
    with enable_grad():
        output = convolution(operands[0], operands[1], None, *settings)
    return gradient(output, operands[wanted], grad_output)[0]


def _functions(rank: int) -> tuple[Any, Any]:
    """conv<rank>d_input and conv<rank>d_weight."""
    name = f"conv{rank}d"
    convolution = getattr(F, name)

    def conv_input(input_size: Any, weight: Any, grad_output: Any, stride: Any = 1,
                   padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:  # fmt: skip
        zero = zeros(tuple(input_size), dtype=weight.dtype)
        settings = (stride, padding, dilation, groups)
        return _gradient(convolution, zero, weight, 0, grad_output, *settings)

    def conv_weight(input: Any, weight_size: Any, grad_output: Any, stride: Any = 1,
                    padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:  # fmt: skip
        zero = zeros(tuple(weight_size), dtype=input.dtype)
        settings = (stride, padding, dilation, groups)
        return _gradient(convolution, input, zero, 1, grad_output, *settings)

    for function, what in ((conv_input, "input"), (conv_weight, "weight")):
        function.__name__ = function.__qualname__ = f"{name}_{what}"
        function.__doc__ = f"The gradient of {name} with respect to its {what}."
    return conv_input, conv_weight


conv1d_input, conv1d_weight = _functions(1)
conv2d_input, conv2d_weight = _functions(2)
conv3d_input, conv3d_weight = _functions(3)
