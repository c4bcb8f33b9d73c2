"""`torch.autograd.functional`: Jacobians, Hessians and products with them, of whole functions."""

from ..ir.op import TABLE
from ..tracer.backward import grad as autograd_grad
from ..tracer.modes import enable_grad
from ..tracer.tensor import Tensor
from .checks import (
    as_tuple,
    check_requires_grad,
    check_scalar_output,
    check_vector,
    fill_zeros,
    finish,
    fresh_inputs,
)


def _grad(outputs, inputs, grad_outputs=None, create_graph=False, retain_graph=None):
    """`autograd.grad` that skips outputs without history and gives None for unused inputs."""
    grad_outputs = (None,) * len(outputs) if grad_outputs is None else grad_outputs
    live = [(o, g) for o, g in zip(outputs, grad_outputs) if o is not None and o.requires_grad]
    if not live:
        return (None,) * len(inputs)
    outputs, grad_outputs = zip(*live)
    return autograd_grad(outputs, inputs, grad_outputs, allow_unused=True,
                         create_graph=create_graph, retain_graph=retain_graph)  # fmt: skip


def _vector(v, like, single, name, what, create_graph=False):
    """The given vector, checked against what it is multiplied with; None if none is needed."""
    if v is not None:
        _, v = as_tuple(v, "v", name)
        v = fresh_inputs(v, create_graph=create_graph, need_graph=False)
        check_vector(v, like, single)
        return v
    if len(like) != 1 or like[0].numel() != 1:
        raise RuntimeError(f"The vector v can only be None if {what} with a single element.")
    return None


def _output_vector(v, outputs, single):
    what = "the user-provided function returns a single Tensor"
    return _vector(v, outputs, single, "vjp", what)


def _input_vector(v, inputs, single, name, create_graph=False):
    what = "the input to the user-provided function is a single Tensor"
    given = _vector(v, inputs, single, name, what, create_graph)
    if given is not None:
        return given
    return (inputs[0].detach().new_ones(tuple(inputs[0].shape)),)


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """The outputs of `func` and the product of `v` with its Jacobian."""
    with enable_grad():
        single_in, inputs = as_tuple(inputs, "inputs", "vjp")
        inputs = fresh_inputs(inputs, create_graph)
        single_out, outputs = as_tuple(func(*inputs), "outputs of the user-provided function",
                                       "vjp")  # fmt: skip
        check_requires_grad(outputs, "outputs", strict)
        v = _output_vector(v, outputs, single_out)
        products = _grad(outputs, inputs, v, create_graph)
        products = fill_zeros(products, inputs, strict, create_graph, "back")
    return (finish(outputs, create_graph, single_out), finish(products, create_graph, single_in))


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """The outputs of `func` and the product of its Jacobian with `v`.

    The vector-Jacobian product is linear in its vector; its own gradient gives the other product.
    """
    with enable_grad():
        single_in, inputs = as_tuple(inputs, "inputs", "jvp")
        inputs = fresh_inputs(inputs, create_graph)
        v = _input_vector(v, inputs, single_in, "jvp", create_graph)
        single_out, outputs = as_tuple(func(*inputs), "outputs of the user-provided function",
                                       "jvp")  # fmt: skip
        check_requires_grad(outputs, "outputs", strict)
        dummies = tuple(out.new_zeros(tuple(out.shape), requires_grad=True) for out in outputs)
        linear = _grad(outputs, inputs, dummies, create_graph=True)
        check_requires_grad(linear, "grad_inputs", strict)
        products = _grad(linear, dummies, v, create_graph)
        products = fill_zeros(products, outputs, strict, create_graph,
                              "back_trick" if create_graph else "back")  # fmt: skip
    return (finish(outputs, create_graph, single_out), finish(products, create_graph, single_out))


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """The value of a scalar `func` and the product of `v` with its Hessian."""
    with enable_grad():
        single, inputs = as_tuple(inputs, "inputs", "vhp")
        inputs = fresh_inputs(inputs, create_graph)
        v = _input_vector(v, inputs, single, "vhp")
        outputs = check_scalar_output(func(*inputs), "vhp")
        check_requires_grad(outputs, "outputs", strict)
        jacobians = _grad(outputs, inputs, create_graph=True)
        check_requires_grad(jacobians, "jacobian", strict)
        products = _grad(jacobians, inputs, v, create_graph)
        products = fill_zeros(products, inputs, strict, create_graph, "double_back")
    return finish(outputs, create_graph, True), finish(products, create_graph, single)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """The value of a scalar `func` and the product of its Hessian with `v`."""
    with enable_grad():
        single, inputs = as_tuple(inputs, "inputs", "hvp")
        inputs = fresh_inputs(inputs, create_graph)
        v = _input_vector(v, inputs, single, "hvp", create_graph)
        outputs = check_scalar_output(func(*inputs), "hvp")
        check_requires_grad(outputs, "outputs", strict)
        jacobians = _grad(outputs, inputs, create_graph=True)
        check_requires_grad(jacobians, "jacobian", strict)
        dummies = tuple(x.new_zeros(tuple(x.shape), requires_grad=True) for x in inputs)
        double = _grad(jacobians, inputs, dummies, create_graph=True)
        check_requires_grad(double, "hessian", strict)
        products = _grad(double, dummies, v, create_graph)
        products = fill_zeros(products, inputs, strict, create_graph, "double_back_trick")
    return finish(outputs, create_graph, True), finish(products, create_graph, single)


