"""The recurrences of RNN, LSTM and GRU, written in ops: cells, layers, packed sequences.

A state is a tuple of tensors: (h,) or (h, c). `step` maps (input part of the gates, state, weights)
to the next state; the input part of all time steps is one product, made before the loop. Layers of
float32 and float64 without projections run all steps in one op (ir/ops/nn_recurrent.py); others,
and cells, run them one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ... import cat, stack
from ...ir.bind import casting
from ...ir.bind import state as interpreter
from ...ir.ops.joining import lstm_outputs
from ...ir.ops.nn_gru import gru_loop
from ...ir.ops.nn_lstm import lstm_loop
from ...ir.ops.nn_recurrent import rnn_loop
from ...ir.types import bfloat16, float16, float32, float64
from ...tracer.familiar_calls import recalled
from ...tracer.tensor import Tensor
from .. import functional as F

State = tuple[Tensor, ...]
FUSED = (float32, bfloat16, float16)  # dtypes of torch's fused LSTM layer


class Weights(NamedTuple):
    """The parameters of one layer in one direction."""

    ih: Tensor
    hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None
    hr: Tensor | None  # LSTM with projections


def rnn_tanh_step(part: Tensor, state: State, w: Weights) -> State:
    """tanh(x W + b + h U + c)."""
    return ((part + F.linear(state[0], w.hh, w.bias_hh)).tanh(),)


def rnn_relu_step(part: Tensor, state: State, w: Weights) -> State:
    """relu(x W + b + h U + c)."""
    return ((part + F.linear(state[0], w.hh, w.bias_hh)).relu(),)


def lstm_step(part: Tensor, state: State, w: Weights) -> State:
    """Gates in torch's order: input, forget, cell, output."""
    h, c = state
    into, forget, cell, out = (part + F.linear(h, w.hh, w.bias_hh)).chunk(4, 1)
    c = forget.sigmoid() * c + into.sigmoid() * cell.tanh()
    h = out.sigmoid() * c.tanh()
    return (h if w.hr is None else F.linear(h, w.hr)), c


def gru_step(part: Tensor, state: State, w: Weights) -> State:
    """Gates in torch's order: reset, update, new."""
    h = state[0]
    x_reset, x_update, x_new = part.chunk(3, 1)
    h_reset, h_update, h_new = F.linear(h, w.hh, w.bias_hh).chunk(3, 1)
    reset, update = (x_reset + h_reset).sigmoid(), (x_update + h_update).sigmoid()
    new = (x_new + reset * h_new).tanh()
    return (update * (h - new) + new,)


STEPS: dict[str, Callable[[Tensor, State, Weights], State]] = {
    "RNN_TANH": recalled(rnn_tanh_step), "RNN_RELU": recalled(rnn_relu_step),
    "LSTM": recalled(lstm_step), "GRU": recalled(gru_step),
}  # fmt: skip


@recalled
def run_cell(mode: str, input: Tensor, state: State, w: Weights) -> State:
    """One step of a cell, with torch's checks of the sizes."""
    if input.size(1) != w.ih.size(1):
        raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)} expected "
                           f"{w.ih.size(1)}")  # fmt: skip
    for k, h in enumerate(state):
        if h.size(0) != input.size(0):
            raise RuntimeError(f"Input batch size {input.size(0)} doesn't match hidden{k} batch "
                               f"size {h.size(0)}")  # fmt: skip
        if h.size(1) != w.hh.size(1):
            raise RuntimeError(f"hidden{k} has inconsistent hidden_size: got {h.size(1)}, expected "
                               f"{w.hh.size(1)}")  # fmt: skip
    return STEPS[mode](F.linear(input, w.ih, w.bias_ih), state, w)


def run_layer(
    mode: str, input: Tensor, sizes: list[int] | None, state: State, w: Weights, reverse: bool
) -> Any:
    """Outputs of all steps, shape (T, B, H), and the last state.

    Where `sizes` are given, input and outputs are packed: step t has `sizes[t]` rows, in falling
    order.
    """
    if mode == "LSTM" and w.hr is None and casting() and input.dtype in (float32, bfloat16):
        input, state, w = lowered(input, state, w)
    one_dtype = {input.dtype, w.ih.dtype, *(h.dtype for h in state)}
    if w.hr is None and one_dtype in ({float32}, {float64}) and not casting():
        return run_loop(mode, input, None if sizes is None else tuple(sizes), state, w, reverse)
    if sizes is not None:
        return run_packed(mode, input, sizes, state, w, reverse)
    step = STEPS[mode]
    parts = F.linear(input, w.ih, w.bias_ih).unbind(0)
    outputs = []
    for part in reversed(parts) if reverse else parts:
        state = step(part, state, w)
        outputs.append(state[0])
    if reverse:
        outputs.reverse()
    fused = mode == "LSTM" and w.hr is None and input.dtype in FUSED
    return lstm_outputs(*outputs) if fused else stack(outputs, dim=0), state


