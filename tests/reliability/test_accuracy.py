"""Every pointwise and reduction kernel against float64, over hard inputs.

Walks the catalogue: an op with a scalar expression or a reduction is compiled for float32 and held
against its own evaluation in float64 at the same (exactly representable) inputs. Errors are counted
in units of the last place of the result, plus what one rounding of an input does to it.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
import wengert as torch
from wengert.ir.op import TABLE, Scalar

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ops"))
from catalogue_cases import is_regular

EPSILON = 2.0**-24
TINY = 2.0**-126
HARD = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.2e-38, 3.4e38, -3.4e38,
        1e-20, 1e20, 0.5, -0.5, 1.5, 2.5, 3.0, -3.0, 0.99999994, 1.0000001, 0.1, 88.7, -88.7, 103.9,
        -103.9, 3.1415927, 1.5707964, 6.2831855, 1e4, -1e4, 12345.678, 4194304.5, 16777216.0,
        2147483648.0, 1e10, 7.0, 34.0, 35.5, -2.5, -10.25, 170.6, 0.70710677]  # fmt: skip
ULPS = 4.0
# Where torch's formula overflows or cancels on the way, ours does too: ends of the range that hold.
TORCH_RANGE = {"gelu": (-1.0, np.inf), "ldexp": (-100.0, 100.0), "sinc": (-1e4, 1e4)}


def hard_inputs(count, op):
    """All pairs of hard values for two inputs; besides, random ones in the op's domain."""
    rng = np.random.default_rng(len(op.name))
    low, high = op.domain or (-3.0, 3.0)
    special = np.array(HARD, np.float32)
    grids = np.meshgrid(*[special] * count) if count < 3 else [rng.choice(special, 800)] * count
    signs = rng.choice([-1.0, 1.0], 400)
    wide = [signs * 10.0 ** rng.uniform(-30, 30, 400) for _ in range(count)]
    near = [rng.uniform(low, high, 2000) for _ in range(count)]
    drawn = [np.concatenate([np.ravel(g), w, n]).astype(np.float32)
             for g, w, n in zip(grids, wide, near)]  # fmt: skip
    low, high = TORCH_RANGE.get(op.name, (-np.inf, np.inf))
    kept = np.all([(x >= low) & (x <= high) | np.isnan(x) for x in drawn], axis=0)
    return [x[kept] for x in drawn]


def pointwise_names():
    """Ops of real numbers whose kernels are scalar expressions."""
    for name, op in sorted(TABLE.items()):
        simple = isinstance(op.lower, Scalar) and is_regular(op) and op.inputs and not op.optional
        if simple and not op.random and op.kind == "pointwise":
            yield name


def evaluated(op, arrays):
    with np.errstate(all="ignore"):
        return np.asarray(op.numpy(*arrays))


def slack(op, arrays, exact):
    """What moving each input by half a unit in its last place does to the result."""
    total = np.zeros(exact.shape)
    for k in range(len(arrays)):
        for sign in (-1, 1):
            moved = list(arrays)
            moved[k] = moved[k] * (1 + sign * EPSILON)
            with np.errstate(all="ignore"):
                distance = np.abs(evaluated(op, moved).astype(np.float64) - exact)
            total = np.maximum(total, np.where(np.isfinite(distance), distance, np.inf))
    return total


@pytest.mark.parametrize("name", list(pointwise_names()))
def test_pointwise_kernels(name):
    op = TABLE[name]
    inputs = hard_inputs(len(op.inputs), op)
    try:
        exact = evaluated(op, [x.astype(np.float64) for x in inputs])
        if exact.dtype.kind != "f":
            check_exactly(op, inputs)
            return
    except (TypeError, NotImplementedError):
        pytest.skip("not of real numbers")
    compiled = torch.compile(lambda *xs: op(*xs))
    tensors = [torch.tensor(x) for x in inputs]
    with torch.no_grad():
        compiled(*tensors)
        found = compiled(*tensors).numpy().astype(np.float64)
    check_close(found, exact, slack(op, [x.astype(np.float64) for x in inputs], exact), inputs)


def check_exactly(op, inputs):
    """Results that are not floats are the same as eager's."""
    tensors = [torch.tensor(x) for x in inputs]
    compiled = torch.compile(lambda *xs: op(*xs))
    compiled(*tensors)
    assert torch.equal(compiled(*tensors), op(*tensors))


