"""Recurrent layers: their time loops against cells, natively, at higher orders."""

import numpy as np
import pytest
import wengert as torch
from wengert import nn
from wengert.ir.op import TABLE, Loop
from wengert.nn.utils import rnn

KINDS = {
    "RNN": lambda *sizes, **options: nn.RNN(*sizes, **options),
    "RNN relu": lambda *sizes, **options: nn.RNN(*sizes, nonlinearity="relu", **options),
    "LSTM": nn.LSTM, "GRU": nn.GRU,
}  # fmt: skip
CELLS = {
    "RNN": nn.RNNCell, "RNN relu": lambda *sizes, **options: nn.RNNCell(
        *sizes, nonlinearity="relu", **options),
    "LSTM": nn.LSTMCell, "GRU": nn.GRUCell,
}  # fmt: skip


def flat(results):
    output, state = results
    return [output, *(state if isinstance(state, tuple) else (state,))]


def cell_of(kind, layer, bias):
    """A cell that holds the layer's own parameters."""
    cell = CELLS[kind](layer.input_size, layer.hidden_size, bias=bias, dtype=torch.float64)
    for name, parameter in layer.named_parameters():
        setattr(cell, name.removesuffix("_l0"), parameter)
    return cell


def run_cell(cell, x, state):
    outputs = []
    for part in x.unbind(0):
        state = cell(part, state)
        outputs.append(state[0] if isinstance(state, tuple) else state)
    return torch.stack(outputs), state


def weighed(results):
    """A number that depends on all results, each element otherwise."""
    return sum((r * torch.linspace(-1, 2, r.numel(), dtype=r.dtype).view(r.shape)).sum()
               for r in results)  # fmt: skip


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_is_its_cell_at_every_step(kind, bias):
    torch.manual_seed(0)
    layer = KINDS[kind](3, 4, bias=bias, dtype=torch.float64)
    cell = cell_of(kind, layer, bias)
    x = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
    state = [torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
             for _ in range(2 if kind == "LSTM" else 1)]  # fmt: skip
    given = [h.unsqueeze(0) for h in state]
    found = flat(layer(x, tuple(given) if kind == "LSTM" else given[0]))
    expected = flat(run_cell(cell, x, tuple(state) if kind == "LSTM" else state[0]))
    found = [found[0], *(h[0] for h in found[1:])]
    leaves = [x, *state, *layer.parameters()]
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(weighed(found), leaves),
                               torch.autograd.grad(weighed(expected), leaves))  # fmt: skip


@pytest.mark.parametrize("last_only", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_higher_orders(kind, last_only):
    torch.manual_seed(1)
    layer = KINDS[kind](2, 3, bidirectional=True, dtype=torch.float64)
    x = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)

    names = [name for name, _ in layer.named_parameters()]

    def function(x, *parameters):
        results = flat(torch.func.functional_call(layer, dict(zip(names, parameters)), (x,)))
        return tuple(results[1:] if last_only else results)

    leaves = (x, *layer.parameters())
    assert torch.autograd.gradcheck(function, leaves)
    assert torch.autograd.gradgradcheck(function, leaves)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_may_be_written_to(kind):
    layer, x = KINDS[kind](2, 3, dtype=torch.float64), torch.randn(4, 2, 2, dtype=torch.float64)
    layer(x)[0].exp().sum().backward()
    expected = [p.grad for p in layer.parameters()]
    layer.zero_grad()
    layer(x)[0].exp_().sum().backward()
    torch.testing.assert_close([p.grad for p in layer.parameters()], expected)


def padded(layer, x, lengths):
    packed = rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
    output, state = layer(packed)
    return rnn.pad_packed_sequence(output)[0], state


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_large_layers_run_natively(kind, packed):
    """In eager execution and compiled, with the values that float64 has by NumPy."""
    torch.manual_seed(2)
    layer = KINDS[kind](24, 32, 2, bidirectional=True)
    wide = KINDS[kind](24, 32, 2, bidirectional=True, dtype=torch.float64)
    wide.load_state_dict(layer.state_dict())
    x = torch.randn(9, 8, 24)
    lengths = [9, 3, 7, 7, 1, 9, 4, 2]
    run = (lambda layer, x: padded(layer, x, lengths)) if packed else (lambda layer, x: layer(x))

    def grads(function, layer, x):
        layer.zero_grad()
        results = flat(function(layer, x))
        weighed(results).backward()
        return [*results, *(p.grad for p in layer.parameters())]

    expected = grads(run, wide, x.double())
    compiled = torch.compile(run)
    for function in (run, compiled, compiled, compiled):
        for a, b in zip(grads(function, layer, x), expected, strict=True):
            np.testing.assert_allclose(a.detach(), b.detach(), rtol=3e-4, atol=3e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_native_code_is_the_same_for_all_lengths(kind):
    layer = KINDS[kind](5, 6)
    symbols = []
    for length in (48, 96):  # tiles of any CPU leave no rows over for one of them alone
        compiled = torch.compile(lambda x: layer(x)[0].sum())
        compiled(torch.randn(length, 3, 5)).backward()
        assert "host call" not in compiled.dump("kernels")
        symbols.append([line for line in compiled.dump("llvm").splitlines()
                        if line.startswith("define")])  # fmt: skip
    assert len(symbols[0]) == len(symbols[1])


@pytest.mark.parametrize("kind", KINDS)
def test_layers_in_batches(kind):
    layer = KINDS[kind](2, 3, dtype=torch.float64)
    x = torch.randn(4, 5, 2, 2, dtype=torch.float64)
    found = torch.func.vmap(lambda x: layer(x)[0])(x)
    torch.testing.assert_close(found, torch.stack([layer(part)[0] for part in x]))
    tangent = torch.randn(5, 2, 2, dtype=torch.float64)
    _, pushed = torch.func.jvp(lambda x: layer(x)[0], (x[0],), (tangent,))
    step = 1e-6
    moved = layer(x[0] + step * tangent)[0] - layer(x[0] - step * tangent)[0]
    torch.testing.assert_close(pushed, moved / (2 * step), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_empty_batches_and_sequences(kind):
    layer = KINDS[kind](2, 3)
    assert layer(torch.randn(4, 0, 2))[0].shape == (4, 0, 3)
    with pytest.raises(RuntimeError, match="Expected sequence length to be larger than 0 in RNN"):
        layer(torch.randn(0, 4, 2))


def test_loops_are_in_the_catalogue():
    assert {n for n, op in TABLE.items() if isinstance(op.lower, Loop)} == {
        "rnn_loop", "rnn_grad", "lstm_loop", "lstm_grad", "gru_loop", "gru_grad"}  # fmt: skip


def test_settings_of_a_loop_have_defaults():
    parts, h, c, weight = (torch.randn(*s) for s in ((9, 8, 64), (8, 16), (8, 16), (16, 64)))
    op = TABLE["lstm_loop"]
    for got, expected in zip(op(parts, h, c, weight), op.lower.expand(
            parts, h, c, weight, fused=True, reverse=False), strict=True):  # fmt: skip
        torch.testing.assert_close(got, expected)
