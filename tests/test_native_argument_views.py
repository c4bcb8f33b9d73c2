"""Views of arguments that native code makes (runtime/views.ll): they are as `look` makes them."""

import sys

import numpy as np
import pytest
import wengert as torch
from native_calls import check_references
from native_calls import settled_natively as settled
from wengert import sources
from wengert.runtime import watch

if watch.trouble():
    pytest.skip("calls are not bound here", allow_module_level=True)

weight = torch.nn.Parameter(torch.arange(12.0).view(3, 4))
FORMS = {
    "select": lambda x: x[0],
    "slice": lambda x: x[1:, ::2],
    "transposed": lambda x: x.t(),
    "permuted": lambda x: x.view(2, 3, 2).permute(2, 0, 1),
    "expanded": lambda x: x[:, None].expand(3, 5, 4),
    "unbind": lambda x: x.unbind(0),
    "chunks": lambda x: [piece.t() for piece in x.chunk(2, dim=1)],
    "beside": lambda x: {"a": x[0], "b": x * 2, "c": x.t()},
    "detached": lambda x: x.detach()[0],
    "parameter": lambda x: (x * 2, weight.t(), weight[1]),
}
WAYS = {
    "no grad": lambda: torch.rand(3, 4),
    "leaf": lambda: torch.rand(3, 4).requires_grad_(),
    "result": lambda: torch.rand(3, 4).requires_grad_() * 2,
    "written": lambda: torch.rand(3, 4).add_(1.0),
    "detached": lambda: (torch.rand(3, 4).requires_grad_() * 2).detach(),
    "parameter": lambda: torch.nn.Parameter(torch.rand(3, 4)),
    "view": lambda: torch.rand(12).view(3, 4),
    "view with history": lambda: (torch.rand(12).requires_grad_() * 2).view(3, 4),
    "double": lambda: torch.rand(3, 4, dtype=torch.float64),
    "integer": lambda: torch.arange(12, dtype=torch.int32).view(3, 4).clone(),
}


def flat(result):
    if isinstance(result, torch.Tensor):
        return [result]
    return list(result.values() if isinstance(result, dict) else result)


def facts(tensor):
    """What can be seen of a tensor, as a view of its base, and of its nodes."""
    view, nodes, node, number = tensor._view, [], tensor.grad_fn, tensor._nr
    while node is not None:
        nodes.append((node.name(), number, getattr(node, "types", None)))
        node, number = node.next_functions[0] if node.next_functions else (None, 0)
    mark = tensor._mark if isinstance(tensor._mark, str | None) else tensor._mark[0]
    return {
        "values": tensor.tolist(), "stride": tensor.stride(), "offset": tensor.storage_offset(),
        "dtype": tensor.dtype, "flag": tensor.requires_grad, "leaf": tensor.is_leaf,
        "version": tensor.storage_.version, "nodes": nodes, "mark": mark,
        "storage": tensor.storage_, "writeable": tensor._array.flags.writeable,
        "view": None if view is None else (view.base, view.origin, view.seen, view.chain),
    }  # fmt: skip


# the last op may be the view or the cut
UNLIKE = {"detached": ("mark", "view")}


def check(found, wanted, unlike=()):
    for ours, theirs in zip(flat(found), flat(wanted), strict=True):
        if "Compiled" in str(ours.grad_fn) or ours._view is theirs._view is None:
            continue
        mine, eager = facts(ours), facts(theirs)
        for name in mine.keys() - {*unlike}:
            a, b = mine[name], eager[name]
            if name == "view" and b is not None:
                assert a[0] is b[0]
                a, b = ((*v[1:3], [(op.name, attrs, k) for op, attrs, k in v[3]]) for v in (a, b))
            assert a is b if name == "storage" else a == b, name


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", FORMS)
def test_views_are_as_eager_makes_them(form, way):
    body, x = FORMS[form], WAYS[way]()
    function = torch.compile(body)
    found = settled(function, x)
    check(found, body(x), UNLIKE.get(form, ()))
    if not any(t.requires_grad for t in flat(found)):
        return
    leaves = [t for t in (x, weight) if t.requires_grad]
    grads = [torch.autograd.grad([t.sum() * (k + 2) for k, t in enumerate(flat(r))
                                  if t.requires_grad], leaves, allow_unused=True)
             for r in (function(x), body(x))]  # fmt: skip
    for ours, theirs in zip(*grads):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("form", FORMS)