def check_close(found, exact, margin, inputs):
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32).astype(np.float64)
        unit = np.maximum(np.abs(exact), TINY) * 2 * EPSILON
        same = (found == rounded) | (np.isnan(found) & np.isnan(exact))
        close = np.abs(found - exact) <= ULPS * unit + 2 * margin
        # at the edge of the range one rounding decides between the largest number and infinity
        edge = (
            (np.abs(exact) > 3.3e38) & (np.abs(found) > 3.3e38) & (np.sign(found) == np.sign(exact))
        )
        # results below the smallest normal number may be flushed or rounded coarsely
        small = (np.abs(exact) < 4 * TINY) & (np.abs(found) < 8 * TINY)
    wrong = ~(same | close | edge | small | ~np.isfinite(margin))
    if wrong.any():
        k = int(np.flatnonzero(wrong)[0])
        at = [float(x[k]) for x in inputs]
        raise AssertionError(
            f"{wrong.sum()} of {wrong.size}: at {at} {found[k]!r} for {exact[k]!r}"
        )


# --- reductions ----------------------------------------------------------------------------------

ROWS = {
    "ones": lambda rng, n: np.ones(n),
    "normal": lambda rng, n: rng.standard_normal(n),
    "cancelling": lambda rng, n: np.concatenate([x := rng.standard_normal(n // 2) * 1e4, -x[::-1]]),
    "offset": lambda rng, n: 1e4 + rng.standard_normal(n),
    "wide": lambda rng, n: rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-6, 6, n),
    "tiny": lambda rng, n: rng.standard_normal(n) * 1e-38,
}  # fmt: skip
LENGTHS = (2, 10, 1000, 100_002)
REDUCTIONS = {
    # op: the call, and the magnitude that rounding acts on
    "sum": (lambda x: x.sum(-1), lambda x: np.abs(x).sum(-1)),
    "mean": (lambda x: x.mean(-1), lambda x: np.abs(x).mean(-1)),
    "nansum": (lambda x: x.nansum(-1), lambda x: np.abs(x).sum(-1)),
    "linalg_vector_norm": (lambda x: torch.linalg.vector_norm(x, dim=-1),
                           lambda x: np.sqrt((x * x).sum(-1))),
    "var": (lambda x: x.var(-1), lambda x: x.var(-1) + np.abs(x).max() * x.std(-1) * 1e-1),
    "std": (lambda x: x.std(-1), lambda x: x.std(-1) + np.abs(x).max() * 1e-1),
    "logsumexp": (lambda x: x.logsumexp(-1), lambda x: np.abs(x).max(-1) + np.log(x.shape[-1])),
    "amax": (lambda x: x.amax(-1), lambda x: np.zeros(x.shape[:-1])),
    "amin": (lambda x: x.amin(-1), lambda x: np.zeros(x.shape[:-1])),
    "max_all": (lambda x: x.max(), lambda x: np.zeros(())),
    "min_all": (lambda x: x.min(), lambda x: np.zeros(())),
    "prod": (lambda x: (x.abs() + 0.5).clamp(0.97, 1.03).prod(-1), None),
    "any": (lambda x: (x > 1).any(-1), lambda x: np.zeros(x.shape[:-1])),
    "all": (lambda x: (x > -5).all(-1), lambda x: np.zeros(x.shape[:-1])),
}  # fmt: skip


def test_every_reduction_is_here():
    assert {name for name, op in TABLE.items() if op.kind == "reduction"} == set(REDUCTIONS)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction_kernels(name):
    """Errors grow with the logarithm of the length: sums are taken in pieces."""
    call, scale = REDUCTIONS[name]
    rng = np.random.default_rng(5)
    for length in LENGTHS:
        for kind, rows in ROWS.items():
            if (name, length) == ("prod", LENGTHS[-1]) or (name, kind) == (
                "linalg_vector_norm",
                "tiny",
            ):
                continue  # products overflow, squares underflow, as in torch
            x = np.stack([rows(rng, length) for _ in range(3)]).astype(np.float32)
            wide = x.astype(np.float64)
            exact = np.asarray(call(torch.tensor(wide)).numpy())
            compiled = torch.compile(call)
            compiled(torch.tensor(x))
            for found in (compiled(torch.tensor(x)), call(torch.tensor(x))):
                if exact.dtype.kind == "b":
                    assert (found.numpy() == exact).all()
                    continue
                magnitude = np.abs(exact) * length**0.5 if scale is None else scale(wide)
                allowed = (4 + 2 * np.log2(length)) * 2 * EPSILON * (magnitude + np.abs(exact))
                error = np.abs(found.numpy().astype(np.float64) - exact)
                assert (error <= allowed + 2 * TINY).all(), (length, error.max(), allowed)
