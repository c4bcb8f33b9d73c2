"""torch.linalg: linear algebra, with gradients."""

from .ir.ops.linalg_common import LinAlgError
from .ir.value import namespace as _namespace

globals().update(_namespace("linalg"))
__all__ = ["LinAlgError", *_namespace("linalg")]
