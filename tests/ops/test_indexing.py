"""x[...] in full, gather and scatter families, masks; against NumPy, and in torch's words."""

import numpy as np
import pytest
import wengert as torch

ARRAY = np.arange(24.0).reshape(2, 3, 4)
READS = [
    0, -1, slice(None), slice(1, None), slice(None, None, 2), None, Ellipsis,
    (0, 1), (slice(None), 1), (Ellipsis, 2), (None, 0, Ellipsis), (1, slice(0, 2), None),
    np.array([1, 0, 1]), (np.array([1, 0]), np.array([2, 0])), (slice(None), np.array([2, 2])),
    (np.array([[0], [1]]), np.array([0, 2])), (np.array([0, 1]), slice(None), np.array([3, 0])),
    (np.array([1, 0]), 2), (0, np.array([1, 2]), slice(1, 3)), ARRAY > 5, ARRAY[..., 0] > 5,
    (slice(None), np.array([True, False, True])), (0, ARRAY[0] > 5), (-1, np.array([-1, 0])),
]  # fmt: skip


def as_index(item):
    """The same index with tensors in place of arrays."""
    if isinstance(item, tuple):
        return tuple(map(as_index, item))
    return torch.tensor(item) if isinstance(item, np.ndarray) else item


@pytest.mark.parametrize("k", range(len(READS)))
def test_reading_is_numpys(k):
    x = torch.tensor(ARRAY, requires_grad=True)
    found = x[as_index(READS[k])]
    assert np.array_equal(found.detach().numpy(), ARRAY[READS[k]])
    found.sum().backward()
    expected = np.zeros_like(ARRAY)
    np.add.at(expected, READS[k], 1)
    assert np.array_equal(x.grad.numpy(), expected)


@pytest.mark.parametrize("k", range(len(READS)))
def test_writing_is_numpys(k):
    base = torch.tensor(ARRAY, requires_grad=True)
    value = torch.tensor(7.5, dtype=base.dtype, requires_grad=True)
    x = base * 1
    x[as_index(READS[k])] = value
    expected = ARRAY.copy()
    expected[READS[k]] = 7.5
    assert np.array_equal(x.detach().numpy(), expected)
    x.sum().backward()
    written = expected != ARRAY
    assert np.array_equal(base.grad.numpy(), np.where(written, 0.0, 1.0))
    assert value.grad.item() == ARRAY[READS[k]].size  # once for each time it was named


def test_bools_add_a_dimension():
    x = torch.arange(6.0).reshape(2, 3)
    assert x[True].shape == (1, 2, 3) and x[False].shape == (0, 2, 3)
    assert x[torch.tensor(True), torch.tensor([0, 1])].shape == (2, 3)
    with pytest.warns(UserWarning, match="non-tuple sequence"):
        assert x[[[0, 1], [2, 0]]].tolist() == [2.0, 3.0]  # a nested list counts as a tuple


@pytest.mark.parametrize("item, error, words", [
    (5, IndexError, "out of bounds for dimension 0"), ((0, 0, 0), IndexError, "too many indices"),
    (slice(None, None, -1), ValueError, "greater than zero"), (1.5, IndexError, "only integers"),
    (torch.tensor([1.0]), IndexError, "long, int, byte or bool"),
    (torch.tensor([0, 9]), IndexError, "index 9 is out of bounds"),
    (torch.tensor([True, False, True]), IndexError, "shape of the mask"),
    ((torch.tensor([0, 1]), torch.tensor([0, 1, 2])), IndexError, "shape mismatch"),
])  # fmt: skip
def test_refused_indices(item, error, words):
    with pytest.raises(error, match=words):
        torch.zeros(2, 3)[item]


def test_repeated_indices_accumulate():
    x = torch.zeros(3, 2).index_put((torch.tensor([0, 0, 2]),), torch.ones(3, 2), accumulate=True)
    assert x.tolist() == [[2.0, 2.0], [0.0, 0.0], [1.0, 1.0]]
    big = torch.zeros(50).scatter_add(0, torch.arange(10_000) % 50, torch.ones(10_000))
    assert set(big.tolist()) == {200.0}


