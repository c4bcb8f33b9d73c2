"""`gradcheck` and `gradgradcheck`: derivatives against finite differences.

Complex outputs are checked by their real and imaginary parts; the gradient with respect to a
complex input is that of the real part plus i times that of the imaginary part, torch's convention.
"""

import warnings

import numpy as np

from ..ir.types import FLOAT
from ..tracer.backward import grad as autograd_grad
from ..tracer.modes import enable_grad, no_grad
from ..tracer.tensor import Tensor

_PARTS = {
    "": 1,
    "While considering the real part of complex outputs only, ": 1,
    "While considering the imaginary part of complex outputs only, ": 1j,
}
_WHOLE, _REAL, _IMAGINARY = _PARTS


class GradcheckError(RuntimeError):
    """A derivative that disagrees with finite differences."""


def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
):
    """Compares the gradients of `func` with finite differences; raises, or returns False."""
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad, check_backward_ad to be "
                             "True")  # fmt: skip
    inputs = tuple(inputs) if isinstance(inputs, list | tuple) else (inputs,)
    try:
        _check_inputs(inputs)
        outputs = _outputs_of(func, inputs)
        numeric = _numeric(func, inputs, eps)
        if check_backward_ad:
            _check_reverse(func, inputs, outputs, numeric, rtol, atol, nondet_tol)
            if check_undefined_grad:
                _check_undefined(func, inputs)
        if check_forward_ad:
            _check_forward(func, inputs, numeric, rtol, atol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _tensors(values):
    return [(k, v) for k, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad]


def _check_inputs(inputs):
    found = False
    for k, x in enumerate(inputs):
        if not isinstance(x, Tensor) or not x.requires_grad:
            continue
        if x.dtype.name not in ("float64", "complex128"):
            warnings.warn(
                f"Input #{k} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. ",
                stacklevel=3,
            )
        if any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape)):
            raise RuntimeError(
                f"The {k}th input has a dimension with stride 0. gradcheck only supports inputs "
                "that are non-overlapping to be able to compute the numerical gradients correctly. "
                "You should call .contiguous on the input before passing it to gradcheck."
            )
        x.retain_grad()
        found = True
    if not found:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )


def _outputs_of(func, inputs):
    with enable_grad():
        result = func(*inputs)
    listed = result if isinstance(result, tuple | list) else (result,)
    return [o for o in listed if isinstance(o, Tensor)]


def _differentiable(outputs):
    return [o for o in outputs if o.requires_grad]


# --- finite differences --------------------------------------------------------------------------


def _numeric(func, inputs, eps):
    """For each input: the derivative of every (flattened) output along each of its elements.

    A complex input has two directions, real and imaginary, combined as `a + 1j * b`.
    """
    tables = []
    for _, x in _tensors(inputs):
        columns = [_column(func, inputs, x, place, eps) for place in np.ndindex(*x.shape)]
        tables.append(columns)
    return tables


def _column(func, inputs, x, place, eps):
    """Per output: derivatives of its real (and imaginary) parts along one element of `x`."""
    along_real = _difference(func, inputs, x, place, eps)
    if not x.dtype.is_complex:
        return [(a.real, a.imag) for a in along_real]
    along_imaginary = _difference(func, inputs, x, place, 1j * eps)
    return [(a.real + 1j * b.real, a.imag + 1j * b.imag)
            for a, b in zip(along_real, along_imaginary)]  # fmt: skip


def _difference(func, inputs, x, place, step):
    array = x._array
    before = array[place].copy() if array.ndim else array.copy()
    try:
        array[place] = before + step
        above = _values(func, inputs)
        array[place] = before - step
        below = _values(func, inputs)
    finally:
        array[place] = before
    return [(a - b) / (2 * abs(step)) for a, b in zip(above, below)]


def _values(func, inputs):
    """All float outputs that need gradients, as flat arrays of their own."""
    outputs = _outputs_of(func, [_unlinked(x) for x in inputs])
    return [np.array(o._values_array(), dtype=np.complex128).ravel()
            for o in outputs if o.dtype.category >= FLOAT]  # fmt: skip


def _unlinked(x):
    """The same memory, so that a perturbation shows, as a leaf of its own."""
    if not isinstance(x, Tensor):
        return x
    return x.detach().requires_grad_(x.requires_grad)


# --- the checks ----------------------------------------------------------------------------------


def _check_reverse(func, inputs, outputs, numeric, rtol, atol, nondet_tol):
    live = [(k, o) for k, o in enumerate(o for o in outputs if o.dtype.category >= FLOAT)
            if o.requires_grad]  # fmt: skip
    if not live:
        if any(np.any(np.abs(part) > atol) for table in numeric for column in table
               for pair in column for part in pair):  # fmt: skip
            raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    for number, out in live:
        parts = (_IMAGINARY, _REAL) if out.dtype.is_complex else (_WHOLE,)
        for part in parts:
            rows = _analytic(out, inputs, part)
            again = _analytic(out, inputs, part)
            _compare(rows, again, numeric, number, part, inputs, rtol, atol, nondet_tol)


