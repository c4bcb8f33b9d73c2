"""`torch.nn.parallel`: on one CPU there is one replica, the module itself."""

from __future__ import annotations

from typing import Any

from ..modules.module import Module


class DataParallel(Module):
    """DataParallel(module): calls the module, as torch does where there is no GPU."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None,
                 dim: int = 0) -> None:  # fmt: skip
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(module: Module, inputs: Any, device_ids: Any = None, output_device: Any = None,
                  dim: int = 0, module_kwargs: Any = None) -> Any:  # fmt: skip
    """Calls the module."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*inputs, **(module_kwargs or {}))


class DistributedDataParallel(Module):
    """Raises: there is no communication between processes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            "DistributedDataParallel needs torch.distributed, which is not available "
            "here; use the module itself"
        )
