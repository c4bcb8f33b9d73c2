"""What a body sees beside what it names: names that are not there yet, Python's own functions,
settings of the library, hooks of all modules. A change is seen at the next call."""

import builtins
import functools
import os
import threading

import pytest
import wengert as torch
from wengert import nn


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


def test_settings_that_a_body_asks_for():
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()

    def body(x):
        asked = torch.get_num_threads(), len(torch.get_float32_matmul_precision())
        return x * asked[0] + asked[1] + torch.are_deterministic_algorithms_enabled()

    try:
        over(body, [nothing, lambda: torch.set_num_threads(1), lambda: torch.set_num_threads(2),
                    lambda: torch.set_float32_matmul_precision("high"),
                    lambda: torch.use_deterministic_algorithms(True)])  # fmt: skip
    finally:
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)
        torch.use_deterministic_algorithms(False)


def test_settings_that_nobody_asks_for_need_no_trace():
    threads, fn = torch.get_num_threads(), torch.compile(lambda x: x * 2)
    try:
        for count in (1, 2, 1):
            torch.set_num_threads(count)
            fn(torch.ones(2))
    finally:
        torch.set_num_threads(threads)
    assert fn.explain().count("trace of") == 1


def test_where_new_tensors_lie():
    fn = torch.compile(lambda: torch.ones(2))
    for place in ("cpu", "cpu", "meta", "meta", "cpu"):
        with torch.device(place):
            assert fn().device.type == place
    try:
        for place in ("meta", "cpu", "meta"):
            torch.set_default_device(place)
            assert fn().device.type == place
    finally:
        torch.set_default_device(None)


@pytest.mark.parametrize("register", [
    nn.modules.module.register_module_forward_hook,
    lambda hook: nn.modules.module.register_module_forward_pre_hook(lambda m, a: hook(m, a, a[0])),
])  # fmt: skip
def test_hooks_of_all_modules(register):
    module, scale, handles = nn.ReLU(), [10.0], []

    def change():
        scale[0] = 20.0

    over(lambda x: module(x), [
        nothing, lambda: handles.append(register(lambda m, args, out: out * scale[0])), change,
        lambda: handles.pop().remove(),
    ])  # fmt: skip


def test_files_that_come_and_go(tmp_path):
    path = tmp_path / "flag"
    over(lambda x: x * (2 if os.path.exists(path) else 3), [nothing, path.touch, path.unlink])
    over(lambda x: x * (2 if path.is_file() else 3), [nothing, path.touch, path.unlink])
    over(lambda x: x * len(os.listdir(tmp_path)), [nothing, path.touch, path.unlink])
    named = over(lambda x: x * len(os.path.join("a", "b")), [nothing])
    assert "trace of" in named.explain()


def test_which_thread_runs():
    fn = torch.compile(lambda x: x * len(threading.current_thread().name))
    found = [fn(torch.ones(1)).item() for _ in range(3)]
    thread = threading.Thread(target=lambda: found.append(fn(torch.ones(1)).item()), name="abc")
    thread.start()
    thread.join()
    assert found == [len(threading.current_thread().name)] * 3 + [3]


def test_names_of_functions():
    def named(x):
        return x * len(named.__name__)

    over(named, [nothing, lambda: setattr(named, "__name__", "other"), nothing])


def test_attributes_of_modules_behind_their_back():
    class Scaled(nn.Module):
        @functools.cached_property
        def total(self):
            return torch.full((), float(self.scale))

        def forward(self, x):
            return x * self.total * self.scale

    module = Scaled()
    module.scale = 2
    attributes = module.__dict__

    def change(scale):
        attributes["scale"] = scale
        attributes.pop("total")

    over(module, [nothing, nothing, lambda: change(3), lambda: change(5)])
