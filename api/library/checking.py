"""`opcheck`: whether a custom op keeps the promises that its registrations make."""

from __future__ import annotations

from typing import Any

from ..compiling import compile
from ..pytree import flatten, unflatten
from ..testing import assert_close
from ..tracer.tensor import Tensor
from .custom_ops import CustomOpDef, tensors_in


class OpCheckError(Exception):
    """An op breaks a promise."""


def copied(values: Any) -> Any:
    """The arguments with tensors of their own."""
    leaves: list[Any] = []
    structure = flatten(values, leaves)
    fresh = [x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x
             for x in leaves]  # fmt: skip
    return unflatten(structure, iter(fresh))


def test_schema(op: CustomOpDef, args: Any, kwargs: Any) -> None:
    """Only what the schema says is written; results are new memory."""
    given, named = copied((args, kwargs))
    before, after = op._schema.bind(*copied((given, named))), op._schema.bind(given, named)
    op(*given, **named)
    for argument, old, new in zip(op._schema.arguments, before, after):
        same = all(a.equal(b) for a, b in zip(tensors_in(old), tensors_in(new)))
        if not same and not argument.mutated:
            raise OpCheckError(f"Argument {argument.name} is not defined as mutable but was "
                               "mutated")  # fmt: skip


def test_autograd_registration(op: CustomOpDef, args: Any, kwargs: Any) -> None:
    """Inputs that require grad need a formula."""
    needs = any(x.requires_grad for x in tensors_in((args, kwargs)))
    if needs and op.backward is None and not op._schema.mutated:
        raise OpCheckError(f"{op._qualname} has no autograd formula; use register_autograd")


def test_faketensor(op: CustomOpDef, args: Any, kwargs: Any) -> None:
    """What `register_fake` gives is of the shapes and dtypes of the results."""
    if op.fake is None:
        if op._schema.returns == "()":
            return
        raise OpCheckError(f"{op._qualname} has no fake implementation; use register_fake")
    given, named = copied((args, kwargs))
    expected = [(x.shape, x.dtype) for x in tensors_in(op.fake(*given, **named))]
    given, named = copied((args, kwargs))
    made = [(x.shape, x.dtype) for x in tensors_in(op(*given, **named))]
    if made != expected:
        raise OpCheckError(f"the fake implementation of {op._qualname} gives {expected}, the op "
                           f"{made}")  # fmt: skip


def test_aot_dispatch_dynamic(op: CustomOpDef, args: Any, kwargs: Any) -> None:
    """Compiled calls give what eager ones give."""
    given, named = copied((args, kwargs))
    expected = tensors_in(op(*given, **named))
    compiled = compile(lambda args, kwargs: op(*args, **kwargs), dynamic=True)
    for _ in range(2):
        assert_close(tensors_in(compiled(*copied((args, kwargs)))), expected, equal_nan=True)


TESTS = {test.__name__: test for test in (test_schema, test_autograd_registration, test_faketensor,
                                          test_aot_dispatch_dynamic)}  # fmt: skip


def opcheck(op: Any, args: Any, kwargs: Any = None, *, test_utils: Any = tuple(TESTS),
            raise_exception: bool = True, **tolerances: Any) -> dict[str, Any]:  # fmt: skip
    """opcheck(op, args): runs the tests; {"test_schema": "SUCCESS", ...}, or the error."""
    from . import found

    results: dict[str, Any] = {}
    for name in (test_utils,) if isinstance(test_utils, str) else test_utils:
        if name not in TESTS:
            raise OpCheckError(f"unknown test {name!r}; use {', '.join(TESTS)}")
        try:
            TESTS[name](found(op), tuple(args), dict(kwargs or {}))
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error}") from error
            results[name] = error
    return results
