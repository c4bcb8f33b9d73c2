"""`torch._dynamo`, `torch._inductor.config`, `torch.compiler`: torch's names around compiling."""

import pytest
import wengert as torch

x3 = torch.ones(3)


def doubled(x):
    return x * 2


@pytest.fixture(autouse=True)
def default_stance():
    yield
    torch.compiler.set_stance("default")


def counting():
    calls = []

    def body(x):
        calls.append(1)
        return x + len(calls)

    return calls, body


def test_a_disabled_function_runs_in_python_at_every_call():
    calls, body = counting()
    inner = torch.compiler.disable(body)
    big = torch.ones(300, 300)

    def outer(x):
        return inner(x * 2) * 3

    f = torch.compile(outer)
    assert [f(big)[0, 0].item() for _ in range(4)] == [9, 12, 15, 18]
    assert len(calls) == 4
    assert "body is disabled for compilation (" in f.explain()
    assert __file__ in f.explain() and "[R129]" in f.explain()


def test_disable_of_a_compiled_function_is_the_original():
    f = torch.compile(doubled)
    plain = torch.compiler.disable(f)
    plain(x3)
    assert plain.__wrapped__ is doubled and f.explain().endswith("not called yet")
    assert torch.compiler.disable(recursive=False)(f) is doubled


def test_disabled_code_is_not_being_compiled():
    seen = []
    inner = torch.compiler.disable(lambda x: (seen.append(torch.compiler.is_compiling()), x)[1])
    f = torch.compile(lambda x: inner(x) + torch._dynamo.is_compiling())
    f(x3), f(x3)
    assert seen == [False, False]


def test_disable_sees_grads_and_modules():
    layer = torch.nn.Linear(3, 3)
    off = torch.compiler.disable(layer, reason="it logs")
    f = torch.compile(lambda x: off(x * 2).sum())
    for _ in range(3):
        layer.zero_grad()
        f(torch.ones(2, 3)).backward()
        assert layer.weight.grad.tolist() == [[4.0] * 3] * 3
    assert off.weight is layer.weight and "Linear is disabled for compilation, it logs" in (
        f.explain())  # fmt: skip


def test_disabled_functions_get_plain_numbers():
    seen = []

    @torch.compiler.disable
    def inner(x, scale, sizes):
        seen.append((type(scale), scale, [type(n) for n in sizes]))
        return x * scale

    f = torch.compile(lambda x, s: inner(x, s / 2, x.shape) + 1, dynamic=True)
    for k in (1.0, 2.0, 3.0):
        assert f(torch.ones(2 + int(k)), k)[0].item() == k / 2 + 1
    assert seen == [(float, k / 2, [int]) for k in (1.0, 2.0, 3.0)]


def test_disable_inside_vmap_inside_compile():
    _, body = counting()
    inner = torch.compiler.disable(body)
    f = torch.compile(lambda x: torch.vmap(inner)(x))
    assert [f(torch.zeros(2, 2))[0, 0].item() for _ in range(3)] == [1, 2, 3]


def test_graph_break_runs_the_body_and_breaks_a_full_graph():
    def body(x):
        y = x * 2
        torch._dynamo.graph_break()
        return y + 1

    f = torch.compile(body)
    assert [f(x3).tolist() for _ in range(3)] == [[3.0] * 3] * 3
    assert "graph_break() is called" in f.explain()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="graph_break"):
        torch.compile(body, fullgraph=True)(x3)


def looks(x):
    return x * 2 if float(x.sum()) > 0 else x


def branches(x):
    return x * 2 if x.sum() > 0 else x


@pytest.mark.parametrize("body", [looks, branches])
def test_fullgraph_raises_at_each_call_with_the_line(body):
    f = torch.compile(body, fullgraph=True)
    line = f"{__file__}:{body.__code__.co_firstlineno + 1}"
    for _ in range(2):
        with pytest.raises(torch._dynamo.exc.Unsupported) as error:
            f(x3)
        assert line in str(error.value) and isinstance(error.value, RuntimeError)


