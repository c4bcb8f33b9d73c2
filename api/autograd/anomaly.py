"""Anomaly mode: backward checks for NaN and names the forward call of a failing node.

The mode is the process's, not the thread's, as in torch. Compiled functions run eagerly in it, for
it is about single ops and their lines.
"""

import warnings

from ..tracer.hooks import uses
from ..tracer.tape import ANOMALY


def put(modes):
    """These modes from now on; native calls are told, as of hooks that see single ops."""
    uses.value += bool(modes) - bool(ANOMALY)
    ANOMALY[:] = modes


class set_detect_anomaly:
    """Turns anomaly mode on or off; as a context it restores the previous mode."""

    def __init__(self, mode, check_nan=True):
        self.previous = list(ANOMALY)
        put([check_nan] if mode else [])

    def __enter__(self):
        return None

    def __exit__(self, *error):
        put(self.previous)


class detect_anomaly:
    """Anomaly mode for the length of a block."""

    def __init__(self, check_nan=True):
        self.check_nan = check_nan
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and "
                      "should only be enabled for debugging.", stacklevel=2)  # fmt: skip

    def __enter__(self):
        self.previous = list(ANOMALY)
        put([self.check_nan])

    def __exit__(self, *error):
        put(self.previous)


def is_anomaly_enabled():
    """Is anomaly mode on?"""
    return bool(ANOMALY)


def is_anomaly_check_nan_enabled():
    """Does anomaly mode look for NaN, when it is on?"""
    return not ANOMALY or bool(ANOMALY[0])
