"""LBFGS: a quasi-Newton method with limited memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import cat, view_as_real
from ..tracer.modes import enable_grad, no_grad
from ..tracer.tensor import Tensor
from .checks import require_non_negative
from .line_search import Point, Search
from .optimizer import Optimizer

_REMEMBERED = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")


class LBFGS(Optimizer):
    """LBFGS(params, lr=1, max_iter=20, max_eval=None, ..., line_search_fn=None)."""

    def __init__(self, params: Any, lr: Any = 1, max_iter: int = 20, max_eval: int | None = None,
                 tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9,
                 history_size: int = 100, line_search_fn: str | None = None) -> None:  # fmt: skip
        require_non_negative(lr=lr)
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        defaults = {"lr": lr, "max_iter": max_iter, "max_eval": max_eval,
                    "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
                    "history_size": history_size, "line_search_fn": line_search_fn}  # fmt: skip
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    # --- parameters as one vector ---

    def _gather_flat_grad(self) -> Tensor:
        parts = []
        for parameter in self._params:
            grad = parameter.grad
            part = parameter.new_zeros(parameter.numel()) if grad is None else grad.reshape(-1)
            parts.append(view_as_real(part).reshape(-1) if part.is_complex() else part)
        return cat(parts, 0)

    def _add_grad(self, step_size: float, update: Tensor) -> None:
        start = 0
        for parameter in self._params:
            target = view_as_real(parameter) if parameter.is_complex() else parameter
            count = target.numel()
            target.add_(update[start : start + count].view_as(target), alpha=step_size)
            start += count

    # --- the step ---

    @no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:
        """step(closure): several iterations; the closure computes the loss and its gradients."""
        closure = enable_grad()(closure)
        group = self.param_groups[0]
        kept = self.state[self._params[0]]
        kept.setdefault("func_evals", 0)
        kept.setdefault("n_iter", 0)
        first_loss = closure()
        kept["func_evals"] += 1
        grad = self._gather_flat_grad()
        if float(grad.abs().max()) > group["tolerance_grad"]:
            _iterate(self, closure, group, kept, float(first_loss), grad)
        return first_loss


def _evaluate(optimizer: LBFGS, closure: Callable[[], Any], t: float, direction: Tensor) -> Any:
    """Loss and gradient a step away; the parameters stay as they are."""
    before = [parameter.clone() for parameter in optimizer._params]
    optimizer._add_grad(t, direction)
    loss = float(closure())
    grad = optimizer._gather_flat_grad()
    for parameter, value in zip(optimizer._params, before):
        parameter.copy_(value)
    return loss, grad


def _iterate(
    optimizer: LBFGS, closure: Any, group: Any, kept: Any, loss: float, grad: Tensor
) -> None:
    memory = {name: kept.get(name) for name in _REMEMBERED}
    evaluations = 1
    for iteration in range(1, group["max_iter"] + 1):
        kept["n_iter"] += 1
        direction = _direction(memory, grad, kept["n_iter"] == 1, group["history_size"])
        memory["d"] = direction
        memory["prev_flat_grad"] = grad.clone()
        memory["prev_loss"] = loss
        t = group["lr"].item() if isinstance(group["lr"], Tensor) else group["lr"]
        if kept["n_iter"] == 1:
            t = min(1.0, 1.0 / float(grad.abs().sum())) * t
        memory["t"] = t
        slope = float(grad.dot(direction))
        if slope > -group["tolerance_change"]:
            break
        last = iteration == group["max_iter"]
        start = Point(0.0, loss, grad, slope)
        loss, grad, memory["t"], used = _move(
            optimizer, closure, group, start, t, direction, group["max_eval"] - evaluations, last
        )
        evaluations += used
        kept["func_evals"] += used
        if last or _finished(group, memory, loss, grad, evaluations):
            break
        kept.setdefault("al", [None] * group["history_size"])
    kept.update(memory)


def _finished(group: Any, memory: Any, loss: float, grad: Tensor, evaluations: int) -> bool:
    return (
        evaluations >= group["max_eval"]
        or float(grad.abs().max()) <= group["tolerance_grad"]
        or float(memory["d"].mul(memory["t"]).abs().max()) <= group["tolerance_change"]
        or abs(loss - memory["prev_loss"]) < group["tolerance_change"]
    )


def _move(optimizer: LBFGS, closure: Any, group: Any, start: Point, t: float, direction: Tensor,
          limit: int, last: bool) -> Any:  # fmt: skip
    """Takes one step along `direction`; returns loss, gradient, length and evaluations."""
    if group["line_search_fn"] is not None:
        if group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        search = Search(
            lambda length: _evaluate(optimizer, closure, length, direction), direction, start, limit
        )
        found = search.run(t)
        optimizer._add_grad(found.t, direction)
        return found.loss, found.grad, found.t, search.evaluations
    optimizer._add_grad(t, direction)
    if last:  # nobody will look at the loss there
        return start.loss, start.grad, t, 0
    loss = float(closure())
    return loss, optimizer._gather_flat_grad(), t, 1


def _direction(memory: Any, grad: Tensor, first: bool, history_size: int) -> Tensor:
    """Minus the gradient times the inverse Hessian that the last steps suggest."""
    if first:
        memory.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
        return grad.neg()
    change = grad.sub(memory["prev_flat_grad"])
    step = memory["d"].mul(memory["t"])
    product = change.dot(step)
    changes, steps, inverses = memory["old_dirs"], memory["old_stps"], memory["ro"]
    if product > 1e-10:
        if len(changes) == history_size:
            for listed in (changes, steps, inverses):
                listed.pop(0)
        changes.append(change)
        steps.append(step)
        inverses.append(1.0 / product)
        memory["H_diag"] = product / change.dot(change)
    q = grad.neg()
    factors: list[Any] = [None] * len(changes)
    for k in range(len(changes) - 1, -1, -1):
        factors[k] = steps[k].dot(q) * inverses[k]
        q.add_(changes[k], alpha=-factors[k].item())
    r = q.mul(memory["H_diag"])
    for k in range(len(changes)):
        back = changes[k].dot(r) * inverses[k]
        r.add_(steps[k], alpha=(factors[k] - back).item())
    return r
