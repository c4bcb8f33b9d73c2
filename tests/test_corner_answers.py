"""Answers of torch 2.13 at the corners of its operator samples."""

import pytest
import wengert as torch
import wengert.nn.functional as F


def test_factors_of_bytes_wrap():
    x = torch.tensor([1, 2, 250], dtype=torch.uint8)
    for f in (lambda x: torch.add(x, x, alpha=-3), lambda x: torch.sub(x, x, alpha=-3)):
        expected = f(x.to(torch.int64)).to(torch.uint8)
        compiled = torch.compile(f)
        for found in (f(x), compiled(x), compiled(x)):
            assert found.dtype is torch.uint8 and torch.equal(found, expected)


def test_ends_of_ranges_of_integers_are_integers():
    assert torch.linspace(-4.9, 4.9, 5, dtype=torch.int32).tolist() == [-4, -2, 0, 2, 4]
    assert torch.linspace(torch.tensor(4.3), 0, 50, dtype=torch.int64)[:3].tolist() == [4, 3, 3]
    assert torch.logspace(4.3, 1.2, 4, 5.0, dtype=torch.int64).tolist() == [625, 125, 25, 5]


def test_any_and_all_over_no_dims():
    x = torch.tensor([5, 0], dtype=torch.uint8)
    assert torch.all(x, dim=[]).tolist() == torch.any(x, dim=()).tolist() == [1, 0]
    assert torch.any(x, dim=[]).dtype is torch.uint8


def test_sum_to_size_of_a_number_widens():
    assert torch.tensor(True).sum_to_size(()).dtype is torch.int64
    assert torch.tensor([True]).sum_to_size((1,)).dtype is torch.bool


def test_magnitudes_do_not_replace_complex_numbers():
    z = torch.tensor([3 + 4j])
    with pytest.raises(RuntimeError, match="In-place abs is not supported for complex tensors"):
        z.abs_()
    assert z.tolist() == [3 + 4j]
    assert torch.tensor([-2.0]).abs_().tolist() == [2]


def test_an_empty_index_may_be_of_any_dtype():
    for dtype in (torch.uint8, torch.float32, torch.bool):
        index = torch.empty(0, dtype=dtype)
        assert torch.gather(torch.ones(5), 0, index).shape == (0,)
        assert torch.scatter(torch.ones(5), 0, index, torch.empty(0)).tolist() == [1] * 5
    with pytest.raises(RuntimeError, match="Expected dtype int32/int64 for index"):
        torch.gather(torch.ones(5), 0, torch.zeros(1))


def test_fractional_pools_without_a_batch_use_the_first_samples():
    x, samples = torch.rand(4, 5, 5, 5), torch.rand(2, 4, 3)
    pool = torch.nn.FractionalMaxPool3d(2, output_size=2, _random_samples=samples)
    batched = torch.nn.FractionalMaxPool3d(2, output_size=2, _random_samples=samples[:1])
    assert torch.equal(pool(x), batched(x[None])[0])


def test_methods_that_are_functions():
    x = torch.ones(2)
    assert torch.fill_(x, 3) is x and x.tolist() == [3, 3]
    assert torch.zero_(x).tolist() == [0, 0]
    assert torch.resize_as_(x, torch.ones(1)).shape == (1,)
    assert not torch.detach_(torch.ones(1, requires_grad=True) * 2).requires_grad
    assert torch.as_strided_(torch.arange(4.0), (2,), (2,)).tolist() == [0, 2]


def test_linear_cross_entropy_over_positions():
    torch.manual_seed(0)
    loss = torch.nn.LinearCrossEntropyLoss(5, 10, out_features=(4, 3), bias=True)
    x, target = torch.randn(2, 5, requires_grad=True), torch.randint(0, 10, (2, 4, 3))
    logits = F.linear(x, loss.linear.weight, loss.linear.bias).reshape(2, 10, 4, 3)
    assert torch.equal(loss(x, target), F.cross_entropy(logits, target))
    loss(x, target).backward()
    assert x.grad.shape == (2, 5) and loss.linear.weight.grad.shape == (120, 5)
    assert repr(loss).startswith(
        "LinearCrossEntropyLoss(\n  in_features=5, num_classes=10, out_features=(4, 3), bias=True, "
    )
    weight = torch.randn(10, 5)
    chunked = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=1)
    found = F.linear_cross_entropy(x, weight, target[:, 0, 0], options=chunked)
    assert torch.equal(found, F.cross_entropy(F.linear(x, weight), target[:, 0, 0]))


