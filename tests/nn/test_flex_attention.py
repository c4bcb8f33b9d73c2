"""`torch.nn.attention.flex_attention` and `bias`: torch 2.13's answers, and gradients."""

import pytest
import wengert as torch
import wengert.nn.functional as F
from wengert.nn.attention.bias import causal_lower_right, causal_upper_left
from wengert.nn.attention.flex_attention import (
    AuxRequest,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)

SLOPES = torch.exp2(-torch.arange(4.0))
DOCUMENT = torch.tensor([0] * 10 + [1] * 15 + [2] * 12)


def causal(b, h, i, j):
    return i >= j


def alibi(score, b, h, i, j):
    return score + SLOPES[h] * (j - i)


def same_document(b, h, i, j):
    return DOCUMENT[i] == DOCUMENT[j]


def qkv(dtype=torch.float32, heads=4, grad=False):
    torch.manual_seed(0)
    shapes = ((2, 4, 37, 8), (2, heads, 37, 8), (2, heads, 37, 8))
    return [torch.randn(s, dtype=dtype, requires_grad=grad) for s in shapes]


def bias_of(score_mod=None, mask_mod=None):
    """The same as a tensor that is added."""
    b, h, i, j = (torch.arange(n).reshape([-1 if k == d else 1 for k in range(4)])
                  for d, n in enumerate((2, 4, 37, 37)))  # fmt: skip
    bias = torch.zeros(2, 4, 37, 37)
    if score_mod is not None:
        bias = score_mod(bias, b, h, i, j)
    if mask_mod is not None:
        bias = bias.masked_fill(~mask_mod(b, h, i, j), -float("inf"))
    return bias


MASKS = [None, causal, and_masks(causal, same_document),
         or_masks(causal, lambda b, h, i, j: (b == 1) & (h > 2))]  # fmt: skip


@pytest.mark.parametrize("score_mod", [None, alibi])
@pytest.mark.parametrize("mask_mod", MASKS)
def test_attention_and_its_gradients(score_mod, mask_mod):
    mask = None if mask_mod is None else create_block_mask(mask_mod, 2, 4, 37, 37, BLOCK_SIZE=16)
    found, expected = qkv(grad=True), qkv(grad=True)
    reference = F.scaled_dot_product_attention(*expected, bias_of(score_mod, mask_mod))
    reference.pow(2).sum().backward()
    for run in (flex_attention, torch.compile(flex_attention)):
        for _ in range(2):
            for x in found:
                x.grad = None
            out = run(*found, score_mod=score_mod, block_mask=mask)
            out.pow(2).sum().backward()
            torch.testing.assert_close(out, reference, atol=1e-5, rtol=1e-4)
            for x, y in zip(found, expected):
                torch.testing.assert_close(x.grad, y.grad, atol=1e-4, rtol=1e-3)


def test_learned_biases_get_gradients():
    q, k, v = qkv(torch.float64)
    table = torch.randn(4, 73, dtype=torch.float64, requires_grad=True)
    flex_attention(q, k, v, lambda s, b, h, i, j: s + table[h, i - j + 36]).sum().backward()
    reach = torch.arange(37)[:, None] - torch.arange(37) + 36
    other = table.detach().clone().requires_grad_()
    F.scaled_dot_product_attention(q, k, v, other[:, reach]).sum().backward()
    torch.testing.assert_close(table.grad, other.grad)


def test_rows_that_see_nothing():
    mask = create_block_mask(lambda b, h, i, j: (i > 3) & (j >= 0), None, None, 37, 37)
    q, k, v = qkv(grad=True)
    request = AuxRequest(lse=True, max_scores=True)
    out, aux = flex_attention(q, k, v, block_mask=mask, return_aux=request)
    assert out[:, :, :4].abs().max() == 0 and aux.lse[0, 0, 3] == -float("inf")
    scores = (q @ k.mT) / 8**0.5
    torch.testing.assert_close(aux.lse[:, :, 4:], scores.logsumexp(-1)[:, :, 4:])
    torch.testing.assert_close(aux.max_scores[:, :, 4:], scores.amax(-1)[:, :, 4:])
    out.sum().backward()
    assert q.grad.isfinite().all() and q.grad[:, :, :4].abs().max() == 0
    with pytest.warns(FutureWarning, match="return_lse is deprecated"):
        assert torch.equal(flex_attention(q, k, v, block_mask=mask, return_lse=True)[1], aux.lse)


