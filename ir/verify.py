"""The verifier: re-runs each op's inference and says which node is wrong and what was expected."""

from __future__ import annotations

import re

from .formulas import Formula
from .graph import GRAD_OF, INPUT_KINDS, OUTPUT_KINDS, RANDOM, WRITE, Graph, Node, Output, Var
from .lifetimes import Lifetimes
from .ops.drawing import STATE, sample
from .printer import number, print_node
from .types import DType

NAME = re.compile(r"[^\W\d]\w*")


class VerifyError(Exception):
    """The graph is not valid; the message shows the node and its neighbours."""


def verify(graph: Graph) -> Graph:
    """Returns the graph if it is valid, and the graphs inside it are."""
    if not NAME.fullmatch(graph.name):
        raise VerifyError(f"@{graph.name}: the name of a graph must be a word")
    if any(isinstance(size, Formula) for item in graph.inputs for size in item.var.type.shape):
        raise VerifyError(f"@{graph.name}: its sizes have names, and are known when it runs; "
                          "verify ir.instance_for(graph, shapes_of_inputs)")  # fmt: skip
    defined = check_inputs(graph)
    for index, node in enumerate(graph.nodes):
        problem = (check_operands(node, defined) or check_attributes(node) or check_types(node)
                   or check_results(node, defined))  # fmt: skip
        if problem:
            raise VerifyError(f"@{graph.name}: {problem}\n{neighbours(graph, index)}")
        defined.update(node.outputs)
    for output in graph.outputs:
        problem = check_output(graph, output, defined)
        if problem:
            raise VerifyError(f"@{graph.name}: {problem}")
    check_states(graph)
    check_marks(graph)
    for node in graph.nodes:
        for _, value in node.attrs:
            if isinstance(value, Graph):
                verify(value)
    return graph


def check_inputs(graph: Graph) -> set[Var]:
    """The Vars that inputs define."""
    defined: set[Var] = set()
    for item in graph.inputs:
        if item.kind not in INPUT_KINDS:
            raise VerifyError(f"@{graph.name}: unknown kind of input {item.kind!r}")
        if item.var in defined:
            raise VerifyError(f"@{graph.name}: input {item.name!r} is listed twice")
        if item.kind == RANDOM and item.var.type != STATE:
            raise VerifyError(f"@{graph.name}: a random state is {STATE}, not {item.var.type}")
        defined.add(item.var)
    return defined


def check_output(graph: Graph, output: Output, defined: set[Var]) -> str:
    if output.kind not in OUTPUT_KINDS:
        return f"unknown kind of output {output.kind!r}"
    if output.var not in defined:
        return "an output is not defined"
    if output.kind not in (WRITE, GRAD_OF):
        return "" if output.target is None else f"an output of kind {output.kind} has no target"
    if output.target is None or not 0 <= output.target < len(graph.inputs):
        return f"an output of kind {output.kind} names no input"
    wanted, got = graph.inputs[output.target].var.type, output.var.type
    if wanted != got:
        return f"{output.kind} of {got} for input {output.target} of type {wanted}"
    return ""


def check_states(graph: Graph) -> None:
    """A random state is drawn from once: two draws would give the same numbers."""
    spent: set[Var | None] = set()
    for index, node in enumerate(graph.nodes):
        if node.op is sample:
            if node.inputs[0] in spent:
                raise VerifyError(f"@{graph.name}: sample: its random state was drawn from before\n"
                                  f"{neighbours(graph, index)}")  # fmt: skip
            spent.add(node.inputs[0])


def check_marks(graph: Graph) -> None:
    """Memory that is marked as free to be taken must be read by nobody later."""
    if graph.unmarked() is graph:
        return
    lifetimes = Lifetimes(graph)
    names = number(graph)
    for index, node in enumerate(graph.nodes):
        for position in node.over:
            if not (0 <= position < len(node.inputs) and lifetimes.may_overwrite(index, position)):
                var = node.inputs[position] if 0 <= position < len(node.inputs) else None
                raise VerifyError(f"@{graph.name}: {node.op.name} may not be written over "
                                  f"{'none' if var is None else names[var]}, which is read later "
                                  f"or of another type\n{neighbours(graph, index)}")  # fmt: skip
    for output in graph.outputs:
        if output.donated and not lifetimes.may_donate(output):
            raise VerifyError(f"@{graph.name}: {output.kind} of {names[output.var]} is marked as "
                              f"donated, but its input is still read")  # fmt: skip


def check_operands(node: Node, defined: set[Var]) -> str:
    op = node.op
    if op.variadic is None and len(node.inputs) != len(op.inputs):
        return f"{op.name} takes {len(op.inputs)} operands, got {len(node.inputs)}"
    if op.variadic is not None and len(node.inputs) < len(op.inputs) - 1:
        return f"{op.name} takes at least {len(op.inputs) - 1} operands, got {len(node.inputs)}"
    for position, var in enumerate(node.inputs):
        if var is None:
            if not op.may_be_none(position):
                return f"{op.name}: operand '{op.input_name(position)}' may not be none"
        elif var not in defined:
            return f"{op.name}: operand {position} is used before it is defined"
    return ""


def check_attributes(node: Node) -> str:
    op, given = node.op, dict(node.attrs)
    for name in given:
        if name not in op.attributes:
            return f"{op.name} has no attribute {name!r}"
    missing = [n for n in op.attributes if n not in given and n not in op.defaults]
    return f"{op.name}: attribute {missing[0]!r} is missing" if missing else ""


def check_types(node: Node) -> str:
    op = node.op
    types = [None if v is None else v.type for v in node.inputs]
    try:
        wanted = op.infer_types(types, dict(node.attrs))
    except Exception as error:  # rules of inference say no in many ways
        return f"{op.name}: inference refuses the operands: {error}"
    strange = [t.dtype for t in wanted if not isinstance(t.dtype, DType)]
    if strange:
        return f"{op.name}: {strange[0]!r} is no element type"
    got = tuple(v.type for v in node.outputs)
    if op.data_shape and len(wanted) == len(got):  # only the values say which shape
        wanted = tuple(w._replace(shape=g.shape) for w, g in zip(wanted, got))
    if wanted != got:
        expected = ", ".join(map(str, wanted))
        return f"{op.name}: expected {expected}, got {', '.join(map(str, got))}"
    return ""


def check_results(node: Node, defined: set[Var]) -> str:
    if len(set(node.outputs)) < len(node.outputs) or not defined.isdisjoint(node.outputs):
        return f"{node.op.name}: a value is defined twice"
    return ""


def neighbours(graph: Graph, index: int, reach: int = 5) -> str:
    """The lines around a node, with a mark at it."""
    names = number(graph)
    lines = []
    for k in range(max(0, index - reach), min(len(graph.nodes), index + reach + 1)):
        mark = ">" if k == index else " "
        try:
            lines.append(f"{mark} {print_node(graph.nodes[k], names)}")
        except (KeyError, TypeError) as error:
            lines.append(f"{mark} {graph.nodes[k].op.name} ... ({error})")
    return "\n".join(lines)
