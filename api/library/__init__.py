"""`torch.library`: ops of one's own, with a schema, kernels and a derivative."""

from __future__ import annotations

from typing import Any

from .checking import OpCheckError, opcheck
from .custom_ops import OPS, CustomOpDef
from .schemas import infer_schema

__all__ = ["Library", "OpCheckError", "custom_op", "define", "impl", "impl_abstract",
           "infer_schema", "opcheck", "register_autograd", "register_fake",
           "register_kernel"]  # fmt: skip


def custom_op(name: str, fn: Any = None, /, *, mutates_args: Any, device_types: Any = None,
              schema: str | None = None, tags: Any = None) -> Any:  # fmt: skip
    """custom_op("mylib::sin", mutates_args=()): a function as an op; its annotations say its types.

    >>> @custom_op("mylib::sin", mutates_args=())
    ... def sin(x: Tensor) -> Tensor:
    ...     return from_numpy(np.sin(x.numpy()))
    """

    checked(name)

    def register(fn: Any) -> CustomOpDef:
        found = infer_schema(fn, mutates_args=mutates_args) if schema is None else schema
        op = CustomOpDef(name, found, fn)
        op.register_kernel(device_types, fn)
        return op

    return register if fn is None else register(fn)


def checked(name: str) -> str:
    """A qualified name."""
    if name.count("::") != 1:
        raise ValueError(f"the name of an op is of the form namespace::name, got {name!r}")
    return name


def found(op: Any) -> CustomOpDef:
    """An op by its qualified name, by `torch.ops`, or itself."""
    if isinstance(op, str):
        if op not in OPS:
            space, name = checked(op).split("::")
            raise AttributeError(f"'_OpNamespace' '{space}' object has no attribute '{name}'")
        return OPS[op]
    return op if isinstance(op, CustomOpDef) else op.op  # type: ignore[no-any-return]


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """define("mylib::sin", "(Tensor x) -> Tensor"): an op without kernels yet."""
    CustomOpDef(checked(qualname), schema)


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """register_kernel(op, "cpu", fn): what an op does; also a decorator."""
    return found(op).register_kernel(device_types, func)


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """impl("mylib::sin", "cpu"): as `register_kernel`; "default" is all devices."""
    kinds = [types] if isinstance(types, str) else [*types]
    names = {"default": None, "compositeexplicitautograd": None, "compositeimplicitautograd": None}
    return found(qualname).register_kernel([names.get(k.lower(), k.lower()) for k in kinds], func)


def register_fake(op: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """register_fake(op, fn): shapes and dtypes of an op's results; also a decorator."""
    return found(op).register_fake if func is None else found(op).register_fake(func)


impl_abstract = register_fake


def register_autograd(op: Any, backward: Any, /, *, setup_context: Any = None,
                      lib: Any = None) -> None:  # fmt: skip
    """register_autograd(op, backward, setup_context=...): an op's derivative."""
    found(op).register_autograd(backward, setup_context=setup_context)


class Library:
    """Library("mylib", "DEF"): defines and implements ops of one namespace."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}; use DEF, IMPL or FRAGMENT")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """define("sin(Tensor x) -> Tensor"): the op's name."""
        name, bracket, rest = schema.partition("(")
        define(f"{self.ns}::{name.strip()}", bracket + rest)
        return name.strip()

    def impl(self, op_name: Any, fn: Any, dispatch_key: str = "", **others: Any) -> None:
        """impl("sin", fn, "CPU"): what an op does."""
        name = op_name if isinstance(op_name, str) else found(op_name)._qualname
        qualified = name if "::" in name else f"{self.ns}::{name}"
        impl(qualified, dispatch_key or self.dispatch_key or "default", fn)
