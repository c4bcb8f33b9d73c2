"""`torch.utils`: data loading, checkpointing, hooks, timers."""

from importlib import import_module as _import_module

_MODULES = ("_pytree", "benchmark", "checkpoint", "data", "deterministic", "dlpack",
            "flop_counter", "hooks", "model_zoo", "module_tracker")  # fmt: skip


def __getattr__(name):
    if name in _MODULES:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
