"""`torch.autograd.graph`: nodes, edges and hooks on saved tensors."""

from ..naming import found_in
from ..tracer.backward import GradientEdge, get_gradient_edge
from ..tracer.hooks import (
    disable_saved_tensors_hooks,
    register_multi_grad_hook,
    save_on_cpu,
    saved_tensors_hooks,
)
from ..tracer.mutation import allow_mutation_on_saved_tensors
from ..tracer.tape import Node


def increment_version(tensor):
    """Counts a write to one tensor, or to each of several, that autograd did not see."""
    from ..tracer.inplace import bump
    from ..tracer.tensor import Tensor

    for one in (tensor,) if isinstance(tensor, Tensor) else tensor:
        bump(one.storage_)


__all__ = ["GradientEdge", "Node", "allow_mutation_on_saved_tensors",
           "disable_saved_tensors_hooks", "get_gradient_edge", "increment_version",
           "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks"]  # fmt: skip
found_in(__name__, GradientEdge, Node, save_on_cpu, saved_tensors_hooks)