def lowered(input: Tensor, state: State, w: Weights) -> tuple[Tensor, State, Weights]:
    """What a layer works on in the lower precision of autocast, as torch's fused LSTM does."""
    dtype = interpreter.top.dtype  # type: ignore[attr-defined]
    weights = Weights(*(value if value is None else value.to(dtype) for value in w))
    return input.to(dtype), tuple(h.to(dtype) for h in state), weights


def run_loop(mode: str, input: Tensor, sizes: Any, state: State, w: Weights, reverse: bool) -> Any:
    """The same by the op that has all steps."""
    weight = w.hh.t()
    if mode == "GRU":
        parts = F.linear(input, w.ih, w.bias_ih)
        h, output, *_ = gru_loop(parts, *state, weight, w.bias_hh, reverse=reverse, sizes=sizes)
        return output, (h,)
    bias = w.bias_ih
    if bias is not None and w.bias_hh is not None:
        bias = bias + w.bias_hh
    parts = F.linear(input, w.ih, bias)
    if mode == "LSTM":
        h, c, output, *_ = lstm_loop(parts, *state, weight, fused=input.dtype in FUSED,
                                     reverse=reverse, sizes=sizes)  # fmt: skip
        return output, (h, c)
    h, output, _ = rnn_loop(parts, *state, weight, relu=mode == "RNN_RELU", reverse=reverse,
                         sizes=sizes)  # fmt: skip
    return output, (h,)


def run_packed(
    mode: str, input: Tensor, sizes: list[int], state: State, w: Weights, reverse: bool
) -> Any:
    """The steps of a packed sequence, one by one."""
    parts = F.linear(input, w.ih, w.bias_ih).split(sizes, 0)
    run = run_packed_backward if reverse else run_packed_forward
    outputs, state = run(STEPS[mode], parts, sizes, state, w)
    return cat(outputs, dim=0), state


def run_packed_forward(step: Any, parts: Any, sizes: list[int], state: State, w: Weights) -> Any:
    """Sequences end one after the other: their states are set aside when they do."""
    outputs, ended = [], []
    rows = sizes[0]
    for part, size in zip(parts, sizes):
        if size < rows:
            ended.append(tuple(h[size:rows] for h in state))
            state = tuple(h[:size] for h in state)
            rows = size
        state = step(part, state, w)
        outputs.append(state[0])
    ended.append(state)
    return outputs, tuple(cat(pieces, dim=0) for pieces in zip(*reversed(ended)))


def run_packed_backward(step: Any, parts: Any, sizes: list[int], initial: State, w: Weights) -> Any:
    """From the end, sequences join one after the other with their initial state."""
    outputs = []
    rows = sizes[-1]
    state = tuple(h[:rows] for h in initial)
    for part, size in zip(reversed(parts), reversed(sizes)):
        if size > rows:
            state = tuple(cat([h, start[rows:size]], dim=0) for h, start in zip(state, initial))
            rows = size
        state = step(part, state, w)
        outputs.append(state[0])
    outputs.reverse()
    return outputs, state


def run_network(
    mode: str,
    input: Tensor,
    sizes: list[int] | None,
    initial: State,
    weights: list[Weights],
    directions: int,
    dropout: float,
    training: bool,
) -> Any:
    """All layers: input (T, B, I) or packed, states (layers * directions, B, H)."""
    if input.size(0) == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    finals: list[State] = []
    states = list(zip(*(h.unbind(0) for h in initial)))
    last = len(weights) // directions - 1
    for layer in range(last + 1):
        outputs = []
        for direction in range(directions):
            k = layer * directions + direction
            output, state = run_layer(mode, input, sizes, states[k], weights[k], direction == 1)
            outputs.append(output)
            finals.append(state)
        input = outputs[0] if directions == 1 else cat(outputs, dim=-1)
        if dropout and training and layer < last:
            input = F.dropout(input, dropout, True)
    return input, tuple(stack(parts, dim=0) for parts in zip(*finals))