def _analytic(out, inputs, part):
    """For each input: the gradients of every element of `out`, one row each."""
    wanted = [x for _, x in _tensors(inputs)]
    rows = [[] for _ in wanted]
    for place in range(out.numel()):
        start = np.zeros(out.numel(), np.complex128 if out.dtype.is_complex else np.float64)
        start[place] = _PARTS[part]
        seed = Tensor._wrap(start.astype(out.dtype.storage).reshape(tuple(out.shape)), out.dtype)
        grads = autograd_grad(out, wanted, seed, retain_graph=True, allow_unused=True)
        for k, (x, grad) in enumerate(zip(wanted, grads)):
            if grad is None:
                rows[k].append(np.zeros(x.numel(), np.complex128))
                continue
            rows[k].append(np.array(grad._values_array(), np.complex128).ravel())
    return [np.array(r).reshape(out.numel(), x.numel()) for r, x in zip(rows, wanted)]


def _compare(rows, again, numeric, number, part, inputs, rtol, atol, nondet_tol):
    imaginary = part == _IMAGINARY
    for (k, x), one, other, table in zip(_tensors(inputs), rows, again, numeric):
        columns = [column[number][int(imaginary)] for column in table]
        wanted = np.array(columns).T.reshape(one.shape)
        if not np.allclose(one, wanted, rtol=rtol, atol=atol):
            raise GradcheckError(
                f"{part}Jacobian mismatch for output {number} with respect to input {k},\n"
                f"numerical:{_shown(wanted.T, x)}\nanalytical:{_shown(one.T, x)}\n"
            )
        if np.any(np.abs(one - other) > nondet_tol):
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and "
                "grad_output multiple times gives different values, although analytical gradient "
                "matches numerical gradient.The tolerance for nondeterminism was "
                f"{nondet_tol}."
            )


def _shown(table, x):
    values = table if x.dtype.is_complex else table.real
    return Tensor._wrap(np.ascontiguousarray(values).astype(x.dtype.storage), x.dtype)


def _check_undefined(func, inputs):
    """Backward must cope with outputs that get no gradient."""
    outputs = _differentiable(_outputs_of(func, inputs))
    wanted = [x for _, x in _tensors(inputs)]
    if len(outputs) < 2:
        return
    for out in outputs:
        zeros = out.detach().new_zeros(tuple(out.shape))
        grads = autograd_grad(out, wanted, zeros, allow_unused=True, retain_graph=True)
        if any(g is not None and bool((g != 0).any()) for g in grads):
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are "
                "undefined or zero. Please look at 'Notes about undefined output gradients' in "
                "'tools/autograd/derivatives.yaml'"
            )


def _check_forward(func, inputs, numeric, rtol, atol):
    """Forward-mode products along each element."""
    from ..func.gradients import Linear, PlainLevel

    wanted = _tensors(inputs)

    def of_wanted(*values):
        full = list(inputs)
        for (k, _), value in zip(wanted, values):
            full[k] = value
        return tuple(_outputs_of(func, full))

    primals = tuple(x.detach() for _, x in wanted)
    for n, (k, x) in enumerate(wanted):
        for j, place in enumerate(np.ndindex(*x.shape)):
            tangents = [p.new_zeros(tuple(p.shape)) for p in primals]
            tangents[n]._array[place] = 1
            products = Linear(of_wanted, primals, False, PlainLevel())(tangents)
            for number, product in enumerate(products):
                real, imaginary = numeric[n][j][number]
                got = np.array(product._values_array(), np.complex128).ravel()
                if not np.allclose(got, real.real + 1j * imaginary.real, rtol=rtol, atol=atol):
                    raise GradcheckError(
                        f"Jacobian computed with forward mode mismatch for output {number} with "
                        f"respect to input {k},\nnumerical:{real}\nanalytical:{got}\n"
                    )


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=False,
):
    """Compares second derivatives with finite differences of the first ones."""
    inputs = tuple(inputs) if isinstance(inputs, list | tuple) else (inputs,)
    if grad_outputs is None:
        grad_outputs = tuple(_random_like(o) for o in _differentiable(_outputs_of(func, inputs)))
    else:
        grad_outputs = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
    count = len(grad_outputs)

    def first_order(*arguments):
        values, seeds = arguments[: len(arguments) - count], arguments[len(arguments) - count :]
        values = tuple(x.requires_grad_() if isinstance(x, Tensor) and x.is_leaf
                       and x.requires_grad else x for x in values)  # fmt: skip
        wanted = tuple(x for x in values if isinstance(x, Tensor) and x.requires_grad)
        outputs = _differentiable(_outputs_of(func, values))
        grads = autograd_grad(outputs, wanted, seeds, create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        first_order, (*inputs, *grad_outputs), eps=eps, atol=atol, rtol=rtol,
        raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev,
    )  # fmt: skip


def _random_like(out):
    from ..testing import make_tensor

    with no_grad():
        dtype = out.dtype if out.dtype.category >= FLOAT else "float64"
        made = make_tensor(tuple(out.shape), dtype=dtype, low=-1, high=1)
    return made.requires_grad_()


__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
