"""`torch.nn`: modules, functions, initialisation and helpers for training."""

from . import _reduction, attention, functional, grad, init, modules, parallel, parameter, utils
from .modules import *
from .modules.module import Module
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter


def factory_kwargs(kwargs):
    """The arguments of a layer that name where and as what its tensors are made."""
    if kwargs is None:
        return {}
    unexpected = kwargs.keys() - {"device", "dtype", "memory_format", "factory_kwargs"}
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for name in ("device", "dtype", "memory_format"):
        if name in kwargs:
            if name in result:
                raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
            result[name] = kwargs[name]
    return result
