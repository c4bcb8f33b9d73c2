"""`jacrev`, `jacfwd`, `hessian`: whole Jacobians, by vmap over a basis."""

import functools

from .gradients import Linear, positions, replaced, vjp
from .trees import leaves_of, rebuild
from .vmap import vmap


def _check_real(api, values, what):
    for k, value in enumerate(leaves_of(values)[0]):
        if getattr(value, "dtype", None) is not None and value.dtype.is_complex:
            raise RuntimeError(f"{api}: Expected all {what} to be real but received complex tensor "
                               f"at flattened input idx: {k}")  # fmt: skip


def basis_for(tensors):
    """Unit vectors of all tensors together: for each tensor, one slice per element of any."""
    sizes = [t.numel() for t in tensors]
    total = sum(sizes)
    vectors, start = [], 0
    for tensor, size in zip(tensors, sizes):
        block = tensor.detach().new_zeros((total, size))
        if size:
            block.narrow(0, start, size).diagonal().fill_(1)
        vectors.append(block.view((total, *tensor.shape)))
        start += size
    return vectors


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """A function that gives the Jacobian of `func`, row by row (reverse mode)."""
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func, updated=())
    def wrapper(*args):
        _check_real("jacrev", args, "inputs")
        places = positions(argnums, len(args))
        inputs = tuple(args[k] for k in places)

        def of_inputs(*values):
            return func(*replaced(args, places, values))

        found = vjp(of_inputs, *inputs, has_aux=has_aux)
        output, pull = found[:2]
        outputs, shape = leaves_of(output)
        _check_real("jacrev", outputs, "outputs")
        result = _rows(outputs, shape, inputs, pull, argnums, chunk_size)
        return (result, found[2]) if has_aux else result

    return wrapper


def _rows(outputs, shape, inputs, pull, argnums, chunk_size):
    def pulled(*vectors):
        return pull(rebuild(shape, vectors))

    vectors = basis_for(outputs)
    rows = vmap(pulled, chunk_size=chunk_size)(*vectors)
    leaves, structure = leaves_of(rows)
    per_output, start = [], 0
    for out in outputs:
        count = out.numel()
        part = [leaf.narrow(0, start, count).reshape((*out.shape, *leaf.shape[1:]))
                for leaf in leaves]  # fmt: skip
        built = rebuild(structure, part)
        per_output.append(built[0] if isinstance(argnums, int) else built)
        start += count
    return rebuild(shape, per_output)


def jacfwd(func, argnums=0, has_aux=False, *, chunk_size=None, randomness="error"):
    """A function that gives the Jacobian of `func`, column by column (forward mode)."""

    @functools.wraps(func, updated=())
    def wrapper(*args):
        _check_real("jacfwd", args, "inputs")
        places = positions(argnums, len(args))
        inputs = tuple(args[k] for k in places)

        def of_inputs(*values):
            return func(*replaced(args, places, values))

        linear = Linear(of_inputs, inputs, has_aux)
        _check_real("jacfwd", linear.outputs, "outputs")
        points, structure = leaves_of(inputs)

        def pushed(*vectors):
            return tuple(leaves_of(linear(vectors))[0])

        columns = vmap(pushed, randomness=randomness, chunk_size=chunk_size)(*basis_for(points))
        result = _columns(columns, linear.shape, points, structure, argnums)
        return (result, linear.level.close(linear.aux)) if has_aux else result

    return wrapper


def _columns(columns, shape, points, structure, argnums):
    per_output = []
    for column in columns:
        parts, start = [], 0
        for point in points:
            count = point.numel()
            block = column.narrow(0, start, count).movedim(0, -1)
            parts.append(block.reshape((*block.shape[:-1], *point.shape)))
            start += count
        built = rebuild(structure, parts)
        per_output.append(built[0] if isinstance(argnums, int) else built)
    return rebuild(shape, per_output)


def hessian(func, argnums=0):
    """A function that gives the Hessian of `func`: forward over reverse."""
    return jacfwd(jacrev(func, argnums), argnums)
