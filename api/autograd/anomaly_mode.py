"""`torch.autograd.anomaly_mode`: the contexts that look for NaN in backward."""

from .anomaly import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]
