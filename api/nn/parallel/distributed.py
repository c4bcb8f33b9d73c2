"""`torch.nn.parallel.distributed`: where DistributedDataParallel is defined in torch."""

from . import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
