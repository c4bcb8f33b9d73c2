"""Bodies that look at a tensor from outside without computing with it; see Note [Looks at tensors]:
what lies there at a later call must look the same."""

import types

import pytest
import wengert as torch
from wengert import nn

FACTS = {
    "shape": lambda t: t.shape[0],
    "dim": lambda t: t.dim(),
    "numel": lambda t: t.numel(),
    "len": len,
    "like": lambda t: torch.zeros_like(t).numel(),
    "dtype": lambda t: 2 if t.dtype == torch.float32 else 3,
    "requires_grad": lambda t: 2 if t.requires_grad else 3,
    "is_contiguous": lambda t: 2 if t.is_contiguous() else 3,
    "stride": lambda t: t.stride()[0],
    "isinstance": lambda t: 2 if isinstance(t, nn.Parameter) else 3,
    "type": lambda t: 2 if type(t) is nn.Parameter else 3,
}
OTHERS = [
    lambda: torch.ones(2, 2), lambda: torch.ones(2, 2), lambda: torch.ones(5),
    lambda: torch.ones(3, 2), lambda: torch.ones(2, 2, dtype=torch.float64),
    lambda: torch.ones(2, 2, requires_grad=True), lambda: torch.ones(4, 2)[::2],
    lambda: nn.Parameter(torch.ones(2, 2)), lambda: torch.ones(2, 2),
]  # fmt: skip
CHANGES = [
    lambda t: None, lambda t: None, lambda t: t.requires_grad_(), lambda t: t.requires_grad_(False),
    lambda t: setattr(t, "data", torch.ones(2, 5)), lambda t: t.t_(), lambda t: t.unsqueeze_(0),
    lambda t: setattr(t, "data", torch.ones(2, 5, dtype=torch.float64)), lambda t: t.resize_(3),
]  # fmt: skip


@pytest.mark.parametrize("computed", [False, True], ids=["looked at", "computed with"])
@pytest.mark.parametrize("fact", FACTS)
def test_another_tensor_at_the_place(fact, computed):
    look, held = FACTS[fact], types.SimpleNamespace()

    def body(x):
        return x * look(held.tensor) + (held.tensor.sum() if computed else 0)

    fn = torch.compile(body)
    for k, make in enumerate(OTHERS):
        held.tensor = make()
        for _ in range(2):
            assert fn(torch.ones(2)).tolist() == body(torch.ones(2)).tolist(), k


@pytest.mark.parametrize("where", ["attribute", "parameter", "item of a tuple"])
@pytest.mark.parametrize("fact", FACTS)
def test_the_same_tensor_changed(fact, where):
    look, module = FACTS[fact], nn.Linear(2, 2)
    tensor = module.weight if where == "parameter" else torch.ones(2, 2)
    held, pair = types.SimpleNamespace(tensor=tensor), (tensor,)
    body = {
        "attribute": lambda x: x * look(held.tensor),
        "parameter": lambda x: x * look(module.weight),
        "item of a tuple": lambda x: x * look(pair[0]),
    }[where]
    fn = torch.compile(body)
    for k, change in enumerate(CHANGES):
        with torch.no_grad():
            change(tensor)
        for _ in range(2):
            assert fn(torch.ones(2)).tolist() == body(torch.ones(2)).tolist(), k


def test_parameters_that_are_frozen_in_between():
    """The loop passes by those that are, so they are no inputs."""

    def run(wrap):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))

        @wrap
        def decay():
            with torch.no_grad():
                for p in model.parameters():
                    if p.requires_grad:
                        p.mul_(0.5)

        for k in range(6):
            model[0].requires_grad_(k % 3 != 0)
            decay()
        return [p.tolist() for p in model.parameters()]

    assert run(torch.compile) == run(lambda f: f)


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = None

    def forward(self, x):
        if self.table is None or self.table.shape[0] < x.shape[0]:
            self.table = torch.arange(x.shape[0]).float()
        return x + self.table[: x.shape[0]]


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_tables_that_grow_on_demand(dynamic):
    eager, module = Table(), Table()
    fn = torch.compile(module, dynamic=dynamic)
    for n in (3, 3, 2, 5, 4, 6, 5, 6, 2):
        assert fn(torch.ones(n)).tolist() == eager(torch.ones(n)).tolist()
        assert module.table.shape == eager.table.shape, n


def test_what_nobody_looked_at_may_be_of_any_type():
    class Keeping(nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.ran = torch.zeros(1), 0

        def forward(self, x):
            self.last = x * 2
            return self.last + 1

    module = Keeping()
    fn = torch.compile(module)
    for n in (2, 4, 5, 6, 7, 3):
        assert fn(torch.ones(n)).tolist() == [3.0] * n
        assert module.last.shape == (n,)
        assert type(module.last) is torch.Tensor
    assert fn.explain().count("recorded as") == 1  # with a size that varies


def test_tensors_have_their_class_again_when_a_body_raises():
    held = types.SimpleNamespace(tensor=torch.ones(2))

    def body(x):
        held.tensor.detach if x is None else held.tensor  # noqa: B018
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        torch.compile(body)(torch.ones(2))
    assert type(held.tensor) is torch.Tensor
