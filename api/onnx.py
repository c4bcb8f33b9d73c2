"""`torch.onnx`: named so that programs that ask for it learn what there is instead."""

from __future__ import annotations

from typing import Any, NoReturn


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises: graphs are exported in the library's own form."""
    raise NotImplementedError(
        "torch.onnx.export is not supported; compile(fn).export(folder) writes a compiled function "
        "that load_exported(folder) runs"
    )


def is_in_onnx_export() -> bool:
    """Never."""
    return False
