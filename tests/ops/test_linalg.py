"""torch.linalg: NumPy is the oracle of values, finite differences that of gradients."""

import math

import numpy as np
import pytest
import wengert as torch
from gradients import check

L = torch.linalg
rng = np.random.default_rng(7)


def real(*shape):
    return rng.standard_normal(shape)


def complex_(*shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def hermitian(a):
    return a + np.conj(np.swapaxes(a, -2, -1))


def positive(a):
    return a @ np.conj(np.swapaxes(a, -2, -1)) + np.eye(a.shape[-1])


MAKERS = pytest.mark.parametrize("make", [real, complex_])


def same(found, expected, tolerance=1e-10):
    found = found.numpy() if isinstance(found, torch.Tensor) else found
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


# --- values --------------------------------------------------------------------------------------


@MAKERS
@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 3), (4, 6), (130, 130), (2, 0, 0), (0, 3, 2)])
def test_lu_multiplies_to_the_matrix(make, shape):
    a = make(*shape)
    P, lower, U = L.lu(torch.tensor(a))
    same(P @ lower @ U, a)
    k = min(shape[-2:])
    assert (tuple(lower.shape), tuple(U.shape)) == ((*shape[:-1], k), (*shape[:-2], k, shape[-1]))
    assert not np.triu(lower.numpy(), 1).any() and not np.tril(U.numpy(), -1).any()
    assert np.abs(lower.numpy()).max(initial=0) <= 1 + math.sqrt(2)  # pivots by |re| + |im|
    packed, pivots = L.lu_factor(torch.tensor(a)) if k and a.size else L.lu_factor_ex(
        torch.tensor(a))[:2]  # fmt: skip
    same(packed.numpy()[..., :k, :], np.tril(lower.numpy()[..., :k, :], -1) @ np.eye(
        k, shape[-1]) + U.numpy())  # fmt: skip
    assert pivots.dtype is torch.int32


@MAKERS
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("n", [1, 5, 130])
def test_triangular_systems(make, upper, left, n):
    a, x = make(2, 1, n, n) / n + 2 * np.eye(n), make(3, n, n)
    a = np.triu(a) if upper else np.tril(a)
    b = a @ x if left else x @ a
    noisy = a + 9 * (np.tril(np.ones((n, n)), -1) if upper else np.triu(np.ones((n, n)), 1))
    found = L.solve_triangular(torch.tensor(noisy), torch.tensor(b), upper=upper, left=left)
    same(found, np.broadcast_to(x, b.shape), 1e-8)


def test_a_zero_pivot_gives_infinities_not_errors():
    a = torch.tensor([[1.0, 2.0], [0.0, 0.0]])
    assert L.solve_triangular(a, torch.eye(2), upper=True)[1].tolist()[1] == math.inf
    singular = torch.tensor([[1.0, 2.0], [2.0, 4.0]])
    inverse, info = L.inv_ex(torch.stack([torch.eye(2), singular]))
    assert info.tolist() == [0, 2] and inverse[0].tolist() == torch.eye(2).tolist()
    assert L.solve_ex(singular, torch.eye(2)).info.item() == 2


@MAKERS
@pytest.mark.parametrize("hermitian_", [True, False])
def test_ldl(make, hermitian_):
    a = make(4, 7, 7)
    a = hermitian(a) if hermitian_ else a + np.swapaxes(a, -2, -1)
    a[0] *= 1 - np.eye(7)  # a zero diagonal needs blocks of two
    factors, pivots = L.ldl_factor(torch.tensor(a), hermitian=hermitian_)
    assert (pivots.numpy()[0] < 0).any()
    b = make(4, 7, 2)
    x = L.ldl_solve(factors, pivots, torch.tensor(b), hermitian=hermitian_)
    same(a @ x.numpy(), b, 1e-8)


@MAKERS
def test_solvers_agree(make):
    a, b = positive(make(2, 4, 4)), make(2, 4, 3)
    expected = np.linalg.solve(a, b)
    A, B = torch.tensor(a), torch.tensor(b)
    same(L.solve(A, B), expected)
    same(torch.lu_solve(B, *L.lu_factor(A)), expected)
    same(torch.cholesky_solve(B, L.cholesky(A)), expected)
    same(torch.cholesky_solve(B, L.cholesky(A, upper=True), upper=True), expected)
    same(L.inv(A) @ B, expected)
    same(L.lstsq(A, B).solution, expected)
    same(L.solve(A.mT, B.mT, left=False).mT, expected)
    same(torch.cholesky_inverse(L.cholesky(A)), np.linalg.inv(a))
    adjoint = np.linalg.solve(np.conj(np.swapaxes(a, -2, -1)), b)
    same(L.lu_solve(*L.lu_factor(A), B, adjoint=True), adjoint)