@pytest.mark.parametrize(("call", "words"), [
    (lambda x, w: F.linear_cross_entropy(x[None], w, x), "expected input with dimensionality 1 or"),
    (lambda x, w: F.linear_cross_entropy(x, w[0], x), "linear_weight with dimensionality at least"),
    (lambda x, w: F.linear_cross_entropy(x, w[:, :2], x), r"\(in_features\), got 3 and 2"),
    (lambda x, w: F.linear_cross_entropy(x, w, x, linear_bias=x), r"expected linear_bias shape"),
    (lambda x, w: F.linear_cross_entropy(x[0], w[None], x), "requires batched input"),
    (lambda x, w: F.linear_cross_entropy(x, w, x @ w.T, ignore_index=1), "contains probabilities"),
])  # fmt: skip
def test_linear_cross_entropy_says_what_is_wrong(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(torch.ones(2, 3), torch.ones(4, 3))


def test_options_are_checked():
    for wrong in ({"acc_policy": "x"}, {"chunking_method": "aspect_ratio:0"},
                  {"batch_chunk_size": 0}, {"acc_dtype": torch.int64}):  # fmt: skip
        with pytest.raises(ValueError):
            torch.nn.LinearCrossEntropyOptions(**wrong)


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
def test_betas_are_of_one_kind(kind):
    parameter = torch.nn.Parameter(torch.ones(1))
    for betas in ((0, 0.9), (torch.tensor(0.5), 0.9)):
        with pytest.raises(ValueError, match="betas must be either both floats or both Tensors"):
            kind([parameter], betas=betas)
    tensors = (torch.tensor(0.5), torch.tensor(0.9))
    with pytest.raises(ValueError, match=r"betas\[0\] as a Tensor is not supported for"):
        kind([parameter], betas=tensors, foreach=True)


def test_where_torch_defines_names():
    from wengert.amp.autocast_mode import autocast
    from wengert.amp.grad_scaler import GradScaler

    assert GradScaler is torch.amp.GradScaler and autocast is torch.amp.autocast


def test_convolutions_say_what_is_wrong():
    x = torch.ones(1, 1, 4, 4)
    for call in (F.conv2d, F.conv_transpose2d):
        with pytest.raises(RuntimeError, match=r"a list of 1 values to match the convolution dim"):
            call(x, torch.ones(1, 1, 2))
        with pytest.raises(RuntimeError, match="dilation should be greater than zero"):
            call(x, torch.ones(1, 1, 2, 2), dilation=0)
    with pytest.raises(RuntimeError, match=r"list of 2 values .*but got stride=\[1, 1, 1\]"):
        F.conv3d(torch.ones(1, 1, 3, 5, 5), torch.ones(1, 1, 4, 3))


@pytest.mark.parametrize("kind, name", [(float, "float64"), (int, "int64"), (bool, "bool"),
                                        (complex, "complex128")])  # fmt: skip
def test_pythons_classes_stand_for_dtypes(kind, name):
    dtype = getattr(torch, name)
    assert torch.ones(2).to(kind).dtype is torch.ones(2).to("cpu", kind).dtype is dtype
    assert torch.zeros(2, dtype=kind).dtype is dtype
    if kind is float:
        assert torch.nn.Linear(1, 1).to(kind).weight.dtype is dtype


def test_new_memory_in_a_format():
    made = torch.empty(2, 3, 4, 5, memory_format=torch.channels_last, requires_grad=True)
    assert made.stride() == (60, 1, 15, 3) and made.is_leaf
    assert torch.empty(2, 3, memory_format=torch.contiguous_format).stride() == (3, 1)


def test_limits_are_printed_in_six_digits():
    assert repr(torch.iinfo(torch.int64)) == "iinfo(min=-9.22337e+18, max=9.22337e+18, dtype=int64)"
    assert repr(torch.iinfo(torch.int16)) == "iinfo(min=-32768, max=32767, dtype=int16)"


@pytest.mark.parametrize("function, dtype", [
    (lambda x, h: F.scaled_dot_product_attention(x[None], x[None], x[None]), "bfloat16"),
    (lambda x, h: torch.bmm(x[None], h[None]), "bfloat16"),
    (lambda x, h: F.binary_cross_entropy(h.sigmoid(), x), "float32"),
    (lambda x, h: torch.nn.PReLU()(h), "bfloat16"),
    (lambda x, h: torch.cdist(h, h), "float32"),
    (lambda x, h: h.prod(), "float32"),
    (lambda x, h: torch.fft.fft(h), "complex64"),
])  # fmt: skip
def test_autocast_casts_what_torch_casts(function, dtype):
    x = torch.ones(2, 2)
    with torch.autocast("cpu"):
        assert function(x, x.bfloat16()).dtype is getattr(torch, dtype)


def test_classes_of_parameters_are_printed_inside_their_kind():
    class Scale(torch.nn.Parameter):
        pass

    printed = "Parameter containing:\nParameter(Scale([1.], requires_grad=True))"
    assert repr(Scale(torch.ones(1))) == printed


def test_dual_tensors_ask_for_no_history_when_their_level_is_left():
    from wengert.autograd import forward_ad

    x, leaf = torch.ones(2), torch.ones(2, requires_grad=True)
    with forward_ad.dual_level():
        dual, of_leaf = forward_ad.make_dual(x, x), forward_ad.make_dual(leaf, x)
    assert not dual.requires_grad and of_leaf.requires_grad and leaf.requires_grad
    assert forward_ad.unpack_dual(dual).tangent is None


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("with_b", [True, False])
def test_some_eigenpairs(largest, with_b):
    torch.manual_seed(0)
    root = torch.randn(2, 9, 9, dtype=torch.float64)
    A = root @ root.mT
    B = torch.diag(torch.arange(1.0, 10.0, dtype=torch.float64)) if with_b else None
    E, X = torch.lobpcg(A, k=2, B=B, largest=largest)
    assert E.shape == (2, 2) and X.shape == (2, 9, 2)
    right = X if B is None else B @ X
    torch.testing.assert_close(A @ X, right * E[:, None])
    every = torch.linalg.eigvals(A if B is None else torch.linalg.solve(B, A)).real.sort(-1)[0]
    torch.testing.assert_close(E, every.flip(-1)[:, :2] if largest else every[:, :2])


def test_eigenpairs_from_a_start_and_of_a_sparse_matrix():
    A = torch.diag(torch.arange(1.0, 13.0))
    assert torch.lobpcg(A, X=torch.ones(12, 2))[0].tolist() == [12, 11]
    assert torch.lobpcg(A.to_sparse())[0].tolist() == [12]
