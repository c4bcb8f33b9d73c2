"""What `autograd.functional` asks of functions, inputs and vectors, in torch's words."""

from ..tracer.tensor import Tensor


def as_tuple(value, name, function):
    """(was it a single tensor, the tensors as a tuple); TypeError for anything else."""
    single = not isinstance(value, tuple)
    listed = (value,) if single else value
    for k, entry in enumerate(listed):
        if isinstance(entry, Tensor):
            continue
        where = f"given {name} has type" if single else f"value at index {k} has type"
        raise TypeError(
            f"The {name} given to {function} must be either a Tensor or a tuple of Tensors but the "
            f"{where} {type(entry)}."
        )
    return single, listed


def fresh_inputs(inputs, create_graph, need_graph=True):
    """Tensors of the call's own: aliases with history if a graph is built, else detached."""
    fresh = []
    for x in inputs:
        if create_graph and x.requires_grad:
            fresh.append(x.view_as(x))
        else:
            fresh.append(x.detach().requires_grad_(need_graph))
    return tuple(fresh)


def finish(values, create_graph, single):
    """Results without history unless a graph was asked for; `single` drops the tuple."""
    if isinstance(values, Tensor):
        return values if create_graph else values.detach()
    done = tuple(finish(v, create_graph, None) for v in values)
    return done[0] if single else done


def check_vector(v, wanted, single):
    """`v` must look like the outputs (or inputs) it is multiplied with."""
    if len(wanted) != len(v):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(wanted)} but got {len(v)}."
        )
    for k, (entry, other) in enumerate(zip(v, wanted)):
        if entry.shape != other.shape:
            prefix = "" if single else f"Entry {k} in "
            raise RuntimeError(
                f"{prefix}v has invalid size: should be {other.shape} but got {entry.shape}."
            )


def check_scalar_output(value, function):
    """The output as a tuple of one tensor with one element."""
    single, outputs = as_tuple(value, "outputs of the user-provided function", function)
    if not single:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should "
                           "contain a single element")  # fmt: skip
    return outputs


_INDEPENDENT = {
    "hessian": "The hessian of the user-provided function with respect to input {} is independent "
    "of the input. This is not allowed in strict mode. You should ensure that your function is "
    "thrice differentiable and that the hessian depends on the inputs.",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided "
    "function with respect to input {} is independent of the input. This is not allowed in strict "
    "mode. You should ensure that your function is twice differentiable and that the jacobian "
    "depends on the inputs (this would be violated by a linear function for example).",
    "grad_inputs": "The gradient with respect to input {} is independent of the inputs of the "
    "user-provided function. This is not allowed in strict mode.",
    "outputs": "Output {} of the user-provided function does not require gradients. The outputs "
    "must be computed in a differentiable manner from the input when running in strict mode.",
}


def check_requires_grad(values, kind, strict):
    """In strict mode, everything must depend on the inputs."""
    if not strict:
        return
    for k, value in enumerate(values):
        if value is None:
            raise RuntimeError(f"The output of the user-provided function is independent of input "
                               f"{k}. This is not allowed in strict mode.")  # fmt: skip
        if not value.requires_grad:
            raise RuntimeError(_INDEPENDENT[kind].format(k))


_STAGES = {
    "back": "The output of the user-provided function is independent of input {}. This is not "
    "allowed in strict mode.",
    "back_trick": "The gradient with respect to the input is independent of entry {} in the "
    "grad_outputs when using the double backward trick to compute forward mode gradients. This is "
    "not allowed in strict mode.",
    "double_back": "The jacobian of the user-provided function is independent of input {}. This is "
    "not allowed in strict mode.",
    "double_back_trick": "The hessian of the user-provided function is independent of entry {} in "
    "the grad_jacobian. This is not allowed in strict mode as it prevents from using the double "
    "backward trick to replace forward mode AD.",
}
_CREATE = {
    "double_back": "The hessian of the user-provided function is independent of input {}. This is "
    "not allowed in strict mode when create_graph=True.",
    "back": "The jacobian of the user-provided function is independent of input {}. This is not "
    "allowed in strict mode when create_graph=True.",
}


def fill_zeros(grads, like, strict, create_graph, stage):
    """Zeros for missing gradients, or torch's strict-mode errors."""
    filled = []
    for k, (grad, x) in enumerate(zip(grads, like)):
        if grad is None:
            if strict:
                raise RuntimeError(_STAGES[stage].format(k))
            grad = x.detach().new_zeros(tuple(x.shape))
        elif strict and create_graph and not grad.requires_grad:
            raise RuntimeError(_CREATE["double_back" if "double" in stage else "back"].format(k))
        filled.append(grad)
    return tuple(filled)
