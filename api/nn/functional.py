"""`torch.nn.functional`."""

from ..ir.value import namespace as _namespace

globals().update(_namespace("nn.functional"))
