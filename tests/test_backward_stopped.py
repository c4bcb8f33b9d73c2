"""A hook that raises stops a backward: what that did not come to can still be gone through."""

import pytest
import wengert as torch


def leaves():
    torch.manual_seed(0)
    return [torch.randn(3).requires_grad_() for _ in range(4)]


def sums(a, b, c, d):
    return (((a * b) + c) + d).sum()


def products(a, b, c, d):
    return (a.exp() * b).sum() + (c * d).sum()


def chain(a, b, c, d):
    return (((a * b).tanh() + c).exp() * d + b).sum()


def views(a, b, c, d):
    return (a * b)[1:].sum() + c.reshape(3, 1).mean() + d.sigmoid()[0]


def two(a, b, c, d):
    y = a * b
    return (y + c).sum(), (y.exp() + d).sum()


def dropped(a, b, c, d):
    return (torch.nn.functional.dropout(a * b, 0.5) + c + d).sum()


def attempt(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__, str(error)[:60]
    return None


def left(tensors):
    return [None if t.grad is None else t.grad.tolist() for t in tensors]


def close(a, b):
    if isinstance(a, float):
        return a == pytest.approx(b, rel=1e-4, abs=1e-5)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(close, a, b))
    return a == b


def stops(leaf, kind, found, raising):
    """Gives a leaf a hook that raises when it is told to."""

    def hook(*_):
        found.append("hook")
        if raising:
            raise ValueError("no more")

    if kind == "tensor":
        return leaf.register_hook(hook)
    if kind == "after":
        return leaf.register_post_accumulate_grad_hook(hook)
    node = leaf.expand_as(leaf).grad_fn.next_functions[0][0]
    return node.register_prehook(hook) if kind == "before" else node.register_hook(hook)


BODIES = [sums, products, chain, views, dropped]


@pytest.mark.parametrize("kind", ["tensor", "after"])
@pytest.mark.parametrize("hooked", range(4))
@pytest.mark.parametrize("body", BODIES)
def test_a_second_backward(body, hooked, kind):
    def run(wrap):
        tensors, f, found = leaves(), wrap(body), []
        raising = []
        stops(tensors[hooked], kind, found, raising)
        for k in range(4):
            y = f(*tensors)
            raising[:] = [1] * (k > 0)
            found.append((attempt(y.backward), left(tensors)))
            raising.clear()
            found.extend((attempt(y.backward), left(tensors)) for _ in range(2))
        return found

    assert close(run(torch.compile), run(lambda f: f))


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("hooked", range(4))
@pytest.mark.parametrize("first", [0, 1])
def test_another_result(first, hooked, times):
    def run(wrap):
        tensors, f, found = leaves(), wrap(two), []
        raising = []
        stops(tensors[hooked], "tensor", found, raising)
        for _ in range(4):
            results = f(*tensors)
            raising[:] = [1]
            for _ in range(times):
                found.append((attempt(results[first].backward), left(tensors)))
            raising.clear()
            for k in (1 - first, first):
                found.append((attempt(results[k].backward), left(tensors)))
        return found

    assert close(run(torch.compile), run(lambda f: f))


@pytest.mark.parametrize("after", ["write", "data", "retain", "create_graph", "grad"])
@pytest.mark.parametrize("hooked", range(4))
@pytest.mark.parametrize("body", [sums, chain])
def test_what_comes_after(body, hooked, after):
    def again(y, tensors):
        if after in ("write", "data"):
            with torch.no_grad():
                target = tensors[0].data if after == "data" else tensors[0]
                target.mul_(1.5)
            return y.backward()
        if after == "grad":
            return torch.autograd.grad(y, tensors[:2])
        return y.backward(retain_graph=True, create_graph=after == "create_graph")

    def run(wrap):
        tensors, f, found = leaves(), wrap(body), []
        raising = []
        stops(tensors[hooked], "tensor", found, raising)
        for _ in range(4):
            y = f(*tensors)
            raising[:] = [1]
            found.append((attempt(y.backward), left(tensors)))
            raising.clear()
            found.extend((attempt(lambda y=y: again(y, tensors)), left(tensors)) for _ in range(2))
            for t in tensors:
                t.grad = None
        return found

    assert close(run(torch.compile), run(lambda f: f))