@MAKERS
@pytest.mark.parametrize("shape", [(4, 3), (3, 5), (2, 4, 4), (3, 0), (0, 3)])
def test_orthogonal_factors(make, shape):
    a = make(*shape)
    A = torch.tensor(a)
    for mode in ("reduced", "complete"):
        Q, R = L.qr(A, mode=mode)
        same(Q @ R, a)
        same(L.qr(A, mode="r").R, R.numpy()[..., : min(shape[-2:]), :])
        same(Q.mH @ Q, np.broadcast_to(np.eye(Q.shape[-1]), (*shape[:-2], *Q.shape[-1:] * 2)))
    U, S, Vh = L.svd(A, full_matrices=False)
    same((U * S.unsqueeze(-2)) @ Vh, a)
    same(L.svdvals(A), S)
    if a.size:
        reflectors, tau = torch.geqrf(A)
        k = min(shape[-2:])
        same(L.householder_product(reflectors[..., :k].contiguous(), tau), L.qr(A).Q)
        same(torch.ormqr(reflectors, tau, A, True, True)[..., :k, :].triu(), L.qr(A).R)


@MAKERS
def test_eigenvalues(make):
    a = make(2, 4, 4)
    values, vectors = L.eig(torch.tensor(a))
    same(torch.tensor(a).to(torch.complex128) @ vectors, vectors * values.unsqueeze(-2), 1e-9)
    lower = np.tril(a, -1)
    full = lower + np.conj(np.swapaxes(lower, -2, -1)) + np.eye(4) * a.real
    values, vectors = L.eigh(torch.tensor(a))  # reads the lower triangle
    same((vectors * values.unsqueeze(-2)) @ vectors.mH, full)
    same(L.eigvalsh(torch.tensor(a)), values)


@MAKERS
def test_matrix_exp_is_that_of_the_eigenvalues(make):
    a = make(3, 4, 4) * np.array([1e-3, 1, 12])[:, None, None]
    values, vectors = np.linalg.eig(a)
    expected = (vectors * np.exp(values)[..., None, :]) @ np.linalg.inv(vectors)
    found = torch.matrix_exp(torch.tensor(a)).numpy()
    scale = np.abs(expected).max((-2, -1), keepdims=True)
    same(found / scale, expected / scale, 1e-9)


@pytest.mark.parametrize("n", [-3, 0, 1, 5])
def test_matrix_power(n):
    a = real(2, 3, 3)
    same(torch.matrix_power(torch.tensor(a), n), np.linalg.matrix_power(a, n), 1e-8)


@MAKERS
def test_norms_and_condition_numbers(make):
    a = make(4, 4)
    A = torch.tensor(a)
    for p in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        same(L.matrix_norm(A, p), np.linalg.norm(a, p))
        same(L.cond(A, p), np.linalg.cond(a, p))
    for p in (0, 1, 2, 3.5, math.inf, -math.inf):
        same(L.vector_norm(A, p, dim=1), np.linalg.norm(a, p, axis=1))
    same(L.norm(A), np.linalg.norm(a))
    same(L.pinv(torch.tensor(a[:, :2])), np.linalg.pinv(a[:, :2]))
    deficient = a[:, :2] @ a[:2]
    assert L.matrix_rank(torch.tensor(deficient)).item() == 2
    assert L.matrix_rank(A, tol=float(L.svdvals(A)[1])).item() == 1


def test_least_squares_by_every_driver():
    a, b = real(2, 5, 3), real(2, 5, 2)
    expected = np.linalg.pinv(a) @ b
    residuals = ((a @ expected - b) ** 2).sum(-2)
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        found = L.lstsq(torch.tensor(a), torch.tensor(b), driver=driver)
        same(found.solution, expected)
        assert found.rank.tolist() == ([] if driver == "gels" else [3, 3])
        if driver != "gelsy":
            same(found.residuals, residuals)
        if driver in ("gelsd", "gelss"):
            same(found.singular_values, np.linalg.svd(a, compute_uv=False))


def test_chains_and_tensor_equations():
    a, b, c = real(2, 30), real(30, 3), real(3, 40)
    same(L.multi_dot([torch.tensor(x) for x in (a, b, c)]), a @ b @ c)
    same(L.vander(torch.tensor([2.0, 3.0]), N=4), [[1, 2, 4, 8], [1, 3, 9, 27]])
    same(torch.kron(torch.tensor(a), torch.tensor(b)), np.kron(a, b))
    t = real(2, 3, 6)
    same(L.tensorinv(torch.tensor(t)), np.linalg.tensorinv(t, 2))
    rhs = real(2, 3)
    same(L.tensorsolve(torch.tensor(t), torch.tensor(rhs)), np.linalg.tensorsolve(t, rhs))
    x, y = real(4, 3), real(5, 3)
    gaps = np.abs(x[:, None] - y[None])
    for p in (1.0, 2.0, 3.0, math.inf):
        same(torch.cdist(torch.tensor(x), torch.tensor(y), p=p), np.linalg.norm(gaps, p, axis=-1))


