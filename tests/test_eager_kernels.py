"""Large eager calls: native kernels give what NumPy gives; see Note [Large calls]."""

import os
import subprocess
import sys

import numpy as np
import pytest
import wengert as torch
from wengert import (
    backend,  # noqa: F401  exact calls wait until it is loaded
    eager_kernels,
)
from wengert.ir.exact import is_arithmetic, is_exact
from wengert.ir.op import TABLE
from wengert.runtime.flat import Flat
from wengert.tracer.large import Kernels

pytestmark = pytest.mark.skipif(not torch.backend_available(), reason="needs LLVM")

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -2.5, 1e-40, 3e38, -3e38]
EXACT = [op for op in TABLE.values()
         if op.kind == "pointwise" and op.inputs and not op.attributes and op.variadic is None
         and not op.optional and is_exact(op) and not is_arithmetic(op)]  # fmt: skip


def values(shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape).astype(np.float32)
    x.reshape(-1)[: len(SPECIAL)] = SPECIAL
    return x


def call(name, *operands, **attrs):
    return eager_kernels.forward(TABLE[name], operands, attrs)


@pytest.mark.parametrize("op", EXACT, ids=lambda op: op.name)
def test_exact_ops_have_one_result(op):
    operands = [values(1003, seed) for seed in range(len(op.inputs))]
    native = call(op.name, *operands)
    assert native is not NotImplemented
    with np.errstate(all="ignore"):
        expected = np.asarray((op.ufunc or op.numpy)(*operands))
    assert native.dtype == expected.dtype
    np.testing.assert_array_equal(native, expected)
    if native.dtype.kind == "f":
        zeros = expected == 0
        np.testing.assert_array_equal(np.signbit(native[zeros]), np.signbit(expected[zeros]))


def test_exactness_is_seen_in_the_expression():
    assert is_exact(TABLE["mul"])
    assert is_exact(TABLE["relu"])
    assert not is_exact(TABLE["exp"])
    assert not is_exact(TABLE["sum"])


def test_one_kernel_serves_all_sizes_and_layouts():
    first = eager_kernels.draft.cache_info().currsize
    for x in (values(5000), values((70, 90)), values((40, 50)).T, values((3, 4, 5, 60))):
        native = call("tanh", x)
        np.testing.assert_allclose(native, np.tanh(x), rtol=1e-6)
        assert native.strides == np.tanh(x).strides
    assert eager_kernels.draft.cache_info().currsize <= first + 1


def test_numbers_and_repeated_elements_are_run_time_values():
    x = np.linspace(-3, 3, 3001, dtype=np.float32)
    spread = np.broadcast_to(np.float32(2.5), x.shape)
    np.testing.assert_array_equal(call("div", x, 2.5), x / np.float32(2.5))
    kept = eager_kernels.draft.cache_info().currsize
    np.testing.assert_array_equal(call("div", x, 0.1), x / np.float32(0.1))
    np.testing.assert_array_equal(call("div", x, spread), x / np.float32(2.5))
    assert eager_kernels.draft.cache_info().currsize == kept


def test_what_has_no_kernel_is_declined():
    x = values((30, 40))
    assert call("tanh", x.astype(np.complex64)) is NotImplemented
    assert call("div", x.T.copy().T, x) is NotImplemented  # NumPy knows the result's layout
    assert call("add", x, x) is call("mul", x, 2.0) is NotImplemented  # NumPy's are as fast
    assert call("softmax", x.T, dim=1) is NotImplemented
    assert call("tanh", np.zeros((0, 3), np.float32)) is not None


def test_products_take_transposed_operands_and_give_rows():
    random = np.random.default_rng(0)
    rows, columns, batch, addend = (
        random.standard_normal(shape, dtype=np.float32)
        for shape in ((30, 40), (50, 40), (3, 20, 40), (50,))
    )
    for left in (rows, rows.T.copy().T):
        found = call("mm", left, columns.T)
        np.testing.assert_allclose(found, rows @ columns.T, rtol=1e-4, atol=1e-4)
        assert found.flags.c_contiguous
        found = call("addmm", addend, left, columns.T, beta=2, alpha=1)
        np.testing.assert_allclose(found, rows @ columns.T + 2 * addend, rtol=1e-4, atol=1e-4)
    turned = batch.swapaxes(1, 2)
    np.testing.assert_allclose(call("bmm", batch, turned), batch @ turned, rtol=1e-4, atol=1e-4)


SCRIPT = """
import sys
import numpy as np
import wengert as torch

F = torch.nn.functional
torch.manual_seed(0)
x, w, b = torch.randn(24, 30), torch.rand(30), torch.rand(30)
y = torch.randint(0, 30, (24,))
cases = [
    lambda x, w, b: F.cross_entropy(x, y),
    lambda x, w, b: F.gelu(x * 1.5 + b, approximate="tanh") * torch.sigmoid(x),
    lambda x, w, b: F.layer_norm(x, (30,), w, b) ** 2,
    lambda x, w, b: x.softmax(0).std(1) + (x * w).logsumexp(1),
    lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True).relu(),
    lambda x, w, b: x.where(x > 0, x.exp()) / (w + 1),
    lambda x, w, b: (x[:, ::2].tanh() + x.t()[::2].t().cos()).mean(0),
    lambda x, w, b: x.double().erf().pow(3).sum(),
    lambda x, w, b: F.max_pool2d(F.conv2d(x.view(2, 2, 12, 15), w[:24].view(3, 2, 2, 2)), 2),
    lambda x, w, b: x.cumsum(1).gather(1, y.view(24, 1)) + x.sort(0).values.mean(),
]
found = {}
for k, case in enumerate(cases):
    leaves = [t.clone().requires_grad_() for t in (x, w, b)]
    out = case(*leaves)
    out.backward(torch.ones_like(out))
    found[f"out{k}"] = out.detach().numpy()
    for n, leaf in enumerate(leaves):
        if leaf.grad is not None:
            found[f"grad{k}.{n}"] = leaf.grad.numpy()
np.savez(sys.argv[1], **found)
"""


