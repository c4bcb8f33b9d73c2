"""`torch.storage`: the memory behind tensors; `torch.FloatStorage` and its kin by dtype."""

from .tracer.memory import STORAGE_CLASSES, TypedStorage, UntypedStorage

globals().update({kind.__name__: kind for kind in STORAGE_CLASSES.values()})
__all__ = ["TypedStorage", "UntypedStorage", *(kind.__name__ for kind in STORAGE_CLASSES.values())]
