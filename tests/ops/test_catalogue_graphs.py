"""Walks the catalogue: a recorded call is the eager call, forward, backward and second order.

Each op is recorded, differentiated in IR and optimised; the reference interpreter must give eager's
bits at every order before the passes run, and its values afterwards (an expansion of a composite op
may round differently).
"""

import numpy as np
import pytest
import wengert as torch
from catalogue_cases import cases_of, is_number, ops
from wengert.ir import interp, passes, reverse
from wengert.ir.bind import interpreting
from wengert.ir.op import TABLE, Decompose
from wengert.ir.verify import verify
from wengert.tracer.recorder import Recorder

DATA_SHAPES = {name for name, op in TABLE.items() if op.data_shape}
# Eager rules of these look for zeros among the values, which a graph can't: other formulas.
LOOK_AT_VALUES = {"cumprod", "prod"}
# Eager adds a zero where torch has a formal dependence: -0.0 becomes 0.0 in the second order.
FORMAL = {"prelu"}


def tensors_of(case):
    """The operands, those with a rule requiring grad; and where these are among the tensors."""
    operands, tensors, wanted = [], [], []
    for position, x in enumerate(case.inputs):
        if x is None or is_number(x):
            operands.append(x)
            continue
        tensor = torch.tensor(np.asarray(x))
        if tensor.dtype.is_differentiable and case.op.rule_for(position) is not None:
            wanted.append(len(tensors))
            tensor.requires_grad_()
        operands.append(tensor)
        tensors.append(tensor)
    return operands, tensors, wanted


def listed(result):
    return list(result) if isinstance(result, tuple) else [result]


def record(case, operands, tensors):
    """The eager outputs, and the graph of the call with the tensors as inputs in order."""
    recorder = Recorder(case.op.name)
    with interpreting(recorder):
        for tensor in tensors:
            recorder.var_of(tensor)
        outputs = listed(case.op(*operands, **case.attrs))
    return outputs, verify(recorder.finish(outputs))


def noise(rng, like):
    x = rng.standard_normal(like.shape)
    if like.dtype.is_complex:
        x = x + 1j * rng.standard_normal(like.shape)
    return torch.tensor(np.asarray(x)).to(like.dtype)


def assert_same_bits(found, expected, what):
    np.testing.assert_array_equal(found, expected, err_msg=what)
    if found.dtype.kind == "f":
        zeros = expected == 0
        signs = np.signbit(found[zeros]) == np.signbit(expected[zeros])
        assert signs.all(), f"{what}: the sign of a zero"


def assert_close(found, expected, what):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11, err_msg=what)


def check(graph, arrays, expected, what, exact=True):
    """Interprets a graph as it is and after all passes."""
    whole = exact and not any(isinstance(node.op.lower, Decompose) for node in graph.nodes)
    optimised = verify(passes.optimise(graph))
    for candidate, equal, when in ((graph, exact, ""), (optimised, whole, " after passes")):
        for found, wanted in zip(interp.run(candidate, arrays), expected, strict=True):
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), what + when
            (assert_same_bits if equal else assert_close)(found, wanted, what + when)


def gradients(results, seeds, inputs, **options):
    """Eager gradients, zeros where there is none, and which there are; None where a rule is not
    implemented."""
    try:
        found = torch.autograd.grad(results, inputs, seeds, allow_unused=True, **options)
    except (RuntimeError, NotImplementedError) as error:
        if "not implemented" not in str(error) and "does not require grad" not in str(error):
            raise
        return None
    filled = [torch.zeros_like(x) if g is None else g for g, x in zip(found, inputs)]
    return filled, [g is not None for g in found]


def given(graph, wanted, results):
    """Which of the inputs get a gradient in a graph."""
    reached = reverse.reached(graph, results)
    return [reached.get(k, False) for k in wanted]


@pytest.mark.parametrize("name", [n for n in ops() if n not in DATA_SHAPES])
def test_recorded_call_is_the_eager_call(name):
    rng = np.random.default_rng(3)
    for case in cases_of(TABLE[name]):
        operands, tensors, wanted = tensors_of(case)
        outputs, graph = record(case, operands, tensors)
        arrays = [t._array for t in tensors]
        check(graph, arrays, [t._array for t in outputs], f"{case} forward")
        results = [k for k, t in enumerate(outputs) if t.requires_grad]
        if not wanted or not results:
            continue
        inputs = [tensors[k] for k in wanted]
        seeds = [noise(rng, outputs[k]) for k in results]
        first = gradients([outputs[k] for k in results], seeds, inputs, create_graph=True)
        if first is None:
            continue
        first, there = first
        assert given(graph, wanted, results) == there, case
        backward = verify(reverse.grad(graph, wanted, results))
        arrays += [t._array for t in seeds]
        exact = name not in LOOK_AT_VALUES
        check(backward, arrays, [t.detach()._array for t in first], f"{case} backward", exact)
        moving = [k for k, t in enumerate(first) if t.requires_grad]
        seeds = [noise(rng, first[k]) for k in moving]
        second = gradients([first[k] for k in moving], seeds, inputs) if moving else None
        if second is None:
            continue
        second, there = second
        assert given(backward, wanted, moving) == there, case
        again = verify(reverse.grad(backward, wanted, moving))
        arrays += [t._array for t in seeds]
        exact = exact and name not in FORMAL
        check(again, arrays, [t._array for t in second], f"{case} second order", exact)
