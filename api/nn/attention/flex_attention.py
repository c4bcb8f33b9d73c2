"""`torch.nn.attention.flex_attention`: attention whose scores a function of the user's changes."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

from ... import all as all_
from ... import arange, float32, float64, full, int8, isneginf, softmax, vmap, where, zeros
from ... import bool as bool_
from ...tracer.tensor import Tensor
from ..functional import pad
from .block_mask import DEFAULT_SIZE, BlockMask, noop_mask, sliced_mask, to_ordered

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks",
           "create_block_mask", "create_mask", "flex_attention", "noop_mask",
           "or_masks"]  # fmt: skip


class FlexKernelOptions(TypedDict, total=False):
    """Options of torch's kernels; here they change nothing."""

    BACKEND: str


class AuxRequest(NamedTuple):
    """Which values beside the output are wanted."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The values that were wanted, else None."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


# --- functions of places -------------------------------------------------------------------------


def _takes(function: Any) -> int:
    """How many arguments a mod takes: 5 with the score, 4 without."""
    required = sum(parameter.default is inspect.Parameter.empty
                   for parameter in inspect.signature(function).parameters.values())  # fmt: skip
    if required not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {required}")
    return required


def over_places(function: Callable[..., Tensor], scored: bool) -> Callable[..., Tensor]:
    """A mod of one place as a function of all batches, heads, queries and keys."""
    score = (0,) if scored else ()
    for position in (3, 2, 1, 0):
        dims = tuple(0 if k == position else None for k in range(4))
        function = vmap(function, in_dims=(*score, *dims))
    return function


def or_masks(*mask_mods: Any) -> Callable[..., Tensor]:
    """or_masks(*mask_mods): shows what one of them shows."""
    return _joined(mask_mods, "or_mask", False, lambda a, b: a | b)


def and_masks(*mask_mods: Any) -> Callable[..., Tensor]:
    """and_masks(*mask_mods): shows what all of them show."""
    return _joined(mask_mods, "and_mask", True, lambda a, b: a & b)


def _joined(mask_mods: Any, name: str, start: bool, join: Any) -> Callable[..., Tensor]:
    if not all(callable(mod) for mod in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_full((), start, dtype=bool_)
        for mod in mask_mods:
            result = join(result, mod(b, h, q_idx, kv_idx))
        return result

    mask.__name__ = mask.__qualname__ = name
    return mask


def create_mask(mod_fn: Any, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
                device: Any = None) -> Tensor:  # fmt: skip
    """create_mask(mod_fn, B, H, Q_LEN, KV_LEN): bool[B, H, Q_LEN, KV_LEN] of a mod."""
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    places = [arange(n, device=device) for n in shape]
    if _takes(mod_fn) == 5:
        return ~isneginf(over_places(mod_fn, True)(zeros(shape), *places))
    return over_places(mod_fn, False)(*places)


def create_block_mask(
    mask_mod: Any, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = DEFAULT_SIZE, _compile: bool = False,
    separate_full_blocks: bool = True,
) -> BlockMask:  # fmt: skip
    """create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN): which blocks a mask leaves something of."""
    if _takes(mask_mod) != 4:
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    mask = pad(mask, (0, -KV_LEN % size[1], 0, -Q_LEN % size[0]))
    b, h, q, kv = mask.shape
    shown = mask.view(b, h, q // size[0], size[0], kv // size[1], size[1]).sum((3, 5))
    is_full = shown == size[0] * size[1] if separate_full_blocks else shown < 0
    lists = to_ordered(((shown > 0) & ~is_full).to(int8))
    if separate_full_blocks:
        lists = (*lists, *to_ordered(is_full.to(int8)))  # type: ignore[assignment]
    return BlockMask.from_kv_blocks(*lists, BLOCK_SIZE=size, mask_mod=mask_mod,
                                    seq_lengths=(Q_LEN, KV_LEN))  # fmt: skip


# --- attention -----------------------------------------------------------------------------------


def _check(query: Tensor, key: Tensor, value: Tensor, mask: Any, enable_gqa: bool) -> None:
    if query.size(-1) != key.size(-1):
        raise ValueError("Expect query and key/value to have the same embedding dimension but got "
                         f"E={query.size(-1)} and E={key.size(-1)}.")  # fmt: skip
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    heads, shared = query.size(1), key.size(1)
    if not enable_gqa and heads != shared:
        raise ValueError("Expect query and key/value to have the same number of heads but got "
                         f"Hq={heads} and Hkv={shared}. Try setting enable_gqa=True for "
                         "GQA.")  # fmt: skip
    if heads % shared:
        raise ValueError("Expect number of query heads to be a multiple of kv heads for GQA but "
                         f"got Hq={heads} and Hkv={shared}.")  # fmt: skip
    batch, other = query.size(0), key.size(0)
    if batch != other and mask is None:
        raise ValueError("Expect query and key/value to have the same batch size, or non-none "
                         f"block_mask, but got block_mask=None, Bq={batch}, and "
                         f"Bkv={other}.")  # fmt: skip
    if batch != other and mask.kv_num_blocks.size(0) != batch:
        raise ValueError("Expect query and key/value to have the same batch size, or block_mask "
                         f"and query to have the same batch size, but got Bq={batch}, "
                         f"Bkv={other}, B_block_mask={mask.kv_num_blocks.size(0)}.")  # fmt: skip


def _check_lengths(query: Tensor, key: Tensor, mask: BlockMask) -> None:
    if mask.mask_mod is sliced_mask:
        raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
    lengths = query.size(-2), key.size(-2)
    if lengths == tuple(mask.seq_lengths):
        return
    start = (f"block_mask was created for block_mask.shape={mask.shape} but got q_len={lengths[0]} "
             f"and kv_len={lengths[1]}. ")  # fmt: skip
    if any(n > m for n, m in zip(lengths, mask.seq_lengths)):
        raise ValueError(start + "As the block mask was created for a smaller length than you're "
                         "using it for, you likely need to create a new block mask.")  # fmt: skip
    raise ValueError(start + "As the block mask was created for a larger length than you're using "
                     "it for, you can either 1. create a new block mask with the correct length, "
                     "or 2. 'adjust' the existing block mask to the correct length by calling "
                     "block_mask._adjust(q_len, kv_len). This essentially 'crops' the block mask "
                     "to the upper left corner, which does not work for all "
                     "mask_mods!")  # fmt: skip


def changed_scores(query: Tensor, key: Tensor, score_mod: Any, mask_mod: Any,
                   scale: float) -> Tensor:  # fmt: skip
    """The scores after both mods, -inf where masked."""
    exact = float64 if query.dtype is float64 else float32
    scores = (query.to(exact) @ key.to(exact).transpose(-2, -1)) * scale
    places = [arange(n) for n in scores.shape]
    changed = scores
    if score_mod is not None:
        changed = over_places(score_mod, True)(scores, *places).to(exact)
    if mask_mod is None or mask_mod is noop_mask:
        return changed
    shown = over_places(mask_mod, False)(*places)
    return where(shown, changed, full((), -math.inf, dtype=exact))


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Any = None,
    block_mask: BlockMask | None = None, scale: float | None = None, enable_gqa: bool = False,
    return_lse: bool = False, kernel_options: Any = None, *, return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """flex_attention(query, key, value, score_mod=None, block_mask=None, scale=None): attention
    whose scores are `score_mod(score, batch, head, q_idx, kv_idx)`."""
    _check(query, key, value, block_mask, enable_gqa)
    if block_mask is not None:
        _check_lengths(query, key, block_mask)
    if return_lse and return_aux is not None:
        raise ValueError("Cannot specify both return_lse and return_aux. return_lse is deprecated, "
                         "please use return_aux=AuxRequest(lse=True) instead.")  # fmt: skip
    if return_lse:
        warnings.warn("return_lse is deprecated and will be removed in v2.10. Please use "
                      "return_aux=AuxRequest(lse=True) instead.", FutureWarning,
                      stacklevel=2)  # fmt: skip
    groups = query.size(1) // key.size(1)
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    key, value = (t.expand(query.size(0), *t.shape[1:]) for t in (key, value))
    scale = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    mask_mod = None if block_mask is None else block_mask.mask_mod
    scores = changed_scores(query, key, score_mod, mask_mod, scale)
    hidden = all_(scores == -math.inf, dim=-1, keepdim=True)  # rows that see nothing give zeros
    weights = softmax(scores.masked_fill(hidden, 0.0), -1).masked_fill(hidden, 0.0)
    out = weights.to(query.dtype) @ value.to(query.dtype)
    if not return_lse and return_aux is None:
        return out
    wanted = return_aux or AuxRequest(lse=True)
    lse = scores.logsumexp(-1) if wanted.lse else None
    if return_aux is None:
        return out, lse
    return out, AuxOutput(lse, scores.amax(-1) if wanted.max_scores else None)
