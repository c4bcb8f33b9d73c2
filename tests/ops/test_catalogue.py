"""Walks the catalogue: what holds for every op is tested for every op, on arrival."""

import numpy as np
import pytest
import wengert as torch
from catalogue_cases import REGULAR, Case, cases_of, is_number, is_regular, ops
from wengert.ir.op import TABLE
from wengert.ir.scalar_python import PythonReader
from wengert.ir.types import TensorType, from_numpy_dtype
from wengert.ir.value import FUNCTIONS

# Differentiable ops that give no samples; the list may only shrink. `call` holds a graph; the rule
# of `overwrite` is the history kept, not the slope of its value.
UNSAMPLED = {"alias", "call", "ctc_loss", "overwrite"}  # fmt: skip
# Samples or rules to be mended; the list may only shrink.
UNSOUND: set[str] = set()
UNSOUND_SECOND_ORDER = set()

STEP = 1e-6


def tensor(x, grad=False):
    if x is None or is_number(x):
        return x
    result = torch.tensor(np.asarray(x))
    if grad and result.dtype.is_differentiable:
        result.requires_grad_()
    return result


def outputs(result):
    return result if isinstance(result, tuple) else (result,)


def run(case, inputs):
    return outputs(case.op(*inputs, **case.attrs))


# --- coverage ------------------------------------------------------------------------------------


def test_every_differentiable_op_is_sampled():
    silent = {
        name for name, op in TABLE.items()
        if op.rules and not op.random and op.samples is None and not is_regular(op)
    }  # fmt: skip
    assert silent <= UNSAMPLED
    assert TABLE.keys() >= UNSAMPLED


# --- inference -----------------------------------------------------------------------------------


def check_inference(case, inputs):
    tensors = [tensor(x) for x in inputs]
    types = [TensorType(t.dtype, tuple(t.shape)) if isinstance(t, torch.Tensor) else None
             for t in tensors]  # fmt: skip
    if any(t is None and x is not None for t, x in zip(types, inputs)):
        return  # a Python number among the inputs: its type is the interpreter's choice
    found = [TensorType(t.dtype, tuple(t.shape)) for t in run(case, tensors)]
    assert list(case.op.infer_types(types, case.attrs)) == found, str(case)


# The shapes of these depend on values, which inference does not see.
DATA_DEPENDENT = {"bincount", "masked_select", "nonzero", "unique", "unique_consecutive",
                  "unique_dim"}  # fmt: skip


@pytest.mark.parametrize("name", [n for n in ops() if n not in DATA_DEPENDENT | UNSOUND])
def test_inference_is_what_evaluation_gives(name):
    for case in cases_of(TABLE[name]):
        check_inference(case, case.inputs)


FLOATS = ("float16", "float32", "complex64")
DTYPES = ("bool", "uint8", "int64", *FLOATS)


@pytest.mark.parametrize("name", [n for n in ops() if is_regular(TABLE[n])])
def test_inference_for_other_dtypes(name):
    for case in cases_of(TABLE[name])[:1]:
        # other ops see only the dtypes that their public functions let through
        for dtype in DTYPES if case.op.promote and name in FUNCTIONS else FLOATS:
            with np.errstate(all="ignore"):
                inputs = [x if x is None else x.astype(dtype) for x in case.inputs]
            try:
                run(case, [tensor(x) for x in inputs])
            except (NotImplementedError, RuntimeError, TypeError):
                continue  # torch lacks that dtype too
            check_inference(case, inputs)


# --- derivatives ---------------------------------------------------------------------------------


def dot(a, b):
    return float(np.real(np.vdot(np.asarray(a), np.asarray(b))))


def noise(rng, like):
    x = rng.standard_normal(like.shape)
    return x + 1j * rng.standard_normal(like.shape) if like.dtype.is_complex else x


def direction(rng, x):
    """A random direction that keeps what the sample shows: symmetry, or a triangle of zeros."""
    u, x = noise(rng, x), x.detach().numpy()
    if x.ndim < 2 or x.shape[-1] != x.shape[-2] or x.shape[-1] == 1:
        return u
    if np.allclose(x, np.conj(np.swapaxes(x, -1, -2)), atol=1e-12):
        return u + np.conj(np.swapaxes(u, -1, -2))
    for triangle in (np.tril, np.triu):
        if np.array_equal(triangle(x), x):
            return triangle(u)
    return u


def moving(case):
    """Positions of the inputs that have a rule and a floating dtype."""
    return [k for k, x in enumerate(case.inputs)
            if x is not None and not is_number(x)
            and case.op.rule_for(k) is not None and np.asarray(x).dtype.kind in "fc"
            and np.asarray(x).size]  # fmt: skip


def shifted(case, k, direction, step):
    return [x if i != k else x + step * direction for i, x in enumerate(case.inputs)]


def slope(function, case, k, direction):
    """The derivative of `function(inputs)`, a list of arrays, along `direction` of input k."""
    plus = function(shifted(case, k, direction, STEP))
    minus = function(shifted(case, k, direction, -STEP))
    return [(a - b) / (2 * STEP) for a, b in zip(plus, minus)]


def differentiable_outputs(case, inputs):
    return [t for t in run(case, inputs) if t.dtype.is_differentiable]


