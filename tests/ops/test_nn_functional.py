"""nn.functional gives torch's answers, recorded; and what the records cannot say."""

import json

import numpy as np
import pytest
import wengert as torch
from functional_cases import CASES, RECORDS, answer
from wengert.ir.op import TABLE, Decompose, Loop
from wengert.nn import functional as F

RECORDED = json.loads(RECORDS.read_text())
TOLERANCE = {"float64": 1e-6, "float32": 1e-4, "float16": 3e-2, "bfloat16": 3e-1}


def close(found, expected, tolerance):
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for a, b in zip(found, expected):
            close(a, b, tolerance)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=tolerance, abs=tolerance)
    else:
        assert found == expected


def test_every_case_is_recorded():
    assert list(RECORDED) == CASES


@pytest.mark.parametrize("expression", CASES)
def test_answers_are_torchs(expression):
    found, expected = answer("wengert", expression), dict(RECORDED[expression])
    assert {k: found.get(k) for k in ("error", "types", "nodes")} == {
        k: expected.get(k) for k in ("error", "types", "nodes")
    }
    if "error" in expected:
        return
    tolerance = max((TOLERANCE.get(dtype, 0) for dtype, _ in expected["types"]))
    close(found["values"], expected["values"], max(tolerance, 1e-7))
    if "gradients" in expected:
        for ours, theirs in zip(found["gradients"], expected["gradients"]):
            if theirs != "not implemented":  # we may know more than torch
                close(ours, theirs, tolerance)


def test_all_names_of_torch_are_there():
    names = {c.split("(")[0][2:] for c in CASES if c.startswith("F.")}
    assert len(names) > 100
    assert all(hasattr(F, name) for name in names)


# --- decompositions ------------------------------------------------------------------------------


def decomposed():
    return sorted(name for name, op in TABLE.items()
                  if isinstance(op.lower, Decompose | Loop) and op.samples is not None
                  and op.numpy.__module__.rpartition(".")[2].startswith("nn_"))  # fmt: skip


@pytest.mark.parametrize("name", decomposed())
def test_decomposition_says_what_numpy_does(name):
    op = TABLE[name]
    for inputs, attrs in op.samples(np.random.default_rng(3)):
        inputs = [*inputs, *[None] * (len(op.inputs) - len(inputs))]
        tensors = [None if x is None else torch.tensor(x) for x in inputs]
        results = [f(*tensors, **attrs) for f in (op, op.lower.expand)]
        pairs = zip(*(r if isinstance(r, tuple) else (r,) for r in results))
        for expected, found in pairs:
            assert found.dtype is expected.dtype
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-10, atol=1e-12)


# --- convolution against its definition ----------------------------------------------------------


