"""All that can be seen of tensors after a call, to compare compiled calls with eager ones."""

import re

import numpy as np
import wengert as torch


def named(prefix, value):
    """The tensors in nested containers with their gradients, and the order of what holds them."""
    if isinstance(value, torch.Tensor):
        yield prefix, value
        if value.is_leaf and value.grad is not None:
            yield from named(f"{prefix}.grad", value.grad)
    elif isinstance(value, tuple | list | dict):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        yield prefix, f"{type(value).__name__} of {len(value)}"
        for key, item in items:
            yield from named(f"{prefix}[{key}]", item)
    else:
        yield prefix, value


def facts(value):
    """By name: what is seen of each tensor; identity and memory by the first that has it."""
    found, first, memory = {}, {}, {}
    tensors = [*named("", value)]
    for name, t in tensors:
        if not isinstance(t, torch.Tensor):
            found[name] = repr(t)
            continue
        base = t._base
        found[name] = {
            "is": first.setdefault(id(t), name),
            "class": type(t).__name__,
            "dtype": str(t.dtype),
            "layout": (tuple(t.shape), t.stride(), t.storage_offset(), t.is_contiguous()),
            "version": t._version,
            "leaf": (t.is_leaf, t.requires_grad, t.grad_fn is None),
            "view": (t._is_view(), "" if t._view is None else t._view.origin),
            "base": None if base is None else (
                next((n for n, other in tensors if other is base), "another"), tuple(base.shape),
                base.stride(), base.requires_grad, base.is_leaf, base._version),
            "memory": (memory.setdefault(t.untyped_storage().data_ptr(), name),
                       t.untyped_storage().nbytes()),
            "values": np.asarray(t.detach().tolist()).round(4).tolist(),
        }  # fmt: skip
    return found


def differences(eager, compiled):
    """Lines that say what differs."""
    lines = []
    for name in {**eager, **compiled}:
        a, b = eager.get(name), compiled.get(name)
        if isinstance(a, dict) and isinstance(b, dict):
            lines += [f"{name} {key}: {a[key]}, not {b[key]}" for key in a
                      if a[key] != b[key] and not (key == "values" and np.allclose(
                          a[key], b[key], rtol=1e-3, atol=1e-3, equal_nan=True))]  # fmt: skip
        elif a != b:
            lines.append(f"{name}: {a}, not {b}")
    return lines


def outcome(call):
    """What a call gives, or the error that it raises."""
    try:
        return call()
    except Exception as error:
        # results of compiled functions have a node of their own
        return type(error).__name__, re.sub(r"Output \d of \w+", "Output", str(error))[:60]
