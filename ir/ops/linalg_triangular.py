"""The older torch.triangular_solve, which also returns a copy of its matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import warn_of_successor
from ..op import define
from ..types import TensorType, broadcast_shapes
from ..value import public
from . import linalg_kernels as kernels
from .arithmetic import conj
from .linalg_common import add, check_same_dtype, check_solvable, lead_of
from .linalg_solve import solve_triangular_op, triangle
from .precision import full_precision
from .products import drawn, matmul, transposed
from .results import named_result


def _old_triangular_rule(
    grad_solution: Any, grad_cloned_coefficient: Any, A: Any, solution: Any, upper: bool,
    transpose: bool, unitriangular: bool,
) -> Any:  # fmt: skip
    grad_self = grad_A = None
    if grad_solution is not None:
        turned = conj(A) if transpose else transposed(A)
        flipped = upper if transpose else not upper
        grad_self = solve_triangular_op(turned, grad_solution, upper=flipped,
                                        unitriangular=unitriangular)  # fmt: skip
        grad_A = -matmul(grad_self, transposed(solution))
        grad_A = triangle(grad_A.mT if transpose else grad_A, upper, unitriangular)
    return grad_self, add(grad_A, grad_cloned_coefficient)


def _old_triangular(
    b: np.ndarray, a: np.ndarray, *, upper: bool = True, transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    matrix, side = (np.swapaxes(a, -2, -1), not upper) if transpose else (a, upper)
    solution = kernels.solve_triangular(matrix, b, upper=side, unitriangular=unitriangular)
    return solution, np.array(np.broadcast_to(a, (*lead, *a.shape[-2:])))


def _old_triangular_infer(self: TensorType, A: TensorType, **_: Any) -> Any:
    lead = broadcast_shapes(lead_of(A), lead_of(self))
    return (TensorType(self.dtype, (*lead, *self.shape[-2:])),
            TensorType(A.dtype, (*lead, *A.shape[-2:])))  # fmt: skip


old_triangular_op = define(
    "triangular_solve", "self A -> solution cloned_coefficient", numpy=_old_triangular,
    infer=_old_triangular_infer, vjp={("self", "A"): _old_triangular_rule},
    samples=drawn(((3, 2), (3, 3), {}), ((3, 2), (3, 3), {"upper": False, "transpose": True})),
)  # fmt: skip


@public("triangular_solve")
@full_precision
def triangular_solve(
    input: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """triangular_solve(input, A, upper=True, transpose=False, unitriangular=False)."""
    warn_of_successor("triangular_solve", "solve_triangular", "torch.linalg.solve_triangular has "
                      "its arguments reversed and does not return a copy of one of the inputs.\n"
                      "X = torch.triangular_solve(B, A).solution\nshould be replaced with\n"
                      "X = torch.linalg.solve_triangular(A, B, upper=True).")  # fmt: skip
    check_solvable("triangular_solve", A, input)
    check_same_dtype("triangular_solve", input, A, ("b", "A"))
    result = old_triangular_op(
        input, A, upper=upper, transpose=transpose, unitriangular=unitriangular
    )
    return named_result("triangular_solve solution cloned_coefficient", result)
