"""`torch.autograd.forward_ad`: dual numbers.

A dual tensor is a variable with a tangent; what is computed from it is recorded as ever. The
tangent of a result is found when it is unpacked: the vector-Jacobian product is linear in its
vector, and its own gradient is the Jacobian-vector product.
"""

from typing import NamedTuple

from ..tracer import display
from ..tracer.backward import grad as autograd_grad
from ..tracer.eager import history
from ..tracer.modes import set_grad_mode
from ..tracer.pushing import pull_linearly
from ..tracer.reaching import count_dependencies
from ..tracer.tape import AccumulateGrad
from ..tracer.tensor import Tensor

_levels = []


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent (None where it has none)."""

    primal: Tensor
    tangent: Tensor | None


class dual_level:
    """The block in which dual tensors live; nothing of them is left afterwards."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *error):
        exit_dual_level()


def enter_dual_level():
    """Opens a level; torch has only one at a time."""
    if _levels:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _levels.append([])
    display.unpack = unpack_dual
    return len(_levels) - 1


def exit_dual_level(*, level=None):
    """Closes the level."""
    if not _levels:
        raise RuntimeError("Dual level must be a positive number.")
    if level is not None and level != len(_levels) - 1:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is "
            "not supported."
        )
    for dual, _ in _levels.pop():
        if dual.is_leaf and dual.grad_fn is None:
            dual.requires_grad_(False)  # it was its tangent that asked for history
    display.unpack = None


def make_dual(tensor, tangent, *, level=None):
    """A dual tensor: `tensor` with `tangent` as its direction."""
    if not _levels:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    if not tensor.dtype.is_differentiable:
        raise ValueError(f"Expected primal to be floating point or complex, but got: "
                         f"{tensor.dtype!r}")  # fmt: skip
    if not tangent.dtype.is_differentiable:
        raise ValueError(f"Expected tangent to be floating point or complex, but got: "
                         f"{tangent.dtype!r}")  # fmt: skip
    if tuple(tensor.shape) != tuple(tangent.shape):
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(tensor.shape)} while the "
            f"given forward gradient is of size {list(tangent.shape)}."
        )
    with set_grad_mode(True):
        dual = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    _levels[-1].append((dual, tangent))
    return dual


def unpack_dual(tensor, *, level=None):
    """The value of a dual tensor and its tangent."""
    if not _levels:
        return UnpackedDualTensor(tensor, None)
    for dual, tangent in _levels[-1]:
        if dual is tensor:
            return UnpackedDualTensor(_primal(tensor), tangent)
    if not tensor.requires_grad or not _levels[-1]:
        return UnpackedDualTensor(tensor, None)
    duals, tangents = zip(*_levels[-1])
    with set_grad_mode(True):
        seed = tensor.detach().new_zeros(tuple(tensor.shape)).requires_grad_()
        pulled = pull_linearly(tensor, duals, seed)
        pairs = [(g, t) for g, t in zip(pulled, tangents) if g is not None and g.requires_grad]
        if not pairs:
            return UnpackedDualTensor(_primal(tensor), None)
        grads, vectors = zip(*pairs)
        (tangent,) = autograd_grad(grads, seed, vectors, create_graph=True, allow_unused=True)
    tangent = None if tangent is None else _primal(tangent, seed)
    return UnpackedDualTensor(_primal(tensor), tangent)


def _primal(tensor, *others):
    """The tensor without history that leads to nothing but dual variables (and `others`)."""
    edge = history(tensor)
    if edge is None:
        return tensor
    own = {id(dual) for dual, _ in _levels[-1]} | {id(other) for other in others}
    for node in count_dependencies([edge]):
        if isinstance(node, AccumulateGrad) and id(node.variable) not in own:
            return tensor
    return tensor.detach()


__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual",
           "unpack_dual"]  # fmt: skip
