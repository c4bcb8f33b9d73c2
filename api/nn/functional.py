"""`torch.nn.functional`."""

from ..ir.value import namespace as _namespace

globals().update(_namespace("nn.functional"))

# helpers that copies of torch's functions find in this module
from .. import overrides as _overrides  # noqa: E402
from ..tracer.tensor import Tensor  # noqa: E402, F401
from . import _reduction as _Reduction  # noqa: E402, F401

for _name in ("handle_torch_function", "has_torch_function", "has_torch_function_unary",
              "has_torch_function_variadic"):  # fmt: skip
    globals()[_name] = getattr(_overrides, _name)
