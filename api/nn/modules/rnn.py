"""Recurrent layers: RNN, LSTM, GRU over sequences; their cells are in `rnn_cells.py`."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

from ...ir.bind import casting
from ...naming import found_in
from ...tracer.creation import zeros
from ...tracer.tensor import Tensor
from .. import init
from ..utils.rnn import PackedSequence
from ._making import new_parameter
from ._recurrence import Weights, run_network
from .module import Module
from .rnn_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """Parameters, checks and the run over (packed) sequences; `mode` names the recurrence."""

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1,
                 bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
                 bidirectional: bool = False, proj_size: int = 0, device: Any = None,
                 dtype: Any = None) -> None:  # fmt: skip
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_dropout(dropout)
        self._check_sizes()
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                self._make_layer(layer, suffix, {"device": device, "dtype": dtype})
        self.reset_parameters()

    def _check_dropout(self, dropout: Any) -> None:
        if (
            not isinstance(dropout, numbers.Number)
            or isinstance(dropout, bool)
            or not (0 <= dropout <= 1)
        ):
            raise ValueError("dropout should be a number in range [0, 1] representing the "
                             "probability of an element being zeroed")  # fmt: skip
        if dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                "num_layers=1",
                stacklevel=4,
            )

    def _check_sizes(self) -> None:
        for name, kind in (("bias", bool), ("batch_first", bool), ("input_size", int),
                           ("hidden_size", int)):  # fmt: skip
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: "
                                f"{type(value).__name__}")  # fmt: skip
            if kind is int and value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {self.mode}; use one of {', '.join(_GATES)}")

    def _make_layer(self, layer: int, suffix: str, kind: dict[str, Any]) -> None:
        gates = _GATES[self.mode] * self.hidden_size
        out = self.proj_size or self.hidden_size
        directions = 2 if self.bidirectional else 1
        shapes: dict[str, Any] = {
            "weight_ih": (gates, self.input_size if layer == 0 else out * directions),
            "weight_hh": (gates, out),
        }
        if self.bias:
            shapes |= {"bias_ih": gates, "bias_hh": gates}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = []
        for name, shape in shapes.items():
            names.append(f"{name}_l{layer}{suffix}")
            setattr(self, names[-1], new_parameter(shape, **kind))
        self._all_weights.append(names)

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters per layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        return [weight for weights in self.all_weights for weight in weights]

    def flatten_parameters(self) -> None:
        """Nothing to do: there is no other memory layout to choose."""

    def reset_parameters(self) -> None:
        """Uniform, with the bound 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        texts = [f"{self.input_size}, {self.hidden_size}"]
        plain = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0,
                 "bidirectional": False}  # fmt: skip
        texts += [f"{name}={getattr(self, name)}" for name, value in plain.items()
                  if getattr(self, name) != value]  # fmt: skip
        return ", ".join(texts)

    # --- checks ---

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Dtype, number of dimensions and width of the input."""
        weight = self._parameters.get("weight_ih_l0", None)
        if weight is not None and input.dtype is not weight.dtype and not casting():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: "
                f"model.to({input.dtype})"
            )
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError("input.size(-1) must be equal to input_size. Expected "
                               f"{self.input_size}, got {input.size(-1)}")  # fmt: skip

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Any) -> tuple[int, int, int]:
        """(layers * directions, batch, hidden)."""
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0 if self.batch_first else 1)
        directions = 2 if self.bidirectional else 1
        return self.num_layers * directions, batch, self.proj_size or self.hidden_size

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Any) -> tuple[int, int, int]:
        """(layers * directions, batch, hidden before the projection)."""
        return (*self.get_expected_hidden_size(input, batch_sizes)[:2], self.hidden_size)

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: Any, msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Raises unless `hx` has the expected size."""
        if tuple(hx.size()) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Any) -> None:
        """All checks of a call."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    # --- running ---

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The states of the batch in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def _zero_state(self, input: Tensor, batch_sizes: Any) -> Any:
        return zeros(self.get_expected_hidden_size(input, batch_sizes), dtype=input.dtype,
                     device=input.device)  # fmt: skip

    def _unbatched_state(self, hx: Any, batched: bool) -> Any:
        if hx is None:
            return None
        wanted, word = (3, "batched") if batched else (2, "unbatched")
        if hx.dim() != wanted:
            raise RuntimeError(f"For {word} {wanted}-D input, hx should also be {wanted}-D but got "
                               f"{hx.dim()}-D tensor")  # fmt: skip
        return hx if batched else hx.unsqueeze(1)

    def _run(self, input: Tensor, batch_sizes: Any, state: tuple[Tensor, ...]) -> Any:
        weights = []
        for parameters in self.all_weights:
            projection = parameters.pop() if self.proj_size else None
            biases = parameters[2:] if self.bias else (None, None)
            weights.append(Weights(*parameters[:2], *biases, projection))
        sizes = None if batch_sizes is None else batch_sizes.tolist()
        swap = batch_sizes is None and self.batch_first
        output, state = run_network(
            self.mode, input.transpose(0, 1) if swap else input, sizes, state, weights,
            2 if self.bidirectional else 1, self.dropout, self.training,
        )  # fmt: skip
        if not swap:
            return output, state
        # torch turns all outputs but an LSTM's in place, as the node's name shows
        return output.transpose(0, 1) if self.mode == "LSTM" else output.transpose_(0, 1), state

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> Any:
        input, batch_sizes, order, back = packed
        if hx is None:
            hx = self._zero_state(input, batch_sizes)
        else:
            hx = self.permute_hidden(hx, order)
        self.check_forward_args(input, hx, batch_sizes)
        output, state = self._run(input, batch_sizes, hx if isinstance(hx, tuple) else (hx,))
        result = PackedSequence(output, batch_sizes, order, back)
        return result, self.permute_hidden(self._as_hidden(state), back)

    def _as_hidden(self, state: tuple[Tensor, ...]) -> Any:
        return state[0]

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Outputs of all steps and the last state; the input may be a PackedSequence."""
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            noun = " tensor" if isinstance(self, RNN) else ""
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got "
                             f"{input.dim()}D{noun} instead")  # fmt: skip
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        hx = self._unbatched_state(hx, batched)
        hx = self._zero_state(input, None) if hx is None else hx
        self.check_forward_args(input, hx, None)
        output, state = self._run(input, None, hx if isinstance(hx, tuple) else (hx,))
        if not batched:
            output = output.squeeze(batch_dim)
            state = tuple(h.squeeze(1) for h in state)
        return output, self._as_hidden(state)


