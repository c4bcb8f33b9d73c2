"""What `compile(backend=, mode=, options=)` may say: torch's names, and torch's errors.

There is one compiler, so what is known is accepted and changes nothing, but for `eager`.
"""

from __future__ import annotations

from typing import Any

# name -> torch's tags
BACKENDS = {
    "aot_eager": ("debug",), "aot_eager_decomp_partition": ("debug",), "eager": ("debug",),
    "eager_noexcept": ("debug",), "inductor": (), "wengert": (),
}  # fmt: skip
EAGER = ("eager", "eager_noexcept")
MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


class Default:
    """The backend of `compile()` where none is named."""

    backend: Any = "wengert"


def checked_backend(backend: Any) -> str:
    """The name of a backend; None is the default one."""
    from ._dynamo.exc import InvalidBackend

    backend = Default.backend if backend is None else backend
    if not isinstance(backend, str):
        raise InvalidBackend(backend, " A backend of one's own would be given graphs of torch.fx, "
                             "which are not made here; fn.graph() shows ours.")  # fmt: skip
    if backend not in BACKENDS:
        raise InvalidBackend(backend)
    return backend


def check_mode_and_options(mode: Any, options: Any) -> None:
    """torch's errors for what it does not know."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified "
                           "at the same time.")  # fmt: skip
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    if options:
        check_options(options)


def check_options(options: dict[str, Any]) -> None:
    from ._inductor import config

    known = config.shallow_copy_dict()  # type: ignore[attr-defined]
    for key, value in options.items():
        name = key.replace("-", "_")
        if name == "guard_filter_fn":
            continue  # guards are all needed: without one, a call could change its meaning
        if name not in known:
            raise RuntimeError(
                f"Unexpected optimization option {key}, known options are {[*known]}"
            )
        default = known[name]
        if default is not None and type(value) is not type(default):
            raise RuntimeError(f"Unexpected type of attr {key}, got {type(value).__name__} should "
                               f"be {type(default).__name__}")  # fmt: skip


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """list_backends(): the names that `compile(backend=...)` takes, without those for debugging."""
    excluded = set(exclude_tags or ())
    return sorted(name for name, tags in BACKENDS.items() if not excluded.intersection(tags))


def set_default_backend(backend: Any) -> None:
    """set_default_backend(name): for `compile()` without one; None is our own."""
    Default.backend = "wengert" if backend is None else checked_backend(backend)


def get_default_backend() -> Any:
    """The backend of `compile()` where none is named."""
    return Default.backend