def test_fullgraph_serves_what_is_one_graph():
    f = torch.compile(doubled, fullgraph=True)
    assert f(x3).tolist() == f(x3).tolist() == [2.0] * 3

    class Model(torch.nn.Module):
        def forward(self, x):
            print("seen")
            return x

    with pytest.raises(torch._dynamo.exc.Unsupported, match="prints"):
        torch.compile(Model(), fullgraph=True)(x3)


WRONG = [
    (dict(backend="foo"), "InvalidBackend", "Invalid backend: 'foo'"),
    (dict(backend=lambda graph, inputs: graph), "InvalidBackend", "torch.fx"),
    (dict(mode="fast"), "RuntimeError", "Unrecognized mode=fast, should be one of: default"),
    (dict(options={"foo": 1}), "RuntimeError", "Unexpected optimization option foo"),
    (dict(options={"max_autotune": "x"}), "RuntimeError",
     "Unexpected type of attr max_autotune, got str should be bool"),
    (dict(mode="default", options={"debug": True}), "RuntimeError", "Either mode or options"),
]  # fmt: skip


@pytest.mark.parametrize("given, kind, words", WRONG, ids=lambda v: str(v)[:20])
def test_unknown_backends_modes_and_options(given, kind, words):
    with pytest.raises(RuntimeError, match=words) as error:
        torch.compile(doubled, **given)
    assert type(error.value).__name__ == kind


@pytest.mark.parametrize("given", [
    dict(backend="inductor", mode="max-autotune"), dict(backend="aot_eager"),
    dict(options={"max-autotune": True, "triton.cudagraphs": False}), dict(mode="reduce-overhead"),
], ids=str)  # fmt: skip
def test_known_ones_compile(given):
    f = torch.compile(doubled, **given)
    assert f(x3).tolist() == f(x3).tolist() == [2.0] * 3 and "trace of 2 ops" in f.explain()


def test_the_eager_backend_runs_the_body():
    _, body = counting()
    f = torch.compile(body, backend="eager", mode="whatever")
    assert [f(x3)[0].item() for _ in range(3)] == [2, 3, 4] and "eager" in f.explain()
    torch.compiler.set_default_backend("eager")
    try:
        assert "eager" in torch.compile(doubled).explain()
    finally:
        torch.compiler.set_default_backend(None)
    assert "inductor" in torch.compiler.list_backends()
    assert "eager" in torch.compiler.list_backends(None)


def test_stances():
    runs = []

    def body(x):
        runs.append(1)
        return x * 2

    f = torch.compile(doubled)
    watched = torch.compile(body)
    f(x3)
    with torch.compiler.set_stance("force_eager"):
        f(x3), watched(x3), watched(x3)
    assert "replayed 0 times" in f.explain() and len(runs) == 2
    with torch.compiler.set_stance("eager_on_recompile"):
        f(x3), f(torch.ones(4))
    assert f.explain().count("trace of") == 1 and "replayed 1 times" in f.explain()
    with torch.compiler.set_stance("fail_on_recompile"):
        assert f(x3).tolist() == [2.0] * 3
        with pytest.raises(RuntimeError, match="Detected recompile when"):
            f(torch.ones(4))
    f(torch.ones(4))
    assert f.explain().count("trace of") >= 2


def test_stances_as_function_and_decorator():
    f = torch.compile(doubled)

    @torch.compiler.set_stance("force_eager")
    def eagerly(x):
        return f(x)

    eagerly(x3)
    assert f.explain().endswith("not called yet")
    torch.compiler.set_stance("eager_then_compile")
    f(x3)
    assert f.explain().endswith("not called yet")
    f(x3)
    assert "trace of 2 ops" in f.explain()
    torch.compiler.set_stance("fail_on_recompile")
    with pytest.raises(RuntimeError, match="differs"):
        f(torch.ones(2, 2))
    torch.compiler.set_stance("default")
    f(torch.ones(2, 2))
    with pytest.raises(RuntimeError, match=r"invalid .* stance 'foo'"):
        torch.compiler.set_stance("foo")