# --- errors and results --------------------------------------------------------------------------


def test_linalg_errors():
    singular, wide = torch.tensor([[1.0, 2.0], [2.0, 4.0]]), torch.ones(2, 3)
    assert issubclass(L.LinAlgError, RuntimeError)
    with pytest.raises(L.LinAlgError, match="diagonal element 2 is zero"):
        L.inv(singular)
    with pytest.raises(L.LinAlgError, match="Batch element 1"):
        torch.inverse(torch.stack([torch.eye(2), singular]))
    with pytest.raises(L.LinAlgError, match="input matrix is singular"):
        L.solve(singular, torch.eye(2))
    with pytest.raises(L.LinAlgError, match="leading minor of order 2 is not positive-definite"):
        L.cholesky(torch.tensor([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(L.LinAlgError, match="non-finite"):
        L.svd(singular * math.nan)
    infinite = torch.stack([torch.eye(2), singular * math.inf])
    assert torch.equal(L.matrix_rank(infinite), torch.tensor([2, 0]))
    for part in (L.svdvals(infinite), *L.svd(infinite)):
        assert part[0].isfinite().all() and part[1].isnan().all()
    with pytest.raises(RuntimeError, match="batches of square matrices"):
        torch.det(wide)
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        L.inv(torch.ones(2))
    with pytest.raises(RuntimeError, match="same dtype"):
        L.solve(torch.eye(2), torch.ones(2, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="Expected a floating point or complex"):
        L.det(torch.ones(2, 2, dtype=torch.int64))


def test_failed_cholesky_factors_say_where():
    L_, info = L.cholesky_ex(torch.tensor([[[4.0, 0.0], [2.0, 5.0]], [[4.0, 0.0], [2.0, -1.0]]]))
    assert info.tolist() == [0, 2]
    assert L_.tolist() == [[[2.0, 0.0], [1.0, 2.0]], [[2.0, 0.0], [1.0, -2.0]]]


def test_results_have_torchs_names():
    a = torch.eye(2)
    assert L.eigh(a)._fields == ("eigenvalues", "eigenvectors")
    assert torch.svd(a)._fields == ("U", "S", "V") and L.svd(a)._fields == ("U", "S", "Vh")
    assert torch.slogdet(a).logabsdet.item() == 0
    assert repr(L.slogdet(a)).startswith("torch.return_types.linalg_slogdet(\nsign=tensor(1.)")
    a.requires_grad_()
    assert not L.lu(a).P.requires_grad and L.lu(a).U.requires_grad
    assert type(L.inv(a).grad_fn).__name__ == "LinalgInvExBackward0"
    assert type(L.svdvals(a).grad_fn).__name__ == "LinalgSvdBackward0"


# --- gradients -----------------------------------------------------------------------------------


def rebuilt(l, v):
    """A function of all eigenvectors that no phase or length changes."""
    return (v * l.exp().unsqueeze(-2)) @ L.inv(v)


GRADIENTS = {
    "det": (L.det, (2, 3, 3)),
    "slogdet": (L.slogdet, (3, 3)),
    "inv": (L.inv, (2, 3, 3)),
    "solve": (L.solve, (2, 3, 3), (3, 2)),
    "solve vectors": (L.solve, (2, 3, 3), (2, 3)),
    "solve right": (lambda a, b: L.solve(a, b, left=False), (3, 3), (2, 3)),
    "lu wide": (lambda a: L.lu(a)[1:], (3, 5)),
    "lu tall": (lambda a: L.lu(a)[1:], (2, 5, 3)),
    "lu_factor": (lambda a: L.lu_factor(a)[0], (4, 4)),
    "lu_solve": (lambda a, b: L.lu_solve(*L.lu_factor(a), b, adjoint=True), (3, 3), (3, 2)),
    "cholesky": (lambda a: L.cholesky(a @ a.mH + 3 * torch.eye(3)), (3, 3)),
    "cholesky upper": (lambda a: torch.cholesky(a @ a.mH + 3 * torch.eye(3), True), (3, 3)),
    "qr tall": (lambda a: L.qr(a), (4, 3)),
    "qr wide": (lambda a: L.qr(a), (3, 4)),
    "svd": (lambda a: (lambda u, s, v: (u * (s**3).unsqueeze(-2)) @ v)(*L.svd(a, False)), (3, 4)),
    "svdvals": (L.svdvals, (4, 3)),
    "eigh": (lambda a: rebuilt(*L.eigh(a + a.mH)), (3, 3)),
    "eig": (lambda a: rebuilt(*L.eig(a)), (3, 3)),
    "eigvals": (lambda a: (L.eigvals(a) ** 2).sum(), (2, 3, 3)),
    "pinv": (L.pinv, (4, 3)),
    "pinv wide": (L.pinv, (2, 3, 4)),
    "lstsq": (lambda a, b: L.lstsq(a, b, driver="gelsd")[:2], (5, 3), (5, 2)),
    "matrix_exp": (torch.matrix_exp, (2, 3, 3)),
    "matrix_power": (lambda a: torch.matrix_power(a, -3), (3, 3)),
    "householder": (L.householder_product, (4, 3), (2,)),
    "ormqr": (lambda a, t, c: torch.ormqr(a, t, c, False, True), (4, 3), (3,), (2, 4)),
    "nuclear norm": (lambda a: L.matrix_norm(a, "nuc"), (3, 4)),
    "spectral norm": (lambda a: L.matrix_norm(a, 2), (3, 4)),
    "vector_norm": (lambda a: L.vector_norm(a, 3, dim=0), (3, 4)),
    "cond": (L.cond, (3, 3)),
    "cross": (lambda a, b: torch.cross(a, b, dim=1), (2, 3), (2, 3)),
    "kron": (torch.kron, (2, 3), (3, 2)),
    "baddbmm": (lambda a, b, c: torch.baddbmm(a, b, c, beta=2), (4,), (2, 3, 2), (2, 2, 4)),
}


@MAKERS
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name, make):
    function, *shapes = GRADIENTS[name]
    check(function, *(make(*shape) for shape in shapes))


@MAKERS
@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_det_differentiates_at_singular_matrices(make, rank):
    a = make(4, rank) @ make(rank, 4)
    check(torch.det, a)


def test_distances():
    a, b = real(4, 3), real(5, 3)
    for p in (1.0, 1.5, 2.0, 3.0, math.inf):
        check(lambda x, y, p=p: torch.cdist(x, y, p=p), a, b)
    same_rows = torch.tensor(a, requires_grad=True)
    torch.cdist(same_rows, same_rows.detach()).sum().backward()
    assert torch.isfinite(same_rows.grad).all()


def test_only_gradients_that_arrive_are_used():
    """Equal eigenvalues make the rules of vectors infinite, but not those of values."""
    a = torch.eye(3, dtype=torch.float64, requires_grad=True)
    for function in (L.eigvalsh, L.svdvals, lambda x: L.eigh(x).eigenvalues):
        (found,) = torch.autograd.grad(function(a).sum(), a)
        same(found, np.eye(3))


def test_losses_that_depend_on_phases_are_refused():
    a = torch.tensor(complex_(3, 3), requires_grad=True)
    with pytest.raises(RuntimeError, match=r"specified up to multiplication by e\^{i phi}"):
        L.eigh(a).eigenvectors.real.sum().backward()
    with pytest.raises(RuntimeError, match="singular vectors"):
        L.svd(a).U.real.sum().backward()


def test_qr_says_what_cannot_be_differentiated():
    a = torch.tensor(real(4, 3), requires_grad=True)
    with pytest.raises(RuntimeError, match="mode='r'"):
        L.qr(a, mode="r").R.sum().backward()
    with pytest.raises(RuntimeError, match="mode='complete' and nrows > ncols"):
        L.qr(a, mode="complete").R.sum().backward()


@pytest.mark.parametrize("wrap", [lambda f: f, torch.compile], ids=["eager", "compiled"])
def test_matrices_that_are_not_finite(wrap):
    bad = torch.eye(3, dtype=torch.float64)
    bad[2, 0] = math.nan
    batch = torch.stack([torch.eye(3, dtype=torch.float64), bad])
    pinv, hermitian = wrap(L.pinv), wrap(lambda a: L.pinv(a, hermitian=True))
    for _ in range(3):
        with pytest.raises(L.LinAlgError, match=r"linalg.svd: The algorithm failed to converge"):
            pinv(bad)
        with pytest.raises(L.LinAlgError, match=r"linalg.svd: \(Batch element 1\)"):
            pinv(batch)
        with pytest.raises(L.LinAlgError, match=r"linalg.eigh: \(Batch element 1\)"):
            hermitian(batch)
    det = wrap(L.det)
    for _ in range(3):
        leaf = batch.clone().requires_grad_()
        det(leaf).sum().backward()
        assert torch.equal(leaf.grad[0], torch.eye(3, dtype=torch.float64))
        assert leaf.grad[1].isnan().all()