def run_script(path, least):
    env = dict(os.environ, WENGERT_EAGER_KERNELS=least)
    subprocess.run([sys.executable, "-c", SCRIPT, str(path)], env=env, check=True)
    return np.load(path)


def test_attention_takes_operands_in_any_order():
    parts = np.random.default_rng(0).standard_normal((2, 16, 3, 4, 8)).astype(np.float32)
    given = parts.transpose(2, 0, 3, 1, 4)
    name, attrs = "scaled_dot_product_attention", {"is_causal": True, "scale": 0.5}
    native = call(name, *given, None, **attrs)
    assert native is not NotImplemented and native.flags.c_contiguous
    dense = call(name, *map(np.ascontiguousarray, given), None, **attrs)
    np.testing.assert_array_equal(native, dense)
    assert call("softmax", given[0], dim=1) is NotImplemented  # laid out as its operand is


def test_ops_of_many_passes_have_kernels_earlier(monkeypatch):
    offered = []
    forward, backward = eager_kernels.forward, eager_kernels.backward
    monkeypatch.setattr(Kernels, "forward", lambda op, *rest: offered.append(op.name)
                        or forward(op, *rest))  # fmt: skip
    monkeypatch.setattr(Kernels, "backward", lambda node, *rest: offered.append(node.name())
                        or backward(node, *rest))  # fmt: skip
    few, many = (torch.randn(n, 64, requires_grad=True) for n in (63, 64))
    for x in (few, many):
        y = x.softmax(1).tanh()
        y.backward(torch.ones_like(y))
    assert offered == ["softmax", "SoftmaxBackward0"]


def test_derivatives_of_large_calls_are_the_rules(monkeypatch):
    x, w = torch.randn(512, 128, requires_grad=True), torch.randn(384, 128, requires_grad=True)

    def gradients(**options):
        loss = torch.nn.functional.linear(x, w).sum()
        return [g._array.tobytes() for g in torch.autograd.grad(loss, (x, w), **options)]

    expected = gradients(create_graph=True)
    offered = []
    forward = eager_kernels.forward
    monkeypatch.setattr(Kernels, "forward", lambda op, *rest: offered.append(op.name)
                        or forward(op, *rest))  # fmt: skip
    assert [gradients() for _ in range(6)] == [expected] * 6
    assert offered.count("mm") >= 12


def test_forward_and_backward_agree_with_numpy(tmp_path):
    by_numpy, native = (run_script(tmp_path / f"{n}.npz", n) for n in ("0", "16"))
    assert native.files == by_numpy.files
    for name in native.files:
        np.testing.assert_allclose(native[name], by_numpy[name], rtol=2e-5, atol=2e-6, err_msg=name)
    again = run_script(tmp_path / "again.npz", "16")
    assert all((again[name] == native[name]).all() for name in native.files)


def test_what_is_recorded_has_no_kernel_of_its_own(monkeypatch):
    offered = []
    decline = lambda op, arrays, attrs: offered.append(op.name) or NotImplemented  # noqa: E731
    monkeypatch.setattr("wengert.tracer.large.Kernels.forward", decline)
    x = torch.from_numpy(values((300, 300)))
    torch.compile(lambda x: (x @ x).tanh().sum(0))(x)
    assert offered == []
    monkeypatch.setattr("wengert.tracer.large.RECORDED", 0)
    torch.compile(lambda x: (x @ x).tanh())(x)
    assert offered == ["mm", "tanh"]


OPTIMIZERS = [("SGD", {}), ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
              ("Adam", {}), ("Adam", {"amsgrad": True, "maximize": True}), ("AdamW", {}),
              ("Adagrad", {}), ("RMSprop", {"momentum": 0.5, "centered": True}), ("Adadelta", {}),
              ("Adamax", {}), ("NAdam", {}), ("RAdam", {}), ("Rprop", {}),
              ("ASGD", {})]  # fmt: skip


def trained(name, options):
    torch.manual_seed(0)
    parameter = torch.nn.Parameter(torch.randn(30, 41))
    optimizer = getattr(torch.optim, name)([parameter], **options)
    for step in range(7):
        parameter.grad = torch.randn(30, 41) * (0.1 + step)
        optimizer.step()
    return parameter, optimizer.state_dict()["state"].get(0, {})


@pytest.mark.parametrize("name, options", OPTIMIZERS, ids=str)
def test_optimizers_update_large_parameters_to_the_same_bits(name, options, monkeypatch):
    expected, state = trained(name, options)
    for module in ("stepping", "written"):
        monkeypatch.setattr(f"wengert.optim.{module}.LARGE", 1000)
    runs = []
    run = Flat.run
    monkeypatch.setattr(Flat, "run", lambda *given: runs.append(run(*given)) or runs[-1])
    found, found_state = trained(name, options)
    assert len(runs) >= 6  # the first step may have to make state
    np.testing.assert_array_equal(found.detach().numpy(), expected.detach().numpy())
    assert found._version == expected._version
    for key, value in state.items():
        if isinstance(value, torch.Tensor):
            np.testing.assert_array_equal(found_state[key].numpy(), value.numpy(), err_msg=key)
