"""`nn.utils.prune`: parameters that are multiplied by a mask before every forward call.

A pruned parameter `w` becomes the parameter `w_orig` and the buffer `w_mask`; a forward pre-hook
makes the attribute `w` their product. Pruning it again combines the masks (`PruningContainer`).
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from ...tracer.creation import ones_like, zeros_like
from ...tracer.random import rand, rand_like
from .convert_parameters import parameters_to_vector


class BasePruningMethod(ABC):
    """Base of all methods: `compute_mask(t, default_mask)` says what is kept."""

    _tensor_name: str
    PRUNING_TYPE = "unstructured"

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask of `t` on top of `default_mask`, what was kept before."""

    def apply_mask(self, module: Any) -> Any:
        """The pruned tensor of `module`: its original times its mask."""
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Any = None,
              **kwargs: Any) -> Any:  # fmt: skip
        """Prunes the parameter `name` of `module`, now and before each forward call."""
        original = getattr(module, name)
        method = cls(*args, **kwargs)
        method._tensor_name = name
        scores = _scores(importance_scores, original, f"parameter {name} of {module}")
        method = _joined(module, name, method)
        fresh = not isinstance(method, PruningContainer)
        before = ones_like(original) if fresh else getattr(module, name + "_mask").detach().clone()
        mask = method.compute_mask(scores, default_mask=before)
        if fresh:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """A pruned copy of the tensor `t`."""
        scores = _scores(importance_scores, t, "tensor t")
        mask = ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Any) -> None:
        """Makes the pruning permanent: the parameter holds the masked values."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = weight.data
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


def _scores(scores: Any, tensor: Any, what: str) -> Any:
    if scores is None:
        return tensor
    if scores.shape != tensor.shape:
        raise AssertionError(f"importance_scores should have the same shape as {what}, got "
                             f"{scores.shape} vs {tensor.shape}")  # fmt: skip
    return scores


def _hooks(module: Any, name: str) -> list[Any]:
    return [key for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]  # fmt: skip


def _joined(module: Any, name: str, method: BasePruningMethod) -> BasePruningMethod:
    """`method`, in a container with what prunes the tensor already; that hook is taken away."""
    for key in _hooks(module, name):
        old = module._forward_pre_hooks.pop(key)
        container = old if isinstance(old, PruningContainer) else PruningContainer(old)
        container.add_pruning_method(method)
        return container
    return method


class PruningContainer(BasePruningMethod):
    """Methods applied to one tensor one after the other; each sees what the last has kept."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Appends a method that acts on the same tensor."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError("Can only add pruning methods acting on the parameter named "
                             f"'{self._tensor_name}' to PruningContainer {self}. Found "
                             f"'{method._tensor_name}'")  # fmt: skip
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The last method's mask of what the others have kept."""
        method = self._pruning_methods[-1]
        kept = _kept(method, t, default_mask)
        mask = default_mask.to(dtype=t.dtype)
        part = method.compute_mask(t[kept], default_mask=default_mask[kept])
        mask[kept] = part.to(dtype=mask.dtype)
        return mask


