"""The time loop of GRU and its derivative; see nn_recurrent.py.

Gates in torch's order: reset, update, new. Beside them is kept what the state adds to the
last one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .joining import cat
from .loops import Sizes, by_parts, define_loop, evaluate, outputs_type, weight_gradient
from .nn_recurrent import filled, flat, plus, samples_of, slope_of_sigmoid, squash, steep


def _gru_step(part: Any, h: Any, weight: Any, bias: Any) -> Any:
    x_reset, x_update, x_new = part.chunk(3, 1)
    h_reset, h_update, h_new = plus(h @ weight, bias).chunk(3, 1)
    reset, update = (x_reset + h_reset).sigmoid(), (x_update + h_update).sigmoid()
    new = (x_new + reset * h_new).tanh()
    result = update * (h - new) + new
    return result, result, cat(reset, update, new, h_new, dim=1), h


def _gru(parts: Any, hx: Any, weight: Any, bias: Any = None, *, reverse: bool = False,
         sizes: Sizes = None) -> Any:  # fmt: skip
    n = hx.shape[-1]

    def step(parts: Any, states: Any, others: Any, results: Any) -> Any:
        (part,), (old,), (h, gates, before) = parts, states, results
        before[...] = old
        hidden = plus(old @ weight, bias)
        np.add(part[:, : 2 * n], hidden[:, : 2 * n], gates[:, : 2 * n])
        squash(gates[:, : 2 * n])
        new = gates[:, 2 * n : 3 * n]
        gates[:, 3 * n :] = hidden[:, 2 * n :]
        np.multiply(gates[:, :n], hidden[:, 2 * n :], new)
        np.add(part[:, 2 * n :], new, new)
        np.tanh(new, new)
        np.subtract(old, new, h)
        np.multiply(gates[:, n : 2 * n], h, h)
        np.add(h, new, h)
        return (h,)

    return evaluate(step, (parts,), (hx,), (), (n, 4 * n, n), reverse, sizes)


def _gru_back(grad: Any, grad_gates: Any, grad_before: Any, gates: Any, before: Any, grad_h: Any,
              weight: Any) -> Any:  # fmt: skip
    reset, update, new, h_new = gates.chunk(4, 1)
    grad_h = plus(grad_h, grad)
    to_new, to_update = grad_h * (1 - update), grad_h * (before - new)
    more = (None,) * 4 if grad_gates is None else grad_gates.chunk(4, 1)
    to_new = plus(to_new, more[2]) * (1 - new * new)
    to_update = plus(to_update, more[1]) * slope_of_sigmoid(update)
    to_reset = plus(to_new * h_new, more[0]) * slope_of_sigmoid(reset)
    hidden = cat(to_reset, to_update, plus(to_new * reset, more[3]), dim=1)
    grad_h = plus(grad_h * update + hidden @ weight, grad_before)
    return grad_h, cat(to_reset, to_update, to_new, dim=1), hidden


def _gru_grad(
    grad_output: Any, grad_gates: Any, grad_before: Any, gates: Any, before: Any, grad_hy: Any,
    weight: Any, *, reverse: bool = False, sizes: Sizes = None,
) -> Any:  # fmt: skip
    n = before.shape[-1]

    def step(parts: Any, states: Any, others: Any, results: Any) -> Any:
        grad, more, more_before, gates, before = parts
        inner, hidden = results
        reset, update, new, h_new = (gates[:, k * n : (k + 1) * n] for k in range(4))
        to_reset, to_update, to_new = (inner[:, k * n : (k + 1) * n] for k in range(3))
        grad_h = plus(states[0], grad)
        np.multiply(grad_h, 1 - update, to_new)
        np.multiply(grad_h, before - new, to_update)
        if more is not None:
            inner[:, n:] += more[:, n : 3 * n]
        to_new *= flat(new)
        np.multiply(to_new, h_new, to_reset)
        if more is not None:
            to_reset += more[:, :n]
        inner[:, : 2 * n] *= steep(gates[:, : 2 * n])
        hidden[:, : 2 * n] = inner[:, : 2 * n]
        np.multiply(to_new, reset, hidden[:, 2 * n :])
        if more is not None:
            hidden[:, 2 * n :] += more[:, 3 * n :]
        return (plus(grad_h * update + hidden @ weight, more_before),)

    sequences = (grad_output, grad_gates, grad_before, gates, before)
    return evaluate(step, sequences, (grad_hy,), (), (3 * n, 3 * n), reverse, sizes)


def _gru_rule(
    grad_hy: Any, grad_output: Any, grad_gates: Any, grad_before: Any, hx_type: Any, weight: Any,
    gates: Any, before: Any, needs: Any, reverse: bool, sizes: Sizes,
) -> Any:  # fmt: skip
    grad_h, inner, hidden = gru_grad(grad_output, grad_gates, grad_before, gates, before,
                                     filled(grad_hy, hx_type), weight.transpose(0, 1),
                                     reverse=not reverse, sizes=sizes)  # fmt: skip
    of_weight = weight_gradient(hidden, before) if needs[2] else None
    of_bias = hidden.reshape((-1, hidden.shape[-1])).sum(0) if len(needs) > 3 and needs[3] else None
    return inner, grad_h, of_weight, of_bias


def _gru_again(
    grad_grad_hx: Any, grad_grad_parts: Any, grad_grad_hidden: Any, grad_output: Any,
    grad_gates: Any, grad_before: Any, gates: Any, before: Any, grad_hy: Any, weight: Any,
    needs: Any, reverse: bool, sizes: Sizes,
) -> Any:  # fmt: skip
    inputs = (grad_output, grad_gates, grad_before, gates, before, grad_hy, weight)
    return by_parts(gru_grad, inputs, (grad_grad_hx, grad_grad_parts, grad_grad_hidden), needs,
                    {"reverse": reverse, "sizes": sizes})  # fmt: skip


gru_loop = define_loop(
    "gru_loop", "parts hx weight bias? -> hy output gates before", _gru_step, 1, 1, numpy=_gru,
    infer=lambda parts, hx, weight, bias=None, **_: outputs_type(
        parts, (hx,), (hx.shape[-1], 4 * hx.shape[-1], hx.shape[-1])),
    node=lambda attrs: "StackBackward0" if attrs.get("sizes") is None else "CatBackward0",
    samples=samples_of((6,), 1, ((2, 6), (6,)), optional=(3,)),
    vjp={("parts", "hx", "weight", "bias"): _gru_rule},
)  # fmt: skip
gru_grad: Any = define_loop(
    "gru_grad", "grad_output? grad_gates? grad_before? gates before grad_hy weight "
    "-> grad_hx grad_parts grad_hidden", _gru_back, 5, 1, numpy=_gru_grad,
    infer=lambda *types, **_: outputs_type(types[3], types[5:6], types[6].shape[:1] * 2),
    samples=samples_of((2, 8, 2, 8, 2), 1, ((6, 2),), optional=(0, 1, 2)),
    vjp={("grad_output", "grad_gates", "grad_before", "gates", "before", "grad_hy", "weight"):
         _gru_again},
)  # fmt: skip