@pytest.mark.parametrize("how", ["in place", "data"])
@pytest.mark.parametrize("writer, hooked", [(2, 1), (3, 2), (2, 3), (0, 1)])
@pytest.mark.parametrize("body", [sums, products, chain])
def test_a_hook_wrote_before(body, writer, hooked, how):
    """As an optimizer does that steps when a gradient has arrived."""

    def run(wrap):
        tensors, f, found = leaves(), wrap(body), []
        raising = []

        def write(leaf):
            with torch.no_grad():
                (leaf.data if how == "data" else leaf).mul_(1.5)

        tensors[writer].register_post_accumulate_grad_hook(write)
        stops(tensors[hooked], "tensor", found, raising)
        for _ in range(4):
            y = f(*tensors)
            raising[:] = [1]
            found.append((attempt(y.backward), left(tensors)))
            raising.clear()
            found.append((attempt(y.backward), left(tensors)))
        return found

    assert close(run(torch.compile), run(lambda f: f))


@pytest.mark.parametrize("written", range(4))
@pytest.mark.parametrize("hooked", range(4))
def test_writes_before_a_third_backward(hooked, written):
    def run(wrap):
        tensors, f, found = leaves(), wrap(sums), []
        raising = []
        stops(tensors[hooked], "tensor", found, raising)
        for _ in range(4):
            y = f(*tensors)
            for kept in (False, True, True):
                raising[:] = [1] * (not kept)
                found.append((attempt(lambda: y.backward(retain_graph=kept)), left(tensors)))  # noqa: B023
            with torch.no_grad():
                tensors[written].mul_(1.5)
            found.append((attempt(y.backward), left(tensors)))
        return found

    assert close(run(torch.compile), run(lambda f: f))


def test_behind_other_calls():
    """Only the call whose leaf has the hook is gone through in part."""

    def run(wrap):
        (a, b, c, d), found = leaves(), []
        first, second = wrap(lambda a, b: (a * b).tanh()), wrap(lambda y, c, d: (y * c + d).sum())
        raising = []
        stops(d, "tensor", found, raising)
        for _ in range(4):
            y = first(a, b)
            z = second(y * 1, c, d)
            raising[:] = [1]
            found.append((attempt(z.backward), left((a, b, c, d))))
            raising.clear()
            found.append((attempt(z.backward), left((a, b, c, d))))
            found.append((attempt(y.sum().backward), left((a, b, c, d))))
        return found

    assert close(run(torch.compile), run(lambda f: f))


@pytest.mark.parametrize("way", ["grad", "inputs"])
@pytest.mark.parametrize("first", [(3,), (0,), (2, 3), (0, 1)])
@pytest.mark.parametrize("body", BODIES)
def test_gradients_of_some_inputs(body, first, way):
    """The ops that lead to others only are not gone through."""

    def run(wrap):
        tensors, f, found = leaves(), wrap(body), []
        for k in range(4):
            y = f(*tensors)
            for numbers in (first, (1,), (2,), (0, 3)):
                wanted = [tensors[n] for n in numbers]
                call = gradients if way == "grad" else backward
                found.append((attempt(lambda: call(y, wanted, found)), left(tensors)))  # noqa: B023
                if k == 3:
                    with torch.no_grad():
                        tensors[1].mul_(1.5)
        return found

    def gradients(y, wanted, found):
        found.append([g.tolist() for g in torch.autograd.grad(y, wanted)])

    def backward(y, wanted, found):
        y.backward(inputs=wanted)

    assert close(run(torch.compile), run(lambda f: f))


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("retain", [False, True])
def test_what_a_result_does_not_lead_to(first, retain):
    """Hooks there are not run, and nothing is freed there; leaves do not wait for it."""

    def run(wrap):
        (a, b, c, d), f, found = leaves(), wrap(two), []
        for k, t in enumerate((a, b, c, d)):
            t.register_hook(lambda g, k=k: found.append((k, g is None)))
            t.register_post_accumulate_grad_hook(lambda t, k=k: found.append(k))
        for k in range(4):
            middle = c * d if k % 2 else c * 2
            middle.register_hook(lambda g: found.append(("middle", g is None)))
            results = f(a, c if k == 3 else b, middle, d)
            for number in (first, 1 - first):
                y = results[number] * 2
                again = [attempt(lambda y=y: y.backward(retain_graph=retain)) for _ in range(2)]
                found.append((again, left((a, b, c, d))))
        return found

    assert close(run(torch.compile), run(lambda f: f))


def test_what_arguments_have_behind_them_is_not_the_calls():
    """Results that keep nothing are not spent, though a call was recorded with spent arguments."""

    def run(wrap):
        (a, b, _, _), f, found = leaves(), wrap(lambda x, y: ((x + y).sum(), (x - y).sum())), []
        for k in range(4):
            results = f(*((a, b) if k else (a.exp(), b.tanh())))
            found += [attempt(results[n].backward) for n in (0, 1, 1, 0)]
        return found, left((a, b))

    assert close(run(torch.compile), run(lambda f: f))
