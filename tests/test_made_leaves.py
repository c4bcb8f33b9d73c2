"""Leaves that a compiled body makes for itself: detached inputs, new tensors that require grad."""

import pytest
import wengert as torch
from alike import differences, facts, outcome
from scenarios import Scenarios, check, data

scenario = Scenarios()


def over_calls(wrap, body, *more):
    f = wrap(body)
    return [f(data(3, k=k), *more) for k in range(4)]


@scenario
def gradient_of_a_detached_argument(wrap):
    def body(x):
        leaf = x.detach().requires_grad_()
        (leaf.sin() * x).sum().backward()
        return x + 0.1 * leaf.grad.sign(), leaf.grad

    return over_calls(wrap, body)


@scenario
def flag_of_a_view(wrap):
    def body(x):
        leaf = x[1:].detach()
        leaf.requires_grad = True
        leaf.exp().sum().backward()
        return leaf.grad

    return over_calls(wrap, body)


@scenario
def a_leaf_beside_what_it_was_detached_from(wrap):
    def body(x):
        leaf = x.detach().requires_grad_()
        return torch.autograd.grad((leaf * x * x).sum(), (leaf, x))

    f = wrap(body)
    return [f(data(3, k=k).requires_grad_()) for k in range(4)]


@scenario
def equation_of_derivatives(wrap):
    weight = torch.nn.Parameter(data(3))

    def body(x):
        x = x.detach().requires_grad_(True)
        (slope,) = torch.autograd.grad((x * weight).tanh().sum(), x, create_graph=True)
        loss = (slope**2).mean()
        loss.backward()
        return loss, x.grad

    f, seen = wrap(body), []
    for k in range(4):
        weight.grad = None
        seen += [f(data(3, k=k)), weight.grad.clone()]
    return seen


@scenario
def backward_outside_passes_the_leaf(wrap):
    weight = torch.nn.Parameter(data(3))

    def body(x):
        x = x.detach().requires_grad_(True)
        (slope,) = torch.autograd.grad((x * weight).tanh().sum(), x, create_graph=True)
        return (slope**2).mean()

    f, seen = wrap(body), []
    for k in range(4):
        weight.grad = None
        f(data(3, k=k)).backward()
        seen.append(weight.grad.clone())
    return seen


@scenario
def steps_of_an_inner_search(wrap):
    def body(x):
        guess = torch.zeros(3, requires_grad=True)
        for _ in range(3):
            (slope,) = torch.autograd.grad(((guess - x) ** 2).sum(), guess)
            guess = (guess - 0.1 * slope).detach().requires_grad_()
        return guess

    return over_calls(wrap, body)


@scenario
def a_new_leaf_and_its_gradient(wrap):
    def body(x):
        leaf = torch.zeros(3, requires_grad=True)
        ((leaf - x) ** 2).sum().backward()
        return leaf

    f = wrap(body)
    leaves = [f(data(3, k=k)) for k in range(4)]
    return [(leaf, leaf.grad, leaf.is_leaf) for leaf in leaves]


@scenario
def the_argument_is_written_later(wrap):
    def body(x):
        leaf = x.detach().requires_grad_()
        (leaf * leaf).sum().backward()
        x.add_(1)
        return leaf.grad * 2, leaf.detach() * 1

    f, seen = wrap(body), []
    for k in range(4):
        x = data(3, k=k)
        seen += [f(x), x]
    return seen


@scenario
def the_flag_goes_again(wrap):
    def body(x):
        leaf = x.detach().requires_grad_()
        doubled = leaf * 2
        leaf.requires_grad_(False)
        return doubled.detach(), leaf * 3

    return over_calls(wrap, body)


@pytest.mark.parametrize("run", scenario, ids=lambda f: f.__name__)
def test_native(run):
    made = []

    def wrap(body):
        made.append(torch.compile(body))
        return made[-1]

    check(run)
    run(wrap)
    assert all(" replayed " in f.explain() for f in made)


# --- where backward would show the leaf, Python runs ---------------------------------------------

seen = Scenarios()


@seen
def history_of_a_made_leaf_alone(wrap):
    def body(x):
        leaf = (x * 2).detach().requires_grad_()
        return (leaf * leaf).sum()

    results = over_calls(wrap, body)
    for result in results:
        result.backward()
    return results


@seen
def leaf_and_what_leads_to_it(wrap):
    def body(x):
        leaf = x.detach().requires_grad_()
        return leaf, (leaf * leaf).sum()

    results = over_calls(wrap, body)
    for _, loss in results:
        loss.backward()
    return [(leaf, leaf.grad) for leaf, _ in results]


@seen
def leaf_beside_a_parameter(wrap):
    weight = torch.nn.Parameter(data(3))

    def body(x):
        leaf = x.detach().requires_grad_()
        return leaf, (leaf * weight).sum()

    results = over_calls(wrap, body)
    for _, loss in results:
        loss.backward()
    return [leaf.grad for leaf, _ in results], weight.grad


@pytest.mark.parametrize("run", seen, ids=lambda f: f.__name__)
def test_seen(run):
    check(run)


def test_explained():
    f = torch.compile(lambda x: x.detach().requires_grad_() * 2)
    f(torch.ones(3))
    assert "[R127]" in f.explain()


def test_results_without_a_derivative_are_no_fault(recwarn):
    f = torch.compile(lambda x: torch.floor_divide(x, 2.0))
    x = torch.tensor([5.0, 7.0], requires_grad=True)
    assert [f(x).tolist() for _ in range(3)] == [[2.0, 3.0]] * 3
    assert "[R128]" in f.explain() and not recwarn.list
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide"):
        f(x).sum().backward()


def square(leaf):
    (leaf**2).sum().backward()
    return leaf


VIEWS = {
    "of a new leaf": lambda x: (lambda a: (a[0], a))(x.clone().requires_grad_()),
    "after backward": lambda x: (lambda a: (a[0], a))(square(x.clone().requires_grad_())),
    "alone": lambda x: (lambda a: (a[0],))(square(x.clone().requires_grad_())),
    "of a detached value": lambda x: (lambda y: (lambda a: (a[0], a, y))(
        square(y.detach().requires_grad_())))(x * 2),
    "of what the leaf was detached from": lambda x: (lambda y: (lambda a: (y[:2], a))(
        square(y.detach().requires_grad_())))(x * 2),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("tracked", [True, False])
def test_views_beside_leaves_keep_their_histories(name, tracked):
    body = VIEWS[name]
    compiled = torch.compile(body)
    for k in range(4):
        seen = []
        for run in (body, compiled):
            x = torch.arange(6.0).add(k).view(3, 2).requires_grad_(tracked)
            made = run(x)
            seen.append(facts([x, made]))
            seen.append(facts([outcome(lambda made=made: made[0].sum().backward()), x, made]))
        assert differences(seen[0], seen[2]) == []
        assert differences(seen[1], seen[3]) == []
