"""`torch.utils.data._utils`, which programs reach into for `collate`."""

from . import collate
