"""`LRScheduler`: counts epochs and writes learning rates into the parameter groups."""

from __future__ import annotations

import functools
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from ...tracer.tensor import Tensor
from ...unwritten import unwritten
from ..optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available. Please open an issue if you are unable to replicate your use case: "
    "https://github.com/pytorch/pytorch/issues/new/choose."
)
_DOCS = ("See more details at https://pytorch.org/docs/stable/optim.html"
         "#how-to-adjust-learning-rate")  # fmt: skip


def require_optimizer(optimizer: Any) -> None:
    """Raises torch's error for anything else."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value per parameter group."""
    count = len(optimizer.param_groups)
    if isinstance(value, list | tuple):
        if len(value) != count:
            raise ValueError(f"{name} must have the same length as optimizer.param_groups. {name} "
                             f"has {len(value)} values, param_groups has {count}.")  # fmt: skip
        return [copied(item) for item in value]
    return [copied(value) for _ in range(count)]


def group_values(optimizer: Optimizer, key: str) -> list[Any]:
    """The values of a hyper-parameter in all groups."""
    return [copied(group[key]) for group in optimizer.param_groups]


def set_value(group: dict[str, Any], key: str, value: Any) -> None:
    """Sets a hyper-parameter; one that is a tensor is written in place."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[key] = value


def watch_steps(optimizer: Any) -> None:
    """Notes on the optimizer that `step` was called, for the warning about the order of calls."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    reference, function = weakref.ref(optimizer), optimizer.step.__func__

    @functools.wraps(function)
    def step(*args: Any, **kwargs: Any) -> Any:
        owner = reference()
        owner._opt_called = True
        return function.__get__(owner, type(owner))(*args, **kwargs)

    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = step


class LRScheduler:
    """Base of schedulers. Ours give `_wengert_rates()`; the user's may override `get_lr()`."""

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        require_optimizer(optimizer)
        self.optimizer = optimizer
        for k, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{k}] when resuming "
                    "scheduler with last_epoch >= 0.\nThis typically happens when:\n1. You're "
                    "trying to resume training from a checkpoint but haven't properly loaded the "
                    "optimizer state\n2. You're using last_epoch >= 0 for a fresh training run "
                    "(not recommended)"
                )
        self.base_lrs = group_values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        watch_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what `state_dict()` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The learning rates of the last step."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The learning rates of this epoch; called by `step`."""
        if type(self)._wengert_rates is LRScheduler._wengert_rates:
            raise unwritten(self, "get_lr")
        if not self._get_lr_called_within_step:
            warnings.warn("To get the last learning rate computed by the scheduler, please use "
                          "`get_last_lr()`.", UserWarning, stacklevel=2)  # fmt: skip
        return self._wengert_rates()

    def _wengert_rates(self) -> list[Any]:
        raise NotImplementedError

    def _current(self) -> list[Any]:
        """The learning rates the groups have now."""
        return group_values(self.optimizer, "lr")

    def _times(self, factor: float) -> list[Any]:
        """Those times a factor."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def step(self, epoch: int | None = None) -> None:
        """Moves on by one epoch and sets the learning rates."""
        if self._step_count == 1:
            _warn_about_order(self)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            if epoch is not None and hasattr(self, "_get_closed_form_lr"):
                values = self._get_closed_form_lr()
            else:
                values = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        write_rates(self, values)


class _LRScheduler(LRScheduler):
    """The old name of LRScheduler."""


def saved_functions(functions: list[Callable[..., Any]]) -> list[Any]:
    """State of callables: objects save their attributes, plain functions nothing."""
    return [None if isinstance(f, types.FunctionType) else f.__dict__.copy() for f in functions]


def _warn_about_order(scheduler: Any) -> None:
    if not hasattr(scheduler.optimizer.step, "_wrapped_by_lr_sched"):
        warnings.warn(
            "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
            "initialization. Please, make sure to call `optimizer.step()` before "
            f"`lr_scheduler.step()`. {_DOCS}",
            UserWarning,
            stacklevel=3,
        )
    elif not getattr(scheduler.optimizer, "_opt_called", False):
        warnings.warn(
            "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch "
            "1.1.0 and later, you should call them in the opposite order: `optimizer.step()` "
            "before `lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping "
            f"the first value of the learning rate schedule. {_DOCS}",
            UserWarning,
            stacklevel=3,
        )


def write_rates(scheduler: Any, values: list[Any]) -> None:
    for group, value in zip(scheduler.optimizer.param_groups, values):
        set_value(group, "lr", value)
    scheduler._last_lr = group_values(scheduler.optimizer, "lr")
