"""Random draws as ops: the recorder sees them, so compiled programs draw anew at every call.

`draw` takes from a generator's stream through `source`, which the tracer installs: eager code runs
it. In graphs stands `sample`, which is given a state and gives the next one, so that draws are a
function like others and their order is that of their states. `drawn` puts the sample into the graph
in the place of the values it was drawn for, with torch's node name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op import Decompose, Template, define
from ..types import DType, TensorType, uint8
from .kinds import no_derivative
from .views import zeros

Ints = tuple[int, ...]

# source(distribution, generator or None, size, dtype's name, operands, parameters, order)
source: Any = None
generator_at: Any = None  # generator_at(state): a generator that goes on from there
first_state: Any = None  # first_state(): the state of a new generator

STATE = TensorType(uint8, (5056,))  # of a generator, as torch lays it out


def _draw(*operands: np.ndarray, distribution: str, size: Ints, dtype: DType,
          parameters: tuple[Any, ...] = (), generator: Any = None,
          order: Ints | None = None) -> Any:  # fmt: skip
    """Draws in the order of the elements' places in memory, as torch fills a strided tensor."""
    fill = size if order is None else tuple(size[d] for d in order)
    if order is not None:
        operands = tuple(np.broadcast_to(x, size).transpose(order) for x in operands)
    values = source(distribution, generator, fill, dtype.name, operands, parameters,
                    order is not None)  # fmt: skip
    if order is None:
        return values
    return values.transpose(np.argsort(order))


def _draw_infer(*operands: Any, size: Ints, dtype: DType, **_: Any) -> TensorType:
    return TensorType(dtype, size)


draw = define("draw", "*operands -> result", numpy=_draw, infer=_draw_infer, random=True,
              kind="random", lower=Template("draw"))  # fmt: skip


def _sample(state: np.ndarray, *operands: np.ndarray, distribution: str, size: Ints, dtype: DType,
            parameters: tuple[Any, ...] = (), order: Ints | None = None) -> Any:  # fmt: skip
    generator = generator_at(state)
    values = _draw(*operands, distribution=distribution, size=size, dtype=dtype,
                   parameters=parameters, generator=generator, order=order)  # fmt: skip
    return values, generator.state()


def _sample_infer(state: TensorType, *operands: Any, size: Ints, dtype: DType, **_: Any) -> Any:
    if state != STATE:
        raise TypeError(f"a random state is {STATE}, not {state}")
    return TensorType(dtype, size), STATE


sample = define("sample", "state *operands -> result next", numpy=_sample, infer=_sample_infer,
                random=True, kind="random")  # fmt: skip


_refuse = no_derivative("the derivative for this random function is not implemented")


def _no_slope(grad: Any, operands_type: Any, i: int, node: str) -> Any:
    return _refuse(grad) if node == "NotImplemented" else zeros(operands_type[i])


def _drawn_samples(rng: np.random.Generator) -> list[Any]:
    # the sample itself is a constant, so only what it replaces may move
    return [((rng.standard_normal((2, 3)), np.ones((2, 3), np.int64)), {"node": "Drawn"})]


drawn = define(
    "drawn", "*operands -> result", numpy=lambda *arrays, node: arrays[-1], moves_data=True,
    kind="random", infer=lambda *types, node: types[-1], node=lambda attrs: attrs["node"],
    lower=Decompose(lambda *operands, node: operands[-1]), samples=_drawn_samples,
    vjp=dict(operands=lambda grad, operands_type, i, node: _no_slope(grad, operands_type, i, node)),
)  # fmt: skip
