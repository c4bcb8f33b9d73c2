"""What tests of native calls share: calls that are bound, and references that are not kept."""

import gc
import inspect
import os
import sys

import pytest


def settled(function, *args, **kwargs):
    """The result once the call is bound."""
    for _ in range(4):
        function(*args, **kwargs)
    return function(*args, **kwargs)


def settled_natively(function, *args):
    """The result once native code alone serves the call."""
    result = settled(function, *args)
    assert inspect.isbuiltin(function.hot[0])
    return result


def check_references(watched, run):
    """A thousand runs leave the references to these objects, and the number of objects, as is.

    Threads that compile meanwhile have objects of their own, and names for None: they are done by
    the second or third time.
    """

    def count():
        gc.collect()
        return [*(sys.getrefcount(w) for w in watched), len(gc.get_objects())]

    for _ in range(3):
        before = count()
        for _ in range(1000):
            run()
        changes = [abs(new - old) for old, new in zip(before, count())]
        if all(change < 50 for change in changes):
            return
    raise AssertionError(changes)


# tests/reliability/modes.py wraps `__call__` in Python
without_digests = pytest.mark.skipif(
    "WENGERT_DIGESTS" in os.environ, reason="digests of results are taken by Python"
)
