"""`torch.func`: transforms of functions: grad, vjp, jvp, Jacobians, vmap; and modules as functions.

They nest: `vmap(grad(f))` gives a gradient per example.
"""

from .functionalize import functionalize
from .gradients import grad, grad_and_value, jvp, linearize, vjp
from .jacobians import hessian, jacfwd, jacrev
from .modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from .vmap import vmap

__all__ = ["functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd",
           "jacrev", "jvp", "linearize", "replace_all_batch_norm_modules_", "stack_module_state",
           "vjp", "vmap"]  # fmt: skip
