"""Warnings that torch 2.13 gives: class, words, the user's line, and how often."""

import warnings

import pytest
import wengert as torch
from wengert.ir import arguments

X, M = torch.ones(3), torch.eye(3)
C = torch.ones(3, dtype=torch.complex64)
ROWS = torch.ones(2, 3)
BYTES = torch.tensor([1, 0, 1], dtype=torch.uint8)
PIVOTS = torch.tensor([1, 2, 3], dtype=torch.int32)
FREEDOM = "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction f"


def said(call):
    """What a call warns of: (class, message, file)."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [(w.category, str(w.message), w.filename) for w in found]


@pytest.fixture
def unsaid(monkeypatch):
    monkeypatch.setattr(arguments, "_SAID", set())


ONCE = {
    "T": (lambda: X.T, "The use of `x.T` on tensors of dimension other than 2 to reverse"),
    "0-d T": (lambda: X[0].T, "Tensor.T is deprecated on 0-D tensors"),
    "0-d mT": (lambda: X[0].mT, "Tensor.mT is deprecated on 0-D tensors"),
    "0-d H": (lambda: X[0].H, "Tensor.H is deprecated on 0-D tensors. Consider using x.conj()"),
    "0-d mH": (lambda: X[0].mH, "Tensor.mH is deprecated on 0-D tensors. Consider using x.conj()"),
    "meshgrid": (lambda: torch.meshgrid(X, X), "torch.meshgrid: in an upcoming release, it will"),
    "float": (lambda: C.float(), "Casting complex values to real discards the imaginary part"),
    "to": (lambda: C.to(torch.int64), "Casting complex values to real discards the imaginary"),
    "bfloat16": (lambda: C.bfloat16(), "Casting complex values to real discards the imaginary"),
    "copy_": (lambda: X.clone().copy_(C), "Casting complex values to real discards the imaginary"),
    "cross": (lambda: torch.cross(ROWS, ROWS), "Using torch.cross without specifying the dim arg"),
    "cholesky": (lambda: torch.cholesky(M), "torch.cholesky is deprecated in favor of torch.lin"),
    "qr": (lambda: M.qr(), "torch.qr is deprecated in favor of torch.linalg.qr"),
    "lu": (lambda: torch.lu(M), "torch.lu is deprecated in favor of torch.linalg.lu_factor"),
    "lu_solve": (lambda: torch.lu_solve(M, M, PIVOTS), "torch.lu_solve is deprecated in favor of"),
    "triangular_solve": (
        lambda: torch.triangular_solve(M, M), "torch.triangular_solve is deprecated in favor of",
    ),
    "scatter": (
        lambda: ROWS.scatter(0, torch.tensor([[0, 1]]), torch.ones(1, 2), reduce="add"),
        "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed",
    ),
    "where": (
        lambda: torch.where(BYTES, X, X), "where received a uint8 condition tensor. This behavior",
    ),
    "tensor type": (
        lambda: torch.set_default_tensor_type("torch.FloatTensor"),
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_d",
    ),
    "chain_matmul": (lambda: torch.chain_matmul(M, M), "torch.chain_matmul is deprecated and"),
}  # fmt: skip


@pytest.mark.parametrize("name", ONCE)
def test_some_warnings_are_given_once(name, unsaid):
    call, words = ONCE[name]
    ((category, message, file),) = said(call)
    assert category is UserWarning and message.startswith(words) and file == __file__
    assert [said(call) for _ in range(4)] == [[]] * 4  # familiar by now, if it were not for this
    torch.set_warn_always(True)
    try:
        assert len(said(call)) == 1
    finally:
        torch.set_warn_always(False)


EVERY = {
    "std": (lambda: X[:1].std(), UserWarning, "std" + FREEDOM),
    "var": (lambda: torch.ones(2, 1).var(1), UserWarning, "var" + FREEDOM),
    "nothing": (lambda: torch.ones(0, 3).std(0, unbiased=False), UserWarning, "std" + FREEDOM),
    "correction": (lambda: X.var(correction=3), UserWarning, "var" + FREEDOM),
    "std_mean": (lambda: torch.std_mean(X[:1]), UserWarning, "std_mean" + FREEDOM),
    "autocast": (
        lambda: torch.cuda.amp.autocast(enabled=False), FutureWarning,
        "`torch.cuda.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cuda'",
    ),
    "scaler": (
        lambda: torch.cuda.amp.GradScaler(enabled=False), FutureWarning,
        "`torch.cuda.amp.GradScaler(args...)` is deprecated. Please use `torch.amp.GradScaler('cu",
    ),
    "cpu scaler": (
        lambda: torch.cpu.amp.GradScaler(), FutureWarning,
        "`torch.cpu.amp.GradScaler(args...)` is deprecated. Please use `torch.amp.GradScaler('cpu",
    ),
    "custom_fwd": (
        lambda: torch.cuda.amp.custom_fwd(len), FutureWarning,
        "`torch.cuda.amp.custom_fwd(args...)` is deprecated. Please use `torch.amp.custom_fwd(arg",
    ),
    "cuda": (
        lambda: torch.autocast("cuda"), UserWarning,
        "CUDA is not available or torch_xla is imported. Disabling autocast.",
    ),
    "list": (
        lambda: ROWS[[[0, 1], [1, 0]]], UserWarning,
        "Using a non-tuple sequence for multidimensional indexing is deprecated and will be chang",
    ),
    "bytes": (
        lambda: X[BYTES], UserWarning,
        "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
    ),
    "dropout2d": (
        lambda: torch.nn.functional.dropout2d(ROWS), UserWarning,
        "dropout2d: Received a 2-D input to dropout2d, which is deprecated and will result in an",
    ),
    "autocast on": (
        lambda: torch.is_autocast_cpu_enabled(), DeprecationWarning,
        "torch.is_autocast_cpu_enabled() is deprecated. Please use torch.is_autocast_enabled('cpu'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EVERY)
def test_others_are_given_at_every_call(name):
    call, kind, words = EVERY[name]
    for _ in range(2):
        ((category, message, file),) = said(call)
        assert category is kind and message.startswith(words) and file == __file__


def test_saved_variables_are_an_old_name():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_variables
            return 2 * x * grad

    x = torch.ones(2, requires_grad=True)
    ((category, message, file),) = said(lambda: Square.apply(x).sum().backward())
    assert category is DeprecationWarning and file == __file__
    assert message == "'saved_variables' is deprecated; use 'saved_tensors'"
    assert x.grad.tolist() == [2, 2]


def test_what_does_not_warn(unsaid):
    assert said(lambda: (M.T, torch.ones(2, 3, 4).mT, C.real, C.bool(), C.abs())) == []
    assert said(lambda: (X.std(), X[:1].std(correction=0), torch.ones(2, 2).var(0))) == []
    assert said(lambda: (torch.meshgrid(X, X, indexing="ij"), torch.meshgrid(X))) == []
    assert said(lambda: torch.cross(ROWS, ROWS, dim=1)) == []
    x = torch.ones(3, requires_grad=True)
    assert said(lambda: (x * C).real.sum().backward()) == []


def test_removed_functions_name_their_successors():
    for name in ("symeig", "eig", "lstsq", "solve", "matrix_rank"):
        with pytest.raises(RuntimeError, match=r"deprecated since version 1.9 and is now removed"):
            getattr(torch, name)(M)
