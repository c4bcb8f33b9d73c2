"""explain(): which traces there are, and which guard failed when one was recorded."""

import pytest
import wengert as torch

scale = 2.0


def scaled(x, n=1, s=1.0):
    return x * scale * n * s


def changed_global():
    global scale
    scale += 1


CALLS = {
    "global scale changed from": lambda f: (f(torch.ones(3)), changed_global(), f(torch.ones(3))),
    "x differs (f32[3] before, now f64[3])": lambda f: (
        f(torch.ones(3)),
        f(torch.ones(3, dtype=torch.float64)),
    ),
    "x differs (f32[3] before, now f32[3] requires grad)": lambda f: (
        f(torch.ones(3)),
        f(torch.ones(3, requires_grad=True)),
    ),
    "x differs (f32[2,3] before, now f32[2,3] not row-major)": lambda f: (
        f(torch.ones(2, 3)),
        f(torch.ones(3, 2).t()),
    ),
    "n differs (2 before, now 3)": lambda f: (f(torch.ones(3), 2), f(torch.ones(3), 3)),
    "the arguments have another structure": lambda f: (f(torch.ones(3)), f(torch.ones(3), 3)),
    "grad mode differs": lambda f: (f(torch.ones(3)), torch.no_grad()(f)(torch.ones(3))),
    "s differs (a float before, now 2)": lambda f: (
        f(torch.ones(3), s=2.0),
        f(torch.ones(3), s=2),
    ),
}


@pytest.mark.parametrize("reason", CALLS)
def test_the_guard_that_failed_is_named(reason):
    f = torch.compile(scaled)
    CALLS[reason](f)
    text = f.explain()
    assert text.count("trace of") == 2, text
    assert f"recorded as no other one fits: {reason}" in text, text


def test_outcomes_of_branches_are_counted():
    def body(x):
        while x.sum() < 100:
            x = x * 2
        return x

    f = torch.compile(body)
    for k in range(1, 6):
        f(torch.full((2,), float(k)))
    assert "outcomes seen: 2" in f.explain()


def broken(*graphs):
    raise ZeroDivisionError("inside the compiler")


def test_a_fault_of_the_compiler_is_one_warning(monkeypatch):
    monkeypatch.setattr("wengert.backend.compile_graph", broken)
    monkeypatch.delenv("WENGERT_STRICT", raising=False)
    f = torch.compile(scaled)
    with pytest.warns(RuntimeWarning, match="W001.*\n.*wengert bug") as seen:
        results = [f(torch.ones(3)), f(torch.ones(3)), f(torch.ones(3, 3))]
    assert len(seen) == 1 and seen[0].filename == __file__
    assert all(torch.equal(r, torch.ones_like(r) * scale) for r in results)
    assert "internal fault" in f.explain()


def test_strict_raises_faults(monkeypatch):
    monkeypatch.setattr("wengert.backend.compile_graph", broken)
    monkeypatch.setenv("WENGERT_STRICT", "1")
    with pytest.raises(ZeroDivisionError, match="inside the compiler"):
        torch.compile(scaled)(torch.ones(3))


SELECTIONS = {
    "nonzero": lambda x: x[x > 0].sum(),
    "masked_select": lambda x: torch.masked_select(x, x > 0).sum() * 2,
    "unique": lambda x: x.unique().sum(),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_results_of_varying_shape_are_right_and_explained(name):
    function = torch.compile(SELECTIONS[name])
    for n in (3, 1, 5, 2):
        x = torch.arange(6.0) - n
        assert torch.equal(function(x), SELECTIONS[name](x))
    said = str(function.explain())
    assert f"the shape of {name}'s result depends on values; " in said and "[R108]" in said
    assert ("where(mask, x, 0)" in said) == (name != "unique")


def test_lazy_modules_are_warm_up():
    model = torch.nn.Sequential(torch.nn.LazyLinear(3), torch.nn.LazyLinear(2))
    f = torch.compile(lambda x: model(x))
    for _ in range(4):
        f(torch.ones(5, 4))
    assert "warm-up: `.data`" in f.explain() and "replayed 2 times" in f.explain()


def test_marks_of_results_are_named():
    f = torch.compile(lambda z: z.conj())
    for _ in range(3):
        assert f(torch.ones(2, dtype=torch.complex64)).is_conj()
    assert "return resolve_conj() of it" in f.explain()
