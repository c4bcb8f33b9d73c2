"""`torch.autograd.grad_mode`: the contexts that say whether history is recorded."""

from ..tracer.modes import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
