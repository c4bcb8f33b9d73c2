"""`torch.xpu`: there is no such device."""

from .nodevice import device_count, empty_cache, is_available, manual_seed, manual_seed_all

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "manual_seed_all"]