def test_calls_pay_nothing_for_stances():
    from wengert.compiling import CompiledFunction

    before = vars(CompiledFunction)["__call__"]
    with torch.compiler.set_stance("force_eager"):
        assert vars(CompiledFunction)["__call__"] is not before
    assert vars(CompiledFunction)["__call__"] is before


@pytest.mark.parametrize("reset", ["compiler", "_dynamo"])
def test_reset_forgets_all_recordings(reset):
    f, g = torch.compile(doubled), torch.compile(looks)
    f(x3), g(x3), g(x3)
    getattr(torch, reset).reset()
    assert f.explain().endswith("not called yet") and g.explain().endswith("not called yet")
    assert f(x3).tolist() == g(x3).tolist() == [2.0] * 3


def test_config_knows_its_names():
    config = torch._dynamo.config
    assert config.recompile_limit == config.cache_size_limit == 8
    with config.patch(cache_size_limit=3, verbose=True):
        assert config.recompile_limit == 3 and config.verbose
    assert config.recompile_limit == 8 and not config.verbose
    config.suppress_errors = True
    assert config.shallow_copy_dict()["suppress_errors"] is True
    config.suppress_errors = False
    for act in (lambda: config.foo, lambda: setattr(config, "foo", 1)):
        with pytest.raises(AttributeError, match=r"_dynamo\.config\.foo does not exist"):
            act()
    torch._inductor.config.triton.cudagraphs = True
    assert torch._inductor.config.shallow_copy_dict()["triton.cudagraphs"] is True
    torch._inductor.config.triton.cudagraphs = False


def test_config_that_has_an_effect():
    f = torch.compile(doubled)
    with torch._dynamo.config.patch(disable=True):
        f(x3)
    assert f.explain().endswith("not called yet")
    with torch._dynamo.config.patch("error_on_recompile", True):
        f(x3)
        with pytest.raises(torch._dynamo.exc.RecompileError, match="x differs"):
            f(torch.ones(4))


def test_marked_dimensions():
    f = torch.compile(doubled)
    x = torch.ones(5, 3)
    torch._dynamo.mark_dynamic(x, 0)
    f(x)
    assert "n = x.shape[0]" in f.explain()
    with torch.compiler.set_stance("fail_on_recompile"):
        assert f(torch.ones(7, 3)).shape == (7, 3)
    g = torch.compile(doubled)
    for n in (5, 6, 7):
        x = torch.ones(n, 3)
        torch._dynamo.mark_static(x)
        g(x)
    assert "symbolic" not in g.explain() and g.explain().count("trace of") == 3
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch._dynamo.mark_dynamic(x, 2)


def test_explain_and_optimize():
    said = torch._dynamo.explain(torch.compile(looks))(x3)
    assert said.graph_break_count == 1 and "hands a value to Python" in said.break_reasons[0]
    assert str(said).startswith("Graph Count: 1\nGraph Break Count: 1\n")
    said = torch._dynamo.explain(doubled)(x3)
    assert (said.graph_count, said.graph_break_count, said.op_count) == (1, 0, 2)
    assert said.ops_per_graph == [["constant", "mul"]] and "trace of 2 ops" in str(said)
    assert torch._dynamo.optimize("inductor")(doubled)(x3).tolist() == [2.0] * 3
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch._dynamo.optimize(nopython=True)(looks)(x3)


def test_wrap_numpy():
    import numpy as np

    f = torch.compiler.wrap_numpy(lambda a, b: {"sum": a + b, "max": np.max(a)})
    got = f(torch.ones(2), torch.ones(2))
    assert got["sum"].tolist() == [2.0, 2.0] and got["max"].item() == 1.0
    assert isinstance(got["max"], torch.Tensor)
