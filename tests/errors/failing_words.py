"""What the lines of the catalogue of errors are written in."""

import functools
import gc
import io
import itertools
import json
import os
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
import wengert as torch
from wengert import distributions as dist
from wengert import nn, optim
from wengert.nn import functional as F
from wengert.nn.utils import prune
from wengert.utils import data

__all__ = ["F", "data", "dist", "nn", "np", "optim", "prune", "time", "torch"]


def t(*shape, requires_grad=False):
    """Ones."""
    return torch.ones(shape, requires_grad=requires_grad)


def i(*values):
    """Integers."""
    return torch.tensor(values)


def leaf():
    return torch.ones(2, requires_grad=True)


def param(grad):
    made = leaf()
    made.grad = torch.full((2,), grad)
    return made


def sgd():
    return optim.SGD([t(2)], lr=0.1)


def put(x, index, value):
    x[index] = value


def set_attribute(owner, name, value):
    setattr(owner, name, value)
    return owner


def give_data(x, value):
    x.data = value


def give_grad(x, value):
    x.grad = value


def twice(y):
    y.backward()
    y.backward()


def change(make):
    y = make()
    y.add_(1)
    y.sum().backward()


def traced(function):
    compiled = torch.compile(function)
    for _ in range(2):
        compiled(t(2))
    return compiled


def made_under(mode, make):
    with mode:
        return make()


def saved_under(pack, unpack):
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        (leaf() * 2).exp().sum().backward()


def with_disabled_hooks():
    with (
        torch.autograd.graph.disable_saved_tensors_hooks("no hooks here; use them outside"),
        torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x),
    ):
        pass


def freed_saved_hooks():
    y = leaf().exp()
    y.sum().backward()
    y.grad_fn._raw_saved_result.register_hooks(lambda x: x, lambda x: x)


def two_saved_hooks():
    saved = leaf().exp().grad_fn._raw_saved_result
    for _ in range(2):
        saved.register_hooks(lambda x: x, lambda x: x)


def applied(forward, backward=lambda ctx, g: g, given=leaf, more=(), again=False):
    """Runs a Function of these methods forward and backward."""
    methods = {"forward": staticmethod(forward)}
    if backward is not None:
        methods["backward"] = staticmethod(backward)
    y = type("Own", (torch.autograd.Function,), methods).apply(given(), *more)
    for _ in range(2 if again else 1):
        (y[0] if isinstance(y, tuple) else y).sum().backward()


def once_differentiable():
    once = torch.autograd.function.once_differentiable
    x = leaf()
    methods = {"forward": staticmethod(lambda ctx, x: x * 2),
               "backward": staticmethod(once(lambda ctx, g: g * 2))}  # fmt: skip
    y = type("Own", (torch.autograd.Function,), methods).apply(x)
    (g,) = torch.autograd.grad(y.sum() * y.sum(), x, create_graph=True)
    g.sum().backward()


def no_setup_context():
    methods = {"forward": staticmethod(lambda x: x * 2)}
    type("Own", (torch.autograd.Function,), methods).apply(leaf())


def both_backward_and_vjp():
    methods = {"forward": staticmethod(lambda ctx, x: x * 2),
               "backward": staticmethod(lambda ctx, g: g),
               "vjp": staticmethod(lambda ctx, g: g)}  # fmt: skip
    type("Own", (torch.autograd.Function,), methods).apply(leaf()).sum().backward()


def under_dual(function):
    with torch.autograd.forward_ad.dual_level():
        return function(torch.autograd.forward_ad)


def wrong_gradient():
    methods = {"forward": staticmethod(lambda ctx, x: x * 2),
               "backward": staticmethod(lambda ctx, g: g)}  # fmt: skip
    return type("Own", (torch.autograd.Function,), methods).apply


def tied():
    net = nn.Module()
    net.a, net.b = nn.Linear(2, 2), nn.Linear(2, 2)
    net.b.weight = net.a.weight
    net.forward = lambda x: net.a(x) + net.b(x)
    return net


