"""A compiled function beside its eager form, over many sizes."""

import ctypes

import wengert as torch


def leaves(value):
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in leaves(item)]
    if isinstance(value, dict):
        return leaves(list(value.values()))
    return [value]


def same(found, expected):
    assert len(leaves(found)) == len(leaves(expected))
    for a, b in zip(leaves(found), leaves(expected)):
        assert type(a) is type(b)
        if not isinstance(a, torch.Tensor):
            assert a == b
            continue
        assert a.requires_grad == b.requires_grad
        torch.testing.assert_close(a.detach(), b.detach(), rtol=1e-4, atol=1e-5, equal_nan=True)


def backward(results):
    roots = [r for r in leaves(results) if isinstance(r, torch.Tensor) and r.requires_grad]
    if roots:
        sum(r.sum() for r in roots).backward()


class Watched:
    """A compiled function beside its eager form; `runs` says how often the body ran."""

    def __init__(self, function, **options):
        counter = ctypes.c_int64()  # which no guard sees

        def body(*args):
            counter.value += 1
            return function(*args)

        self.function, self.counter = function, counter
        self.compiled = torch.compile(body, **options)

    @property
    def runs(self):
        return self.counter.value

    def check(self, *args):
        """One call of both, with gradients; the arguments are copied."""
        twins = [a.detach().clone().requires_grad_(a.requires_grad)
                 if isinstance(a, torch.Tensor) else a for a in args]  # fmt: skip
        torch.manual_seed(5)
        found = self.compiled(*args)
        torch.manual_seed(5)
        expected = self.function(*twins)
        same(found, expected)
        backward(found)
        backward(expected)
        for a, b in zip(args, twins):
            if isinstance(a, torch.Tensor):
                same(a, b)
                same([a.grad], [b.grad])
        return found

    def explain(self):
        return self.compiled.explain()


def over(function, make, sizes, runs, **options):
    """Checks calls of many sizes; the body may run as often as `runs` says."""
    watched = Watched(function, **options)
    for size in sizes:
        watched.check(*make(*(size if isinstance(size, tuple) else (size,))))
    assert watched.runs == runs, watched.explain()
    assert "stay plain" not in watched.explain()
    assert "no instance" not in watched.explain()
    return watched


def rows(n, columns=3):
    return (torch.randn(n, columns, requires_grad=True),)


SIZES = (4, 5, 7, 1, 13, 2, 3, 0, 4, 6)
