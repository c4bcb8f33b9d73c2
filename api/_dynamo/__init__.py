"""`torch._dynamo`: torch's names around compiling, for programs that reach for them."""

from __future__ import annotations

import warnings
from typing import Any

from ..compile_options import checked_backend as lookup_backend
from ..compiled_module import OptimizedModule
from ..compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
    set_stance,
    substitute_in_graph,
)
from ..compiling import compile
from ..explained import Explained
from ..left_to_python import graph_break
from ..marks import mark_dynamic, mark_static, mark_static_address, maybe_mark_dynamic
from . import config, eval_frame, exc

__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable",
           "disallow_in_graph", "eval_frame", "exc", "explain", "graph_break", "is_compiling",
           "list_backends", "lookup_backend",
           "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic", "optimize",
           "optimize_assert", "reset", "run", "set_stance", "substitute_in_graph"]  # fmt: skip


def optimize(backend: Any = "inductor", *, nopython: bool = False, dynamic: Any = None,
             disable: bool = False, **others: Any) -> Any:  # fmt: skip
    """optimize(backend)(fn): `compile` as it was called before; `nopython` is `fullgraph`."""
    return compile(None, backend=backend, fullgraph=nopython, dynamic=dynamic, disable=disable)


def optimize_assert(backend: Any = "inductor", **others: Any) -> Any:
    """optimize_assert(backend)(fn): `optimize` with `nopython=True`."""
    return optimize(backend, nopython=True, **others)


def run(fn: Any = None) -> Any:
    """run(fn): calls that use what was recorded, and record nothing new."""
    return set_stance_of(fn) if fn is not None else set_stance_of


def set_stance_of(fn: Any) -> Any:
    """`fn` under the stance "eager_on_recompile"."""
    return set_stance("eager_on_recompile")(fn)


def disallow_in_graph(fn: Any) -> Any:
    """disallow_in_graph(fn): the function, or several, left to Python; see `disable`."""
    return [disable(f) for f in fn] if isinstance(fn, list | tuple) else disable(fn)


def explain(f: Any, *extra_args: Any, **extra_kwargs: Any) -> Any:
    """explain(f)(*args): runs a call compiled anew; what it prints is `fn.explain()`."""

    def explained(*args: Any, **kwargs: Any) -> Explained:
        return Explained(f, args, kwargs)

    if extra_args or extra_kwargs:
        warnings.warn("explain(f, *args, **kwargs) is deprecated, use explain(f)(*args, **kwargs) "
                      "instead.  If you don't migrate, we may break your explain call in the "
                      "future if your user defined kwargs conflict with future kwargs added to "
                      "explain(f).", FutureWarning, stacklevel=2)  # fmt: skip
        return explained(*extra_args, **extra_kwargs)
    return explained
