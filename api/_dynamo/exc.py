"""`torch._dynamo.exc`: errors of compilation."""

from __future__ import annotations

__all__ = ["BackendCompilerFailed", "InternalTorchDynamoError", "InvalidBackend", "RecompileError",
           "ResetRequired", "TorchDynamoException", "TorchRuntimeError", "Unsupported",
           "UserError"]  # fmt: skip


class TorchDynamoException(RuntimeError):
    """All of them."""


class Unsupported(TorchDynamoException):
    """`fullgraph=True` was asked for, and the body can't be compiled as one graph."""


class InvalidBackend(TorchDynamoException):
    """`compile(backend=...)` names none."""

    def __init__(self, name: object, why: str = ""):
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for "
                         f"available backends.{why}")  # fmt: skip


class RecompileError(TorchDynamoException):
    """A call would record, which `torch._dynamo.config.error_on_recompile` forbids."""


class BackendCompilerFailed(TorchDynamoException):
    """A backend raised; here a fault of the compiler is a warning and an eager run."""


class InternalTorchDynamoError(TorchDynamoException):
    """A fault of the compiler; see `BackendCompilerFailed`."""


class TorchRuntimeError(TorchDynamoException):
    """An op failed while it was traced; here the body raises the op's own error."""


class ResetRequired(TorchDynamoException):
    """Settings changed in a way that needs `reset()`; here none does."""


class UserError(TorchDynamoException):
    """A wrong use of the compiler."""