def correlate(x, weight, stride, padding, dilation, groups):
    """The sum over the kernel, element by element."""
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    spans = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], dilation)]
    out = [(n - k) // s + 1 for n, k, s in zip(x.shape[2:], spans, stride)]
    result = np.zeros((x.shape[0], weight.shape[0], *out))
    per_group = weight.shape[0] // groups
    for o in range(weight.shape[0]):
        first = o // per_group * weight.shape[1]
        part = x[:, first : first + weight.shape[1]]
        for place in np.ndindex(*out):
            window = tuple(slice(i * s, i * s + k, d)
                           for i, s, k, d in zip(place, stride, spans, dilation))  # fmt: skip
            seen = part[(slice(None), slice(None), *window)]
            result[(slice(None), o, *place)] = (seen * weight[o]).reshape(len(x), -1).sum(1)
    return result


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_convolution_is_a_sum_over_windows(dims, groups):
    rng = np.random.default_rng(dims * 10 + groups)
    sizes, kernel = (7, 6, 5)[:dims], (3, 2, 2)[:dims]
    x = rng.standard_normal((2, 4, *sizes))
    weight = rng.standard_normal((4, 4 // groups, *kernel))
    geometry = [(2, 1, 1)[:dims], (1, 2, 0)[:dims], (1, 2, 1)[:dims]]
    found = getattr(F, f"conv{dims}d")(
        torch.tensor(x), torch.tensor(weight), None, *geometry, groups
    )
    np.testing.assert_allclose(found.numpy(), correlate(x, weight, *geometry, groups))


def test_large_batches_are_convolved_in_blocks_to_the_same_end():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((9, 8, 40, 40)).astype(np.float32)
    weight = rng.standard_normal((5, 8, 3, 3)).astype(np.float32)
    whole = F.conv2d(torch.tensor(x), torch.tensor(weight), padding=1)
    parts = [
        F.conv2d(torch.tensor(x[k : k + 1]), torch.tensor(weight), padding=1) for k in range(9)
    ]
    np.testing.assert_allclose(whole.numpy(), torch.cat(parts).numpy(), rtol=1e-4, atol=1e-4)


# --- state, memory, randomness -------------------------------------------------------------------


def test_batch_norm_moves_its_statistics_unseen_by_autograd():
    mean, var = torch.zeros(3), torch.ones(3)
    x = torch.arange(24.0).reshape(4, 3, 2).requires_grad_()
    y = F.batch_norm(x, mean, var, training=True, momentum=0.5)
    flat = np.arange(24.0).reshape(4, 3, 2).transpose(1, 0, 2).reshape(3, -1)
    np.testing.assert_allclose(mean.numpy(), flat.mean(1) * 0.5, rtol=1e-6)
    np.testing.assert_allclose(var.numpy(), 0.5 + flat.var(1, ddof=1) * 0.5, rtol=1e-6)
    assert mean._version == 0
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 0, atol=1e-5)


def test_embedding_renormalises_only_the_rows_it_reads():
    weight = torch.full((4, 2), 3.0)
    F.embedding(torch.tensor([1, 1]), weight, max_norm=1.0)
    norms = np.linalg.norm(weight.numpy(), axis=1)
    np.testing.assert_allclose(norms, [18**0.5, 1, 18**0.5, 18**0.5], rtol=1e-5)


@pytest.mark.parametrize("count", [3, 40])
def test_embedding_gradient_sums_repeated_indices(count):
    weight = torch.zeros(5, 2, dtype=torch.float64, requires_grad=True)
    index = torch.tensor([1] * count + [4])
    F.embedding(index, weight).sum().backward()
    np.testing.assert_array_equal(weight.grad.numpy()[:, 0], [0, count, 0, 0, 1])


def test_dropout_scales_what_it_keeps():
    torch.manual_seed(0)
    x = torch.ones(1000, requires_grad=True)
    y = F.dropout(x, 0.25)
    kept = y.detach().numpy() != 0
    assert 700 < kept.sum() < 800
    np.testing.assert_array_equal(y.detach().numpy()[kept], np.float32(1) / np.float32(0.75))
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())
    assert F.dropout(x, 0.5, training=False) is x


def test_in_place_activations_write_and_count():
    x = torch.tensor([-1.0, 2.0])
    assert F.relu(x, inplace=True) is x
    assert x.tolist() == [0, 2]
    assert x._version == 1
    y = torch.tensor([1.0, -1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        F.elu_(y)


def test_max_pool_never_picks_the_padding():
    x = torch.full((1, 1, 4, 4), -float("inf"))
    values, indices = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    assert bool((values == -float("inf")).all())
    assert indices.tolist() == [[[[0, 1], [4, 5]]]]


def test_max_pool_lets_nan_win():
    x = torch.tensor([[[1.0, float("nan"), 2.0, 3.0]]])
    assert torch.isnan(F.max_pool1d(x, 2)).tolist() == [[[True, False]]]


def test_fully_masked_rows_attend_to_nothing():
    q = torch.ones(1, 1, 2, 4)
    mask = torch.tensor([[True, True], [False, False]])
    result = F.scaled_dot_product_attention(q, q, q, mask)
    assert result[0, 0, 1].tolist() == [0, 0, 0, 0]


def test_interpolation_keeps_infinities_apart():
    x = torch.tensor([[[1.0, float("inf"), 2.0, 3.0]]])
    assert F.interpolate(x, 8).tolist()[0][0] == [1, 1, *[float("inf")] * 2, 2, 2, 3, 3]


def test_ops_without_complex_numbers_refuse_them():
    """And do not drop their imaginary parts."""
    image = torch.ones(1, 2, 6, 6, dtype=torch.complex64)
    with pytest.raises(NotImplementedError, match=r"fractional_max_pool2d.*ComplexFloat"):
        F.fractional_max_pool2d(image, 2, output_size=3)
    with pytest.raises(NotImplementedError, match=r"grid_sampler.*ComplexFloat"):
        F.grid_sample(image, torch.zeros(1, 3, 3, 2, dtype=torch.complex64), align_corners=False)
    with pytest.raises(NotImplementedError, match=r"histogram.*ComplexFloat"):
        torch.histogram(image.flatten(), 4)
