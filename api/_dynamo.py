"""`torch._dynamo`: what scripts say to torch's tracer before they compile.

There is another one here: `config` keeps what is set, and nothing reads it. Faults of the compiler
mean an eager run (`suppress_errors`), and sizes that vary are found (`automatic_dynamic_shapes`).
"""

from types import SimpleNamespace
from typing import Any

from .compiler import assume_constant_result, disable, is_compiling, reset

__all__ = ["allow_in_graph", "assume_constant_result", "config", "disable", "graph_break",
           "is_compiling", "mark_dynamic", "mark_static", "maybe_mark_dynamic",
           "reset"]  # fmt: skip

config = SimpleNamespace(
    suppress_errors=False, verbose=False, cache_size_limit=8, recompile_limit=8,
    accumulated_cache_size_limit=256, assume_static_by_default=True, automatic_dynamic_shapes=True,
    capture_scalar_outputs=False, capture_dynamic_output_shape_ops=False, optimize_ddp=True,
)  # fmt: skip


def allow_in_graph(fn: Any) -> Any:
    """The function itself: all functions are."""
    return fn


def graph_break(msg: str = "") -> None:
    """Nothing to do: a recording goes on."""


def mark_dynamic(t: Any, index: Any, **hints: Any) -> None:
    """Nothing to do: a size is taken to vary when a second one is seen."""


maybe_mark_dynamic = mark_static = mark_dynamic
