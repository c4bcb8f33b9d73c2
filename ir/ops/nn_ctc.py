"""ctc_loss: the forward and backward recursions over alignments, for the whole batch at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bind import notify
from ..op import define
from ..types import TensorType, int64, type_word
from ..value import Value, public
from .nn_common import floats_only, reduction_name

# States interleave blanks with labels: blank, l1, blank, l2, ..., blank. Arrays are (batch, time,
# state); log-probabilities come as (time, batch, class), as torch takes them.


def _states(
    targets: np.ndarray, lengths: np.ndarray, blank: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The label of each state, which exist, and which may be reached by skipping a blank."""
    batch, longest = len(lengths), int(lengths.max(initial=0))
    labels = np.full((batch, 2 * longest + 1), blank, np.int64)
    present = np.arange(longest) < lengths[:, None]
    if targets.ndim == 1:
        padded = np.full((batch, longest), blank, np.int64)
        padded[present] = targets[: int(lengths.sum())]
    else:
        padded = np.where(present, targets[:, :longest], blank)
    labels[:, 1::2] = padded
    exists = np.arange(2 * longest + 1) < 2 * lengths[:, None] + 1
    skips = np.zeros(labels.shape, np.bool_)
    skips[:, 3::2] = padded[:, 1:] != padded[:, :-1]
    return labels, exists, skips


def _log_add(*values: np.ndarray) -> Any:
    largest = np.maximum.reduce(values)
    safe = np.where(np.isneginf(largest), 0, largest)
    return np.log(sum(np.exp(v - safe) for v in values)) + safe


def _shifted(x: np.ndarray, count: int) -> np.ndarray:
    """Each state sees the one `count` before it (after it, if negative)."""
    result = np.full_like(x, -np.inf)
    if count > 0:
        result[:, count:] = x[:, :-count]
    else:
        result[:, :count] = x[:, -count:]
    return result


def _emissions(log_probs: np.ndarray, labels: np.ndarray, exists: np.ndarray) -> np.ndarray:
    """The log-probability of each state's label at each time: (time, batch, state)."""
    index = np.broadcast_to(labels, (log_probs.shape[0], *labels.shape))
    return np.where(exists, np.take_along_axis(log_probs, index, 2), -np.inf)


def _last(values: np.ndarray, place: np.ndarray) -> np.ndarray:
    return np.take_along_axis(values, place[:, None], 1)[:, 0]