def streamed():
    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter([1])

    return Stream()


def unscaled_twice():
    optimizer = optim.SGD([param(1.0)], lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(leaf().sum()).backward()
    for _ in range(2):
        scaler.unscale_(optimizer)


def hooked(register):
    """Runs a module forward and backward with hooks."""
    net = nn.Linear(2, 2)
    register(net)
    net(t(2, requires_grad=True)).sum().backward()


def state_hooked(register):
    net = nn.Linear(2, 2)
    register(net)
    net.load_state_dict(net.state_dict())


def hook_of_step(hook):
    optimizer = sgd()
    optimizer.register_step_pre_hook(hook)
    optimizer.step()


def unlike_transform():
    made = dist.Transform()
    made.domain, made.codomain = dist.constraints.real, dist.constraints.simplex
    return made


def own_distribution():
    class Own(dist.Normal):
        def __init__(self):
            super().__init__(0.0, 1.0)

    return Own()


def lopsided():
    class Rows(data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, k):
            return k

        def __getitems__(self, indices):
            return [0]

    return Rows()


def subset_of_own():
    class Own(data.Subset):
        def __getitem__(self, k):
            return k

    return Own([1, 2], [0])


def changed_saved():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1

    x = leaf() * 1
    methods = {"forward": staticmethod(forward),
               "backward": staticmethod(lambda ctx, g: g * ctx.saved_tensors[0])}  # fmt: skip
    y = type("Own", (torch.autograd.Function,), methods).apply(x)
    x.add_(1)
    y.sum().backward()


def returned_input():
    methods = {"forward": staticmethod(lambda ctx, x: x.view(2)),
               "backward": staticmethod(lambda ctx, g: g)}  # fmt: skip
    return type("Own", (torch.autograd.Function,), methods).apply(leaf() * 1)


def archive(records):
    """A file as `save` writes it, with these records."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, content in records.items():
            made.writestr(f"archive/{name}", content)
    file.seek(0)
    return file


def bare_module():
    """A module whose class forgot to call `super().__init__()`."""
    return type("Own", (nn.Module,), {"__init__": lambda self: None})()


def bare_transform():
    return type(
        "Own", (dist.Transform,), {"__init__": lambda self: dist.Transform.__init__(self)}
    )()


def both_global_hooks(first, second):
    """One kind of backward hook for all modules, then the other."""
    handle = first(lambda *args: None)
    try:
        second(lambda *args: None)
    finally:
        handle.remove()
        nn.modules._hooks.Global.backward_is_full = None


def registered_twice():
    net, hook = nn.Linear(2, 2), lambda *args: None
    net.register_state_dict_post_hook(hook)
    net._register_state_dict_hook(hook)


def half_lazy():
    """A lazy module that forgets to give its parameter a shape."""
    methods = {"initialize_parameters": lambda self, *args: None}
    made = type("Own", (nn.modules.lazy.LazyModuleMixin, nn.Module), methods)()
    made.weight = nn.UninitializedParameter()
    return made


def non_leaf_parameter():
    made = nn.Parameter(t(2)).mul(2)
    made.__class__ = nn.Parameter
    return made


def other_pruned_name():
    first, second = prune.L1Unstructured(1), prune.L1Unstructured(1)
    first._tensor_name, second._tensor_name = "weight", "bias"
    prune.PruningContainer(first).add_pruning_method(second)


def pruned_twice(kind):
    methods = {"PRUNING_TYPE": kind, "compute_mask": lambda self, t, default_mask: default_mask}
    own = type("Own", (prune.BasePruningMethod,), methods)
    first, second = prune.L1Unstructured(1), own()
    first._tensor_name = second._tensor_name = "weight"
    container = prune.PruningContainer(first)
    container.add_pruning_method(second)
    container.compute_mask(t(2, 2), t(2, 2))


def stepped(make, parameter, **options):
    parameter.requires_grad_()
    parameter.grad = torch.ones_like(parameter)
    make([parameter], **options).step()


def plateau_with_new_group():
    optimizer = sgd()
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.0])
    optimizer.add_param_group({"params": [t(3)]})
    for _ in range(3):
        scheduler.step(1.0)


def pickled(text):
    """A file of `save` whose pickle is given."""
    return archive({"data.pkl": text, "version": b"3"})


def double(*shape):
    return torch.ones(shape, dtype=torch.float64, requires_grad=True)


def own_function(**methods):
    """A Function of these methods, to be called."""
    methods = {name: staticmethod(method) for name, method in methods.items()}
    return type("Own", (torch.autograd.Function,), methods).apply


def wavering():
    """Its gradient is another one at each call."""
    calls = itertools.count()
    return own_function(forward=lambda ctx, x: x * 2,
                        backward=lambda ctx, g: g * 2 + 1e-9 * next(calls))  # fmt: skip


def gradient_of_nothing():
    """Gradients of zero do not lead to gradients of zero."""
    return own_function(forward=lambda ctx, x: (x * 2, x * 3),
                        backward=lambda ctx, a, b: a * 2 + b * 3 + 1e-9)  # fmt: skip


def disabled_too_late():
    with (
        torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x),
        torch.autograd.graph.disable_saved_tensors_hooks("leave hooks first"),
    ):
        pass


def hook_of_dead_module():
    net = nn.Linear(2, 2)
    net._register_load_state_dict_pre_hook(lambda *args: None, with_module=True)
    (hook,) = net._load_state_dict_pre_hooks.values()
    del net
    gc.collect()
    hook()


def freed_node():
    y = leaf().exp()
    y.backward(t(2))
    return y.grad_fn


def changing_checkpoint():
    """Saves more tensors in its first run."""
    runs = itertools.count()

    def body(x):
        return x.sin().cos() if next(runs) == 0 else x * 1

    torch.utils.checkpoint.checkpoint(body, leaf(), use_reentrant=False).sum().backward()


def loaded(item, **options):
    """The first batch of a loader with a worker that gets its items by a call."""
    rows = type("Rows", (data.Dataset,), {"__len__": lambda self: 1,
                                          "__getitem__": lambda self, k: item()})()  # fmt: skip
    return next(iter(data.DataLoader(rows, num_workers=1, **options)))


class Odd(Exception):
    """Cannot be made of a message."""

    def __init__(self, one, two):
        super().__init__(one, two)


def fail_oddly():
    raise Odd(1, 2)


def nested(depth):
    return functools.reduce(lambda inner, _: [inner], range(depth), 1)


def leave(rank):
    os._exit(3)


def graph_of(function):
    return torch.ir.trace(function)(t(2))


def exported(function, forward=None, zero=False, **changed):
    """A function that was exported and loaded, after these changes of its manifest."""
    compiled = torch.compile(function)
    for _ in range(2):
        compiled(t(2) * 0 if zero else t(2))
    with tempfile.TemporaryDirectory() as folder:
        compiled.export(folder)
        path = Path(folder, "manifest.json")
        manifest = json.loads(path.read_text())
        manifest["stages"]["forward"].update(forward or {})
        path.write_text(json.dumps({**manifest, **changed}))
        return torch.load_exported(folder)


def hook_of_nothing():
    """A hook gives a gradient to a result that has none."""

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 1, x * 2

    one, two = own_function(forward=forward, backward=lambda ctx, g, h: g)(leaf())
    two.register_hook(lambda g: t(2))
    one.sum().backward()


def spent():
    """Backward of what a compiled function differentiated itself."""

    def train(x):
        loss = x.exp().sum()
        loss.backward()
        return loss

    compiled = torch.compile(train)
    for _ in range(3):
        loss = compiled(leaf())
    loss.backward()


def packed_twice():
    """Backward twice through a compiled function whose saved tensors are packed."""
    compiled = torch.compile(lambda x: x.exp() * x)
    x = leaf()
    for _ in range(2):
        compiled(x)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        y = compiled(x).sum()
    twice(y)
