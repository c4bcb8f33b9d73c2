"""Custom ops: a function of tensors that autograd and the compiler call, and never look into.

A call runs the kernel below autograd. With a formula for the derivative it is one node of the
graph, as an `autograd.Function` is; in a compiled function it is left to Python, at every call
(Note [Left to Python]).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..autograd.function import Function
from ..autograd.graph import increment_version
from ..ir.bind import state
from ..left_to_python import left_to_python, plain_arguments
from ..pytree import flatten, unflatten
from ..tracer.modes import no_grad
from ..tracer.tensor import Tensor
from .schemas import Schema

OPS: dict[str, CustomOpDef] = {}  # by qualified name


class CustomOpDef:
    """An op made by `custom_op` or `define`: call it, or `torch.ops.<namespace>.<name>`."""

    def __init__(self, name: str, schema: str, fn: Any = None):
        self._namespace, self._name = name.split("::")
        self._qualname, self._init_fn = name, fn
        self._schema = Schema(name, schema)
        self.kernels: dict[Any, Any] = {}
        self.fake: Any = None
        self.set_formula(None, None)
        OPS[name] = self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    # --- what users register ---

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """register_kernel("cpu"): what the op does there; None is all devices."""

        def register(fn: Any) -> Any:
            several = isinstance(device_types, list | tuple)
            for kind in device_types if several else (device_types,):
                self.kernels[kind] = fn
            return fn

        return register if fn is None else register(fn)

    def register_fake(self, fn: Any, /) -> Any:
        """register_fake(fn): shapes and dtypes of the results; `opcheck` compares them."""
        self.fake = fn
        return fn

    def register_autograd(self, backward: Any, /, *, setup_context: Any = None) -> None:
        """register_autograd(backward, setup_context=...): the derivative, as of a Function."""
        if self._schema.mutated:
            raise RuntimeError(f"Cannot register autograd formula for non-functional operator "
                               f"{self} with schema {self._schema}. Please create a functional "
                               "operator and register an autograd formula for that.")  # fmt: skip
        self.set_formula(backward, setup_context)

    def set_formula(self, backward: Any, setup_context: Any) -> None:
        self.backward, self.setup_context = backward, setup_context
        self.function = function_of(self)

    # --- calls ---

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values = self._schema.bind(*plain_arguments((args, kwargs)))
        with left_to_python(f"custom op {self._qualname} runs in Python"):
            leaves: list[Any] = []
            structure = flatten(values, leaves)
            needs = any(isinstance(x, Tensor) and x.requires_grad for x in leaves)
            if not (needs and state.grad_enabled) or self._schema.mutated:
                return self.run(values)
            made: list[Any] = []
            results = self.function.apply(structure, made, *leaves)
            listed = results if isinstance(results, tuple) else (results,)
            return unflatten(made[0], iter(listed))

    def run(self, values: list[Any]) -> Any:
        """The kernel, below autograd."""
        kernel = self.kernels.get("cpu", self.kernels.get(None))
        if kernel is None:
            raise NotImplementedError(f"Could not run '{self._qualname}' with arguments from the "
                                      "'CPU' backend: no kernel was registered for it; use "
                                      "torch.library.register_kernel")  # fmt: skip
        written = [x for k in self._schema.mutated for x in tensors_in(values[k])]
        versions = [x._version for x in written]
        given, named = self.split(values)
        with no_grad():
            result = kernel(*given, **named)
        increment_version([x for x, v in zip(written, versions) if x._version == v])
        self.check_memory(values, result)
        return result

    def split(self, values: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments by place and by name."""
        pairs = [*zip(self._schema.arguments, values)]
        given = tuple(value for argument, value in pairs if not argument.keyword_only)
        return given, {a.name: value for a, value in pairs if a.keyword_only}

    def check_memory(self, values: list[Any], result: Any) -> None:
        """Results are new memory: autograd and the compiler rely on it."""
        made, given = tensors_in(result), tensors_in(values)
        pairs = itertools.chain(itertools.product(made, given), itertools.combinations(made, 2))
        if any(a is b or np.may_share_memory(a._array, b._array) for a, b in pairs):
            raise RuntimeError(
                f"{self._qualname}: The output of this custom operator (1) must not also be an "
                "input to this custom operator and (2) may not alias any inputs to this custom "
                "operator or other returns. The most common way to trigger this error is if we "
                "have y = custom_op(x) and y and x are the same Tensor. Please instead return a "
                "clone of the offending output tensor(s) (e.g. return x.clone()) or refactor the "
                "custom operator to not return y."
            )


def tensors_in(value: Any) -> list[Tensor]:
    leaves: list[Any] = []
    flatten(value, leaves)
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def function_of(op: CustomOpDef) -> Any:
    """The autograd Function of an op; its arguments are the leaves of the op's own."""

    def forward(ctx: Any, structure: Any, made: list[Any], *leaves: Any) -> Any:
        values = unflatten(structure, iter(leaves))
        result = op.run(values)
        out: list[Any] = []
        made.append(flatten(result, out))
        ctx.given, ctx.made = values, made[0]
        if op.setup_context is not None:
            given, named = op.split(values)
            extra = {"keyword_only_inputs": named} if named else {}
            op.setup_context(ctx=ctx, inputs=given, output=result, **extra)
        return out[0] if len(out) == 1 else tuple(out)

    def backward(ctx: Any, *grads: Any) -> Any:
        if op.backward is None:
            raise RuntimeError(f"Trying to backward through {op._namespace}.{op._name}.default but "
                               "no autograd formula was registered. Please use register_autograd "
                               "to add one.")  # fmt: skip
        given = unflatten(ctx.made, iter(grads))
        found = op.backward(ctx, *(given if isinstance(given, tuple) else (given,)))
        return None, None, *spread(op, ctx.given, found)

    name = f"GeneratedBackwardFor_{op._namespace}_{op._name}_default"
    return type(name, (Function,), {"forward": staticmethod(forward),
                                    "backward": staticmethod(backward)})  # fmt: skip


def spread(op: CustomOpDef, values: list[Any], found: Any) -> list[Any]:
    """A gradient for each leaf of the arguments; None for a list is None for all of it."""
    listed = list(found) if isinstance(found, tuple) else [found]
    count = len(op.split(values)[0])
    if len(listed) != count:
        raise RuntimeError(f"{op._qualname}: the backward formula returned {len(listed)} "
                           f"gradient(s), expected {count}, one for each argument")  # fmt: skip
    grads: list[Any] = []
    for value, grad in itertools.zip_longest(values, listed):
        inside: list[Any] = []
        flatten(value, inside)
        if isinstance(value, list | tuple):
            grads += [None] * len(inside) if grad is None else list(grad)
        else:
            grads += [grad] * len(inside)
    return grads
