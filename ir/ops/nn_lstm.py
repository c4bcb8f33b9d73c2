"""The time loop of LSTM and its derivative; see nn_recurrent.py.

Gates in torch's order: input, forget, cell, output.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .joining import cat
from .loops import (
    Sizes,
    by_parts,
    define_loop,
    evaluate,
    outputs_type,
    states_before,
    weight_gradient,
)
from .nn_recurrent import filled, flat, plus, samples_of, slope_of_sigmoid, squash, steep


def _lstm_step(part: Any, h: Any, c: Any, weight: Any) -> Any:
    into, forget, cell, out = (part + h @ weight).chunk(4, 1)
    into, forget, cell, out = into.sigmoid(), forget.sigmoid(), cell.tanh(), out.sigmoid()
    c = forget * c + into * cell
    new = out * c.tanh()
    return new, c, new, cat(into, forget, cell, out, dim=1), c, h


def _lstm(parts: Any, hx: Any, cx: Any, weight: Any, *, fused: bool = True, reverse: bool = False,
          sizes: Sizes = None) -> Any:  # fmt: skip
    n = hx.shape[-1]

    def step(parts: Any, states: Any, others: Any, results: Any) -> Any:
        h, gates, c, before = results
        before[...] = states[0]
        np.matmul(before, weight, gates)
        np.add(gates, parts[0], gates)
        cell, out = gates[:, 2 * n : 3 * n], gates[:, 3 * n :]
        squash(gates[:, : 2 * n])
        np.tanh(cell, cell)
        squash(out)
        np.multiply(gates[:, n : 2 * n], states[1], c)
        np.multiply(gates[:, :n], cell, h)
        np.add(c, h, c)
        np.tanh(c, h)
        np.multiply(h, out, h)
        return h, c

    return evaluate(step, (parts,), (hx, cx), (), (n, 4 * n, n, n), reverse, sizes)


def _lstm_back(
    grad: Any, grad_gates: Any, grad_cells: Any, grad_before: Any, gates: Any, cells: Any,
    earlier: Any, grad_h: Any, grad_c: Any, weight: Any,
) -> Any:  # fmt: skip
    into, forget, cell, out = gates.chunk(4, 1)
    grad_h, squashed = plus(grad_h, grad), cells.tanh()
    grad_c = plus(grad_c + grad_h * out * (1 - squashed * squashed), grad_cells)
    inner = [grad_c * cell, grad_c * earlier, grad_c * into, grad_h * squashed]
    if grad_gates is not None:
        inner = [x + y for x, y in zip(inner, grad_gates.chunk(4, 1))]
    slopes = [slope_of_sigmoid(into), slope_of_sigmoid(forget), 1 - cell * cell,
              slope_of_sigmoid(out)]  # fmt: skip
    grad_parts = cat(*(x * slope for x, slope in zip(inner, slopes)), dim=1)
    return plus(grad_parts @ weight, grad_before), grad_c * forget, grad_parts


def _lstm_grad(
    grad_output: Any, grad_gates: Any, grad_cells: Any, grad_before: Any, gates: Any, cells: Any,
    earlier: Any, grad_hy: Any, grad_cy: Any, weight: Any, *, reverse: bool = False,
    sizes: Sizes = None,
) -> Any:  # fmt: skip
    n = cells.shape[-1]

    def step(parts: Any, states: Any, others: Any, results: Any) -> Any:
        grad, more_gates, more_cells, more_before, gates, cells, earlier = parts
        (inner,) = results
        into, forget, cell, out = (gates[:, k * n : (k + 1) * n] for k in range(4))
        grad_h, squashed = plus(states[0], grad), np.tanh(cells)
        grad_c = flat(squashed)
        grad_c *= grad_h
        grad_c *= out
        grad_c += states[1]
        if more_cells is not None:
            grad_c += more_cells
        np.multiply(grad_c, cell, inner[:, :n])
        np.multiply(grad_c, earlier, inner[:, n : 2 * n])
        np.multiply(grad_c, into, inner[:, 2 * n : 3 * n])
        np.multiply(grad_h, squashed, inner[:, 3 * n :])
        if more_gates is not None:
            inner += more_gates
        slope = steep(gates)
        slope[:, 2 * n : 3 * n] = flat(cell)
        inner *= slope
        grad_c *= forget
        return plus(inner @ weight, more_before), grad_c

    sequences = (grad_output, grad_gates, grad_cells, grad_before, gates, cells, earlier)
    return evaluate(step, sequences, (grad_hy, grad_cy), (), (4 * n,), reverse, sizes)


def _lstm_rule(
    grad_hy: Any, grad_cy: Any, grad_output: Any, grad_gates: Any, grad_cells: Any,
    grad_before: Any, hx_type: Any, cx: Any, cx_type: Any, weight: Any, gates: Any, cells: Any,
    before: Any, needs: Any, reverse: bool, sizes: Sizes,
) -> Any:  # fmt: skip
    grad_h, grad_c, inner = lstm_grad(
        grad_output, grad_gates, grad_cells, grad_before, gates, cells,
        states_before(cx, cells, reverse, sizes), filled(grad_hy, hx_type),
        filled(grad_cy, cx_type), weight.transpose(0, 1), reverse=not reverse, sizes=sizes,
    )  # fmt: skip
    return inner, grad_h, grad_c, weight_gradient(inner, before) if needs[3] else None


def _lstm_again(
    grad_grad_hx: Any, grad_grad_cx: Any, grad_grad_parts: Any, grad_output: Any, grad_gates: Any,
    grad_cells: Any, grad_before: Any, gates: Any, cells: Any, earlier: Any, grad_hy: Any,
    grad_cy: Any, weight: Any, needs: Any, reverse: bool, sizes: Sizes,
) -> Any:  # fmt: skip
    inputs = (grad_output, grad_gates, grad_cells, grad_before, gates, cells, earlier, grad_hy,
              grad_cy, weight)  # fmt: skip
    return by_parts(lstm_grad, inputs, (grad_grad_hx, grad_grad_cx, grad_grad_parts), needs,
                    {"reverse": reverse, "sizes": sizes})  # fmt: skip


def _lstm_node(attrs: dict[str, Any]) -> str:
    """Of what torch ends with: its fused layer, which not all dtypes have, or the joined steps."""
    if attrs.get("sizes") is not None:
        return "CatBackward0"
    return "MkldnnRnnLayerBackward0" if attrs.get("fused", True) else "StackBackward0"


lstm_loop = define_loop(
    "lstm_loop", "parts hx cx weight -> hy cy output gates cells before",
    lambda *inputs, fused=True: _lstm_step(*inputs), 1, 2, numpy=_lstm,
    infer=lambda parts, hx, cx, weight, **_: outputs_type(
        parts, (hx, cx), (hx.shape[-1], parts.shape[-1], hx.shape[-1], hx.shape[-1])),
    node=_lstm_node, samples=samples_of((8,), 2, ((2, 8),)),
    vjp={("parts", "hx", "cx", "weight"): _lstm_rule},
)  # fmt: skip
lstm_grad: Any = define_loop(
    "lstm_grad", "grad_output? grad_gates? grad_cells? grad_before? gates cells earlier grad_hy "
    "grad_cy weight -> grad_hx grad_cx grad_parts", _lstm_back, 7, 2, numpy=_lstm_grad,
    infer=lambda *types, **_: outputs_type(types[4], types[7:9], types[4].shape[-1:]),
    samples=samples_of((2, 8, 2, 2, 8, 2, 2), 2, ((8, 2),), optional=(0, 1, 2, 3)),
    vjp={("grad_output", "grad_gates", "grad_cells", "grad_before", "gates", "cells", "earlier",
          "grad_hy", "grad_cy", "weight"): _lstm_again},
)  # fmt: skip
