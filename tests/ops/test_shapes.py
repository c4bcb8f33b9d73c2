"""Views, splits, joins, in-place shape changes and storages."""

import numpy as np
import pytest
import wengert as torch
from wengert.ir.builder import Builder
from wengert.ir.op import TABLE
from wengert.ir.types import TensorType


def node(tensor):
    return type(tensor.grad_fn).__name__


@pytest.fixture
def x():
    return torch.arange(12.0, requires_grad=True).reshape(3, 4) * 1


def test_views_write_through(x):
    for view in (x.t(), x.diagonal(), x.unfold(1, 2, 2), x.as_strided((2, 2), (4, 1), 1),
                 x.expand(1, 3, 4), x[1], x.view(12)[::3]):  # fmt: skip
        before = x.detach().clone()
        view.mul_(2)
        assert node(x) == "CopySlices" and not torch.equal(before, x.detach())
    with pytest.raises(RuntimeError, match="single memory location"):
        x.expand(2, 3, 4).mul_(2)


def test_elements_shown_twice_are_written_twice():
    y = torch.ones(5)
    y.unfold(0, 3, 1).mul_(2)
    assert y.tolist() == [2.0, 4.0, 8.0, 4.0, 2.0]


def test_unfold_and_its_gradient():
    leaf = torch.arange(5.0, requires_grad=True)
    windows = leaf.unfold(0, 3, 1)
    assert windows.shape == (3, 3) and windows.stride() == (1, 1)
    windows.sum().backward()
    assert leaf.grad.tolist() == [1.0, 2.0, 3.0, 2.0, 1.0]


def test_as_strided_reads_the_storage():
    leaf = torch.arange(12.0, requires_grad=True)
    part = leaf.reshape(3, 4).t()[1:]
    seen = part.as_strided((2, 2), (1, 4), 1)
    assert seen.tolist() == [[1.0, 5.0], [2.0, 6.0]]
    seen.sum().backward()
    assert leaf.grad.nonzero().flatten().tolist() == [1, 2, 5, 6]
    with pytest.raises(RuntimeError, match="out of bounds"):
        leaf.as_strided((5,), (3,))


@pytest.mark.parametrize("change, shape, name", [
    (lambda y: y.t_(), (4, 3), "TBackward1"),
    (lambda y: y.unsqueeze_(1), (3, 1, 4), "UnsqueezeBackward1"),
    (lambda y: y.transpose_(0, 1), (4, 3), "TransposeBackward1"),
    (lambda y: y.unsqueeze_(0).squeeze_(0), (3, 4), "SqueezeBackward4"),
    (lambda y: y.as_strided_((2, 2), (1, 2)), (2, 2), "AsStridedBackward1"),
])  # fmt: skip
def test_shapes_change_in_place(x, change, shape, name):
    version = x._version
    assert change(x) is x and x.shape == shape
    assert node(x) == name and x._version > version
    x.sum().backward()


def test_a_view_stays_a_view_when_its_shape_changes(x):
    row = x[1]
    row.unsqueeze_(0).mul_(3)
    assert row._base is x and x[1].tolist() == [12.0, 15.0, 18.0, 21.0]
    with pytest.raises(RuntimeError, match="leaf Variable"):
        torch.ones(2, 2, requires_grad=True).t_()


def test_storages():
    a = torch.arange(6.0)
    part = a[2:4]
    assert part.storage_offset() == 2 and part.untyped_storage().nbytes() == 24
    assert part.untyped_storage().data_ptr() == a.untyped_storage().data_ptr()
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        stored = part.storage()
    stored[2] = 9.0
    assert part[0] == 9.0 and len(stored) == 6
    b = torch.zeros(0).set_(a.untyped_storage(), 1, (2, 2), (2, 1))
    assert b.tolist() == [[1.0, 9.0], [3.0, 4.0]] and not b.is_set_to(a)
    assert a.resize_(2, 2).tolist() == [[0.0, 1.0], [9.0, 3.0]]
    assert a.resize_(3, 4).shape == (3, 4) and a[0].tolist() == [0.0, 1.0, 9.0, 3.0]
    with pytest.raises(RuntimeError, match="require grad"):
        torch.ones(2, requires_grad=True).resize_(3)


@pytest.mark.parametrize("split, sizes", [
    (lambda y: y.split(3), [3, 3, 1]), (lambda y: y.split([2, 5]), [2, 5]),
    (lambda y: y.chunk(3), [3, 3, 1]), (lambda y: y.tensor_split(3), [3, 2, 2]),
    (lambda y: y.tensor_split((2, -1)), [2, 4, 1]), (lambda y: y.hsplit([1]), [1, 6]),
    (lambda y: y.unsafe_chunk(2), [4, 3]),
])  # fmt: skip
def test_splits(split, sizes):
    leaf = torch.arange(7.0, requires_grad=True)
    parts = split(leaf)
    assert [len(p) for p in parts] == sizes
    assert torch.equal(torch.cat(parts), leaf)
    parts[1].sum().backward()
    assert leaf.grad.sum() == sizes[1]


