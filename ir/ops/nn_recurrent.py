"""The time loop of RNN, and what those of LSTM and GRU share: Note [Loops over time] in loops.py.

`parts` is what the input adds to the gates at each step, biases included where they may be: one
product, made before the loop. So is the gradient of a weight after it. Weights are given as they
multiply from the right, (states, gates), which is torch's transposed; derivatives take torch's.

Derivatives read no `output`: torch joins it of steps, so it may be written to. What they read of it
is an output of its own, the state after (`states`) or before each step (`before`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..types import TensorType
from .loops import (
    Sizes,
    by_parts,
    define_loop,
    evaluate,
    outputs_type,
    states_before,
    weight_gradient,
)
from .views import zeros


def plus(x: Any, other: Any) -> Any:
    """A sum, of which a part may be absent."""
    return x if other is None else x + other


def slope_of_sigmoid(y: Any) -> Any:
    return (1 - y) * y


def squash(x: np.ndarray) -> None:
    """The sigmoid of an array, in its place."""
    np.negative(x, x)
    np.exp(x, x)
    np.add(x, 1, x)
    np.divide(1, x, x)


def steep(y: np.ndarray) -> Any:
    """The slope of the sigmoid, given its value."""
    slope = 1 - y
    slope *= y
    return slope


def flat(y: np.ndarray) -> Any:
    """The slope of tanh, given its value."""
    slope = y * y
    return np.subtract(1, slope, slope)


def filled(grad: Any, type_: TensorType) -> Any:
    return zeros(type_) if grad is None else grad


def _draw(rng: np.random.Generator, shapes: Any, absent: Any = ()) -> tuple[Any, ...]:
    return tuple(None if k in absent else rng.uniform(-1, 1, shape)
                 for k, shape in enumerate(shapes))  # fmt: skip


def samples_of(
    sequences: Any, states: int, others: Any, optional: Any = (), **settings: Any
) -> Any:
    """Calls with sequences and states of such widths: both directions, packed, without options."""

    def draw(rng: np.random.Generator) -> list[Any]:
        found = []
        for lead, sizes, reverse, absent in (
            ((3, 2), None, False, ()), ((2, 2), None, True, optional),
            ((6,), (3, 2, 1), False, optional), ((6,), (3, 2, 1), True, ()),
        ):  # fmt: skip
            batch = 3 if sizes else 2
            shapes = [*((*lead, w) for w in sequences), *((batch, 2),) * states, *others]
            found.append((_draw(rng, shapes, absent),
                          {**settings, "reverse": reverse, "sizes": sizes}))  # fmt: skip
        return found

    return draw


# --- RNN -----------------------------------------------------------------------------------------


def _rnn_step(part: Any, h: Any, weight: Any, *, relu: bool) -> Any:
    total = part + h @ weight
    h = total.relu() if relu else total.tanh()
    return h, h, h


def _rnn(parts: Any, hx: Any, weight: Any, *, relu: bool, reverse: bool = False,
         sizes: Sizes = None) -> Any:  # fmt: skip
    def step(parts: Any, states: Any, others: Any, results: Any) -> Any:
        h, again = results
        np.matmul(states[0], weight, h)
        np.add(h, parts[0], h)
        if relu:
            np.maximum(h, 0, out=h)
        else:
            np.tanh(h, h)
        again[...] = h
        return (h,)

    return evaluate(step, (parts,), (hx,), (), (hx.shape[-1],) * 2, reverse, sizes)


def _rnn_back(grad: Any, output: Any, grad_h: Any, weight: Any, *, relu: bool) -> Any:
    grad_h = plus(grad_h, grad)
    inner = grad_h * (output > 0).to(output.dtype) if relu else grad_h * (1 - output * output)
    return inner @ weight, inner


def _rnn_grad(grad_output: Any, output: Any, grad_hy: Any, weight: Any, *, relu: bool,
              reverse: bool = False, sizes: Sizes = None) -> Any:  # fmt: skip
    def step(parts: Any, states: Any, others: Any, results: Any) -> Any:
        grad, y = parts
        (inner,) = results
        np.multiply(plus(states[0], grad), y > 0 if relu else flat(y), inner)
        return (inner @ weight,)

    widths = (output.shape[-1],)
    return evaluate(step, (grad_output, output), (grad_hy,), (), widths, reverse, sizes)


def _rnn_rule(
    grad_hy: Any, grad_output: Any, grad_states: Any, hx: Any, hx_type: Any, weight: Any,
    states: Any, needs: Any, relu: bool, reverse: bool, sizes: Sizes,
) -> Any:  # fmt: skip
    grad = grad_states if grad_output is None else plus(grad_output, grad_states)
    grad_h, inner = rnn_grad(grad, states, filled(grad_hy, hx_type), weight.transpose(0, 1),
                             relu=relu, reverse=not reverse, sizes=sizes)  # fmt: skip
    found = weight_gradient(inner, states_before(hx, states, reverse, sizes)) if needs[2] else None
    return inner, grad_h, found


def _rnn_again(
    grad_grad_hx: Any, grad_grad_parts: Any, grad_output: Any, output: Any, grad_hy: Any,
    weight: Any, needs: Any, relu: bool, reverse: bool, sizes: Sizes,
) -> Any:  # fmt: skip
    return by_parts(rnn_grad, (grad_output, output, grad_hy, weight),
                    (grad_grad_hx, grad_grad_parts), needs,
                    {"relu": relu, "reverse": reverse, "sizes": sizes})  # fmt: skip


rnn_loop = define_loop(
    "rnn_loop", "parts hx weight -> hy output states", _rnn_step, 1, 1, numpy=_rnn,
    infer=lambda parts, hx, weight, **_: outputs_type(parts, (hx,), (hx.shape[-1],) * 2),
    node=lambda attrs: "StackBackward0" if attrs.get("sizes") is None else "CatBackward0",
    samples=lambda rng: [call for relu in (False, True)
                         for call in samples_of((2,), 1, ((2, 2),), relu=relu)(rng)],
    vjp={("parts", "hx", "weight"): _rnn_rule},
)  # fmt: skip
rnn_grad: Any = define_loop(
    "rnn_grad", "grad_output? output grad_hy weight -> grad_hx grad_parts", _rnn_back, 2, 1,
    numpy=_rnn_grad,
    infer=lambda grad, output, hy, weight, **_: outputs_type(output, (hy,), output.shape[-1:]),
    samples=samples_of((2, 2), 1, ((2, 2),), optional=(0,), relu=False),
    vjp={("grad_output", "output", "grad_hy", "weight"): _rnn_again},
)  # fmt: skip
