"""Ready-made parametrisations: orthogonal, weight_norm, spectral_norm."""

from __future__ import annotations

from typing import Any

from ... import cat
from ...tracer.creation import zeros_like
from ...tracer.modes import no_grad
from ...tracer.random import randn
from ...tracer.ranges import eye
from ...tracer.tensor import Tensor
from .. import functional as F
from ..modules.module import Module
from .parametrize import register_parametrization
from .spectral_norm import as_matrix, output_dim
from .weight_norm import norm_except_dim, weight_of


def _tensor_of(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_of(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Module:
    """weight_norm(module, name="weight", dim=0): length and direction are learnt apart."""
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def read_old_names(state_dict: Any, prefix: str, *_: Any) -> None:
        for place, suffix in enumerate("gv"):
            if f"{prefix}{name}_{suffix}" in state_dict:
                value = state_dict.pop(f"{prefix}{name}_{suffix}")
                state_dict[f"{prefix}parametrizations.{name}.original{place}"] = value

    module._register_load_state_dict_pre_hook(read_old_names)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0,
                 eps: float = 1e-12) -> None:  # fmt: skip
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, "
                             f"{ndim - 1}] but got {dim})")  # fmt: skip
        if n_power_iterations <= 0:
            raise ValueError("Expected n_power_iterations to be positive, but got "
                             f"n_power_iterations={n_power_iterations}")  # fmt: skip
        self.dim = dim % ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight, self.dim)
            height, width = matrix.size()
            u, v = matrix.new_empty(height).normal_(0, 1), matrix.new_empty(width).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _power_method(self, matrix: Tensor, n_power_iterations: int) -> None:
        with no_grad():
            for _ in range(n_power_iterations):
                self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.t().mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # the graph must not see the next update
        return weight / u.dot(matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1,
                  eps: float = 1e-12, dim: int | None = None) -> Module:  # fmt: skip
    """spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None)."""
    weight = _tensor_of(module, name)
    dim = output_dim(module) if dim is None else dim
    return register_parametrization(
        module, name, _SpectralNorm(weight, n_power_iterations, dim, eps)
    )


def _make_orthogonal(matrix: Tensor) -> Tensor:
    from ... import linalg

    q, r = linalg.qr(matrix)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True):
        super().__init__()
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        rows, columns = X.size(-2), X.size(-1)
        tall = rows >= columns
        if not tall:
            X, rows, columns = X.mT, columns, rows
        Q = self._map(X, rows, columns)
        if "base" in self._buffers:
            Q = self.base @ Q
        return Q if tall else Q.mT

    def _map(self, X: Tensor, rows: int, columns: int) -> Tensor:
        from ... import linalg

        if self.orthogonal_map == "householder":
            A = X.tril(diagonal=-1)
            tau = 2.0 / (1.0 + (A * A).sum(dim=-2))
            Q = linalg.householder_product(A, tau)
            return Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        X = X.tril()
        if rows != columns:
            filler = X.new_zeros(rows, rows - columns).expand(*X.shape[:-2], -1, -1)
            X = cat([X, filler], dim=-1)
        A = X - X.mT.conj()
        if self.orthogonal_map == "matrix_exp":
            return linalg.matrix_exp(A)[..., :columns]
        identity = eye(rows, dtype=A.dtype)
        return linalg.solve(identity - A * 0.5, identity + A * 0.5)[..., :columns]

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        """Starts from (the nearest orthogonal matrix to) `Q`."""
        if Q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a "
                             f"tensor of shape {Q.shape}.")  # fmt: skip
        if "base" not in self._buffers:
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False. Use it, or the householder map."
            )
        start = zeros_like(Q)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        if Q.size(-2) < Q.size(-1):
            Q = Q.mT
        rows, columns = Q.size(-2), Q.size(-1)
        if rows != columns:
            more = randn(*Q.size()[:-2], rows, rows - columns, dtype=Q.dtype)
            Q = cat([Q, more], dim=-1)
        self.base = _make_orthogonal(Q)
        return start


def orthogonal(module: Module, name: str = "weight", orthogonal_map: str | None = None, *,
               use_trivialization: bool = True) -> Module:  # fmt: skip
    """orthogonal(module, name="weight", orthogonal_map=None, use_trivialization=True)."""
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError("Expected a matrix or batch of matrices. Got a tensor of "
                         f"{weight.ndim} dimensions.")  # fmt: skip
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError('orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
                         f"Got: {orthogonal_map}")  # fmt: skip
    part = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, part, unsafe=True)