def _kept(method: Any, t: Any, mask: Any) -> Any:
    """The index of what a further method may prune."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    everything = [slice(None)] * t.dim()
    if method.PRUNING_TYPE == "structured":
        if not hasattr(method, "dim"):
            raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the '
                                 "attribute `dim` defined.")  # fmt: skip
        dim = method.dim % t.dim()
        everything[dim] = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
    elif method.PRUNING_TYPE != "global":
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}; it must be "
                         "unstructured, structured or global")  # fmt: skip
    return tuple(everything)


# --- methods -------------------------------------------------------------------------------------


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if amount < 0 or (not whole and amount > 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a "
                         "non-negative integer")  # fmt: skip


def _count(amount: Any, size: int) -> int:
    """How many of `size` an amount stands for."""
    if not isinstance(amount, numbers.Integral):
        return round(amount * size)
    if amount > size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to "
                         f"prune={size}")  # fmt: skip
    return int(amount)


def _channels(t: Any, dim: int) -> int:
    if t.dim() <= 1:
        raise ValueError("Structured pruning can only be applied to multidimensional tensors. "
                         f"Found tensor of shape {t.shape} with {t.dim()} dims")  # fmt: skip
    if dim >= t.dim():
        raise IndexError(
            f"Invalid index {dim} for tensor of size {t.shape}; use at most {t.dim() - 1}"
        )
    return t.shape[dim]


def _only(t: Any, dim: int, chosen: Any, default_mask: Any) -> Any:
    """Ones where `chosen` picks along `dim` and the default mask has them."""
    mask = zeros_like(t)
    mask[tuple(chosen if d == dim % t.dim() else slice(None) for d in range(t.dim()))] = 1
    return mask * default_mask.to(dtype=mask.dtype)


class Identity(BasePruningMethod):
    """Prunes nothing."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """RandomUnstructured(amount): elements drawn at random."""

    def __init__(self, amount: Any) -> None:
        _check_amount(amount)
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return self._without(t, default_mask, lambda k: rand_like(t).view(-1).topk(k).indices)

    def _without(self, t: Any, default_mask: Any, choose: Any) -> Any:
        count, mask = _count(self.amount, t.nelement()), default_mask.clone()
        if count:
            mask.view(-1)[choose(count)] = 0
        return mask


class L1Unstructured(RandomUnstructured):
    """L1Unstructured(amount): the elements of smallest magnitude."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return self._without(
            t, default_mask, lambda k: t.abs().view(-1).topk(k, largest=False).indices
        )


class RandomStructured(BasePruningMethod):
    """RandomStructured(amount, dim=-1): channels along `dim`, drawn at random."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount, self.dim = amount, dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        size = _channels(t, self.dim)
        count = _count(self.amount, size)
        if not count:
            return default_mask
        drawn = rand(size)
        return _only(t, self.dim, drawn > drawn.kthvalue(k=count).values, default_mask)


class LnStructured(BasePruningMethod):
    """LnStructured(amount, n, dim=-1): the channels along `dim` of smallest Ln norm."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount, self.n, self.dim = amount, n, dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        size = _channels(t, self.dim)
        count = _count(self.amount, size)
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        best = t.norm(p=self.n, dim=others).topk(k=size - count).indices
        return _only(t, self.dim, best, default_mask) if count else default_mask


class CustomFromMask(BasePruningMethod):
    """CustomFromMask(mask): what the given mask leaves out."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask * self.mask.to(dtype=default_mask.dtype)


# --- functions -----------------------------------------------------------------------------------


def identity(module: Any, name: str) -> Any:
    """identity(module, name): a mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """random_unstructured(module, name, amount)."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """l1_unstructured(module, name, amount, importance_scores=None)."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """random_structured(module, name, amount, dim)."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Any, name: str, amount: Any, n: Any, dim: int,
                  importance_scores: Any = None) -> Any:  # fmt: skip
    """ln_structured(module, name, amount, n, dim, importance_scores=None)."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """custom_from_mask(module, name, mask)."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: Any = None,
                        **kwargs: Any) -> None:  # fmt: skip
    """global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs): pruned
    as one vector of all the (module, name) pairs."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    parameters, scores = list(parameters), importance_scores or {}
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError('Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
                        f"Found method {pruning_method} of type {method.PRUNING_TYPE}"
                        )  # fmt: skip
    values = [getattr(module, name) for module, name in parameters]
    vector = parameters_to_vector([scores.get(key, v) for key, v in zip(parameters, values)])
    before = parameters_to_vector([getattr(module, name + "_mask", ones_like(value))
                                   for (module, name), value in zip(parameters, values)]
                                  )  # fmt: skip
    method._tensor_name = "temp"
    mask = PruningContainer(method).compute_mask(vector, before)
    parts = mask.split([value.numel() for value in values])
    for (module, name), value, part in zip(parameters, values, parts):
        custom_from_mask(module, name, mask=part.view_as(value))


def remove(module: Any, name: str) -> Any:
    """remove(module, name): leaves the masked values in the parameter."""
    for key in _hooks(module, name):
        module._forward_pre_hooks.pop(key).remove(module)
        return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can "
                     "be removed")  # fmt: skip


def is_pruned(module: Any) -> bool:
    """is_pruned(module): does a pruning hook stand in it, or in a module of it?"""
    return any(isinstance(hook, BasePruningMethod) for part in module.modules()
               for hook in part._forward_pre_hooks.values())  # fmt: skip
