"""`torch.compiler.set_stance`: what compiled functions do with a call, for all of them at once.

Note [Stances]
    A stance replaces methods of CompiledFunction while it holds. So calls pay nothing for it where
    none was set.
"""

from __future__ import annotations

import functools
from typing import Any

from .compiled_module import OptimizedModule, call_natively
from .compiling import CompiledFunction
from .ir.bind import state
from .tracer.recorder import Recorder

OWN = CompiledFunction.__call__, CompiledFunction.record
STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile",
           "eager_then_compile", "aot_eager_then_compile")  # fmt: skip


def run_body(self: CompiledFunction, *args: Any, **kwargs: Any) -> Any:
    """Instead of a compiled call."""
    return self.function(*args, **kwargs)


def run_new(self: CompiledFunction, key: Any, call: Any, structure: Any, leaves: Any) -> Any:
    """Instead of a recording: the call runs eagerly."""
    return self.run_eagerly(*call)


def fail_new(self: CompiledFunction, key: Any, call: Any, structure: Any, leaves: Any) -> Any:
    """Instead of a recording: an error that says why there would be one."""
    code = getattr(self.function, "__code__", None)
    where = "" if code is None else (
        f" filename: '{code.co_filename}', function name: '{self.name}', line number: "
        f"{code.co_firstlineno}")  # fmt: skip
    why = self.why_recorded(key, leaves) or "it was not called before"
    raise RuntimeError("Detected recompile when torch.compile stance is 'fail_on_recompile'."
                       f"{where}\n    {why}")  # fmt: skip


def fail_again(self: CompiledFunction, key: Any, call: Any, structure: Any, leaves: Any) -> Any:
    """Instead of a recording: the first one is made, others are errors."""
    if not self.traces and not self.refusals:
        return OWN[1](self, key, call, structure, leaves)
    from ._dynamo.exc import RecompileError

    raise RecompileError(f"Recompiling function {self.name}\n    triggered by: "
                         f"{self.why_recorded(key, leaves)}")  # fmt: skip


def record_later(self: CompiledFunction, key: Any, call: Any, structure: Any, leaves: Any) -> Any:
    """Instead of a recording: a function's first call runs eagerly."""
    if self.traces or self.refusals or "begun" in self.__dict__:
        return OWN[1](self, key, call, structure, leaves)
    self.__dict__["begun"] = True
    return self.run_eagerly(*call)


_RECORDS = {"eager_on_recompile": run_new, "fail_on_recompile": fail_new,
            "eager_then_compile": record_later, "aot_eager_then_compile": record_later}  # fmt: skip


class Now:
    """What holds: the stance, a backend for all, and two settings of `torch._dynamo.config`."""

    stance: str = "default"
    backend: str | None = None
    disabled = fixed = False


def follow(**changes: Any) -> None:
    """Changes what holds; see Note [Stances]."""
    for name, value in changes.items():
        setattr(Now, name, value)
    call, record = OWN
    eager = Now.stance == "force_eager" or Now.disabled or Now.backend == "eager"
    record = _RECORDS.get(Now.stance, fail_again if Now.fixed else record)
    if CompiledFunction.record is not record:
        CompiledFunction.record = record  # type: ignore[method-assign]
    if CompiledFunction.__call__ is not (run_body if eager else call):
        CompiledFunction.__call__ = run_body if eager else call  # type: ignore[method-assign]
        serve_modules(natively=not eager)


def serve_modules(natively: bool) -> None:
    """Compiled modules ask their function, in Python; or native code serves both again."""
    OptimizedModule.__call__ = OptimizedModule.__dict__["__call__"]  # type: ignore[method-assign]
    call_natively.cache_clear()
    if natively:
        call_natively()


class set_stance:
    """set_stance(stance="default"): holds from now on, in a `with` block, or in a function's calls.

    - `"default"`: compile.
    - `"force_eager"`: run all compiled functions eagerly.
    - `"eager_on_recompile"`: run eagerly what no trace serves.
    - `"fail_on_recompile"`: raise RuntimeError where a call would record.
    - `"eager_then_compile"`: a function's first call runs eagerly.

    `force_backend="eager"` is as `"force_eager"`; other backends are our compiler.
    """

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False,
                 force_backend: Any = None):  # fmt: skip
        from .compile_options import checked_backend

        if stance not in STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'; known are "
                               f"{', '.join(STANCES)}")  # fmt: skip
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        if isinstance(state.top, Recorder):
            raise RuntimeError("Attempt to trace forbidden callable set_stance: a compiled "
                               "function can't set the stance; set it outside")  # fmt: skip
        backend = None if force_backend is None else checked_backend(force_backend)
        self.wanted = {"stance": stance, "backend": backend}
        self.before = {"stance": Now.stance, "backend": Now.backend}
        follow(**self.wanted)

    def __enter__(self) -> None:
        follow(**self.wanted)

    def __exit__(self, *error: Any) -> None:
        follow(**self.before)

    def __call__(self, function: Any) -> Any:
        follow(**self.before)  # as a decorator it holds in calls only
        wanted = self.wanted

        @functools.wraps(function)
        def in_stance(*args: Any, **kwargs: Any) -> Any:
            before = {"stance": Now.stance, "backend": Now.backend}
            follow(**wanted)
            try:
                return function(*args, **kwargs)
            finally:
                follow(**before)

        return in_stance
