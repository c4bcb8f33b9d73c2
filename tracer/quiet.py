"""NumPy's floating-point warnings off, for the length of one op.

torch gives inf and nan silently. `np.errstate` costs as much as a small op, so the context variable
behind it is set directly where NumPy has it; user code keeps its own setting.
"""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    from numpy._core.umath import _extobj_contextvar, _make_extobj

    _IGNORE = _make_extobj(all="ignore")
    quiet = _extobj_contextvar.set
    restore = _extobj_contextvar.reset
    _token = quiet(_IGNORE)
    restore(_token)

    def quiet(_set: Any = _extobj_contextvar.set, _ignore: Any = _IGNORE) -> Any:
        """Silences warnings; hand the token to `restore`."""
        return _set(_ignore)

except Exception:  # another NumPy: the public way

    def quiet() -> Any:
        """Silences warnings; hand the token to `restore`."""
        return np.seterr(all="ignore")

    def restore(token: Any) -> None:
        """Brings back the setting before `quiet`."""
        np.seterr(**token)
