"""`torch.amp.autocast_mode`: where autocast is defined in torch."""

from . import autocast, custom_bwd, custom_fwd, is_autocast_available

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