@pytest.mark.parametrize("name", ["split_with_sizes", "unsafe_split_with_sizes"])
def test_splits_that_do_not_cover_a_dimension(name):
    """The op itself refuses them, eager and while a graph is built."""
    words = {(2, 4): r"sum exactly to 7 \(input tensor's size at dimension 0\), but got "
                     r"split_sizes=\[2, 4\]",
             (9, -2): r"have only non-negative entries, but got split_sizes=\[9, -2\]"}  # fmt: skip
    builder = Builder()
    with builder.building():
        symbol = builder.input(TensorType(torch.float32, (7,)))
    for sizes, match in words.items():
        with pytest.raises(RuntimeError, match=match):
            getattr(torch, name)(torch.zeros(7), sizes)
        with pytest.raises(RuntimeError, match=match), builder.building():
            TABLE[name](symbol, split_sizes=sizes, dim=0)


def test_splits_of_a_size_that_changes():
    compiled = torch.compile(lambda x: x.split([2, x.shape[0] - 2])[1] * 2, dynamic=True)
    for size in (7, 9, 5, 2):
        assert compiled(torch.arange(float(size))).tolist() == [2.0 * k for k in range(2, size)]
    with pytest.raises(RuntimeError, match="sum exactly to 5"):
        torch.compile(lambda x: x.split([2, 2]), dynamic=True)(torch.zeros(5))


def test_joins():
    a, b = torch.arange(3.0), torch.arange(3.0) + 10
    assert torch.hstack((a, b)).shape == (6,) and torch.vstack((a, b)).shape == (2, 3)
    assert torch.dstack((a, b)).shape == (1, 3, 2) and torch.column_stack((a, b)).shape == (3, 2)
    assert torch.block_diag(a, b[:, None]).shape == (4, 4)
    assert torch.cartesian_prod(a[:2], b[:2]).tolist() == [[0, 10], [0, 11], [1, 10], [1, 11]]
    assert torch.combinations(a).tolist() == [[0, 1], [0, 2], [1, 2]]
    rows, columns = torch.meshgrid(a, b[:2], indexing="xy")
    assert rows.shape == (2, 3) and columns[1].tolist() == [11.0] * 3
    assert torch.stack((torch.ones(2, 3).t(), torch.ones(3, 2))).is_contiguous()


def test_rearranging():
    m = torch.arange(6.0).reshape(2, 3)
    assert m.rot90().tolist() == np.rot90(m.numpy()).tolist()
    assert m.roll(1).tolist() == np.roll(m.numpy(), 1).tolist()
    assert m.repeat_interleave(torch.tensor([2, 0]), 0).tolist() == [[0, 1, 2], [0, 1, 2]]
    assert m.tile(2).shape == (2, 6) and m.sum_to_size(3).tolist() == [3.0, 5.0, 7.0]
    assert m.tril(-1).tolist() == [[0, 0, 0], [3, 0, 0]] and m[:, :2].trace() == 4.0
    assert torch.tensor([1, 2]).diag(1).tolist() == [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    assert torch.tril_indices(2, 2).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert torch.zeros(5, 2).fill_diagonal_(1, wrap=True)[:, 0].tolist() == [1, 0, 0, 1, 0]


def test_differences_and_integrals():
    y = torch.tensor([0.0, 1.0, 4.0, 9.0])
    assert y.diff().tolist() == [1.0, 3.0, 5.0] and y.diff(n=2).tolist() == [2.0, 2.0]
    assert torch.gradient(y, edge_order=2)[0].tolist() == [0.0, 2.0, 4.0, 6.0]
    assert torch.trapezoid(y) == 9.5
    assert torch.cumulative_trapezoid(y, dx=2).tolist() == [1.0, 6.0, 19.0]
    assert torch.vander(y[:3], 3).tolist() == [[0, 0, 1], [1, 1, 1], [16, 4, 1]]
    assert np.allclose(torch.stack((y, -y)).cov().numpy(), np.cov([y.tolist(), (-y).tolist()]))


def test_names_of_other_layouts_say_why():
    y = torch.ones(2)
    assert not y.is_cuda and not y.is_sparse and y.get_device() == -1 and y.to_dense() is y
    for name, error in (("coalesce", RuntimeError), ("q_scale", NotImplementedError),
                        ("to_sparse_csr", RuntimeError), ("pin_memory", RuntimeError)):  # fmt: skip
        with pytest.raises(error):
            getattr(y, name)()
    assert not hasattr(y, "rename")
