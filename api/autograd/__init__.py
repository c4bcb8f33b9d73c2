"""`torch.autograd`: backward, grad, Function, hooks on the graph, anomaly mode."""

from ..tracer.engine import backward, grad
from ..tracer.function import Function
from ..tracer.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from . import function, graph
from .anomaly import detect_anomaly, set_detect_anomaly


def Variable(data, requires_grad=False, volatile=False):  # noqa: N802
    """The tensor itself: Variables and Tensors are one since torch 0.4."""
    return data.detach().requires_grad_(requires_grad) if requires_grad else data


def is_grad_enabled():
    from ..tracer.modes import is_grad_enabled as enabled

    return enabled()
