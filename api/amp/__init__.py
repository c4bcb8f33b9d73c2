"""`torch.amp`: mixed precision. On the CPU products may run in bfloat16; CUDA is not there."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable
from typing import Any

from ..ir.arguments import warn
from ..ir.bind import state
from ..ir.op import TABLE
from ..ir.types import DType, bfloat16, float16, float32, int32, type_word
from ..tracer.creation import full
from ..tracer.tensor import Tensor, device

# Ops that autocast computes in the lower precision.
LOWER = {"mm", "bmm", "addmm", "baddbmm", "addbmm", "convolution", "conv_input",
         "scaled_dot_product_attention", "conv_tbc", "prelu"}  # fmt: skip
# Losses and the like that it computes in float32.
HIGHER = {"nll_loss", "nll_loss2d", "mse_loss", "huber_loss", "smooth_l1_loss",
          "binary_cross_entropy", "ctc_loss", "prod", "cdist", "trace",
          "fractional_max_pool"}  # fmt: skip


_SINGLE_OR_HALF = (float32, bfloat16, float16)


class _Casting:
    """An interpreter that casts the operands of products and hands on to the one below."""

    casts = True

    def __init__(self, below: Any, dtype: DType):
        self.below, self.dtype = below, dtype

    def __call__(self, op: Any, inputs: Any, attrs: Any) -> Any:
        return self.below(op, self.cast_operands(op, inputs), attrs)

    def cast_operands(self, op: Any, inputs: Any) -> Any:
        """The operands as `op` gets them."""
        if op.name in LOWER:
            return one_dtype(self.cast(value, _SINGLE_OR_HALF, self.dtype) for value in inputs)
        if op.name in HIGHER:
            return tuple(self.cast(value, (bfloat16, float16), float32) for value in inputs)
        return inputs

    def cast(self, value: Any, kinds: tuple[DType, ...], wanted: DType) -> Any:
        """`value` in the dtype `wanted`, where it is a tensor of one of `kinds`."""
        if isinstance(value, Tensor) and value.dtype in kinds and value.dtype is not wanted:
            return TABLE["cast"](value, dtype=wanted)
        return value

    def __getattr__(self, name: str) -> Any:  # what a recording listens to
        return getattr(self.below, name)


def is_plainly_cast(interpreter: Any) -> bool:
    """Does it cast for ops that run at once?"""
    return isinstance(interpreter, _Casting) and (
        interpreter.below is state.bottom or interpreter.below is state.marking)  # fmt: skip


def one_dtype(operands: Iterable[Any]) -> tuple[Any, ...]:
    """The operands of a product; doubles, which are not cast, go with doubles only."""
    operands = tuple(operands)
    dtypes = {v.dtype for v in operands if isinstance(v, Tensor) and v.is_floating_point()}
    if len(dtypes) > 1:
        words = [type_word(d) for d in sorted(dtypes, key=lambda d: -d.itemsize)]
        raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {words[0]} and "
                           f"{words[1]}")  # fmt: skip
    return operands


def warn_of_old_name(where: str, name: str, arguments: str) -> None:
    """Says at the user's line what `torch.cuda.amp` and `torch.cpu.amp` are called now."""
    warn(f"`torch.{where}.amp.{name}(args...)` is deprecated. Please use "
         f"`torch.amp.{name}({arguments})` instead.", FutureWarning)  # fmt: skip


class autocast:
    """autocast(device_type, dtype=None, enabled=True): a context and a decorator."""

    def __init__(self, device_type: str, dtype: DType | None = None, enabled: bool = True,
                 cache_enabled: bool | None = None) -> None:  # fmt: skip
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device(device_type).type
        self.fast_dtype = dtype or (bfloat16 if device_type == "cpu" else float16)
        if device_type != "cpu" and enabled:
            warn(
                "CUDA is not available or torch_xla is imported. Disabling autocast."
                if device_type == "cuda"
                else f"User provided device_type of '{device_type}', but {device_type.upper()} "
                "is not available. Disabling"
            )
            enabled = False
        if enabled and self.fast_dtype not in (bfloat16, float16):
            warnings.warn("In CPU autocast, but the target dtype is not supported. Disabling "
                          "autocast.\nCPU Autocast only supports dtype of torch.bfloat16, "
                          "torch.float16 currently.", stacklevel=2)  # fmt: skip
            enabled = False
        self._enabled = enabled
        self._below: list[Any] = []

    def __enter__(self) -> autocast:
        self._below.append(state.top)
        plain = state.top.below if isinstance(state.top, _Casting) else state.top
        if self._enabled:
            state.top = _Casting(plain, self.fast_dtype)
        elif self.device == "cpu":
            state.top = plain
        return self

    def __exit__(self, *error: Any) -> None:
        state.top = self._below.pop()

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def casting(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.device, self.fast_dtype, self._enabled):
                return function(*args, **kwargs)

        return casting


