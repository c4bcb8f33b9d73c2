"""Calls of nn.functional with torch's answers, and the recording of these.

A case is an expression; `Context` gives the names in it. Run as a script where torch is installed,
the file rewrites `data/functional.json`. Recorded are dtypes, shapes and node names, and of values,
gradients and second gradients the product with a fixed random vector.
"""

import importlib
import json
import warnings
import zlib
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent.parent / "data"
RECORDS = DATA / "functional.json"
CASES = (DATA / "functional_cases.txt").read_text().splitlines()


class Context:
    """Names in expressions: R, U, D make leaves that need gradients; r, u, I, B, L do not."""

    def __init__(self, module, expression):
        self.torch, self.leaves = importlib.import_module(module), []
        self.rng = np.random.RandomState(zlib.crc32(expression.encode()) % 2**31)
        self.torch.manual_seed(123)

    def make(self, array, dtype, leaf):
        dtype = dtype and getattr(self.torch, dtype)
        result = self.torch.tensor(array, dtype=dtype, requires_grad=leaf)
        if leaf:
            self.leaves.append(result)
        return result

    def uniform(self, leaf, low, high):
        def draw(*shape, lo=low, hi=high, dt="float64"):
            return self.make(self.rng.uniform(lo, hi, shape), dt, leaf)

        return draw

    def names(self):
        functional = importlib.import_module(self.torch.__name__ + ".nn.functional")
        spaced = lambda *s: self.rng.permutation(int(np.prod(s))).reshape(s) * 0.1  # noqa: E731
        return {
            "T": self.torch, "torch": self.torch, "F": functional, "np": np,
            "inf": float("inf"), "nan": float("nan"),
            "R": self.uniform(True, -2.0, 2.0), "r": self.uniform(False, -2.0, 2.0),
            "U": self.uniform(True, 0.05, 0.95), "u": self.uniform(False, 0.05, 0.95),
            "I": lambda n, *s, lo=0: self.make(self.rng.randint(lo, n, s), "int64", False),
            "D": lambda *s: self.make(spaced(*s), "float64", True),
            "B": lambda *s: self.make(self.rng.rand(*s) > 0.4, "bool", False),
            "L": lambda x: self.make(np.array(x), None, False),
        }  # fmt: skip


def noise(seed, shape):
    return np.random.RandomState(seed).standard_normal(tuple(shape))


def digest(value):
    """The product of all elements with a fixed vector; what is not finite counts as a number."""
    if value is None:
        return None
    value = value.detach()
    value = value.float() if "16" in str(value.dtype) else value
    array = np.asarray(value.numpy(force=True))
    array = np.nan_to_num(array.astype(np.float64), nan=7.0, posinf=11.0, neginf=-13.0)
    return float(np.dot(array.reshape(-1), noise(7, (array.size,))))


def gradients(torch, outputs, leaves):
    """Digests of the gradients of all leaves, then of their gradients (or why there are none)."""
    given = [torch.tensor(noise(k, y.shape), dtype=y.dtype) for k, y in enumerate(outputs)]
    try:
        first = torch.autograd.grad(outputs, leaves, given, allow_unused=True, create_graph=True)
    except RuntimeError:
        return ["not implemented", "not implemented"]
    found = [[digest(g) for g in first]]
    again = [(g, torch.tensor(noise(50 + k, g.shape), dtype=g.dtype)) for k, g in enumerate(first)
             if g is not None and g.requires_grad]  # fmt: skip
    if not again:
        return [*found, "constant"]
    try:
        second = torch.autograd.grad([g for g, _ in again], leaves, [w for _, w in again],
                                     allow_unused=True)  # fmt: skip
    except RuntimeError:
        return [*found, "not implemented"]
    # an unused leaf and one whose gradient is 0 are the same to the user
    return [*found, [digest(g) or 0.0 for g in second]]


def answer(module, expression):
    """All there is to compare of one call."""
    context = Context(module, expression)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = eval(expression, context.names())
        except Exception as error:
            return {"error": type(error).__name__}
        outputs = [y for y in (result if isinstance(result, tuple) else (result,)) if y is not None]
        found = {
            "types": [[str(y.dtype).split(".")[-1], list(y.shape)] for y in outputs],
            "values": [digest(y) for y in outputs],
            "nodes": [y.grad_fn.name() if y.grad_fn is not None else None for y in outputs],
        }
        tracked = [y for y in outputs if y.requires_grad]
        if tracked:
            found["gradients"] = gradients(context.torch, tracked, context.leaves)
    return found


def main():
    records = {expression: answer("torch", expression) for expression in CASES}
    lines = ",\n".join(f"{json.dumps(e)}: {json.dumps(r)}" for e, r in records.items())
    RECORDS.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
