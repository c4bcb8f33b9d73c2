"""`torch.cuda` as torch without CUDA has it: nothing is available, and using it raises."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ..ir.types import BY_NAME
from ..legacy import _LegacyMeta
from ..tracer.convert import _LEGACY
from ..tracer.tensor import Tensor
from . import amp, nvtx


def _missing(*args: Any, **kwargs: Any) -> Any:
    """Raises, as torch without CUDA does."""
    raise AssertionError("Torch not compiled with CUDA enabled")


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Does nothing, as torch without CUDA does."""


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    """Empty: there is no memory to count."""
    return OrderedDict()


def _zero(device: Any = None) -> int:
    """0: nothing is allocated."""
    return 0


memory_allocated = max_memory_allocated = memory_reserved = max_memory_reserved = _zero
empty_cache = manual_seed = manual_seed_all = seed = seed_all = ipc_collect = _nothing
reset_peak_memory_stats = reset_max_memory_allocated = _nothing
current_device = get_device_name = get_device_properties = get_device_capability = _missing
synchronize = set_device = current_stream = default_stream = get_rng_state = init = _missing
set_rng_state = get_rng_state_all = set_rng_state_all = mem_get_info = memory_summary = _missing


class device:
    """device(index): a context that changes nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = -1

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> None:
        return None


class stream(device):
    """stream(None): a context that changes nothing."""


class Stream:
    """Raises: there are no streams."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(f"torch.cuda.{type(self).__name__} requires CUDA support")


class Event(Stream):
    """Raises: there are no events."""


class AcceleratorError(RuntimeError):
    """What devices raise; here nothing does."""

    __module__ = "torch"


class OutOfMemoryError(RuntimeError):
    """What a full device raises; here nothing does."""

    __module__ = "torch"


class _CudaMeta(_LegacyMeta):
    def __instancecheck__(cls, instance: Any) -> bool:
        return False


def _no_instance(cls: Any, *args: Any, **kwargs: Any) -> Any:
    raise TypeError(f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA "
                    "enabled.")  # fmt: skip


for _dtype, _name in _LEGACY.items():
    globals()[_name] = _CudaMeta(_name, (Tensor,), {
        "__slots__": (), "__new__": _no_instance, "legacy_dtype": BY_NAME[_dtype],
        "__module__": "torch.cuda"})  # fmt: skip
