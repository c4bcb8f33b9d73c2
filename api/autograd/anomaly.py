"""Anomaly mode: backward checks for NaN and names the forward call of a failing node."""

from ..tracer.engine import current


class set_detect_anomaly:
    """Turns anomaly mode on or off; as a context it restores the previous mode."""

    def __init__(self, mode, check_nan=True):
        self.previous = current.anomaly
        current.anomaly = check_nan if mode else None

    def __enter__(self):
        return None

    def __exit__(self, *error):
        current.anomaly = self.previous


class detect_anomaly:
    """Anomaly mode for the length of a block."""

    def __init__(self, check_nan=True):
        self.check_nan = check_nan

    def __enter__(self):
        self.previous = current.anomaly
        current.anomaly = self.check_nan

    def __exit__(self, *error):
        current.anomaly = self.previous


def is_anomaly_enabled():
    return current.anomaly is not None
