"""What a body sees beside what it names: names that are not there yet, Python's own functions,
settings of the library, hooks of all modules. A change is seen at the next call."""

import builtins

import wengert as torch


def over(body, changes):
    """Calls the body both ways, before and after each change."""
    fn = torch.compile(body)
    for k, change in enumerate(changes):
        change()
        for _ in range(2):
            found, expected = fn(torch.ones(2)), body(torch.ones(2))
            assert found.device == expected.device, k
            assert found.tolist() == expected.tolist(), k
    return fn


def nothing():
    pass


def test_globals_that_come_and_go(monkeypatch):
    def body(x):
        try:
            return x * NOT_YET
        except NameError:
            return x

    def come():
        monkeypatch.setitem(globals(), "NOT_YET", 3.0)

    def go():
        monkeypatch.delitem(globals(), "NOT_YET")

    over(body, [nothing, come, go, come])


def test_globals_that_hide_functions_of_python(monkeypatch):
    fn = over(
        lambda x: sum([x, x]),
        [nothing, lambda: monkeypatch.setitem(globals(), "sum", lambda xs: xs[0] * 100)],
    )
    assert fn.explain().count("trace of") == 2
    for k in range(10):  # other names may come and go
        monkeypatch.setitem(globals(), f"other_{k}", k)
        fn(torch.ones(2))
    assert fn.explain().count("trace of") == 2


def test_functions_of_python_that_are_replaced(monkeypatch):
    factor = [7]
    over(
        lambda x: x * abs(-2),
        [nothing, lambda: monkeypatch.setattr(builtins, "abs", lambda x: factor[0]),
         lambda: factor.__setitem__(0, 9), monkeypatch.undo],
    )  # fmt: skip
