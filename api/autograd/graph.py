"""`torch.autograd.graph`: nodes and hooks on saved tensors."""

from ..tracer.hooks import (
    disable_saved_tensors_hooks,
    register_multi_grad_hook,
    save_on_cpu,
    saved_tensors_hooks,
)
from ..tracer.tape import Node, accumulator_of


def get_gradient_edge(tensor):
    """The node and output number that gradients of `tensor` flow into."""
    from collections import namedtuple

    from ..tracer.eager import history

    edge = history(tensor)
    if edge is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not "
                           "require gradients")  # fmt: skip
    return namedtuple("GradientEdge", "node output_nr")(*edge)


__all__ = ["Node", "accumulator_of", "disable_saved_tensors_hooks", "get_gradient_edge",
           "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks"]  # fmt: skip
