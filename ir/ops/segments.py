"""`segment_reduce`: sums, means and extremes of runs of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..value import public
from .kinds import require_value

_STARTS = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}
_SCATTERED = {"max": "amax", "min": "amin", "mean": "sum"}


@public("segment_reduce", method=False, out="none")
def segment_reduce(data: Any, reduce: str, *, lengths: Any = None, indices: Any = None,
                   offsets: Any = None, axis: int = 0, unsafe: bool = False,
                   initial: Any = None) -> Any:  # fmt: skip
    """segment_reduce(data, reduce, *, lengths=None, offsets=None, axis=0, initial=None)."""
    require_value("segment_reduce", data)
    if reduce not in _STARTS:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    lengths = offsets.diff() if lengths is None else lengths
    if axis or lengths.ndim != 1:
        raise RuntimeError("segment_reduce(): only runs along the first dimension are supported")
    if not unsafe and int(lengths.sum()) != data.shape[0]:
        raise RuntimeError("segment_reduce(): Expected all rows of lengths along axis to sum to "
                           "data.size(lengths.dim()-1) when !unsafe.")  # fmt: skip
    runs, rest = lengths.shape[0], data.shape[1:]
    start = data.new_full((runs, *rest), _STARTS[reduce] if initial is None else initial)
    owner = data._constant(np.arange(runs)).repeat_interleave(lengths)
    index = owner.view((-1,) + (1,) * len(rest)).expand(data.shape)
    found = start.scatter_reduce(0, index, data, _SCATTERED.get(reduce, reduce))
    if reduce != "mean":
        return found
    return found / lengths.to(data.dtype).view((-1,) + (1,) * len(rest))