_STRATEGY_HINT = (
    'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has '
    'more outputs than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to '
    'use "reverse-mode".'
)


def _check_strategy(create_graph, strict, vectorize, strategy):
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(_STRATEGY_HINT)
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                "torch.autograd.functional.jacobian: `create_graph=True` and "
                '`strategy="forward-mode"` are not supported together (yet). Please either set '
                '`create_graph=False` or `strategy="reverse-mode"`.'
            )
        if strict:
            raise RuntimeError(
                'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` '
                "are not supported together (yet). Please either set `strict=False` or "
                '`strategy="reverse-mode"`.'
            )
        if not vectorize:
            raise NotImplementedError(
                "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only "
                "implemented for `vectorize=True`."
            )
    elif vectorize and strict:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not "
            "supported together. Please either set `strict=False` or `vectorize=False`."
        )


def jacobian(
    func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"
):
    """The Jacobian of `func`, of shape output + input, for each output and input.

    `strategy="forward-mode"` builds it column by column, else it is built row by row.
    """
    _check_strategy(create_graph, strict, vectorize, strategy)
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs)
    with enable_grad():
        single_in, inputs = as_tuple(inputs, "inputs", "jacobian")
        inputs = fresh_inputs(inputs, create_graph)
        single_out, outputs = as_tuple(func(*inputs), "outputs of the user-provided function",
                                       "jacobian")  # fmt: skip
        check_requires_grad(outputs, "outputs", strict)
        result = tuple(_rows(out, k, inputs, create_graph, strict) for k, out in enumerate(outputs))
    result = finish(result, create_graph, None)
    if single_in:
        result = tuple(row[0] for row in result)
    return result[0] if single_out else result


def _rows(out, number, inputs, create_graph, strict):
    """The Jacobian of one output with respect to each input."""
    columns = tuple([] for _ in inputs)
    flat = out.reshape(-1)
    for j in range(out.numel()):
        grads = _grad((flat[j],), inputs, create_graph=create_graph, retain_graph=True)
        for k, (grad, x) in enumerate(zip(grads, inputs)):
            if grad is None:
                if strict:
                    raise RuntimeError(
                        f"Output {number} of the user-provided function is independent of input "
                        f"{k}. This is not allowed in strict mode."
                    )
                grad = x.detach().new_zeros(tuple(x.shape))
            elif strict and create_graph and not grad.requires_grad:
                raise RuntimeError(  # torch names the output's number here
                    "The jacobian of the user-provided function is independent of input "
                    f"{number}. This is not allowed in strict mode when create_graph=True."
                )
            columns[k].append(grad)
    return tuple(_stacked(rows, out, x) for rows, x in zip(columns, inputs))


def _stacked(rows, out, x):
    shape = (*out.shape, *x.shape)
    if not rows:
        return out.detach().new_zeros(shape)
    return _stack(rows).view(shape)


def _stack(rows):
    return TABLE["stack"](*rows, dim=0)


def _forward_jacobian(func, inputs):
    """Column by column: one Jacobian-vector product for each element of each input."""
    single_in, inputs = as_tuple(inputs, "inputs", "jacobian")
    single_out = False
    per_input = []
    for k, x in enumerate(inputs):
        columns = []
        for j in range(x.numel()):
            vectors = [y.detach().new_zeros(tuple(y.shape)) for y in inputs]
            vectors[k].view(-1)[j] = 1
            _, product = jvp(func, tuple(inputs), tuple(vectors))
            single_out = isinstance(product, Tensor)
            columns.append((product,) if single_out else product)
        per_input.append([_stack(list(c)).movedim(0, -1).reshape((*c[0].shape, *x.shape))
                          for c in zip(*columns)])  # fmt: skip
    result = tuple(tuple(row) for row in zip(*per_input))
    if single_in:
        result = tuple(row[0] for row in result)
    return result[0] if single_out else result


def hessian(
    func,
    inputs,
    create_graph=False,
    strict=False,
    vectorize=False,
    outer_jacobian_strategy="reverse-mode",
):
    """The Hessian of a scalar `func`, of shape input + input, for each pair of inputs."""
    single, inputs = as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*values):
        out = check_scalar_output(func(*values), "hessian")
        check_requires_grad(out, "outputs", strict)
        return out[0]

    def gradients(*values):
        if outer_jacobian_strategy == "forward-mode":
            values = tuple(v.requires_grad_() if v.is_leaf else v for v in values)
        rows = jacobian(scalar, values, create_graph=True)
        check_requires_grad(rows, "jacobian", strict)
        return rows

    result = jacobian(gradients, inputs, create_graph=create_graph, strict=strict,
                      vectorize=vectorize, strategy=outer_jacobian_strategy)  # fmt: skip
    return result[0][0] if single else result


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
