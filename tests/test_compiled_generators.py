"""Compiled generator and coroutine functions are those that eager has."""

import asyncio
import contextlib
import functools
import inspect

import pytest
import wengert as torch


def numbers(x, scale=2.0):
    got = yield x * scale
    while got is not None:
        got = yield x * got
    return "end"


def driven(function, decorate):
    """What a consumer sees who changes the mode between values."""
    x = torch.ones(2, requires_grad=True)
    seen = []
    with decorate():
        running = function(x)
    for mode, sent in ((True, None), (False, 3.0), (True, 4.0)):
        with torch.set_grad_enabled(mode):
            value = running.send(sent)
            seen.append((value.tolist(), value.requires_grad, torch.is_grad_enabled()))
    with pytest.raises(StopIteration) as stop:
        running.send(None)
    return seen, stop.value.value


@pytest.mark.parametrize("around", [contextlib.nullcontext, torch.no_grad, torch.enable_grad])
def test_modes_are_those_of_whoever_asks(around):
    compiled = torch.compile(numbers)
    assert driven(compiled, around) == driven(numbers, around)


@pytest.mark.parametrize("mode", [torch.no_grad(), torch.enable_grad(), torch.inference_mode()])
def test_modes_decorate(mode):
    with torch.no_grad():
        expected = driven(mode(numbers), contextlib.nullcontext)
        assert driven(mode(torch.compile(numbers)), contextlib.nullcontext) == expected


def test_they_are_told_from_other_functions():
    compiled = torch.compile(numbers)
    assert inspect.isgeneratorfunction(compiled)
    assert inspect.signature(compiled) == inspect.signature(numbers)
    partial = torch.compile(functools.partial(numbers, scale=5.0))
    assert inspect.isgeneratorfunction(partial)
    assert next(partial(torch.ones(1))).item() == 5.0
    assert not inspect.isgeneratorfunction(torch.compile(lambda x: x * 2))


def test_methods():
    class Source:
        @torch.compile
        def each(self, x):
            yield x + 1
            yield self

    source = Source()
    assert inspect.isgeneratorfunction(source.each)
    first, second = source.each(torch.ones(1))
    assert first.item() == 2.0 and second is source


def test_context_managers_and_coroutines():
    @contextlib.contextmanager
    @torch.compile
    def without_history():
        with torch.no_grad():
            yield

    x = torch.ones(2, requires_grad=True)
    with without_history():
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad

    @torch.compile
    async def later(x):
        return x * 2

    assert inspect.iscoroutinefunction(later)
    assert asyncio.run(later(x)).tolist() == [2.0, 2.0]


def test_compiled_callers_make_them_part_of_their_graph():
    compiled = torch.compile(numbers)
    total = torch.compile(lambda x: sum(compiled(x), torch.zeros(2)))
    x = torch.ones(2, requires_grad=True)
    for _ in range(3):
        result = total(x)
        assert result.tolist() == [2.0, 2.0]
    assert result.grad_fn.name() == "CompiledFunctionBackward"
    assert "replayed 2 times" in total.explain()


def test_explain_says_why_nothing_is_compiled():
    assert "as its values are asked for" in torch.compile(numbers).explain()
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(numbers, fullgraph=True)(torch.ones(1))
