"""Sums of products of one shape become one product, of what they are made of, joined along k.

    a1 @ b1 + a2 @ b2 + ...  ==  cat(a1, a2, ..., 1) @ cat(b1, b2, ..., 0)

also where each is turned before it is added. A weight that is used many times, as that of a
recurrent layer in a loop, has such a gradient: the joined product reads and writes its result once,
in place of once per use, and has a long k. Products of a k that is long already stay: joining
would only copy. Sums are of the same terms, in blocks of another size (docs/numerics.md).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from ..builder import Symbol
from ..graph import Graph, Node, Var
from ..op import TABLE
from . import dead_code
from .rewrite import rebuild

LEAST = 4  # terms that are worth it


def run(graph: Graph) -> Graph:
    if sum(node.op.name == "mm" for node in graph.nodes) < LEAST:
        return graph
    sums = Sums(graph)
    now: dict[Var, Var] = {}  # results of earlier sums, which later ones may read

    def rule(node: Node, operands: list[Any]) -> Any:
        groups, others = sums.of(node)
        if not groups:
            return None
        total = None
        parts = [joined(group, sums, now) for group in groups]
        for term in (*parts, *(symbol(v, now) for v in others)):
            total = term if total is None else TABLE["add"](total, term)
        now[node.outputs[0]] = total.var  # type: ignore[union-attr]
        return total

    result = rebuild(graph, rule, about=sums.is_root)
    return graph if result is graph else dead_code.run(result)


@dataclass(frozen=True)
class Term:
    """A product among the terms of a sum; `turned`: its transpose is."""

    product: Node
    turned: bool

    @property
    def kind(self) -> tuple[Any, ...]:
        a, b = self.product.inputs
        assert a is not None and b is not None
        return self.turned, a.type, b.type


class Sums:
    """The sums of a graph and what they add."""

    def __init__(self, graph: Graph):
        self.producers = graph.producers()
        read = [v for node in graph.nodes for v in node.inputs if v is not None]
        self.uses = Counter([*read, *(output.var for output in graph.outputs)])
        self.within = {v for node in graph.nodes if is_sum(node) for v in node.present()
                       if self.uses[v] == 1 and is_sum(self.producers.get(v))}  # fmt: skip

    def is_root(self, node: Node) -> bool:
        return is_sum(node) and node.outputs[0] not in self.within

    def of(self, root: Node) -> tuple[list[list[Term]], list[Var]]:
        """Groups of products to join, and the other terms."""
        groups: dict[tuple[Any, ...], list[Term]] = defaultdict(list)
        found: dict[Var, Term | None] = {leaf: self.term(leaf) for leaf in self.leaves(root)}
        for term in filter(None, found.values()):
            groups[term.kind].append(term)
        kept = {kind: terms for kind, terms in groups.items() if pays(terms)}
        others = [v for v, term in found.items() if term is None or term.kind not in kept]
        return list(kept.values()), others

    def leaves(self, root: Node) -> list[Var]:
        waiting, found = list(root.inputs), []
        while waiting:
            var = waiting.pop()
            assert var is not None
            if var in self.within:
                waiting += self.producers[var].inputs
            else:
                found.append(var)
        # a value that is added twice is no term to join, and must be added twice
        return found if len(set(found)) == len(found) else []

    def term(self, leaf: Var) -> Term | None:
        node, turned = self.producers.get(leaf), False
        if self.uses[leaf] == 1 and node is not None and is_turn(node):
            leaf, turned = node.inputs[0], True  # type: ignore[assignment]
            node = self.producers.get(leaf)
        if self.uses[leaf] != 1 or node is None or node.op.name != "mm":
            return None
        return Term(node, turned)


def is_sum(node: Node | None) -> bool:
    """Is it a sum of two matrices of its own type?"""
    if node is None or node.op.name != "add" or len(node.outputs[0].shape) != 2:
        return False
    if node.outputs[0].dtype.name not in ("float32", "float64"):  # others round each product
        return False
    return all(v is not None and v.type == node.outputs[0].type for v in node.inputs)


def is_turn(node: Node) -> bool:
    return node.op.name == "permute" and node.attributes["dims"] == (1, 0)


def pays(terms: list[Term]) -> bool:
    """Is what is saved, passes over the result, more than what is copied?"""
    a, b = terms[0].product.inputs
    assert a is not None and b is not None
    (m, k), n = a.shape, b.shape[1]
    sizes = all(isinstance(size, int) for size in (m, k, n))
    return len(terms) >= LEAST and sizes and 2 * k * (m + n) <= m * n


def symbol(var: Var, now: dict[Var, Var]) -> Any:
    return Symbol(now.get(var, var))


def joined(terms: list[Term], sums: Sums, now: dict[Var, Var]) -> Any:
    """One product in the place of several."""
    a, b = zip(*(term.product.inputs for term in terms))
    result = TABLE["mm"](row_of(a, 1, sums, now), row_of(b, 0, sums, now))
    return turn(result) if terms[0].turned else result


def row_of(parts: tuple[Any, ...], dim: int, sums: Sums, now: dict[Var, Var]) -> Any:
    """The parts behind each other; before they are turned, if they are, for that moves less."""
    made = [sums.producers.get(part) for part in parts]
    if all(node is not None and is_turn(node) for node in made):
        sources = [symbol(node.inputs[0], now) for node in made]  # type: ignore
        return turn(TABLE["cat"](*sources, dim=1 - dim))
    return TABLE["cat"](*(symbol(part, now) for part in parts), dim=dim)


def turn(value: Any) -> Any:
    return TABLE["permute"](value, dims=(1, 0))
