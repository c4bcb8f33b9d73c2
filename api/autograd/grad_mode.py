"""`torch.autograd.grad_mode`: the contexts that say whether history is recorded."""

from ..tracer.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from ..tracer.tensor import Tensor

__all__ = ["_unsafe_preserve_version_counter", "enable_grad", "inference_mode", "no_grad",
           "set_grad_enabled", "set_multithreading_enabled"]  # fmt: skip


class set_multithreading_enabled:
    """set_multithreading_enabled(mode): backward runs in the caller's thread in any case."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass

    def clone(self) -> "set_multithreading_enabled":
        """Another of the same mode."""
        return type(self)(self.mode)


class _unsafe_preserve_version_counter:
    """A block in which writes to a tensor, or to several, are not counted."""

    def __init__(self, tensors: Tensor | tuple[Tensor, ...]) -> None:
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
        self.versions = [tensor._version for tensor in self.tensors]

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        for tensor, version in zip(self.tensors, self.versions):
            tensor.storage_.version = version
