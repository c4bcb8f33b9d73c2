"""multi_head_attention_forward, in the steps of torch's: project, mask, attend, project back."""

from __future__ import annotations

import math
from typing import Any

from ..arguments import warn
from ..types import bool_
from ..value import public
from .joining import cat
from .nn_attention import scaled_dot_product_attention
from .nn_dropout import dropout
from .nn_pad import pad
from .products import linear


def _check_ranks(query: Any, key: Any, value: Any, padding: Any, mask: Any, heads: int) -> Any:
    """Is the query batched? AssertionError where the ranks do not belong together."""
    if query.ndim not in (2, 3):
        raise AssertionError("query should be unbatched 2D or batched 3D tensor but received "
                             f"{query.ndim}-D query tensor")  # fmt: skip
    n = query.ndim
    start = f"For {'batched (3-D)' if n == 3 else 'unbatched (2-D)'} `query`, expected "
    if key.ndim != n or value.ndim != n:
        raise AssertionError(start + f"`key` and `value` to be {n}-D but found {key.ndim}-D and "
                             f"{value.ndim}-D tensors respectively")  # fmt: skip
    if padding is not None and padding.ndim != n - 1:
        raise AssertionError(start + f"`key_padding_mask` to be `None` or {n - 1}-D but found "
                             f"{padding.ndim}-D tensor instead")  # fmt: skip
    if mask is not None and mask.ndim not in (2, 3):
        raise AssertionError(start + f"`attn_mask` to be `None`, 2-D or 3-D but found {mask.ndim}-D"
                             " tensor instead")  # fmt: skip
    if n == 2 and mask is not None and mask.ndim == 3:
        wanted = (heads, query.shape[0], key.shape[0])
        if tuple(mask.shape) != wanted:
            raise AssertionError(f"Expected `attn_mask` shape to be {wanted} but got {mask.shape}")
    return n == 3


def _additive(mask: Any, name: str, like: Any, other: Any = None) -> Any:
    """A mask as something to add: -inf where a bool mask is true."""
    if mask is None:
        return None
    if mask.dtype is not bool_ and not mask.dtype.is_floating_point:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and mask.dtype is not other.dtype:
        warn(f"Support for mismatched {name} and attn_mask is deprecated. Use same type "
                      "for both instead.")  # fmt: skip
    if mask.dtype is not bool_:
        return mask
    return like.new_zeros(tuple(mask.shape)).masked_fill(mask, -math.inf)


def _unpack(projected: Any, count: int, size: int) -> tuple[Any, ...]:
    """One wide projection as `count` contiguous parts."""
    parts = projected.unflatten(-1, (count, size)).unsqueeze(0).transpose(0, -2)
    parts = parts.squeeze(-2).contiguous()
    return tuple(parts[k] for k in range(count))


def _pieces(value: Any, sizes: list[int]) -> Any:
    return (None,) * len(sizes) if value is None else value.split(sizes)


def _project_packed(query: Any, key: Any, value: Any, weight: Any, bias: Any) -> tuple[Any, ...]:
    size = query.shape[-1]
    if key is value and query is key:
        return _unpack(linear(query, weight, bias), 3, size)
    if key is value:
        weights, biases = _pieces(weight, [size, 2 * size]), _pieces(bias, [size, 2 * size])
        first = linear(query, weights[0], biases[0])
        return (first, *_unpack(linear(key, weights[1], biases[1]), 2, size))
    weights, biases = weight.chunk(3), (None,) * 3 if bias is None else bias.chunk(3)
    return tuple(linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))


def _project_apart(query: Any, key: Any, value: Any, weights: Any, bias: Any) -> tuple[Any, ...]:
    size = query.shape[-1]
    words = ("query", "key", "value")
    for letter, word, x, weight in zip("qkv", words, (query, key, value), weights):
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is True but {letter}_proj_weight is "
                                 "None")  # fmt: skip
        if tuple(weight.shape) != (size, x.shape[-1]):
            raise AssertionError(f"expecting {word} weights shape of {(size, x.shape[-1])}, but "
                                 f"got {weight.shape}")  # fmt: skip
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return tuple(linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))


def _mask_per_head(mask: Any, batch: int, heads: int, rows: int, columns: int) -> Any:
    if mask is None:
        return None
    wanted = (rows, columns) if mask.ndim == 2 else (batch * heads, rows, columns)
    if tuple(mask.shape) != wanted:
        raise RuntimeError(f"The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should "
                           f"be {wanted}.")  # fmt: skip
    return mask.unsqueeze(0) if mask.ndim == 2 else mask


def _widened(*masks: Any) -> list[Any]:
    """Masks with room for one more key, which all may see."""
    return [None if mask is None else pad(mask, (0, 1)) for mask in masks]


def _heads(value: Any, static: Any, name: str, batch_heads: int, size: int) -> Any:
    """(length, batch, embedding) as (batch * heads, length, head)."""
    if static is None:
        return value.view((value.shape[0], batch_heads, size)).transpose(0, 1)
    for d, wanted in ((0, batch_heads), (2, size)):
        if static.shape[d] != wanted:
            raise AssertionError(f"expecting {name}.size({d}) of {wanted}, but got "
                                 f"{static.shape[d]}")  # fmt: skip
    return static


def _merge_padding(mask: Any, padding: Any, batch: int, heads: int, columns: int) -> Any:
    if padding is None:
        return mask
    for d, wanted in ((0, batch), (1, columns)):
        if padding.shape[d] != wanted:
            raise AssertionError(f"Expected key_padded_mask.shape[{d}] to be {wanted}, but got "
                                 f"{padding.shape[d]}")  # fmt: skip
    wide = padding.view((batch, 1, 1, columns)).expand((-1, heads, -1, -1))
    wide = wide.reshape((batch * heads, 1, columns))
    return wide if mask is None else mask + wide


