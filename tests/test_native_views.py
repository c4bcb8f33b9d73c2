"""Views of results that native code makes (runtime/views.ll): they are as `look` makes them."""

import sys

import pytest
import wengert as torch
from native_calls import check_references
from native_calls import settled_natively as settled
from wengert.runtime import watch

if watch.trouble():
    pytest.skip("calls are not bound here", allow_module_level=True)

FORMS = {
    "select": lambda x, y: (x * y)[0],
    "last": lambda x, y: (x * y)[:, -1],
    "slice": lambda x, y: (x * y)[1:, ::2],
    "transposed": lambda x, y: (x * y).t(),
    "permuted": lambda x, y: (x * y).view(2, 3, 2).permute(2, 0, 1),
    "expanded": lambda x, y: (x * y)[:, None].expand(3, 5, 4),
    "diagonal": lambda x, y: (x * y).diagonal(),
    "unbind": lambda x, y: (x * y).unbind(0),
    "chunks": lambda x, y: [piece.t() for piece in (x * y).chunk(2, dim=1)],
    "some": lambda x, y: (x * y).unbind(0)[1:],
    "both": lambda x, y: (lambda z: (z, z[0], z.t()))(x * y),
    "two": lambda x, y: {"a": (x * y)[0], "b": (x + y).t()},
    "detached": lambda x, y: (lambda z: (z, z.detach().t()))(x * y),
    "without grad": lambda x, y: (x.detach() * y.detach()).t(),
    "complex": lambda x, y: torch.view_as_real(torch.complex(x, y)),
}


def tensors(grad=True):
    torch.manual_seed(5)
    return [torch.rand(3, 4).requires_grad_(grad) for _ in range(2)]


def flat(result):
    if isinstance(result, torch.Tensor):
        return [result]
    return list(result.values() if isinstance(result, dict) else result)


def facts(tensor):
    """What can be seen of a tensor, as a view of its base, and of its nodes but the last."""
    view, found = tensor._view, []
    node, number = tensor._node, tensor._nr
    while node is not None and node.name() not in ("CompiledFunctionBackward", "MulBackward0",
                                                   "AddBackward0", "ComplexBackward0"):  # fmt: skip
        found.append((node.name(), number, node.attrs, node.types, node.saved))
        node, number = node.edges[0]
    return {
        "values": tensor.tolist(), "stride": tensor.stride(), "offset": tensor.storage_offset(),
        "dtype": tensor.dtype, "flag": tensor.requires_grad, "leaf": tensor.is_leaf,
        "is view": tensor._is_view(), "version": tensor._version, "nodes": found,
        "origin": None if view is None else view.origin,
        "chain": None if view is None else [(op.name, attrs, k) for op, attrs, k in view.chain],
        "base": None if tensor._base is None else tensor._base.tolist(),
    }  # fmt: skip


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_views_are_as_eager_makes_them(form, grad):
    body = FORMS[form]
    function, args = torch.compile(body), tensors(grad)
    recorded = flat(function(*args))
    found, wanted = flat(settled(function, *args)), flat(body(*args))
    for ours, first, theirs in zip(found, recorded, wanted, strict=True):
        mine, eager = facts(ours), facts(theirs)
        for name in ("values", "stride", "offset", "dtype", "flag", "version"):
            assert mine[name] == eager[name], name
        for name in ("is view", "base", "origin", "chain"):
            assert mine[name] == eager[name], name
        assert mine["nodes"] == eager["nodes"] or form == "complex"
        assert ours._array.flags.writeable == first._array.flags.writeable
    if not any(t.requires_grad for t in wanted):
        return
    grads = [torch.autograd.grad([t.sum() * (k + 2) for k, t in enumerate(r) if t.requires_grad],
                                 args) for r in (found, wanted)]  # fmt: skip
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("form", FORMS)
def test_views_leave_no_references(form):
    function, args = torch.compile(FORMS[form]), tensors()
    settled(function, *args)
    view = next((t._view for t in flat(function(*args)) if t._view is not None), None)
    chain = () if view is None else view.chain
    watched = [*args, chain, None, 0, (), sys._getframe().f_code, function]
    check_references(watched, lambda: function(*args))


def test_the_results_of_one_op_have_one_node():
    function, args = torch.compile(lambda x, y: (x * y).unbind(0)), tensors()
    pieces = settled(function, *args)
    assert len({id(piece.grad_fn) for piece in pieces}) == 1
    assert [piece._nr for piece in pieces] == [0, 1, 2]
    assert len({piece.storage_ for piece in pieces}) == 1


def test_views_and_bases_share_memory_and_versions():
    function, args = torch.compile(lambda x, y: (lambda z: (z, z[0], z.t()))(x * y)), tensors(False)
    whole, row, turned = settled(function, *args)
    row.fill_(7.0)
    assert whole[0].tolist() == [7.0] * 4 and turned[:, 0].tolist() == [7.0] * 4
    assert whole._version == row._version == turned._version == 1
    assert row._base is whole and turned._base is whole


def test_writes_through_views_are_known_to_backward():
    function, (x, y) = torch.compile(lambda x, y: (x * y)[:2]), tensors()
    settled(function, x, y)
    grads = []
    for call in (function, lambda x, y: (x * y)[:2]):
        rows = call(x, y)
        rows[0].mul_(3.0)
        grads.append(torch.autograd.grad(rows.sum(), (x, y)))
    torch.testing.assert_close(*grads)
    pieces = settled(torch.compile(lambda x, y: (x * y).unbind(0)), x, y)
    with pytest.raises(RuntimeError, match="multiple views"):
        pieces[0].add_(1.0)


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_modes_show_in_views(mode):
    body = lambda x, y: (x * y)[0]  # noqa: E731
    function, args = torch.compile(body), tensors()
    with mode():
        found, wanted = settled(function, *args), body(*args)
    assert found.is_inference() == wanted.is_inference() == (mode is torch.inference_mode)
    assert found._base.is_inference() == wanted._base.is_inference()
    assert found._view.origin == wanted._view.origin and not found.requires_grad


def test_views_of_what_went_backward_inside():
    weight = torch.ones(2, 2, requires_grad=True)

    def body(x):
        weight.grad = None
        z = weight * x
        z.sum().backward()
        return z, z.t(), z.detach()[0]

    function, x = torch.compile(body), torch.rand(2, 2)
    for _ in range(6):
        found, wanted = function(x), body(x)
    for ours, theirs in zip(found, wanted):
        assert ours.tolist() == theirs.tolist() and ours.requires_grad == theirs.requires_grad
    with pytest.raises(RuntimeError, match="second time"):
        found[1].sum().backward()


def test_nodes_know_where_they_come_from_when_asked():
    function, args = torch.compile(lambda x, y: (x * y).t()), tensors()
    settled(function, *args)
    with pytest.warns(UserWarning, match="Anomaly"):
        mode = torch.autograd.detect_anomaly(check_nan=False)
    with mode:
        inside = function(*args)
        assert "traceback_" in inside.grad_fn.metadata
    assert "traceback_" not in function(*args).grad_fn.metadata
