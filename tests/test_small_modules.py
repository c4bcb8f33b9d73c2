"""`torch.overrides`, `torch.types`, `torch.cpu`: torch 2.13's answers."""

import pytest
import wengert as torch


class Asked:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return cls.__name__, func.__name__, types, args, kwargs


class Nearer(Asked):
    pass


class Silent:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def mine(x, y, scale=1):
    if torch.overrides.has_torch_function((x, y)):
        return torch.overrides.handle_torch_function(mine, (x, y), x, y, scale=scale)
    return x + y * scale


def test_functions_of_users_ask_their_arguments():
    a, b = Asked(), Nearer()
    assert mine(a, b, scale=2) == ("Nearer", "mine", (Nearer, Asked), (a, b), {"scale": 2})
    assert mine(Silent(), a)[0] == "Asked"
    assert mine(torch.ones(1), torch.ones(1)).item() == 2
    with pytest.raises(TypeError, match=r"no implementation found for '.*mine' on types that"):
        mine(Silent(), 1)
    wrapped = torch.overrides.wrap_torch_function(lambda x: (x,))(lambda x: x + 1)
    assert wrapped(1) == 2 and wrapped(a)[0] == "Asked"


def test_questions():
    o = torch.overrides
    assert [o.is_tensor_like(x) for x in (Asked(), 3, torch.ones(1))] == [True, False, True]
    parameter = torch.nn.Parameter(torch.ones(1))
    assert not o.has_torch_function((1, torch.ones(1), parameter))
    assert o.has_torch_function_unary(Asked()) and o.has_torch_function_variadic(1, Asked())
    assert o.resolve_name(torch.Tensor.matmul) == "torch.Tensor.matmul"
    assert o.resolve_name(torch.nn.functional.relu) == "torch.nn.functional.relu"
    assert o.resolve_name(torch.add) == "torch.add"


def test_types():
    types = torch.types
    assert isinstance(2.5, types.Number) and not isinstance("2.5", types.Number)
    assert isinstance(torch.device("cpu"), types.Device) and isinstance(None, types.Device)
    assert isinstance(torch.Size([2]), types._size)
    assert types._dtype is torch.dtype and types._int is int


def test_cpu():
    cpu = torch.cpu
    assert cpu.is_available() and cpu.is_initialized() and cpu.device_count() == 1
    assert cpu.current_device() == "cpu" and cpu.synchronize() is None
    before, stream = cpu.current_stream(), cpu.Stream()
    with cpu.stream(stream) as given:
        assert given is None and cpu.current_stream() is stream
    assert cpu.current_stream() is before and cpu.Event().query()
    with pytest.warns(FutureWarning, match="is deprecated"), cpu.amp.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.bfloat16
