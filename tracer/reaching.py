"""What a backward comes to: how many edges lead to each node, and which nodes must run.

Note [Nodes that join]
    A compiled call has one node, where eager has many. Of a gradient that arrives there only some
    of its edges are taken, those that eager's nodes would lead to (`Node.behind`). So whether
    something before such a node must run is a matter of edges: a node that leads to another result
    of the call than those that the inputs asked for are made of does not run, and is not freed.
"""

from __future__ import annotations

from typing import Any


def count_dependencies(roots: list[tuple[Any, int]], end: Any = ()) -> dict[Any, int]:
    """For every reachable node, how many edges lead into it; those in `end` are not passed."""
    counts: dict[Any, int] = {}
    stack = []
    for node, _ in roots:
        if node not in counts:
            counts[node] = 0
            stack.append(node)
    while stack:
        for edge in stack.pop().edges:
            if edge is not None:
                target = edge[0]
                if target in counts:
                    counts[target] += 1
                else:
                    counts[target] = 1
                    if target not in end:
                        stack.append(target)
    return counts


def count_among(needed: dict[Any, bool], counts: dict[Any, int]) -> dict[Any, int]:
    """The same for edges of nodes that run; `counts` has all that can be reached."""
    found = dict.fromkeys(counts, 0)
    for node, runs in needed.items():
        for edge in node.edges if runs else ():
            if edge is not None:
                found[edge[0]] += 1
    return found


def find_needed(roots: Any, captures: Any, targets: Any) -> dict[Any, bool]:
    """Which nodes must run: those asked for, and those before one that runs or is captured."""
    return Needed(captures, targets).find(roots)


class Needed:
    """See `find_needed`, and Note [Nodes that join]."""

    def __init__(self, captures: Any, targets: Any):
        self.captures, self.targets = captures, targets
        self.needed: dict[Any, bool] = {}
        self.led: dict[Any, bool] = {}  # edges to nodes that join: is anything asked for behind?

    def find(self, roots: Any) -> dict[Any, bool]:
        needed, captures, targets, order = self.needed, self.captures, self.targets, []
        stack: list[tuple[Any, bool]] = [(node, False) for node, _ in roots]
        joint = False
        while stack:
            node, expanded = stack.pop()
            if expanded:
                order.append(node)
                if joint:
                    # of all edges, so that none is followed far when nodes before ask for it
                    found = [self.leads(e) for e in node.edges if e is not None]
                    needed[node] = node in targets or any(found)
                    continue
                needed[node] = node in targets or any(
                    e is not None and (needed.get(e[0], False) or e[0] in captures)
                    for e in node.edges
                )
            elif node not in needed:
                joint = joint or node.joins
                needed[node] = node in targets
                stack.append((node, True))
                stack.extend((e[0], False) for e in node.edges
                             if e is not None and e[0] not in needed)  # fmt: skip
        if joint:
            self.judge_joints(roots, order)
        return needed

    def leads(self, edge: Any) -> bool:
        """Is anything asked for at the end of an edge, or behind it?"""
        node, number = edge
        if not node.joins:
            return self.needed.get(node, False) or node in self.captures
        known = self.led.get(edge)
        if known is None:
            asked = {place for place, _ in self.captures.get(node, ())}
            here = number in asked or not asked.isdisjoint(node.passes(number))
            known = self.led[edge] = here or node in self.targets or self.leads_on(edge)
        return known

    def leads_on(self, edge: Any) -> bool:
        """Is anything asked for behind the node of an edge, which joins?"""
        node, number = edge
        return any(e is not None and self.leads(e) for e in node.behind(number))

    def judge_joints(self, roots: Any, order: list[Any]) -> None:
        """A node that joins runs if a gradient arrives that must go on."""
        arriving: dict[Any, set[int]] = {}
        for node, number in roots:
            arriving.setdefault(node, set()).add(number)
        for node in reversed(order):
            edges = node.edges
            if node.joins:
                numbers = arriving.get(node, ())
                self.needed[node] = node in self.targets or any(
                    self.leads_on((node, number)) for number in numbers
                )
                edges = [edge for number in numbers for edge in node.behind(number)]
            for edge in edges if self.needed[node] else ():
                if edge is not None:
                    arriving.setdefault(edge[0], set()).add(edge[1])
