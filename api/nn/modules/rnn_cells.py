"""One step of a recurrence: RNNCell, LSTMCell, GRUCell."""

from __future__ import annotations

import math
from typing import Any

from ...tracer.tensor import Tensor
from .. import init
from ._making import new_parameter
from ._recurrence import Weights, run_cell
from .module import Module


class RNNCellBase(Module):
    """Parameters of a cell with `num_chunks` gates."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int,
                 device: Any = None, dtype: Any = None) -> None:  # fmt: skip
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        self.weight_ih = new_parameter((gates, input_size), device, dtype)
        self.weight_hh = new_parameter((gates, hidden_size), device, dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, new_parameter(gates, device, dtype) if bias else None)
        self.reset_parameters()

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.__dict__.get("nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def reset_parameters(self) -> None:
        """Uniform, with the bound 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _check(self, word: str, value: Tensor) -> None:
        if value.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected {word} to be 1D or 2D, got "
                             f"{value.dim()}D instead")  # fmt: skip

    def _step(self, mode: str, input: Tensor, state: tuple[Tensor, ...] | None, count: int) -> Any:
        """The next state; without a batch where the input has none."""
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if state is None:
            state = (input.new_zeros(input.size(0), self.hidden_size),) * count
        elif not batched:
            state = tuple(h.unsqueeze(0) for h in state)
        weights = Weights(self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh, None)
        state = run_cell(mode, input, state, weights)
        return state if batched else tuple(h.squeeze(0) for h in state)


class RNNCell(RNNCellBase):
    """RNNCell(input_size, hidden_size, bias=True, nonlinearity="tanh")."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        self._check("input", input)
        if hx is not None:
            self._check("hidden", hx)
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}; use 'tanh' or 'relu'")
        mode = f"RNN_{self.nonlinearity.upper()}"
        return self._step(mode, input, None if hx is None else (hx,), 1)[0]


class LSTMCell(RNNCellBase):
    """LSTMCell(input_size, hidden_size, bias=True)."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]:
        self._check("input", input)
        for k, value in enumerate(hx or ()):
            self._check(f"hx[{k}]", value)
        return self._step("LSTM", input, None if hx is None else tuple(hx), 2)


class GRUCell(RNNCellBase):
    """GRUCell(input_size, hidden_size, bias=True)."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        self._check("input", input)
        if hx is not None:
            self._check("hidden", hx)
        return self._step("GRU", input, None if hx is None else (hx,), 1)[0]
