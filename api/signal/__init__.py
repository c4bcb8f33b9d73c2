"""torch.signal: windows."""

from . import windows
