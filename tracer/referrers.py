"""Who holds an object, wherever it is."""

from __future__ import annotations

import gc
from typing import Any


def referrers(objects: list[Any]) -> list[Any]:
    """Who holds any of them, but for this list. A list, not several arguments: these would be held
    by a tuple, which somebody who looks for tuples would take for one of the user's.

    The collector does not look at what `gc.freeze()` set aside, be it the list of a server that
    froze itself before it forked: that takes part again from then on.
    """
    gc.unfreeze()  # asking whether there is anything takes longer
    return [holder for holder in gc.get_referrers(*objects) if holder is not objects]
