"""torch.special: special functions, elementwise."""

from .ir.value import namespace as _namespace

globals().update(_namespace("special"))
