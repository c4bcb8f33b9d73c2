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
    """A thousand runs leave the references to these objects, and the number of objects, as is."""

    def count():
        gc.collect()
        return [sys.getrefcount(w) for w in watched], len(gc.get_objects())

    before = count()
    for _ in range(1000):
        run()
    after = count()
    assert all(abs(new - old) < 50 for old, new in zip(before[0], after[0])), (before, after)
    assert abs(after[1] - before[1]) < 100


# tests/reliability/modes.py wraps `__call__` in Python
without_digests = pytest.mark.skipif(
    "WENGERT_DIGESTS" in os.environ, reason="digests of results are taken by Python"
)
