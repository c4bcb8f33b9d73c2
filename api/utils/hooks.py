"""`torch.utils.hooks`: handles of hooks."""

from ..naming import found_in
from ..nn.modules._hooks import BackwardHook
from ..tracer.hooks import RemovableHandle

__all__ = ["BackwardHook", "RemovableHandle"]
found_in(__name__, BackwardHook)
