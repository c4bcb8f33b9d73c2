"""`torch.autograd`: backward, grad, Function, hooks on the graph, anomaly mode."""

from ..naming import found_in as _found_in
from ..tracer.backward import backward, grad
from ..tracer.function import Function
from ..tracer.modes import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from . import forward_ad, function, functional, graph
from .anomaly import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .variable import Variable

_found_in(f"{__name__}.grad_mode", enable_grad, inference_mode, no_grad, set_grad_enabled)
_found_in(f"{__name__}.anomaly_mode", detect_anomaly, set_detect_anomaly)
_MODULES = ("anomaly_mode", "grad_mode", "profiler")


def __getattr__(name):
    """Some of its modules are imported when they are first named."""
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in ("set_multithreading_enabled", "_unsafe_preserve_version_counter"):
        return getattr(importlib.import_module(f"{__name__}.grad_mode"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
