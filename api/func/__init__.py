"""`torch.func`: transforms of functions: grad, vjp, jvp, Jacobians, vmap; and modules as functions.

They nest: `vmap(grad(f))` gives a gradient per example.
"""

from .gradients import grad, grad_and_value, jvp, linearize, vjp
from .jacobians import hessian, jacfwd, jacrev
from .modules import functional_call, stack_module_state
from .vmap import vmap

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
           "linearize", "stack_module_state", "vjp", "vmap"]  # fmt: skip
