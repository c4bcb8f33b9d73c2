"""Facts about dtypes, values and the machine: `finfo`, `is_tensor`, thread counts and the like."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .ir import types
from .ir.arguments import must_be, warn_once
from .ir.bind import epoch
from .ir.types import DType, default_dtype
from .naming import found_in
from .tracer.facts import WHERE, note_place
from .tracer.placing import is_meta
from .tracer.tensor import Tensor, device, require_cpu
from .tracer.tensor import device as Device

inf, nan, pi, e = math.inf, math.nan, math.pi, math.e
newaxis = None


def is_tensor(obj: Any) -> bool:
    """is_tensor(obj)."""
    return isinstance(obj, Tensor)


def is_storage(obj: Any) -> bool:
    """is_storage(obj)."""
    return type(obj).__name__ in ("UntypedStorage", "TypedStorage")


def is_floating_point(input: Tensor) -> bool:
    """is_floating_point(input)."""
    return input.dtype.is_floating_point


def is_complex(input: Tensor) -> bool:
    """is_complex(input)."""
    return input.dtype.is_complex


def _require_dtypes(function: str, **arguments: Any) -> None:
    for position, (name, value) in enumerate(arguments.items(), 1):
        if not isinstance(value, DType):
            raise must_be(function, name, "torch.dtype", value, position)


def can_cast(from_: DType, to: DType) -> bool:
    """can_cast(from, to): no cast to a lower category."""
    _require_dtypes("can_cast", from_=from_, to=to)
    return from_.category <= to.category


class finfo:
    """finfo(dtype=None): limits of a floating-point dtype."""

    def __init__(self, type: DType | None = None) -> None:
        dtype = default_dtype() if type is None else type
        if not isinstance(dtype, DType) or dtype.category < types.FLOAT:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to "
                "handle 'torch.finfo'"
            )
        real = dtype.to_real()
        self.dtype, self.bits = real.name, real.itemsize * 8
        facts = np.finfo(np.float32 if real.name == "bfloat16" else real.storage)
        self.eps, self.resolution = float(facts.eps), 10.0**-facts.precision
        self.max, self.tiny = float(facts.max), float(facts.tiny)
        if real.name == "bfloat16":  # float32 with 7 bits of fraction
            self.eps, self.resolution, self.max = 2.0**-7, 0.01, (2 - 2.0**-7) * 2.0**127
        self.min, self.smallest_normal = -self.max, self.tiny

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        listed = ", ".join(f"{name}={getattr(self, name):g}" for name in names)
        return f"finfo({listed}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class iinfo:
    """iinfo(dtype): limits of an integer dtype."""

    def __init__(self, type: DType) -> None:
        if not isinstance(type, DType) or type.category >= types.FLOAT:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to "
                            "handle 'torch.iinfo'")  # fmt: skip
        facts = np.iinfo(np.uint8 if type.name == "bool" else type.storage)
        self.dtype, self.bits = type.name, type.itemsize * 8
        self.min, self.max = int(facts.min), int(facts.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


# --- settings ------------------------------------------------------------------------------------


class _Settings:
    precision = "highest"
    deterministic = False
    warn_only = False
    has_device = False  # does `set_default_device` say where tensors lie?


def get_num_threads() -> int:
    """How many threads compiled code may use."""
    from .runtime.threads import get_num_threads as count

    return count()


def set_num_threads(count: int) -> None:
    """Sets how many threads compiled code may use."""
    from .runtime.threads import set_num_threads as change

    change(_thread_count("set_num_threads", count))
    epoch.advance()  # compiled bodies may ask for it


def _thread_count(name: str, count: Any) -> int:
    if not isinstance(count, int):
        raise RuntimeError(f"{name} expects an int, but got {type(count).__name__}")
    if count <= 0:
        raise RuntimeError(f"{name} expects a positive integer")
    return count


def get_num_interop_threads() -> int:
    """One: ops run one after the other."""
    return 1


def set_num_interop_threads(count: int) -> None:
    """Accepted: ops run one after the other anyway."""
    _thread_count("set_num_interop_threads", count)


def set_float32_matmul_precision(precision: str) -> None:
    """Accepted: products are always computed in full precision."""
    if precision not in ("highest", "high", "medium"):
        warnings.warn(f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
                      "setFloat32MatmulPrecision call has no effect.", stacklevel=2)  # fmt: skip
        return
    _Settings.precision = precision
    epoch.advance()


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was told."""
    return _Settings.precision


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accepted: results never depend on the number of threads."""
    _Settings.deterministic, _Settings.warn_only = bool(mode), bool(warn_only)
    epoch.advance()


def are_deterministic_algorithms_enabled() -> bool:
    """What `use_deterministic_algorithms` was told."""
    return _Settings.deterministic


def get_default_device() -> device:
    """The device of the block `with torch.device(...)`, of `set_default_device`, or the CPU."""
    return WHERE[-1] if WHERE else device("cpu")


def set_default_device(device: Any) -> None:
    """set_default_device(device): where new tensors lie, the CPU (or None) or "meta"."""
    if not is_meta(device):
        require_cpu(device)
    chosen = [] if device is None else [Device(device)]
    note_place()
    WHERE[: _Settings.has_device] = chosen
    note_place()
    _Settings.has_device = bool(chosen)


def set_default_tensor_type(t: Any) -> None:
    """The old way to set the default dtype: a class such as `torch.DoubleTensor`."""
    warn_once("torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
              "torch.set_default_dtype() and torch.set_default_device() as "
              "alternatives.")  # fmt: skip
    if isinstance(t, str):
        from . import legacy

        t = getattr(legacy, t.rpartition(".")[2])
    types.set_default_dtype(getattr(t, "legacy_dtype", t))


def result_type(tensor1: Any, tensor2: Any) -> DType:
    """result_type(tensor1, tensor2): the dtype an op on both would give."""
    for name, value in (("tensor1", tensor1), ("tensor2", tensor2)):
        if not isinstance(value, Tensor | int | float | complex):
            raise must_be("result_type", name, "Tensor or Number", value)
    return types.result_type([tensor1, tensor2])


def promote_types(type1: DType, type2: DType) -> DType:
    """promote_types(type1, type2): the smallest dtype both convert to."""
    _require_dtypes("promote_types", type1=type1, type2=type2)
    return types.promote_types(type1, type2)


found_in(__name__.partition(".")[0], finfo, iinfo)
