"""`torch.utils.data._utils.collate`: what `..collate` has, where programs look for it."""

from ..collate import collate, default_collate, default_collate_fn_map, default_convert

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]
