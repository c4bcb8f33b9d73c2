"""NumPy's floating-point warnings off, for the length of one op.

torch gives inf and nan silently. `np.errstate` costs as much as a small op, so the context variable
behind it is set directly where NumPy has it; user code keeps its own setting.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

try:
    from numpy._core.umath import _extobj_contextvar, _make_extobj

    _IGNORE = _make_extobj(all="ignore")
    # Silences warnings; hand the token to `restore`.
    quiet = functools.partial(_extobj_contextvar.set, _IGNORE)
    restore = _extobj_contextvar.reset
    restore(quiet())

except Exception:  # another NumPy: the public way

    def quiet() -> Any:
        """Silences warnings; hand the token to `restore`."""
        return np.seterr(all="ignore")

    def restore(token: Any) -> None:
        """Brings back the setting before `quiet`."""
        np.seterr(**token)


def quietly(function: Any, *arguments: Any) -> Any:
    """Calls with NumPy's warnings off."""
    token = quiet()
    try:
        return function(*arguments)
    finally:
        restore(token)


def install_filter() -> Any:
    """Ignores NumPy's warnings raised by calls in this package.

    Note [Calm]
        Switching warnings off costs half of a small op. While the filter that is put in front here
        is still the first one, a warning would not show anyway, and calls are made as they are;
        else they are made quietly. Where NumPy raises instead, the call is repeated quietly.
    """
    package = __name__.partition(".")[0]
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=rf"{package}\.")
    return warnings.filters[0]


CALM = install_filter()