class RNN(RNNBase):
    """RNN(input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, ...)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """LSTM(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, ...)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Any) -> None:
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden[0], self.get_expected_hidden_size(input, batch_sizes),
                               "Expected hidden[0] size {}, got {}")  # fmt: skip
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes),
                               "Expected hidden[1] size {}, got {}")  # fmt: skip

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        if permutation is None:
            return hx
        return tuple(h.index_select(1, permutation) for h in hx)

    def _zero_state(self, input: Tensor, batch_sizes: Any) -> Any:
        return (
            zeros(
                self.get_expected_hidden_size(input, batch_sizes),
                dtype=input.dtype,
                device=input.device,
            ),
            zeros(
                self.get_expected_cell_size(input, batch_sizes),
                dtype=input.dtype,
                device=input.device,
            ),
        )

    def _unbatched_state(self, hx: Any, batched: bool) -> Any:
        if hx is None:
            return None
        wanted, word = (3, "batched") if batched else (2, "unbatched")
        if hx[0].dim() != wanted or hx[1].dim() != wanted:
            raise RuntimeError(f"For {word} {wanted}-D input, hx and cx should also be {wanted}-D "
                               f"but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors")  # fmt: skip
        return tuple(hx) if batched else tuple(h.unsqueeze(1) for h in hx)

    def _as_hidden(self, state: tuple[Tensor, ...]) -> Any:
        return state


class GRU(RNNBase):
    """GRU(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, ...)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


found_in(__name__, GRUCell, LSTMCell, RNNCell, RNNCellBase)