def _ctc(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, *, blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    labels, exists, skips = _states(targets, target_lengths, blank)
    emitted = _emissions(log_probs, labels, exists)
    steps, batch, states = emitted.shape
    alpha = np.full((steps, batch, states), -np.inf, log_probs.dtype)
    if steps:
        alpha[0, :, :2] = emitted[0, :, :2]
    for t in range(1, steps):
        before = alpha[t - 1]
        skipped = np.where(skips, _shifted(before, 2), -np.inf)
        alpha[t] = _log_add(before, _shifted(before, 1), skipped) + emitted[t]
    final = alpha[np.maximum(input_lengths - 1, 0), np.arange(batch)] if steps else alpha.sum(0)
    ends = _last(final, 2 * target_lengths)
    inner = _last(final, np.maximum(2 * target_lengths - 1, 0))
    total = _log_add(ends, np.where(target_lengths > 0, inner, -np.inf))
    nothing = np.where(target_lengths == 0, 0.0, -np.inf)
    loss = -np.where(input_lengths > 0, total, nothing)
    return loss.astype(log_probs.dtype), np.ascontiguousarray(alpha.transpose(1, 0, 2))


def _beta(emitted: np.ndarray, skips: np.ndarray, input_lengths: Any, target_lengths: Any) -> Any:
    """The log-probability of finishing from each state, its own emission included."""
    steps, batch, states = emitted.shape
    beta = np.full((steps, batch, states), -np.inf, emitted.dtype)
    place = np.arange(states)
    ending = (place == 2 * target_lengths[:, None]) | (place == 2 * target_lengths[:, None] - 1)
    leaps = np.zeros_like(skips)
    leaps[:, :-2] = skips[:, 2:]
    after = np.full((batch, states), -np.inf, emitted.dtype)
    for t in reversed(range(steps)):
        skipped = np.where(leaps, _shifted(after, -2), -np.inf)
        onward = _log_add(after, _shifted(after, -1), skipped)
        last = (input_lengths == t + 1)[:, None]
        onward = np.where(last, np.where(ending, 0.0, -np.inf), onward)
        after = beta[t] = onward + emitted[t]
    return beta


def _ctc_grad(
    grad: Any, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, loss: Any,
    log_alpha: Any, *, blank: int = 0, zero_infinity: bool = False,
) -> np.ndarray:  # fmt: skip
    """torch's gradient: that of the logits behind log_probs, which sums to 0 over the classes."""
    labels, exists, skips = _states(targets, target_lengths, blank)
    emitted = _emissions(log_probs, labels, exists)
    both = _beta(emitted, skips, input_lengths, target_lengths) + log_alpha.transpose(1, 0, 2)
    largest = both.max(axis=2, keepdims=True)
    safe = np.where(np.isneginf(largest), 0, largest)
    classes = (labels[:, :, None] == np.arange(log_probs.shape[2])).astype(log_probs.dtype)
    sums = np.matmul(np.exp(both - safe).transpose(1, 0, 2), classes).transpose(1, 0, 2)
    share = np.exp(np.log(sums) + safe + loss[:, None] - log_probs)
    result = (np.exp(log_probs) - share) * grad[:, None]
    if zero_infinity:
        result = np.where(np.isinf(loss)[:, None], 0, result)
    running = np.arange(log_probs.shape[0])[:, None] < input_lengths
    return np.where(running[:, :, None], result, 0).astype(log_probs.dtype)


def _samples(rng: np.random.Generator) -> tuple[Any, ...]:
    logits = rng.standard_normal((6, 2, 4))
    log_probs = logits - np.log(np.exp(logits).sum(2, keepdims=True))
    return log_probs, rng.integers(1, 4, (2, 3)), np.array([6, 5]), np.array([3, 2])


def _ctc_type(
    log_probs: TensorType, targets: TensorType, *_: Any, blank: int = 0,
    zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """The states' count depends on the longest target; with padded targets on their width."""
    steps, batch, _classes = log_probs.shape
    longest = targets.shape[-1]
    return (TensorType(log_probs.dtype, (batch,)),
            TensorType(log_probs.dtype, (batch, steps, 2 * longest + 1)))  # fmt: skip


def _ctc_rule(
    grad_result: Any, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any,
    result: Any, log_alpha: Any, blank: int, zero_infinity: bool,
) -> Any:  # fmt: skip
    return ctc_grad(grad_result, log_probs, targets, input_lengths, target_lengths, result,
                    log_alpha, blank=blank, zero_infinity=zero_infinity)  # fmt: skip


ctc_loss_op = define(
    "ctc_loss", "log_probs targets input_lengths target_lengths -> result log_alpha", numpy=_ctc,
    infer=_ctc_type, vjp=dict(log_probs=_ctc_rule), raises=True,
)  # fmt: skip
ctc_grad = define(
    "ctc_grad", "grad_output log_probs targets input_lengths target_lengths loss log_alpha -> "
    "result", numpy=_ctc_grad, infer=lambda grad_output, log_probs, *_, **__: log_probs,
    node="NotImplemented",
)  # fmt: skip

# --- the public function -------------------------------------------------------------------------


def _lengths(name: str, value: Any, like: Any, count: int) -> Any:
    if not isinstance(value, Value):
        listed = [int(n) for n in value] if hasattr(value, "__iter__") else [int(value)]
        value = like._constant(np.asarray(listed, np.int64))
    if value.dtype.category > 1:
        raise RuntimeError(f"{name} must be integral")
    value = value.to(int64)
    if value.ndim == 0:
        value = value.reshape((1,))
    if value.shape[0] != count:
        raise RuntimeError(f"{name} must be of size batch_size")
    return value


def _check_lengths(log_probs: Any, targets: Any, inputs: Any, lengths: Any) -> None:
    given, wanted = getattr(inputs, "_array", None), getattr(lengths, "_array", None)
    if given is None or wanted is None or not given.size:
        return
    notify("value_asked")
    if given.min() < 0 or wanted.min() < 0:
        raise RuntimeError("Expected input_lengths and target_lengths to have value at least 0")
    if given.max() > log_probs.shape[0]:
        raise RuntimeError("Expected input_lengths to have value at most "
                           f"{log_probs.shape[0]}, but got value {given.max()}")  # fmt: skip
    if targets.ndim == 2 and wanted.max() > targets.shape[1]:
        raise RuntimeError("Expected tensor to have size at least "
                           f"{wanted.max()} at dimension 1, but got size "
                           f"{targets.shape[1]} for argument #2 'targets'")  # fmt: skip
    if targets.ndim == 1 and wanted.sum() != targets.shape[0]:
        raise RuntimeError(f"Expected targets of size {wanted.sum()}, got {targets.shape[0]}")


@public("ctc_loss", spaces="nn.functional", method=False)
def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction='mean',
    zero_infinity=False)."""
    reduction = reduction_name(reduction)
    batched = log_probs.ndim == 3
    if log_probs.ndim not in (2, 3):
        raise RuntimeError("log_probs should be 2-D or 3-D, got "
                           f"{log_probs.ndim} dimensions")  # fmt: skip
    floats_only("ctc_loss_cpu", log_probs.dtype)
    if targets.dtype.category > 1:
        raise RuntimeError(f"targets must be integral, got {type_word(targets.dtype)}")
    if not 0 <= blank < log_probs.shape[-1]:
        raise RuntimeError("blank must be in label range")
    if not batched:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.unsqueeze(0) if targets.ndim == 1 else targets
    inputs = _lengths("input_lengths", input_lengths, log_probs, log_probs.shape[1])
    lengths = _lengths("target_lengths", target_lengths, log_probs, log_probs.shape[1])
    targets = targets.to(int64)
    _check_lengths(log_probs, targets, inputs, lengths)
    loss = ctc_loss_op(log_probs, targets, inputs, lengths, blank=blank,
                       zero_infinity=zero_infinity)[0]  # fmt: skip
    if zero_infinity:
        loss = loss.new_zeros(()).where(loss == float("inf"), loss)
    if reduction == "mean":
        return (loss / lengths.clamp(min=1).to(loss.dtype)).mean()
    if reduction == "sum":
        return loss.sum()
    return loss if batched else loss.squeeze(0)
