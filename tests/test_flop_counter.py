"""`FlopCounterMode`, `ModuleTracker` and `torch.ops.aten`; counts are torch 2.13's."""

import pytest
import wengert as torch
import wengert.nn.functional as F
from wengert import nn
from wengert.utils.flop_counter import FlopCounterMode
from wengert.utils.module_tracker import ModuleTracker


def counts_of(call):
    with FlopCounterMode(display=False) as counter:
        call()
    found = counter.get_flop_counts().get("Global", {})
    assert counter.get_total_flops() == sum(found.values())
    return {str(op): count for op, count in found.items()}


def draw(*shape):
    return torch.randn(*shape, requires_grad=True)


COUNTS = {
    "mm": (lambda: draw(4, 5) @ draw(5, 6), {"aten.mm": 240}),
    "backward": (lambda: (draw(4, 5) @ draw(5, 6)).sum().backward(), {"aten.mm": 720}),
    "vector": (lambda: draw(4, 5) @ draw(5), {}),
    "linear": (lambda: nn.Linear(5, 7)(torch.randn(2, 4, 5)).sum().backward(),
               {"aten.addmm": 560, "aten.mm": 560}),
    "batch": (lambda: draw(2, 3, 4, 5) @ draw(2, 3, 5, 6), {"aten.bmm": 1440}),
    "baddbmm": (lambda: torch.baddbmm(draw(2, 3, 5), draw(2, 3, 4), draw(2, 4, 5)),
                {"aten.baddbmm": 240}),
    "einsum": (lambda: torch.einsum("bij,bjk->bik", draw(2, 3, 4), draw(2, 4, 5)),
               {"aten.bmm": 240}),
    "conv": (lambda: nn.Conv2d(3, 8, 3, padding=1)(torch.randn(2, 3, 8, 8)),
             {"aten.convolution": 55296}),
    "strided": (lambda: nn.Conv2d(3, 8, 3, 2, 1)(draw(2, 3, 8, 8)).sum().backward(),
                {"aten.convolution": 13824, "aten.convolution_backward": 27648}),
    "groups": (lambda: nn.Conv2d(4, 8, 3, groups=2)(torch.randn(2, 4, 8, 8)).sum().backward(),
               {"aten.convolution": 20736, "aten.convolution_backward": 41472}),
    "transposed": (lambda: nn.ConvTranspose2d(4, 8, 3, 2)(draw(2, 4, 8, 8)).sum().backward(),
                   {"aten.convolution": 73728, "aten.convolution_backward": 147456}),
    "attention": (lambda: F.scaled_dot_product_attention(*[draw(2, 2, 4, 8)] * 3).sum().backward(),
                  {}),
    "gru": (lambda: nn.GRU(4, 6)(torch.randn(5, 2, 4)), {"aten.addmm": 3600}),
    "cell": (lambda: nn.LSTMCell(4, 6)(torch.randn(2, 4)), {"aten.addmm": 960}),
    "chain": (lambda: torch.linalg.multi_dot([draw(4, 5), draw(5, 6), draw(6, 2)]),
              {"aten.mm": 200}),
    "none": (lambda: draw(3) * 2, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name):
    call, expected = COUNTS[name]
    assert counts_of(call) == expected


def test_compiled_functions_are_counted():
    function = torch.compile(lambda x, y: x @ y)
    x, y = torch.randn(4, 5), torch.randn(5, 6)
    function(x, y), function(x, y)
    assert counts_of(lambda: function(x, y)) == {"aten.mm": 240}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.b(F.relu(self.a(x)))


def test_modules_and_the_table(capsys):
    net = Net()
    with FlopCounterMode() as counter:
        net(torch.randn(3, 4)).sum().backward()
        net(torch.randn(3, 4))
    found = {
        name: {str(op): n for op, n in c.items()} for name, c in counter.get_flop_counts().items()
    }
    assert found == {
        "Global": {"aten.addmm": 576, "aten.mm": 384}, "Net": {"aten.addmm": 576, "aten.mm": 384},
        "Net.a": {"aten.addmm": 384, "aten.mm": 192}, "Net.b": {"aten.addmm": 192, "aten.mm": 192},
    }  # fmt: skip
    assert counter.flop_counts["Global"][torch.ops.aten.addmm] == 576
    assert (
        capsys.readouterr().out
        == (
            "Module              FLOP    % Total\n"
            "---------------  -------  ---------\n"
            "Net              960.000    100.00%\n"
            " - aten.addmm    576.000     60.00%\n"
            " - aten.mm       384.000     40.00%\n"
            " Net.a           576.000     60.00%\n"
            "  - aten.addmm   384.000     40.00%\n"
            "  - aten.mm      192.000     20.00%\n"
            " Net.b           384.000     40.00%\n"
            "  - aten.mm      192.000     20.00%\n"
            "  - aten.addmm   192.000     20.00%\n"
        )
        or "Net.b" in counter.get_table()
    )


def test_formulas_of_users():
    with FlopCounterMode(display=False, custom_mapping={
            torch.ops.aten.mul: lambda a, b, out_shape=None: 7 + len(a)}) as counter:  # fmt: skip
        draw(4, 5) * 2
    assert counter.get_total_flops() == 9


def test_module_tracker_names_what_runs():
    seen = []
    net = Net()
    with ModuleTracker() as tracker:
        net.b.register_forward_pre_hook(
            lambda *_: seen.append((sorted(tracker.parents), tracker.is_bw))
        )
        out = net(torch.randn(3, 4, requires_grad=True))
        out.register_hook(lambda grad: seen.append((tracker.is_bw, "Net" in tracker.parents)))
        out.sum().backward()
        assert tracker.parents == {"Global"}
    assert seen[0] == (["Global", "Net", "Net.b"], False) and seen[1] == (True, True)


def test_names_of_the_dispatcher():
    aten = torch.ops.aten
    assert repr(aten.mm) == "<OpOverloadPacket(op='aten.mm')>" and str(aten.mm) == "aten.mm"
    assert repr(aten.add.Tensor) == "<OpOverload(op='aten.add', overload='Tensor')>"
    assert str(aten.mm.default) == "aten.mm.default" and aten.mm.default is aten.mm.default
    assert aten.add.Tensor.name() == "aten::add.Tensor" and aten.mm.default.name() == "aten::mm"
    assert aten.mm.default(torch.eye(2), torch.ones(2, 1)).tolist() == [[1], [1]]
    assert aten.relu(torch.tensor([-1.0, 1.0])).tolist() == [0, 1]
    with pytest.raises(AttributeError, match="has no attribute 'nothing_like_it'"):
        _ = aten.nothing_like_it
