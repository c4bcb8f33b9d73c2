"""`kl_divergence` and its registry; the formulas are in `kl_same.py` and `kl_across.py`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ..tracer.tensor import Tensor
from .distribution import Distribution

_KL_REGISTRY: dict[tuple[type, type], Callable[..., Tensor]] = {}
_KL_MEMOIZE: dict[tuple[type, type], Any] = {}


def register_kl(type_p: type, type_q: type) -> Callable[..., Any]:
    """A decorator: the function gives the divergence for these classes and their subclasses."""
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorator(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return decorator


def _dispatch_kl(type_p: type, type_q: type) -> Any:
    """The most specific entry, by p first; warns where going by q first gives another."""
    matches = [(p, q) for p, q in _KL_REGISTRY
               if issubclass(type_p, p) and issubclass(type_q, q)]  # fmt: skip
    if not matches:
        return NotImplemented

    def depth(match: tuple[type, type]) -> tuple[int, int]:
        return type_p.__mro__.index(match[0]), type_q.__mro__.index(match[1])

    left = min(matches, key=depth)
    right = min(matches, key=lambda match: depth(match)[::-1])
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
                      f"register_kl({left[0].__name__}, {right[1].__name__})",
                      RuntimeWarning, stacklevel=3)  # fmt: skip
    return _KL_REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """kl_divergence(p, q): the mean of log p(x) - log q(x) for x of p, of the batch shape."""
    pair = type(p), type(q)
    if pair not in _KL_MEMOIZE:
        _KL_MEMOIZE[pair] = _dispatch_kl(*pair)
    function = _KL_MEMOIZE[pair]
    if function is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
            f"{type(q).__name__}; use register_kl, or sample p.log_prob(x) - q.log_prob(x)"
        )
    return function(p, q)
