"""The text of backward through a familiar graph; see Note [Familiar graphs]."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np

from ..ir.derivative import settings_of
from ..ir.texts import function_of
from .accumulate import accumulate
from .derive import derive, is_large, is_silent
from .saved import SavedOutput
from .straight import code, derivative_of
from .tape import AccumulateGrad
from .tensor import PLAIN, Tensor


class Sketch(NamedTuple):
    """A graph: nodes with a plan, in the order in which backward runs them, leaves, and what it
    looks like, where edges are (number of the node, or ~ number of the leaf; output) or None."""

    nodes: list[Any]
    leaves: list[Any]
    key: tuple[Any, ...]


def write(sketch: Sketch) -> Any:
    """backward(node, number, array, freed, place) for graphs like this; None if it can't be."""
    writer = _Writer(sketch)
    for position in range(len(sketch.nodes)):
        writer.match(position)
    if not all(writer.derive(position) for position in range(len(sketch.nodes))):
        return None
    writer.finish()
    return function_of(writer.text(), "<wengert backward>", writer.space)


class _Writer:
    """Lines that look at the graph, and lines that compute.

    Names: n3 is the fourth node, l3 the fourth leaf, a3_0 its first saved array, g... a gradient.
    """

    def __init__(self, sketch: Sketch):
        self.nodes, self.key = sketch.nodes, sketch.key
        self.leaves = sketch.leaves
        self.looks = [f"if number != {sketch.key[0]}: return False"]
        self.frees: list[str] = []  # between looking and computing
        self.lines: list[tuple[str, list[str]]] = []
        self.met: set[int] = {0}
        # names of gradients that arrived: of nodes by (number, output), of leaves by (~number, 0)
        self.arrived: dict[tuple[int, int], str] = {(0, sketch.key[0]): "array"}
        self.sums: set[str] = set()  # made here, so that one can add to them
        self.space: dict[str, Any] = {
            "AccumulateGrad": AccumulateGrad, "PLAIN": PLAIN, "SavedOutput": SavedOutput,
            "accumulate": accumulate, "add": np.add, "asarray": np.asarray, "derive": derive,
            "is_silent": is_silent, "wrapped": Tensor._wrap, "__name__": __name__,
        }  # fmt: skip

    # --- looking ---

    def match(self, position: int) -> None:
        """Is the node what it was, and do its edges lead where they led?"""
        node, name = self.nodes[position], f"n{position}"
        space, looks = self.space, self.looks
        tests = [f"{name}.plan is not p{position} or {name}.extra is not None"]
        space[f"p{position}"] = node.plan
        if not node.is_op:
            space[f"p{position}"] = weakref.ref(node.plan)  # a compiled function may be dropped
            tests = [f"{name}.plan is not p{position}() or {name}.extra is not None",
                     f"{name}.freed is not None or {name}.is_stale()"]  # fmt: skip
        elif node.types is None:
            space[f"u{position}"] = node.uniform
            tests.append(f"{name}.types is not None or {name}.uniform != u{position}")
        else:
            space[f"u{position}"] = node.types
            tests.append(f"{name}.types != u{position}")
        if node.is_op and node.attrs:
            space[f"s{position}"] = settings_of(node.attrs)
            space["settings_of"] = settings_of
            tests.append(f"settings_of({name}.attrs) != s{position}")
        elif node.is_op and node.op.attributes:
            tests.append(f"{name}.attrs")  # others than the defaults
        looks.append(f"if {' or '.join(tests)}: return False")
        looks.append(f"e = {name}.edges")
        for number, edge in enumerate(self.key[position + 1][4]):
            if edge is not None:
                self.match_edge(number, *edge)
        self.match_saved(position, name)

    def match_edge(self, number: int, target: int, slot: int) -> None:
        name = f"n{target}" if target >= 0 else f"l{~target}"
        if target in self.met:
            self.looks += [
                f"t, k = e[{number}]",
                f"if t is not {name} or k != {slot}: return False",
            ]
            return
        self.met.add(target)
        self.looks += [f"{name}, k = e[{number}]", f"if k != {slot}: return False"]
        if target < 0:
            self.looks.append(f"if {name}.__class__ is not AccumulateGrad or not is_silent({name})"
                              ": return False")  # fmt: skip

    def match_saved(self, position: int, name: str) -> None:
        kinds = self.key[position + 1][3]
        if not kinds:
            return
        self.looks += [f"s = {name}.saved", "if s.__class__ is not tuple: return False"]
        for slot, kind in enumerate(kinds):
            array = f"a{position}_{slot}"
            self.looks.append(f"v = s[{slot}]")
            if kind == "tensor":
                self.looks += [
                    "if v.__class__ not in PLAIN: return False",
                    "t = v._storage",
                    f"if t is not None and t.version != {name}.versions[{slot}]: return False",
                    f"{array} = v._array",
                ]
            elif kind == "output":
                self.looks += [
                    "if v.__class__ is not SavedOutput or v.twin is not None"
                    " or v.version != v.storage.version: return False",
                    f"{array} = v.array",
                ]
            else:
                self.space[array] = kind
                self.looks.append(f"if (v.__class__, v) != {array}: return False")

    # --- computing ---

    def derive(self, position: int) -> bool:
        """The node's derivative as a call, and where its results go; False if it has no code."""
        node = self.nodes[position]
        _, (inputs, outputs), settings, kinds, edges = self.key[position + 1]
        grads = [self.arrived.get((position, k)) for k in range(len(outputs))]
        self.sums.difference_update(grads)  # they may be passed on, to several places
        if not node.is_op:
            return self.call_whole(position, grads)
        numbers = tuple([kind if kind.__class__ is tuple else None for kind in kinds])
        found = code(derivative_of(node, settings), numbers, tuple([g is None for g in grads]))
        if found is None or grads.count(None) == len(grads):
            return False
        # numbers and None are no variables of the function: they are part of what it expects
        names = [*grads, *(None if kind.__class__ is tuple else f"a{position}_{slot}"
                           for slot, kind in enumerate(kinds))]  # fmt: skip
        outline = found.outline
        targets = {k: f"g{position}_{~k}" for k in outline if k is not None and k < 0}
        if is_large(node, None if grads[0] is None else outputs[0].numel):
            self.call_engine(position, outputs, names, outline, targets)
        else:
            self.frees += self.freeing(position)
            if targets:
                self.space[f"f{position}"] = found.function
                operands = [names[k] for k in found.operands]
                results = "".join(f"{t}, " for t in targets.values())
                self.step(f"{results}= f{position}({', '.join(operands)})", operands)
        for edge, place, wanted in zip(edges, outline, inputs):
            if edge is not None and place is not None:
                self.arrive(edge, names[place] if place >= 0 else targets[place], wanted)
        return True

    def call_engine(
        self, position: int, outputs: Any, names: list[Any], outline: Any, targets: dict[int, str]
    ) -> None:
        """A derivative that native kernels may take; see Note [Large calls]."""
        used = [name for name in names if name is not None]
        tensors = self.tensors(position, outputs, names)
        self.step(f"r = derive(n{position}, {tensors}, True)", used)
        for place, target in targets.items():
            self.step(f"{target} = r[{outline.index(place)}]._array", [])
        self.step("r = None", [])
        for text in self.freeing(position):
            self.step(text, [])

    def call_whole(self, position: int, grads: list[Any]) -> bool:
        """The node of a compiled function, as the engine would run it."""
        plan, (inputs, outputs), _, _, edges = self.key[position + 1]
        given = tuple([number for number, name in enumerate(grads) if name is not None])
        if not given:
            return False
        tensors = self.tensors(position, outputs, grads)
        self.step(f"r = n{position}.apply({tensors})", [grads[k] for k in given])
        _, computed = plan.for_gradients(given)
        names = {k: f"g{position}_{k}" for k in computed}
        for k, name in names.items():
            self.step(f"{name} = r[{k}]._array", [])
        self.step("r = None", [])
        self.step(f"if freed is not None: n{position}.release(freed)", [])
        for k, name in names.items():
            self.arrive(edges[k], name, inputs[k])
        return True

    def tensors(self, position: int, outputs: Any, names: list[Any]) -> str:
        """Gradients of the node's outputs as a list of tensors, None for those that are absent."""
        texts = []
        for number, (name, kind) in enumerate(zip(names, outputs)):
            self.space[f"d{position}_{number}"] = kind.dtype
            texts.append("None" if name is None else f"wrapped({name}, d{position}_{number})")
        return f"[{', '.join(texts)}]"

    def freeing(self, position: int) -> list[str]:
        """The line that lets go of what the node saved, if it saved anything."""
        kinds = self.key[position + 1][3]
        return [f"if freed is not None: n{position}.saved = freed"] if kinds else []

    def arrive(self, edge: tuple[int, int], name: str, wanted: Any) -> None:
        """A gradient comes to its place, or is added to the one that is there."""
        here = self.arrived.get(edge)
        if here is None:
            self.arrived[edge] = name
        elif here in self.sums:
            self.step(f"add({here}, {name}, {here})", [here, name])
        else:
            total = self.arrived[edge] = f"x{len(self.lines)}"
            text = f"add({here}, {name})"
            self.step(f"{total} = {text if wanted.shape else f'asarray({text})'}", [here, name])
            if wanted.shape:
                self.sums.add(total)

    def finish(self) -> None:
        """Gradients of leaves are accumulated, in the order of their names."""
        leaves = sorted((~target, name) for (target, _), name in self.arrived.items() if target < 0)
        for number, name in leaves:
            self.space[f"w{number}"] = self.leaves[number].variable.dtype
            self.step(f"w = [wrapped({name}, w{number})]", [name])
            self.step(f"accumulate(l{number}.variable, w, False, True, place)", [])

    def step(self, text: str, uses: list[str]) -> None:
        self.lines.append((text, uses))

    def text(self) -> str:
        """The whole function. Arrays are let go after their last use."""
        order = [f"n{k}.sequence" for k in range(len(self.nodes))]
        if len(order) > 1:
            self.looks.append(f"if not ({' > '.join(order)}): return False")
        if len(self.leaves) > 1:
            each = ", ".join(f"l{k}" for k in range(len(self.leaves)))
            self.looks.append(f"if len({{{each}}}) != {len(self.leaves)}: return False")
        body: list[str] = []
        seen = {"array"}
        for text, uses in reversed(self.lines):
            last = sorted({name for name in uses if name not in seen})
            seen.update(last)
            if last:
                body.append(f"    {' = '.join(last)} = None")
            body.append(f"    {text}")
        body.reverse()
        return "\n".join([
            "def backward(n0, number, array, freed, place):",
            "    try:",
            *(f"        {line}" for line in self.looks),
            # no edge there, or one to a node that is no op's
            "    except (AttributeError, IndexError, TypeError):",
            "        return False",
            *(f"    {line}" for line in self.frees),
            *body,
            "    return True",
        ])  # fmt: skip