def gradient(case, k, inputs, cotangents, create_graph=False):
    """d <cotangents, outputs> / d input k; None where rules are not implemented."""
    tensors = [tensor(x, grad=i == k) for i, x in enumerate(inputs)]
    results = differentiable_outputs(case, tensors)
    pairs = [(y, torch.tensor(v)) for y, v in zip(results, cotangents) if y.requires_grad]
    if not pairs:
        return tensors[k], None
    try:
        (found,) = torch.autograd.grad([y for y, _ in pairs], tensors[k], [v for _, v in pairs],
                                       create_graph=create_graph, allow_unused=True)  # fmt: skip
    except RuntimeError as error:
        if "not implemented" not in str(error):
            raise
        return tensors[k], None
    return tensors[k], found


def values(case, inputs):
    return [t.detach().numpy() for t in differentiable_outputs(case, [tensor(x) for x in inputs])]


def close(a, b):
    assert a == pytest.approx(b, rel=2e-4, abs=2e-5, nan_ok=True)


def smooth_cases(name):
    op = TABLE[name]
    found = [c for c in cases_of(op) if moving(c)]
    return found[:4] if op.kind in REGULAR else found


SOUND = [name for name in ops(differentiable=True) if name not in UNSOUND]


@pytest.mark.parametrize("name", SOUND)
def test_vjp_is_the_adjoint_of_finite_differences(name):
    rng = np.random.default_rng(1)
    for case in smooth_cases(name):
        for k in moving(case):
            cotangents = [noise(rng, t) for t in differentiable_outputs(
                case, [tensor(x) for x in case.inputs])]  # fmt: skip
            x, found = gradient(case, k, case.inputs, cotangents)
            if found is None:
                continue
            assert (found.dtype, found.shape) == (x.dtype, x.shape), str(case)
            u = direction(rng, x)
            moved = slope(lambda inputs, case=case: values(case, inputs), case, k, u)
            expected = sum(dot(v, d) for v, d in zip(cotangents, moved))
            close(dot(found.detach().numpy(), u), expected)


@pytest.mark.parametrize("name", [n for n in SOUND if n not in UNSOUND_SECOND_ORDER])
def test_second_order(name):
    rng = np.random.default_rng(2)
    for case in smooth_cases(name)[:2]:
        for k in moving(case):
            cotangents = [noise(rng, t) for t in differentiable_outputs(
                case, [tensor(x) for x in case.inputs])]  # fmt: skip
            x, first = gradient(case, k, case.inputs, cotangents, create_graph=True)
            if first is None:
                continue
            u, w = direction(rng, x), direction(rng, x)
            second = None
            if first.requires_grad:
                try:
                    (second,) = torch.autograd.grad(first, x, torch.tensor(w), allow_unused=True)
                except RuntimeError as error:
                    if "not implemented" not in str(error):
                        raise
                    continue
            (moved,) = slope(
                lambda inputs, case=case, k=k, v=cotangents: [
                    gradient(case, k, inputs, v)[1].detach().numpy()], case, k, u)  # fmt: skip
            close(0.0 if second is None else dot(second.detach().numpy(), u), dot(w, moved))


# --- the scalar expression -----------------------------------------------------------------------


def scalar_cases(name):
    for case in cases_of(TABLE[name]):
        present = [np.asarray(x) for x in case.inputs if x is not None]
        if present and all(x.dtype.kind in "fbiu" for x in present):
            yield case


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [n for n in ops(scalar=True) if TABLE[n].inputs])
def test_scalar_expression_says_what_numpy_does(name, dtype):
    op = TABLE[name]
    s = PythonReader(dtype)
    for case in scalar_cases(name):
        arrays = [None if x is None else np.asarray(x) for x in case.inputs]
        arrays = [x.astype(dtype) if x is not None and x.dtype.kind == "f" else x for x in arrays]
        operands = [x if x is None else s.value(x, from_numpy_dtype(x.dtype)) for x in arrays]
        with np.errstate(all="ignore"):
            expected = np.asarray(op.numpy(*arrays, **case.attrs))
            found = op.lower.emit(s, *operands, **case.attrs)
        assert np.broadcast_to(found.array, expected.shape).dtype == expected.dtype, str(case)
        np.testing.assert_allclose(found.array, expected, rtol=2e-6 if dtype == "float32" else
                                   1e-12, atol=1e-7 if dtype == "float32" else 1e-13,
                                   err_msg=str(case))  # fmt: skip


# --- in-place twins ------------------------------------------------------------------------------


def twins():
    for name, function in sorted(FUNCTIONS.items()):
        op = TABLE.get(name)
        if function.inplace and op is not None and op.kind == "pointwise" and is_regular(op):
            yield name


@pytest.mark.parametrize("name", list(twins()))
def test_inplace_twin_equals_the_function(name):
    op = TABLE[name]
    case = next(iter(cases_of(op)))
    inputs = [tensor(x) for x in case.inputs]
    expected = FUNCTIONS[name].call(*inputs)
    target = inputs[0].clone()
    version = target._version
    returned = getattr(target, name + "_")(*inputs[1:])
    assert returned is target
    assert target._version == version + 1
    assert target.dtype is inputs[0].dtype
    np.testing.assert_array_equal(target.numpy(), expected.to(target.dtype).numpy())


def test_cases_print_what_they_are():
    assert str(Case(TABLE["exp"], [np.zeros((2, 3))], {})) == "exp([2, 3];)"
