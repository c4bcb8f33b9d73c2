"""Bodies that put tensors they computed in the place of others: attributes, items, variables."""

import types
import warnings

import pytest
import wengert as torch
from wengert import nn

X = torch.randn(4, 3)


def normed(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(3)
        return kind(nn.Linear(3, 5))


class Recurrent(nn.Module):
    def __init__(self, cut, view=False):
        super().__init__()
        torch.manual_seed(4)
        self.inner = nn.Linear(6, 3)
        self.state, self.cut, self.view = torch.zeros(4, 3), cut, view

    def forward(self, x):
        state = torch.tanh(self.inner(torch.cat([x, self.state], 1)))
        if self.view:
            out = torch.stack([state, state * 2])
            self.state = out[0]
            return out
        self.state = state.detach() if self.cut else state
        return state


MODULES = {
    "weight_norm": lambda: normed(nn.utils.weight_norm),
    "spectral_norm": lambda: normed(nn.utils.spectral_norm),
    "a state, cut": lambda: Recurrent(True),
    "a state with history": lambda: Recurrent(False),
    "a view as state": lambda: Recurrent(False, view=True),
}


def train(module, fn, steps=6):
    found = []
    for k in range(steps):
        module.zero_grad()
        if isinstance(module, Recurrent) and k % 3 == 2:
            module.state = torch.ones(4, 3)
        out = fn(X)
        out.square().sum().backward(retain_graph=True)
        if isinstance(module, Recurrent):
            module.state = module.state.detach()
        found.append(out.tolist())
        with torch.no_grad():
            for p in module.parameters():
                p -= 0.01 * p.grad
    kept = getattr(module, "state", getattr(module, "weight", None))
    return found, kept.tolist()


@pytest.mark.parametrize("name", MODULES)
def test_modules_train_alike(name):
    eager, module = MODULES[name](), MODULES[name]()
    fn = torch.compile(module)
    wanted, found = train(eager, eager), train(module, fn)
    torch.testing.assert_close(torch.tensor(found[0]), torch.tensor(wanted[0]))
    torch.testing.assert_close(torch.tensor(found[1]), torch.tensor(wanted[1]))


@pytest.mark.parametrize("name", MODULES)
def test_they_are_compiled(name):
    module = MODULES[name]()
    fn = torch.compile(module)
    for _ in range(4):
        if isinstance(module, Recurrent):
            module.state = torch.zeros(4, 3)
        before = getattr(module, "state", getattr(module, "weight", None))
        out = fn(X)
        after = getattr(module, "state", getattr(module, "weight", None))
        assert after is not before
    assert "replayed 3 times" in fn.explain()
    assert out.grad_fn.name() == "CompiledFunctionBackward"


def test_histories_go_on_from_call_to_call():
    eager, module = Recurrent(False), Recurrent(False)
    fn = torch.compile(module)
    for _ in range(3):
        for m, f in ((eager, eager), (module, fn)):
            m.state = torch.zeros(4, 3)
            m.zero_grad()
            f(X)
            f(X)
            f(X).sum().backward()
        torch.testing.assert_close(module.inner.weight.grad, eager.inner.weight.grad)


def test_what_is_kept_and_returned_is_one_tensor():
    module = Recurrent(False)
    fn = torch.compile(module)
    for _ in range(4):
        module.state = torch.zeros(4, 3)
        assert fn(X) is module.state


def places():
    """Bodies with a place of another kind, and how to read it."""
    held = torch.zeros(3)
    items, keys, thing = [torch.zeros(3)], {"a": torch.zeros(3)}, types.SimpleNamespace(t=None)
    thing.t = torch.zeros(3)

    def variable(x):
        nonlocal held
        held = held + x
        return held * 2

    def item(x):
        items[0] = items[0] + x
        return items[0] * 2

    def key(x):
        keys["a"] = keys["a"] + x
        return keys["a"] * 2

    def attribute(x):
        thing.t = thing.t + x
        return thing.t * 2

    return {
        "variable": (variable, lambda: held),
        "item": (item, lambda: items[0]),
        "key": (key, lambda: keys["a"]),
        "attribute": (attribute, lambda: thing.t),
    }


@pytest.mark.parametrize("name", ["variable", "item", "key", "attribute"])
def test_places_of_all_kinds(name):
    (body, kept), (other, kept_too) = places()[name], places()[name]
    fn = torch.compile(body)
    for k in range(6):
        x = torch.full((3,), float(k))
        assert fn(x).tolist() == other(x).tolist()
        assert kept().tolist() == kept_too().tolist()
    assert "trace of" in fn.explain()


def test_others_see_what_was_put_there():
    module = Recurrent(True)
    fn, reader = torch.compile(module), torch.compile(lambda: module.state * 2)
    for _ in range(5):
        fn(X)
        assert reader().tolist() == (module.state * 2).tolist()


def test_classes_stay_with_python():
    class Holder:
        last = torch.zeros(3)

    def body(x):
        Holder.last = x * 2
        return x + 1

    fn = torch.compile(body)
    for k in range(5):
        fn(torch.full((3,), float(k)))
        assert Holder.last.tolist() == [2.0 * k] * 3


def test_modules_that_did_not_change_are_not_compared(monkeypatch):
    """A state is put into one module at each call, which is told of as a change of modules."""
    from wengert.environment import ModuleState

    looked, now = [], ModuleState.now

    def noted(self):
        looked.append(self.module)
        return now(self)

    monkeypatch.setattr(ModuleState, "now", noted)
    module = Recurrent(True)
    fn = torch.compile(module)
    for k in range(8):
        if k == 6:
            looked.clear()
        fn(X)
    assert looked and all(seen is module for seen in looked)
    handle = module.inner.register_forward_hook(lambda *_: torch.zeros(4, 3))
    assert fn(X).tolist() == torch.zeros(4, 3).tolist()
    handle.remove()
    assert fn(X).tolist() != torch.zeros(4, 3).tolist()
