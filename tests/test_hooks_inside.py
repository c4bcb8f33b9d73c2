"""Hooks of tensors from outside that backward runs inside a compiled function."""

import pytest
import wengert as torch

SCALE = 2.0


def noting(p, log, scale):
    p.register_post_accumulate_grad_hook(lambda t: log.append(len(log)))


def noting_at_the_node(p, log, scale):
    node = (p * 1).grad_fn.next_functions[0][0]
    node.register_hook(lambda *grads: log.append(len(log)))
    return node


def noting_before_the_node(p, log, scale):
    node = (p * 1).grad_fn.next_functions[0][0]
    node.register_prehook(lambda grads: (grads[0] * 3,) if log.append(1) is None else None)
    return node


def by_a_method(p, log, scale):
    p.register_hook(log.append)


def by_a_list(p, log, scale):
    p.register_hook(lambda g: g * scale[0])


def by_a_global(p, log, scale):
    p.register_hook(lambda g: g * SCALE)


def plainly(p, log, scale):
    p.register_hook(lambda g: g * 2)


def stepping(p, log, scale):
    p.register_post_accumulate_grad_hook(lambda t: t.data.add_(t.grad, alpha=-0.1))


HOOKS = [noting, noting_at_the_node, noting_before_the_node, by_a_method, by_a_list, by_a_global,
         plainly, stepping]  # fmt: skip


def outcome(register, given, wrap):
    global SCALE
    p, log, scale = torch.ones(3).requires_grad_(), [], [2.0]
    kept = register(p, log, scale)

    def body(x, p):
        (p * x).sum().backward()
        return x * 2

    f = wrap(body if given else lambda x: body(x, p))
    found = []
    for k in range(6):
        SCALE = scale[0] = 2.0 + k // 2
        x = torch.full((3,), k + 1.0)
        f(x, p) if given else f(x)
        found.append((p.grad.tolist(), [str(entry) for entry in log], p.tolist(), p._version))
    del kept
    return found, f


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("register", HOOKS)
def test_hooks_run_at_every_call(register, given):
    eager, _ = outcome(register, given, lambda f: f)
    compiled, _ = outcome(register, given, torch.compile)
    assert compiled == eager


@pytest.mark.parametrize("register", [plainly, stepping, by_a_global])
def test_hooks_that_only_compute_are_compiled(register):
    _, f = outcome(register, True, torch.compile)
    assert not f.refusals
    assert sum(trace.hits for traces in f.traces.values() for trace in traces) > 0


def test_a_hook_that_comes_later_is_seen():
    p, log = torch.ones(3).requires_grad_(), []
    f = torch.compile(lambda x: (p * x).sum().backward())
    for _ in range(3):
        f(torch.ones(3))
    node = (p * 1).grad_fn.next_functions[0][0]
    handle = node.register_hook(lambda *grads: log.append(1))
    f(torch.ones(3))
    f(torch.ones(3))
    handle.remove()
    f(torch.ones(3))
    assert log == [1, 1]
    assert p.grad.tolist() == [6, 6, 6]


def on_a_module(model):
    model.register_full_backward_hook(lambda module, given, grads: (given[0] * SCALE,))


def on_a_module_before(model):
    model.register_full_backward_pre_hook(lambda module, grads: (grads[0] * SCALE,))


def on_a_value(model):
    model.register_forward_hook(
        lambda module, given, y: y.register_hook(lambda g: g * SCALE) and None
    )


@pytest.mark.parametrize("register", [on_a_module, on_a_module_before, on_a_value])
def test_hooks_that_each_call_makes_do_not_record_each_call(register):
    def run(wrap):
        global SCALE
        torch.manual_seed(0)
        model, found = torch.nn.Linear(3, 3), []
        register(model)

        def body(x):
            model(x.sin()).sum().backward()

        f = wrap(body)
        for k in range(6):
            SCALE = 2.0 + k // 2
            x = torch.full((2, 3), k + 1.0).requires_grad_()
            f(x)
            found += [x.grad.tolist(), model.weight.grad.tolist()]
        return found, f

    (eager, _), (compiled, f) = run(lambda f: f), run(torch.compile)
    assert compiled == eager
    assert "a hook or retain_grad() on a value inside" in f.explain()
    assert len(f.refusals) == 1 and len(f.hooks.known) <= 2


def test_hooks_of_parameters_that_each_call_makes_do_not_record_for_ever():
    p = torch.ones(3).requires_grad_()

    def body(x):
        handle = p.register_hook(lambda g: g * SCALE)
        (p * x).sum().backward()
        handle.remove()

    global SCALE
    f = torch.compile(body)
    for k in range(12):
        SCALE, p.grad = k + 1.0, None
        f(torch.ones(3))
        assert p.grad.tolist() == [k + 1.0] * 3
    assert "are others at each call" in f.explain() and len(f.hooks.known) < 12
