"""`torch.utils.hooks`: handles of hooks."""

from ..nn.modules._hooks import BackwardHook
from ..tracer.hooks import RemovableHandle

__all__ = ["BackwardHook", "RemovableHandle"]
