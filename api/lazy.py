"""Names of `torch` that are imported when first used, so that `import wengert` stays light."""

from __future__ import annotations

import importlib
from typing import Any

# Submodules: `torch.nn` is the module `wengert.nn`.
MODULES = ("nn", "optim", "serialization", "utils")

# Names found in a module of the package.
NAMES = {
    "as_torch": "torch_alias",
    "autocast": "amp",
    "load": "serialization",
    "save": "serialization",
    "typename": "nn.modules._names",
    **dict.fromkeys(
        ("BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor",
         "HalfTensor", "IntTensor", "LongTensor", "ShortTensor"), "legacy"),
}  # fmt: skip


def attribute_of(package: str) -> Any:
    """The `__getattr__` of the package: imports what a name needs, once."""

    def find(name: str) -> Any:
        if name in MODULES:
            return importlib.import_module(f"{package}.{name}")
        if name in NAMES:
            module = importlib.import_module(f"{package}.{NAMES[name]}")
            return getattr(module, name)
        raise AttributeError(f"module '{package}' has no attribute '{name}'")

    return find