def _attend_with_weights(q: Any, k: Any, v: Any, mask: Any, dropout_p: float) -> tuple[Any, Any]:
    scaled = q * math.sqrt(1.0 / q.shape[-1])
    if mask is None:
        weights = scaled.bmm(k.transpose(-2, -1))
    else:
        weights = mask.baddbmm(scaled, k.transpose(-2, -1))
    weights = weights.softmax(-1)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p)
    return weights.bmm(v), weights


def _attend(
    q: Any, k: Any, v: Any, mask: Any, dropout_p: float, is_causal: bool, batch: int, heads: int
) -> Any:
    """Attention without its weights, through the fused function: (rows, batch, heads, head)."""
    rows, columns, size = q.shape[1], k.shape[1], q.shape[2]
    if mask is not None:
        if mask.shape[0] == 1 and mask.ndim == 3:
            mask = mask.unsqueeze(0)
        else:
            mask = mask.view((batch, heads, -1, columns))
    q = q.view((batch, heads, rows, size))
    k, v = k.view((batch, heads, columns, size)), v.view((batch, heads, columns, size))
    return scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal).permute(2, 0, 1, 3)


def _check_sizes(query: Any, key: Any, value: Any, size: int, heads: int, apart: bool) -> None:
    if query.shape[2] != size:
        raise AssertionError(f"was expecting embedding dimension of {size}, but got "
                             f"{query.shape[2]}")  # fmt: skip
    if size // heads * heads != size:
        raise AssertionError(f"embed_dim {size} not divisible by num_heads {heads}")
    if apart and key.shape[:2] != value.shape[:2]:
        raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's "
                             f"{value.shape[:2]}")  # fmt: skip
    if not apart and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


def _masks(query: Any, padding: Any, mask: Any, need_weights: bool, is_causal: bool) -> Any:
    """Both masks as additive ones, and whether the causal hint may be used in place of one."""
    padding = _additive(padding, "key_padding_mask", query, mask)
    if is_causal and mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint. You may use the "
                           "Transformer module method `generate_square_subsequent_mask` to create "
                           "this mask.")  # fmt: skip
    if is_causal and padding is None and not need_weights:
        return padding, None, True
    return padding, _additive(mask, "attn_mask", query), is_causal and padding is None


@public("multi_head_attention_forward", spaces="nn.functional", method=False)
def multi_head_attention_forward(
    query: Any, key: Any, value: Any, embed_dim_to_check: int, num_heads: int, in_proj_weight: Any,
    in_proj_bias: Any, bias_k: Any, bias_v: Any, add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Any, out_proj_bias: Any, training: bool = True, key_padding_mask: Any = None,
    need_weights: bool = True, attn_mask: Any = None, use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None, k_proj_weight: Any = None, v_proj_weight: Any = None,
    static_k: Any = None, static_v: Any = None, average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """multi_head_attention_forward(query, key, value, embed_dim_to_check, num_heads, ...): the
    output and, if wanted, the attention weights."""
    batched = _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    rows, batch, size = query.shape
    padding, mask, is_causal = _masks(query, key_padding_mask, attn_mask, need_weights, is_causal)
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    if use_separate_proj_weight:
        apart = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _project_apart(query, key, value, apart, in_proj_bias)
    else:
        q, k, v = _project_packed(query, key, value, in_proj_weight, in_proj_bias)
    mask = _mask_per_head(mask, batch, num_heads, rows, key.shape[0])
    extra = (bias_k, bias_v, static_k, static_v, add_zero_attn)
    q, k, v, mask, padding = _prepare(q, k, v, mask, padding, extra, batch, num_heads)
    mask = _merge_padding(mask, padding, batch, num_heads, k.shape[1])
    dropout_p = dropout_p if training else 0.0
    weights: Any = None
    if need_weights:
        result, weights = _attend_with_weights(q, k, v, mask, dropout_p)
        result = result.transpose(0, 1)
        weights = weights.view((batch, num_heads, rows, k.shape[1]))
        weights = weights.mean(1) if average_attn_weights else weights
        weights = weights if batched else weights.squeeze(0)
    else:
        result = _attend(q, k, v, mask, dropout_p, is_causal, batch, num_heads)
    result = linear(result.reshape((rows * batch, size)), out_proj_weight, out_proj_bias)
    result = result.view((rows, batch, result.shape[1]))
    return (result if batched else result.squeeze(1)), weights


def _prepare(
    q: Any, k: Any, v: Any, mask: Any, padding: Any, extra: Any, batch: int, heads: int
) -> tuple[Any, ...]:
    """Adds the learnt and the zero key, and splits the heads."""
    bias_k, bias_v, static_k, static_v, add_zero = extra
    if (bias_k is None) != (bias_v is None):
        raise AssertionError("bias_k and bias_v must be given together")
    if bias_k is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        k = cat(k, bias_k.repeat((1, batch, 1)), dim=0)
        v = cat(v, bias_v.repeat((1, batch, 1)), dim=0)
        mask, padding = _widened(mask, padding)
    size, count = q.shape[2] // heads, batch * heads
    q = q.view((q.shape[0], count, size)).transpose(0, 1)
    k = _heads(k, static_k, "static_k", count, size)
    v = _heads(v, static_v, "static_v", count, size)
    if add_zero:
        k, v = (cat(x, x.new_zeros((count, 1, size)), dim=1) for x in (k, v))
        mask, padding = _widened(mask, padding)
    return q, k, v, mask, padding
