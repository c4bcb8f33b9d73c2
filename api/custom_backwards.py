"""Backward of compiled functions op by op, with custom Functions' own Python.

Note [Custom backwards]
    A custom Function's backward is recorded when its forward is. Eager runs it later, when what it
    reads of Python's state may be another. So before a compiled backward runs, that state is
    compared with the one that was recorded, which the call relied on too. Where it is another, the
    recorded ops run again, as eager's, with nodes that hold contexts as the Functions' forwards
    left them; the gradients go through these. Anomaly mode, which names single ops, does so too.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

from .environment import Environment
from .guards import Absent, Attributes, ClassBody, Code
from .ir.bind import epoch, state
from .ir.graph import RESULT, Graph, Node
from .ir.inline import inline, run_node
from .ir.op import TABLE
from .plain import PLAIN
from .surroundings import Surroundings
from .tracer.backward import grad
from .tracer.custom_calls import attributes_of
from .tracer.function import backward_of
from .tracer.tensor import Tensor

STEADY = (types.FunctionType, types.ModuleType, type, types.BuiltinFunctionType, staticmethod,
          classmethod, property)  # fmt: skip


class State:
    """What the backward of a custom Function reads beside its context and gradients."""

    def __init__(self, node: Any, known: set[int]):
        held = [v for v in attributes_of(node).values() if id(v) in known]
        self.environment = Environment(backward_of(node._forward_cls), held)

    def can_change(self) -> bool:
        return can_change(self.environment)

    def is_current(self) -> bool:
        environment = self.environment
        if environment.quick_failure() is not None:
            return False
        return environment.epoch == epoch.value or environment.failure() is None


def can_change(environment: Environment) -> bool:
    """Does a function read anything but code?"""
    if not all(map(is_of_code, environment.guards)):
        return True
    found = [value for _, value in environment.findings.found]
    return bool(environment.problems or environment.modules) or any(
        not isinstance(value, STEADY) for value in found
    )


def is_of_code(guard: Any) -> bool:
    """Is it about code alone, which nobody replaces between forward and backward?"""
    if isinstance(guard, ClassBody):
        return not any(isinstance(value, PLAIN) for name, value in guard.before.items()
                       if name[:2] != "__")  # fmt: skip
    if isinstance(guard, Attributes):
        return type(guard.owner) is types.FunctionType and not guard.owner.__dict__
    return isinstance(guard, Code | Absent | Surroundings)


class Customs:
    """The custom Functions of a graph."""

    def __init__(self, graph: Graph, calls: Mapping[str, Any], states: Mapping[str, State]):
        names = [dict(n.attrs)["backward"].name for n in graph.nodes if n.op.name == "call"]
        self.calls = {name: calls.get(name) for name in names}
        self.states = [states[name] for name in names if name in states]

    def are_current(self) -> bool:
        """Would all of them compute what was recorded?"""
        return all(state.is_current() for state in self.states)

    def run(self, node: Node, operands: Any) -> Any:
        """A node of the graph, run by eager."""
        call = self.calls.get(dict(node.attrs)["backward"].name) if node.op.name == "call" else None
        results = run_node(node, operands) if call is None else call(*operands)
        if node.op.name == "stop_gradient" and not dict(node.attrs).get("apart"):
            results._storage = operands[0].storage_  # of detach()
        for tensor in results if isinstance(results, tuple) else (results,):
            if isinstance(tensor, Tensor) and tensor._node is not None:
                tensor._node.place = node.place
                if tensor._node.extra is not None:
                    tensor._node.extra.metadata.pop("traceback_", None)
        return results


class Careful:
    """Backward to leaves (`to_leaves.py`) for graphs with custom Functions."""

    def __init__(self, way: Any, customs: Customs):
        self.way, self.customs = way, customs

    def serve(self, node: Any, seed: Any, keep: bool) -> bool:
        return self.customs.are_current() and self.way.serve(node, seed, keep)


def gradients(function: Any, node: Any, inputs: list[Tensor], arrived: list[Any]) -> list[Any]:
    """Those of the inputs in `wanted`, by eager; see Note [Custom backwards]."""
    create = state.grad_enabled
    wanted = node.split.wanted
    state.grad_enabled = True
    try:
        values = list(inputs)
        for k in wanted:  # each apart, though two may be one tensor
            values[k] = TABLE["alias"](values[k])
        outputs = inline(function.trace, values, again=True, run=function.customs.run)
    finally:
        state.grad_enabled = create
    results = [t for t, o in zip(outputs, function.trace.outputs) if o.kind == RESULT]
    given = [results[function.differentiable[k]] for k in node.numbers]
    found = grad(given, [values[k] for k in wanted], arrived, True, create, allow_unused=True)
    return list(found)
