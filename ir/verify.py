"""The verifier: re-runs each op's inference and says which node is wrong and what was expected."""

from __future__ import annotations

from .graph import WRITE, Graph, Var
from .op import Op
from .printer import number, print_node


class VerifyError(Exception):
    """The graph is not valid; the message shows the node and its neighbours."""


def verify(graph: Graph) -> Graph:
    """Returns the graph if it is valid."""
    defined: set[Var] = set()
    for item in graph.inputs:
        if item.var in defined:
            raise VerifyError(f"@{graph.name}: input {item.name!r} is listed twice")
        defined.add(item.var)
    for index, node in enumerate(graph.nodes):
        problem = check_operands(node, defined) or check_attributes(node) or check_types(node)
        if problem:
            raise VerifyError(f"@{graph.name}: {problem}\n{neighbours(graph, index)}")
        for var in node.outputs:
            if var in defined:
                raise VerifyError(f"@{graph.name}: a value is defined twice\n"
                                  f"{neighbours(graph, index)}")  # fmt: skip
            defined.add(var)
    for output in graph.outputs:
        if output.var not in defined:
            raise VerifyError(f"@{graph.name}: an output is not defined")
        if output.kind == WRITE:
            check_write(graph, output)
    return graph


def check_write(graph: Graph, output: object) -> None:
    target = output.target  # type: ignore[attr-defined]
    if target is None or not 0 <= target < len(graph.inputs):
        raise VerifyError(f"@{graph.name}: a write-back names no input")
    wanted, got = graph.inputs[target].var.type, output.var.type  # type: ignore[attr-defined]
    if wanted != got:
        raise VerifyError(f"@{graph.name}: write-back of {got} to input {target} of type {wanted}")


def check_operands(node: object, defined: set[Var]) -> str:
    op: Op = node.op  # type: ignore[attr-defined]
    inputs = node.inputs  # type: ignore[attr-defined]
    if op.variadic is None and len(inputs) != len(op.inputs):
        return f"{op.name} takes {len(op.inputs)} operands, got {len(inputs)}"
    for position, var in enumerate(inputs):
        if var is None:
            if position not in op.optional:
                return f"{op.name}: operand '{op.input_name(position)}' may not be none"
        elif var not in defined:
            return f"{op.name}: operand {position} is used before it is defined"
    return ""


def check_attributes(node: object) -> str:
    op: Op = node.op  # type: ignore[attr-defined]
    given = dict(node.attrs)  # type: ignore[attr-defined]
    for name in given:
        if name not in op.attributes:
            return f"{op.name} has no attribute {name!r}"
    missing = [n for n in op.attributes if n not in given and n not in op.defaults]
    return f"{op.name}: attribute {missing[0]!r} is missing" if missing else ""


def check_types(node: object) -> str:
    op: Op = node.op  # type: ignore[attr-defined]
    types = [None if v is None else v.type for v in node.inputs]  # type: ignore[attr-defined]
    try:
        wanted = op.infer_types(types, dict(node.attrs))  # type: ignore[attr-defined]
    except Exception as error:
        return f"{op.name}: inference refuses the operands: {error}"
    got = tuple(v.type for v in node.outputs)  # type: ignore[attr-defined]
    if wanted != got:
        expected = ", ".join(map(str, wanted))
        return f"{op.name}: expected {expected}, got {', '.join(map(str, got))}"
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
