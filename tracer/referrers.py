"""Who holds an object, wherever it is."""

from __future__ import annotations

import gc
from typing import Any


def referrers(*objects: Any) -> list[Any]:
    """Who holds any of them.

    The collector does not look at what `gc.freeze()` set aside, be it the list of a server that
    froze itself before it forked: that takes part again from then on.
    """
    gc.unfreeze()  # asking whether there is anything takes longer
    return gc.get_referrers(*objects)
