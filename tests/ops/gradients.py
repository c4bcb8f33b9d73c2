"""Derivatives by finite differences, the oracle for derivative rules."""

import numpy as np
import wengert as torch


def tensors(arrays, requires_grad=True):
    return [torch.tensor(a, requires_grad=requires_grad) for a in arrays]


def differentiable(found):
    """The float and complex members of a result."""
    found = found if isinstance(found, tuple | list) else (found,)
    return [t for t in found if t.dtype.is_floating_point or t.dtype.is_complex]


def values(function, arrays):
    with torch.no_grad():
        return [t.numpy() for t in differentiable(function(*tensors(arrays, False)))]


def random_like(rng, array):
    noise = rng.standard_normal(array.shape)
    return noise + 1j * rng.standard_normal(array.shape) if np.iscomplexobj(array) else noise


def inner(a, b):
    return float(np.sum((np.conj(a) * b).real))


def total(weights, found):
    """Re <weights, found>, recorded."""
    parts = [(torch.tensor(np.conj(w)) * t).sum() for w, t in zip(weights, found)]
    return sum(p.real if p.dtype.is_complex else p for p in parts)


def check(function, *arrays, seed=0, second=True, eps=1e-6, rtol=2e-5):
    """The gradient is the adjoint of the directional derivative, to second order."""
    rng = np.random.default_rng(seed)
    weights = [random_like(rng, r) for r in values(function, arrays)]

    def slope(*inputs):
        found = differentiable(function(*inputs))
        return torch.autograd.grad(total(weights, found), inputs, create_graph=True)

    def slope_values(shifted):
        return [g.detach().numpy() for g in slope(*tensors(shifted))]

    first = [(lambda shifted: values(function, shifted), weights)]
    exact = [slope_values(arrays)]
    if second:
        again = [random_like(rng, np.asarray(a)) for a in arrays]
        inputs = tensors(arrays)
        outer = total(again, slope(*inputs))
        found = [None] * len(inputs)  # a linear function has no second derivative
        if outer.requires_grad:
            found = torch.autograd.grad(outer, inputs, allow_unused=True)
        exact.append([0 * a if g is None else g.numpy() for g, a in zip(found, arrays)])
        first.append((slope_values, again))
    directions = [random_like(rng, np.asarray(a)) for a in arrays]
    for (evaluate, outer), gradient in zip(first, exact):
        above = evaluate([a + eps * d for a, d in zip(arrays, directions)])
        below = evaluate([a - eps * d for a, d in zip(arrays, directions)])
        numeric = sum(inner(w, (p - m) / (2 * eps)) for w, p, m in zip(outer, above, below))
        found = sum(inner(g, d) for g, d in zip(gradient, directions))
        assert abs(found - numeric) <= rtol * max(1.0, abs(numeric)), (found, numeric)