def autocast_now() -> autocast:
    """The mode that is on, or off, as a context to be entered later."""
    return autocast("cpu", get_autocast_dtype("cpu"), is_autocast_enabled("cpu"))


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: DType | None = None) -> Any:
    """custom_fwd(fwd=None, *, device_type, cast_inputs=None): of a Function's forward.

    Inside autocast it casts floating-point arguments to `cast_inputs` and turns autocast off.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        args[0]._dtype = get_autocast_dtype(device_type)
        args[0]._fwd_used_autocast = is_autocast_enabled(device_type)
        if cast_inputs is None or not is_autocast_enabled(device_type):
            return fwd(*args, **kwargs)
        args[0]._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            return fwd(*(_cast(a, cast_inputs) for a in args),
                       **{k: _cast(v, cast_inputs) for k, v in kwargs.items()})  # fmt: skip

    return decorated


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """custom_bwd(bwd=None, *, device_type): backward runs in the autocast mode of forward."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, args[0]._dtype, args[0]._fwd_used_autocast):
            return bwd(*args, **kwargs)

    return decorated


def _cast(value: Any, dtype: DType) -> Any:
    """A floating-point tensor, or those of a list, tuple or dict, in another dtype."""
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, dict):
        return {k: _cast(v, dtype) for k, v in value.items()}
    return type(value)(_cast(v, dtype) for v in value) if type(value) in (list, tuple) else value


def is_autocast_available(device_type: str) -> bool:
    """Only on the CPU."""
    return device_type == "cpu"


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Is autocast on for the device now?"""
    return device_type == "cpu" and isinstance(state.top, _Casting)


def get_autocast_dtype(device_type: str) -> DType:
    """What autocast computes in: where it is on, the dtype it was given."""
    if is_autocast_enabled(device_type):
        return state.top.dtype
    return float16 if device_type == "cuda" else bfloat16


def _warn_of_renaming(old: str, new: str) -> None:
    warn(f"torch.{old} is deprecated. Please use torch.{new} instead.", DeprecationWarning)


def is_autocast_cpu_enabled() -> bool:
    """The old name of `is_autocast_enabled("cpu")`."""
    _warn_of_renaming("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> DType:
    """The old name of `get_autocast_dtype("cpu")`."""
    _warn_of_renaming("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> DType:
    """The old name of `get_autocast_dtype("cuda")`."""
    _warn_of_renaming("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return get_autocast_dtype("cuda")


def clear_autocast_cache() -> None:
    """Nothing to do: casts are not kept."""


class GradScaler:
    """GradScaler(device="cuda", ...): scales losses so that half-precision gradients survive."""

    def __init__(self, device: str = "cuda", init_scale: float = 2.0**16,
                 growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True) -> None:  # fmt: skip
        if enabled and device != "cpu":
            warnings.warn(f"torch.{device}.amp.GradScaler is enabled, but {device.upper()} is not "
                          "available.  Disabling.", stacklevel=2)  # fmt: skip
            enabled = False
        if enabled and growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if enabled and backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._device, self._enabled = device, enabled
        # tensors, as in torch: a compiled step reads and writes them
        self._scale = full((), float(init_scale), dtype=float32)
        self._growth_tracker = full((), 0, dtype=int32)
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._found: dict[int, bool] = {}  # by optimizer: was a gradient infinite?

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by after `get_growth_interval()` good steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by when gradients were infinite."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many good steps in a row make the scale grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Does it scale at all?"""
        return self._enabled

    def get_scale(self) -> float:
        """The present scale; 1 where disabled."""
        return self._scale.item() if self._enabled else 1.0  # type: ignore[no-any-return]

    def scale(self, outputs: Any) -> Any:
        """Outputs times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if not isinstance(outputs, Iterable):
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")
        return type(outputs)(self.scale(value) for value in outputs)

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients by the scale, in place, and looks for infinite ones."""
        if not self._enabled:
            return
        if id(optimizer) in self._found:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        inverse, finite = self._scale.reciprocal(), []
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    finite.append(parameter.grad.isfinite().all())
                    parameter.grad.mul_(inverse)
        good = TABLE["stack"](*finite, dim=0).all() if len(finite) > 1 else all(finite)
        self._found[id(optimizer)] = not good

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Steps the optimizer unless a gradient is infinite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        return None if self._found[id(optimizer)] else optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Adapts the scale to what was found since the last update."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale.fill_(new_scale)
        elif any(self._found.values()):
            self._scale.mul_(self._backoff_factor)
            self._growth_tracker.zero_()
        elif self._growth_tracker == self._growth_interval - 1:
            larger = self._scale * self._growth_factor
            self._scale.copy_(larger.where(larger.isfinite(), self._scale))
            self._growth_tracker.zero_()
        else:
            self._growth_tracker.add_(1)
        self._found.clear()

    def state_dict(self) -> dict[str, Any]:
        """The scale and its settings; empty where disabled."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor,
                "backoff_factor": self._backoff_factor, "growth_interval": self._growth_interval,
                "_growth_tracker": self._growth_tracker.item()}  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what `state_dict()` gave."""
        if not self._enabled:
            return
        self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker.fill_(state_dict["_growth_tracker"])