def scattered(x, index, src, dim, combine, include_self):
    """scatter_reduce element by element."""
    result, seen, count = x.copy(), set(), {}
    for place in np.ndindex(index.shape):
        where = list(place)
        where[dim] = index[place]
        where = tuple(where)
        first = where not in seen and not include_self
        result[where] = src[place] if first else combine(result[where], src[place])
        seen.add(where)
        count[where] = count.get(where, int(include_self)) + 1
    return result, count


COMBINE = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": max, "amin": min}


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", COMBINE)
def test_scatter_reduce(reduce, include_self):
    rng = np.random.default_rng(0)
    x, src = rng.standard_normal((4, 3)), rng.standard_normal((5, 3))
    index = rng.integers(0, 4, (5, 3))
    expected, count = scattered(x, index, src, 0, COMBINE[reduce], include_self)
    if reduce == "mean":
        for where, n in count.items():
            expected[where] /= n
    found = torch.tensor(x).scatter_reduce(0, torch.tensor(index), torch.tensor(src), reduce,
                                           include_self=include_self)  # fmt: skip
    assert np.allclose(found.numpy(), expected)


def test_product_gradient_at_one_zero():
    src = torch.tensor([0.0, 2.0, 3.0], requires_grad=True)
    torch.ones(2).scatter_reduce(0, torch.tensor([0, 0, 1]), src, "prod").sum().backward()
    assert src.grad.tolist() == [2.0, 0.0, 1.0]


def test_slices_by_index():
    x, index = torch.arange(6.0).reshape(2, 3), torch.tensor([2, 0])
    source = torch.tensor([[10.0, 20.0], [30.0, 40.0]])
    assert x.index_select(1, index).tolist() == [[2.0, 0.0], [5.0, 3.0]]
    assert x.index_add(1, index, source, alpha=2).tolist() == [[40.0, 1.0, 22.0], [83.0, 4.0, 65.0]]
    assert x.index_copy(1, index, source).tolist() == [[20.0, 1.0, 10.0], [40.0, 4.0, 30.0]]
    assert x.index_fill(1, index, -1.0).tolist() == [[-1.0, 1.0, -1.0], [-1.0, 4.0, -1.0]]
    assert x.index_reduce(1, index, source, "amax").tolist() == [[20, 1, 10], [40, 4, 30]]
    assert x.take(torch.tensor([[0, -1]])).tolist() == [[0.0, 5.0]]
    assert x.put(torch.tensor([0, 0]), source[0], accumulate=True)[0, 0] == 30.0
    assert x.take_along_dim(torch.tensor([[2], [0]]), 1).tolist() == [[2.0], [3.0]]


def test_masks():
    x = torch.arange(6.0, requires_grad=True)
    mask = torch.tensor([True, False, True, True, False, False])
    source = torch.tensor([10.0, 20.0, 30.0, 40.0], requires_grad=True)
    assert x.masked_select(mask).tolist() == [0.0, 2.0, 3.0]
    out = x.masked_scatter(mask, source)
    assert out.tolist() == [10.0, 1.0, 20.0, 30.0, 4.0, 5.0]
    out.backward(torch.arange(6.0))
    assert x.grad.tolist() == [0.0, 1.0, 0.0, 0.0, 4.0, 5.0]
    assert source.grad.tolist() == [0.0, 2.0, 3.0, 0.0]
    with pytest.raises(RuntimeError, match="source has 1"):
        x.masked_scatter(mask, source[:1])


@pytest.mark.parametrize("call, error", [
    (lambda x, i: x.gather(0, i + 9), RuntimeError), (lambda x, i: x.gather(3, i), IndexError),
    (lambda x, i: x.scatter(0, i, x.double()), RuntimeError),
    (lambda x, i: x.scatter(0, i, 1.0, reduce="max"), RuntimeError),
    (lambda x, i: x.index_select(0, i), IndexError), (lambda x, i: x.take(i + 99), IndexError),
    (lambda x, i: x.index_add(0, i[0], x[:1]), RuntimeError),
])  # fmt: skip
def test_refused_gathers(call, error):
    with pytest.raises(error):
        call(torch.zeros(3, 4), torch.tensor([[0, 1]]))
