"""Lazy modules: the number of input features is that of the first input they see.

A lazy module is made as its plain class with a size of 0; its parameters have no shape yet. A
forward pre-hook gives them one, draws their values, and turns the module into its plain class.
"""

from __future__ import annotations

import sys
from typing import Any

from ...tracer.modes import no_grad
from ...tracer.tensor import Tensor
from ..parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from .batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from .conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from .instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .linear import Linear
from .module import Module


class LazyModuleMixin:
    """What makes a module lazy; to be named before the module's own class.

    Modules of users give `initialize_parameters(self, *args, **kwargs)`, which materializes.
    """

    cls_to_become: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)  # type: ignore[attr-defined]
        self._initialize_hook = self.register_forward_pre_hook(  # type: ignore[attr-defined]
            self._infer_parameters, with_kwargs=True
        )

    def _lazy_load_hook(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Parameters take the shapes of the values they are about to be given."""
        for name, value in _own_tensors(self).items():
            given = state_dict.get(prefix + name)
            if given is not None and is_lazy(value) and not is_lazy(given):
                with no_grad():
                    value.materialize(given.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives parameters their shapes, from the arguments of a forward call."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {self.__class__.__name__}; define "
            "it to materialize() parameters"
        )

    def has_uninitialized_params(self) -> bool:
        """Is there a parameter, or a buffer, without a shape?"""
        return any(map(is_lazy, _own_tensors(self).values()))

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(
                f"module {module._get_name()} has not been fully initialized; "
                "its initialize_parameters must materialize() all"
            )
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become


def _own_tensors(module: Any) -> dict[str, Any]:
    return {name: value for name, value in {**module._parameters, **module._buffers}.items()
            if value is not None}  # fmt: skip


class _Lazy(LazyModuleMixin):
    """A lazy layer of ours: `_size` names its number of features, found along `_dim`."""

    _size: str
    _dim = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(0, *args, **kwargs)
        for name, value in _own_tensors(self).items():
            if name in self._parameters:  # type: ignore[attr-defined]
                setattr(self, name, UninitializedParameter(dtype=value.dtype))
            elif value.ndim:
                setattr(self, name, UninitializedBuffer(dtype=value.dtype))

    def reset_parameters(self) -> None:
        """Draws the values once there is something to draw."""
        if getattr(self, self._size) and not self.has_uninitialized_params():
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor) -> None:
        """The shapes that this input asks for, and their first values."""
        if not self.has_uninitialized_params():
            return
        with no_grad():
            setattr(self, self._size, input.shape[self._feature_dim(input)])
            for name, value in _own_tensors(self).items():
                if is_lazy(value):
                    value.materialize(self._shape_of(name))
            self.reset_parameters()

    def _feature_dim(self, input: Tensor) -> int:
        return self._dim

    def _shape_of(self, name: str) -> Any:
        return (getattr(self, self._size),)


class LazyLinear(_Lazy, Linear):
    """LazyLinear(out_features, bias=True)."""

    cls_to_become, _size, _dim = Linear, "in_features", -1

    def _shape_of(self, name: str) -> Any:
        rows = (self.out_features,)
        return (*rows, self.in_features) if name == "weight" else rows


class _LazyConv(_Lazy):
    _size = "in_channels"

    def _feature_dim(self, input: Tensor) -> int:
        dims: Any = self._dims  # type: ignore[attr-defined]
        if input.dim() not in (dims + 1, dims + 2):
            raise RuntimeError(
                f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to "
                f"{self.__class__.__name__}, but got input of size: {input.shape}"
            )
        return input.dim() - dims - 1

    def _shape_of(self, name: str) -> Any:
        layer: Any = self
        layer._check()
        if name == "bias":
            return (layer.out_channels,)
        first, second = layer.out_channels, layer.in_channels
        if layer.transposed:
            first, second = second, first
        return (first, second // layer.groups, *layer.kernel_size)


class _LazyNorm(_Lazy):
    _size = "num_features"

    def _feature_dim(self, input: Tensor) -> int:
        self._check_input_dim(input)  # type: ignore[attr-defined]
        return 1


class _LazyInstanceNorm(_LazyNorm):
    """Unlike the plain one, affine and with running statistics unless told otherwise."""

    def __init__(self, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True,
                 track_running_stats: bool = True, **kwargs: Any) -> None:  # fmt: skip
        super().__init__(eps, momentum, affine, track_running_stats, **kwargs)

    def _feature_dim(self, input: Tensor) -> int:
        super()._feature_dim(input)
        return input.dim() - self._dims[0]  # type: ignore[attr-defined]


sys.modules[Linear.__module__].LazyLinear = LazyLinear  # type: ignore[attr-defined]


def _lazy(plain: type[Module], mixin: type) -> Any:
    """The lazy form of `plain`: its arguments are the plain one's without the first."""
    body = {"cls_to_become": plain, "__module__": __name__,
            "__doc__": f"Lazy{plain.__name__}(...): {plain.__name__} without its first argument."
            }  # fmt: skip
    made = type(f"Lazy{plain.__name__}", (mixin, plain), body)
    setattr(sys.modules[plain.__module__], made.__name__, made)  # where torch defines it
    return made


LazyConv1d, LazyConv2d, LazyConv3d = (_lazy(c, _LazyConv) for c in (Conv1d, Conv2d, Conv3d))
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _lazy(c, _LazyConv) for c in (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
)
LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = (
    _lazy(c, _LazyNorm) for c in (BatchNorm1d, BatchNorm2d, BatchNorm3d)
)
LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (
    _lazy(c, _LazyInstanceNorm) for c in (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)
)