def test_one_function_takes_what_comes(form):
    """Marks, versions, nodes and bases are those of the argument of the call."""
    body = FORMS[form]
    function, args = torch.compile(body), [make() for make in WAYS.values()]
    for x in args * 3:
        check(function(x), body(x), UNLIKE.get(form, ()))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("grad", [False, True])
def test_views_leave_no_references(form, grad):
    function, x = torch.compile(FORMS[form]), torch.rand(3, 4).requires_grad_(grad)
    view = next((t._view for t in flat(settled(function, x)) if t._view is not None), None)
    chain = () if view is None else view.chain
    watched = [x, x.storage_, weight, chain, None, 0, (), sys._getframe().f_code, function]
    check_references(watched, lambda: function(x))


@pytest.mark.parametrize("way", [way for way in WAYS if "view" not in way])
@pytest.mark.parametrize("form", [form for form in FORMS if form != "detached"])
def test_python_makes_none_of_them(form, way, monkeypatch):
    function, x = torch.compile(FORMS[form]), WAYS[way]()
    settled(function, x)
    monkeypatch.setattr(sources, "look", None)
    function(x)


def test_versions_are_those_of_the_call():
    function, x = torch.compile(lambda x: x[0]), torch.rand(3, 4)
    before = settled(function, x)
    x.add_(1.0)
    after = function(x)
    assert (before._view.seen, after._view.seen) == (0, 1)
    assert before._version == after._version == 1 and after.storage_ is x.storage_
    after.mul_(0.0)
    assert x[0].tolist() == [0.0] * 4 and x._version == 2


def test_writes_before_the_view_count():
    def body(x):
        x.mul_(2.0)
        return x[0]

    function, x = torch.compile(body), torch.rand(3, 4)
    row = settled(function, x)
    assert row._version == x._version == row._view.seen == 5
    with torch.no_grad():
        assert body(torch.rand(3, 4))._view.origin == "no_grad"


def test_memory_that_must_not_be_written_stays_so():
    array = np.zeros((3, 4), np.float32)
    array.flags.writeable = False
    x = torch.from_numpy(array)
    function = torch.compile(lambda x: x.t())
    assert not settled(function, x)._array.flags.writeable
    assert function(torch.zeros(3, 4))._array.flags.writeable


def test_views_of_memory_that_numpy_owns():
    buffer = np.arange(40, dtype=np.float32)
    x = torch.from_numpy(buffer[4:16].reshape(3, 4))
    function = torch.compile(lambda x: x[1:].t())
    row = settled(function, x)
    assert row.tolist() == x[1:].t().tolist() and row._array.base is buffer
    buffer[8] = 7.0
    assert row[0, 0] == 7.0


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
@pytest.mark.parametrize("way", WAYS)
def test_modes_show_in_views(mode, way):
    body, x = FORMS["select"], WAYS[way]()
    function = torch.compile(body)
    with mode():
        check(settled(function, x), body(x))
        inside = torch.rand(3, 4)
        check(settled(function, inside), body(inside))
    check(settled(function, inside), body(inside))
    check(settled(function, x), body(x))


def test_inner_gradients_reach_the_leaf():
    function, x = torch.compile(lambda x: x.t()[0]), torch.rand(3, 4).requires_grad_()
    settled(function, x)
    first, second = function(x), function(x)
    assert first.grad_fn is not second.grad_fn
    ends = [t.grad_fn.next_functions[0][0].next_functions[0][0] for t in (first, second)]
    assert ends[0] is ends[1] and ends[0].name() == "torch::autograd::AccumulateGrad"
    (first.sum() + 2 * second.sum()).backward()
    assert x.grad.tolist() == [[3.0, 0.0, 0.0, 0.0]] * 3
