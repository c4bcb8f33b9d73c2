"""Every op of the catalogue: vmap gives what a loop over examples gives, gradients too."""

import numpy as np
import pytest
import wengert as torch
from catalogue_cases import cases_of, ops
from wengert.func import vmap
from wengert.ir.op import TABLE
from wengert.tracer.tensor import Tensor

SIZE = 3
# Their results' shapes depend on the data, or they check the data.
SKIPPED = {"nonzero", "masked_select", "unique", "unique_dim", "unique_consecutive", "bincount",
           "histogram", "call", "repeat_index", "envelope_check", "phase_check", "as_strided",
           "masked_scatter"}  # fmt: skip


def found():
    return [name for name in ops() if name not in SKIPPED]


def tensors_of(case):
    """The operands, each a batch of slightly different examples where it is a float array."""
    made = []
    for value in case.inputs:
        if isinstance(value, np.ndarray):
            copies = [value + 0.01 * k if value.dtype.kind in "fc" else value
                      for k in range(SIZE)]  # fmt: skip
            made.append(torch.from_numpy(np.ascontiguousarray(np.stack(copies))))
        else:
            made.append(value)
    return made


def outputs(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("name", found())
def test_vmap_is_a_loop(name):
    for case in cases_of(TABLE[name]):
        check(case)


def check(case):
    operands = tensors_of(case)
    places = [k for k, v in enumerate(operands) if isinstance(v, Tensor)]
    if not places:
        return

    def call(*tensors):
        full = list(operands)
        for place, tensor in zip(places, tensors):
            full[place] = tensor
        return case.op(*full, **case.attrs)

    batches = [operands[k] for k in places]
    for batch in batches:
        if batch.dtype.is_differentiable and case.op.rules:
            batch.requires_grad_()
    mapped = outputs(vmap(call)(*batches))
    looped = [torch.stack(parts) for parts in
              zip(*(outputs(call(*(b[k] for b in batches))) for k in range(SIZE)))]  # fmt: skip
    for one, other in zip(mapped, looped):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6, equal_nan=True)
    compare_gradients(mapped, looped, batches)


def compare_gradients(mapped, looped, batches):
    wanted = [b for b in batches if b.requires_grad]
    pairs = [(m, o) for m, o in zip(mapped, looped) if m.requires_grad and o.requires_grad]
    if not wanted or not pairs:
        return
    seeds = [torch.ones_like(m) for m, _ in pairs]
    try:
        results = [torch.autograd.grad([p[k] for p in pairs], wanted, seeds, allow_unused=True)
                   for k in (0, 1)]  # fmt: skip
    except (NotImplementedError, RuntimeError) as error:
        assert "is not implemented" in str(error)
        return
    for one, other in zip(*results):
        if other is None or one is None:
            assert one is None or not bool(one.any())
            continue
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)
