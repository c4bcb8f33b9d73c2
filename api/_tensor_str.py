"""`torch._tensor_str`: options of printing, where programs look for them."""

from typing import Any

from .tracer.printing import OPTIONS as PRINT_OPTS
from .tracer.printing import get_printoptions, printoptions, set_printoptions

__all__ = ["PRINT_OPTS", "_str", "get_printoptions", "printoptions", "set_printoptions"]


def _str(self: Any, *, tensor_contents: Any = None) -> str:
    """The text that `repr` gives of a tensor."""
    return repr(self)
