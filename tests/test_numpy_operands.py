"""Tensors beside NumPy's arrays and scalars: who computes, and in which dtype."""

import operator

import numpy as np
import pytest
import wengert as torch

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
              operator.mod, operator.pow]  # fmt: skip
ARRAYS = [np.array(2.0), np.array([2.0, 3.0]), np.array(2), np.array([2, 3], np.float32)]


@pytest.mark.parametrize("array", ARRAYS, ids=repr)
@pytest.mark.parametrize("how", ARITHMETIC)
def test_numpy_computes_with_its_arrays(how, array):
    x = torch.tensor([1.0, 2.0])
    result, wanted = how(x, array), how(x.numpy(), array)
    assert isinstance(result, torch.Tensor)
    assert result.numpy().dtype == wanted.dtype
    assert result.tolist() == wanted.tolist()


@pytest.mark.parametrize("array", ARRAYS, ids=repr)
def test_arrays_before_tensors_are_refused(array):
    x = torch.tensor([1.0, 2.0])
    for how in (operator.sub, operator.mul, operator.floordiv, operator.pow):
        with pytest.raises(TypeError, match="unsupported operand"):
            how(array, x)
    # torch divides by multiplying with the reciprocal
    assert (array / x).tolist() == (x.reciprocal().numpy() * array).tolist()


@pytest.mark.parametrize("array", ARRAYS, ids=repr)
def test_comparisons_but_for_equality_are_refused(array):
    x = torch.tensor([1.0, 2.0])
    for how in (operator.lt, operator.le, operator.gt, operator.ge):
        with pytest.raises(TypeError, match="not supported between instances"):
            how(x, array)
    assert (x == array).tolist() == (x.numpy() == array).tolist()
    assert (x != array) is True


def test_augmented_operators_make_a_new_tensor_with_an_array():
    x = y = torch.tensor([1, 2])
    y += np.array([0.5, 0.5])
    assert y.dtype is torch.float64
    assert y.tolist() == [1.5, 2.5]
    assert x.tolist() == [1, 2]


def test_tensors_with_history_or_without_a_numpy_dtype_are_not_numpys():
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        torch.ones(2, requires_grad=True) * np.array(2.0)
    with pytest.raises(TypeError, match="unsupported ScalarType BFloat16"):
        torch.ones(2, dtype=torch.bfloat16) * np.array(2.0)


@pytest.mark.parametrize("array", ARRAYS[:2], ids=repr)
@pytest.mark.parametrize("name", ["add", "mul", "pow", "eq", "remainder", "atan2", "where"])
def test_functions_refuse_arrays(name, array):
    x = torch.ones(2)
    with pytest.raises(TypeError, match=r"numpy\.ndarray"):
        x.where(x > 0, array) if name == "where" else getattr(torch, name)(x, array)
    with pytest.raises(TypeError, match=r"numpy\.ndarray"):
        x.masked_fill(x > 0, array)
    with pytest.raises(TypeError, match=r"can't assign a numpy\.ndarray to a torch\.FloatTensor"):
        x[:] = array


@pytest.mark.parametrize(
    ("scalar", "ints", "floats"),
    [
        (np.float32(2), torch.float32, torch.float32),
        (np.float64(2), torch.float32, torch.float32),
        (np.int32(2), torch.int64, torch.float32),
        (np.bool_(True), torch.float32, torch.float32),  # not an int: so a float
        (np.complex128(2), torch.complex64, torch.complex64),
    ],
)
def test_scalars_are_numbers(scalar, ints, floats):
    whole, real = torch.tensor([1, 2]), torch.tensor([1.0, 2.0])
    for how in (operator.add, operator.sub, operator.mul, torch.add, torch.mul):
        assert how(whole, scalar).dtype is ints
        assert how(real, scalar).dtype is floats
        assert how(scalar, real).dtype is floats
    assert torch.where(real > 1, whole, scalar).dtype is ints


def test_compiled_functions_do_the_same():
    scale = np.array([2.0, 3.0])
    step = torch.compile(lambda x: (x * scale, x * np.float64(2)))
    for k in range(4):
        x = torch.tensor([1.0, float(k)])
        product, doubled = step(x)
        assert product.tolist() == [2.0, 3.0 * k]
        assert product.dtype is torch.float64
        assert doubled.dtype is torch.float32
