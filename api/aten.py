"""`torch.ops.aten`: ops of the catalogue under the names of torch's dispatcher.

Note [Names of the dispatcher]
    What counts or chooses ops (`utils.flop_counter`, selective checkpoints) speaks of
    `aten.mm.default`. The catalogue mostly has the same ops; `_NAMES` lists those of another name
    or overload. They are called as the public functions of the same name.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

# name in the catalogue: name and overload in torch
_NAMES = {
    **{name: f"{name}.Tensor" for name in
       ("add", "sub", "mul", "div", "remainder", "fmod", "index", "lerp_tensor", "eq", "ne", "lt",
        "le", "gt", "ge", "slice", "split", "bitwise_and", "bitwise_or", "floor_divide")},
    **{name: f"{name}.dim" for name in ("mean", "all", "any", "median_dim", "mode")},
    **{name: f"{name}.int" for name in ("transpose", "select", "unbind")},
    "pow_scalar": "pow.Tensor_Scalar", "pow_tensor": "pow.Tensor_Tensor",
    "sum": "sum.dim_IntList", "prod": "prod.dim_int", "max_dim": "max.dim", "min_dim": "min.dim",
    "max_all": "max.default", "min_all": "min.default", "var": "var.correction",
    "std": "std.correction", "where": "where.self", "cast": "_to_copy.default",
    "softmax": "_softmax.default", "safe_softmax": "_safe_softmax.default",
    "log_softmax": "_log_softmax.default", "layer_norm": "native_layer_norm.default",
    "group_norm": "native_group_norm.default", "batch_norm": "native_batch_norm.default",
    "nll_loss": "nll_loss_forward.default", "nll_loss2d": "nll_loss2d_forward.default",
    "max_pool": "max_pool2d_with_indices.default", "avg_pool": "avg_pool2d.default",
    "adaptive_avg_pool": "_adaptive_avg_pool2d.default", "cdist": "_cdist_forward.default",
    "conv_input": "convolution_backward.default", "conv_weight": "convolution_backward.default",
    "embedding_grad": "embedding_dense_backward.default", "reshape_copy": "_unsafe_view.default",
    "unsafe_view": "_unsafe_view.default", "embedding_bag": "_embedding_bag.default",
    "scaled_dot_product_attention": "_scaled_dot_product_flash_attention_for_cpu.default",
    "masked_fill": "masked_fill.Scalar", "masked_fill_tensor": "masked_fill.Tensor",
    "scatter": "scatter.src", "scatter_value": "scatter.value",
    "index_fill": "index_fill.int_Scalar",
    "div_number": "div.Tensor", "mul_number": "mul.Tensor",
    "fill": "fill.Scalar", "squeeze": "squeeze.dims",
    "lerp_number": "lerp.Scalar", "fft_c2c": "_fft_c2c.default", "fft_r2c": "_fft_r2c.default",
    "fft_c2r": "_fft_c2r.default", "conj": "_conj.default",
}  # fmt: skip
_CALLED_IN = ("", ".nn.functional", ".linalg", ".special")  # where functions are looked for


@functools.cache
def packet(name: str) -> OpOverloadPacket:
    """`torch.ops.aten.<name>`."""
    return OpOverloadPacket(name)


@functools.cache
def overload_of(op_name: str) -> OpOverload:
    """The overload that an op of the catalogue is in torch."""
    name, _, overload = _NAMES.get(op_name, f"{op_name}.default").partition(".")
    return packet(name).overload(overload)


@functools.cache
def known_names() -> frozenset[str]:
    """Names that `torch.ops.aten` has: ops of the catalogue and public functions."""
    from .ir.op import TABLE
    from .ir.value import FUNCTIONS

    return frozenset({f.name for f in FUNCTIONS.values()}
                     | {f.name + "_" for f in FUNCTIONS.values() if f.inplace}
                     | {_NAMES.get(name, name).partition(".")[0] for name in TABLE})  # fmt: skip


class OpOverload:
    """`torch.ops.aten.mm.default`."""

    def __init__(self, owner: OpOverloadPacket, overload: str):
        self._overloadpacket, self._overloadname = owner, overload
        self.__name__, self.__module__ = f"{owner._name}.{overload}", "torch._ops.aten"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._overloadpacket(*args, **kwargs)

    def name(self) -> str:
        """`aten::add.Tensor`, and `aten::mm` for the overload named default."""
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"aten::{self._overloadpacket._name}{suffix}"

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        return self._overloadpacket

    @property
    def namespace(self) -> str:
        return "aten"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._overloadpacket}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """`torch.ops.aten.mm`."""

    def __init__(self, name: str):
        self._name = self.__name__ = name
        self._known: dict[str, OpOverload] = {}

    def overload(self, name: str) -> OpOverload:
        """The overload of that name, the same one each time."""
        return self._known.setdefault(name, OpOverload(self, name))

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.overload(name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        package = __name__.partition(".")[0]
        for place in _CALLED_IN:
            found = getattr(importlib.import_module(package + place), self._name, None)
            if found is not None:
                return found(*args, **kwargs)
        return getattr(args[0], self._name)(*args[1:], **kwargs)

    def __str__(self) -> str:
        return f"aten.{self._name}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self._name}')>"


class Aten:
    """The namespace `torch.ops.aten`."""

    _name = "aten"

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__") or name not in known_names():
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        return packet(name)

    def __repr__(self) -> str:
        return "<module 'torch.ops.aten'>"


aten = Aten()