def test_shared_heads_and_halves():
    q, k, v = qkv(heads=2)
    found = flex_attention(q, k, v, enable_gqa=True, scale=0.3)
    expected = F.scaled_dot_product_attention(q, k, v, scale=0.3, enable_gqa=True)
    torch.testing.assert_close(found, expected)
    q, k, v = qkv(torch.bfloat16)
    assert flex_attention(q, k, v).dtype is torch.bfloat16


def test_block_masks():
    mask = create_block_mask(causal, None, None, 37, 37, BLOCK_SIZE=16)
    assert mask.shape == (1, 1, 37, 37) and mask.BLOCK_SIZE == (16, 16)
    assert mask.kv_num_blocks.tolist() == [[[1, 1, 3]]]  # the last row of blocks is cut
    assert mask.full_kv_num_blocks.tolist() == [[[0, 1, 0]]]
    assert mask.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]]
    assert mask.q_num_blocks.tolist() == [[[2, 2, 1]]]
    assert str(mask) == (
        "BlockMask(shape=(1, 1, 37, 37), sparsity=-12.20%, \n(0, 0)\n██    \n████  \n██████\n)"
    )
    assert "    mask_mod=causal\n)" in repr(mask)
    assert "    q_indices=torch.Size([1, 1, 3, 3]),\n" in repr(mask)
    assert mask.to_string(grid_size=2) == "(0, 0)\n░░  \n████\n"
    assert mask._adjust(20, 20).shape == (1, 1, 20, 20)
    assert mask[0, 0].kv_indices.shape == (1, 1, 3, 3) and mask[:, :, -1].shape == mask.shape
    assert mask.numel() == 37 * 37 and mask.to("cpu").mask_mod is causal
    joined = create_block_mask(causal, 2, 1, 32, 32, BLOCK_SIZE=16, separate_full_blocks=False)
    assert joined.full_kv_num_blocks is None and joined.sparsity() == 25
    scored = create_mask(lambda s, b, h, i, j: torch.where(i >= j, s, -float("inf")), 1, 1, 4, 5)
    assert torch.equal(scored, create_mask(causal, None, None, 4, 5))
    assert create_mask(noop_mask, 1, 2, 3, 4).all()


def errors():
    q, k, v = qkv()
    mask = create_block_mask(causal, None, None, 37, 37)
    return [
        (lambda: flex_attention(q, k[:, :2], v[:, :2]), ValueError, "Hq=4 and Hkv=2"),
        (lambda: flex_attention(q, k[:, :3], v[:, :3], enable_gqa=True), ValueError, "multiple"),
        (lambda: flex_attention(q[:, :, :9], k, v, block_mask=mask), ValueError, "a larger length"),
        (lambda: flex_attention(q, k, v, block_mask=mask._adjust(20, 20)), ValueError, "a smaller"),
        (lambda: flex_attention(q, k[..., :4], v), ValueError, "E=8 and E=4"),
        (lambda: flex_attention(q, k, v, block_mask=mask[0]), RuntimeError, "a sliced BlockMask"),
        (lambda: flex_attention(q[0], k[0], v[0]), NotImplementedError, "must be 4D tensors"),
        (lambda: flex_attention(q[:1], k, v), ValueError, "Bq=1, and Bkv=2"),
        (lambda: create_block_mask(alibi, 1, 1, 4, 4), AssertionError, "requires a mask_mod"),
        (lambda: create_mask(lambda x: x, 1, 1, 4, 4), AssertionError, "Expected 4 or 5"),
        (lambda: or_masks(causal, 3), RuntimeError, "should be callable mask_mods"),
        (lambda: flex_attention(q, k, v, return_lse=True, return_aux=AuxRequest()), ValueError,
         "Cannot specify both"),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(12))
def test_what_is_wrong_is_said(number):
    call, kind, words = errors()[number]
    with pytest.raises(kind, match=words):
        call()


def test_causal_biases():
    q, k, v = qkv()
    q = q[:, :, :5]
    upper, lower = causal_upper_left(5, 37), causal_lower_right(5, 37)
    attention = F.scaled_dot_product_attention
    assert torch.equal(attention(q, k, v, upper), attention(q, k, v, torch.ones(5, 37).tril() > 0))
    mask = torch.ones(5, 37).tril(32) > 0
    assert torch.equal(attention(q, k, v, attn_mask=lower), attention(q, k, v, mask))
    assert repr(causal_lower_right(1, 2)) == "tensor([[True, True]])"
    with pytest.warns(UserWarning, match="will produce NaNs"):
        causal_lower_right(3, 2)
    with pytest.raises(AssertionError, match="only supports 2D tensors"):
        causal_upper_left(3)
