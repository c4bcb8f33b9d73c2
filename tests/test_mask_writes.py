"""`x[mask] = value`: one op where the value does not depend on how many elements the mask has."""

import numpy as np
import pytest
import wengert as torch

ROWS, COLUMNS = torch.tensor([True, False, True]), torch.tensor([False, True, True, False])
CELLS = torch.tensor(np.arange(12).reshape(3, 4) % 3 == 0)
CASES = {
    "a number": (ROWS, 1.5),
    "rows": (ROWS, torch.randn(4)),
    "rows, one": (ROWS, torch.randn(1)),
    "rows, each": (ROWS, torch.randn(2, 4)),
    "columns": ((slice(None), COLUMNS), 2.0),
    "columns, one": ((slice(None), COLUMNS), torch.randn(1)),
    "columns, each": ((slice(None), COLUMNS), torch.randn(3, 2)),
    "cells": (CELLS, torch.tensor(3.0)),
    "cells, each": (CELLS, torch.randn(4)),
    "of a row": ((1, COLUMNS), -1.0),
    "with an ellipsis": ((..., COLUMNS), 0.0),
    "with a new dimension": ((None, ROWS), torch.randn(4)),
    "none": (torch.zeros(3, dtype=torch.bool), torch.randn(4)),
}
ONE_OP = [name for name in CASES if "each" not in name]


def as_numpy(item):
    if isinstance(item, tuple):
        return tuple(map(as_numpy, item))
    return item.numpy() if isinstance(item, torch.Tensor) else item


def write(x, value, item):
    out = x * 2
    out[item] = value
    return out


@pytest.mark.parametrize("name", CASES)
def test_values_are_numpys(name):
    item, value = CASES[name]
    wanted = np.arange(12.0, dtype=np.float32).reshape(3, 4) * 2
    wanted[as_numpy(item)] = as_numpy(value)
    found = write(torch.arange(12.0).reshape(3, 4), value, item)
    np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("name", CASES)
def test_gradients(name):
    item, value = CASES[name]
    given = [torch.randn(3, 4, dtype=torch.float64, requires_grad=True)]
    if isinstance(value, torch.Tensor):
        given.append(value.double().requires_grad_())
    assert torch.autograd.gradcheck(lambda x, v=value: write(x, v, item), given)


@pytest.mark.parametrize("name", ONE_OP)
def test_compiled_as_one_graph(name):
    item, value = CASES[name]
    fn = torch.compile(write, fullgraph=True)
    for _ in range(3):
        x = torch.randn(3, 4, requires_grad=True)
        y = torch.tensor(x.detach().numpy(), requires_grad=True)
        a, b = fn(x, value, item), write(y, value, item)
        torch.testing.assert_close(a, b, rtol=0, atol=0)
        (a * a).sum().backward()
        (b * b).sum().backward()
        torch.testing.assert_close(x.grad, y.grad, rtol=0, atol=0)


@pytest.mark.parametrize("value", [torch.ones(3), torch.ones(4, dtype=torch.float64)])
def test_what_does_not_fit_is_refused(value):
    with pytest.raises(RuntimeError, match=r"shape mismatch|dtypes match"):
        write(torch.randn(3, 4), value, ROWS)


def test_node_has_torchs_name():
    v = torch.randn(4, requires_grad=True)
    out = write(torch.randn(3, 4), v, ROWS)
    assert out.grad_fn.name() == "IndexPutBackward0"
    assert out.grad_fn.next_functions[1][0].name() == "torch::autograd::AccumulateGrad"
