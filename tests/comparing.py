"""Comparing nested values of eager and compiled calls."""

import pytest


def close(a, b):
    """Equal types and structure, and numbers that agree to a few digits of float32."""
    if isinstance(a, list):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, str):
        return a == b
    return type(a) is type(b) and (a == b or a == pytest.approx(b, rel=1e-5))
