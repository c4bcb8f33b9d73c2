"""The text of a familiar call; see Note [Familiar calls]."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from ..ir.bind import state
from ..ir.op import Op
from ..ir.places import USERS_FILES, user_place
from ..ir.texts import function_of
from .eager import offered
from .fast import leaf_edge
from .large import is_large
from .promotion import cast_array, common_dtype, convert_operand
from .saved import SavedOutput
from .storage import Storage, View
from .tape import next_sequence
from .tensor import PLAIN, Tensor

NUMBERS = (int, float, bool, complex)


# Most calls are the user's own: then it is his frame that called the one that called this code.
PLACE = [
    "    frame = getframe(2)",
    "    code = frame.f_code",
    "    known = code.co_filename in USERS_FILES",
    "    place = (code, frame.f_lasti) if known else user_place()",
]


class Step(NamedTuple):
    """An op that a call ran, with what it got and gave."""

    op: Op
    inputs: tuple[Any, ...]
    attrs: dict[str, Any]
    outputs: tuple[Any, ...]

    @property
    def node(self) -> Any:
        """The node it added to the graph, if it did."""
        return next((out._node for out in self.outputs if out._node is not None), None)

    def is_plain(self) -> bool:
        """Could the op be run by its NumPy evaluation alone, and its node be made again?"""
        op = self.op
        if not self.outputs:  # of an empty tensor in pieces
            return False
        if op.random or op.data_shape or op.restrides or op.node == "NotImplemented":
            return False
        tensors = [v for v in self.inputs if isinstance(v, Tensor)]
        others = (
            v.__class__ in NUMBERS or v is None for v in self.inputs if v.__class__ not in PLAIN
        )
        if not all(others) or any(out.__class__ is not Tensor for out in self.outputs):
            return False
        if any(t.dtype.compute is not t.dtype.storage for t in (*tensors, *self.outputs)):
            return False
        node = self.node
        return node is None or (node.op is op and node.extra is None
                                and node.saved.__class__ is tuple)  # fmt: skip


def write(watch: Any, result: Any) -> Any:
    """call(*tensors) that does what was watched; None if it can't be written."""
    if not watch.is_repeatable():
        return None
    writer = _Writer(watch)
    try:
        writer.evaluate()
        returned = writer.returned(result)
        writer.keep()
        writer.build()
    except Unknown:
        return None
    return function_of(writer.text(returned), "<wengert call>", writer.space)


class Unknown(Exception):
    """A tensor that came from nowhere, or looks as no code would make it."""


class _Writer:
    """Lines that compute arrays, and lines that make nodes and tensors.

    Names: x3 is the fourth tensor given; of step 5, k5 are the attributes, n5 is the node, o5_0 the
    first result and t5_0 its array.
    """

    def __init__(self, watch: Any):
        self.steps, self.checks = watch.steps, watch.checks
        self.arguments = watch.arguments
        self.names: dict[int, str] = {}  # of tensors by id
        for number, tensor in enumerate(watch.arguments):
            self.names.setdefault(id(tensor), f"x{number}")
        self.arrays = {name: f"a{name[1:]}" for name in self.names.values()}
        self.nodes: dict[int, str] = {}  # edges into nodes that are made here, by id of the tensor
        self.kept: set[int] = set()  # ids of results that must be tensors
        self.edges: set[str] = set()  # arguments whose edge was looked up
        self.computing: list[str] = []
        self.building: list[str] = []
        self.space: dict[str, Any] = {
            "SavedOutput": SavedOutput, "Storage": Storage, "Tensor": Tensor, "View": View,
            "__name__": __name__, "asarray": np.asarray, "cast": cast_array, "offered": offered,
            "leaf_edge": leaf_edge, "new": object.__new__, "next_sequence": next_sequence,
            "state": state, "getframe": sys._getframe, "user_place": user_place,
            "USERS_FILES": USERS_FILES,
        }  # fmt: skip

    def name(self, tensor: Any) -> str:
        found = self.names.get(id(tensor))
        if found is None:
            raise Unknown
        return found

    # --- arrays ---

    def evaluate(self) -> None:
        """The NumPy calls, and the checks between them."""
        for number, step in enumerate(self.steps):
            self.check(number)
            operands = self.operands(number, step)
            targets = []
            for position, out in enumerate(step.outputs):
                if id(out) in self.names:
                    raise Unknown  # an op that gave back its operand
                name = self.names[id(out)] = f"o{number}_{position}"
                targets.append(f"t{number}_{position}")
                self.arrays[name] = targets[-1]
            self.space[f"f{number}"] = step.op.numpy
            self.space[f"k{number}"] = step.attrs
            if self.is_offered(step):
                self.space[f"q{number}"] = step.op
                call = f"offered(q{number}, [{', '.join(operands)}], k{number})"
            else:
                operands += [f"**k{number}"] if step.attrs else []
                call = f"f{number}({', '.join(operands)})"
            many = step.op.many_outputs or len(step.op.outputs) > 1
            self.computing.append(f"{', '.join(targets)}{',' if many else ''} = {call}")
            self.computing += [f"{target} = asarray({target})"
                               for target, out in zip(targets, step.outputs)
                               if not out._array.ndim]  # fmt: skip

    def check(self, number: int) -> None:
        """The checks of elements that came before a step."""
        for place, (position, check, tensor, facts) in enumerate(self.checks):
            if position == number:
                self.space.update({f"check{place}": check, f"facts{place}": facts})
                array = self.arrays[self.name(tensor)]
                self.computing.append(f"check{place}({array}, *facts{place})")

    def operands(self, number: int, step: Step) -> list[str]:
        """The operands as the op's evaluation gets them; see `eager.run`."""
        wanted = None if step.op.promote is None else common_dtype(step.op, step.inputs)
        texts = []
        for position, value in enumerate(step.inputs):
            constant = f"c{number}_{position}"
            if value is None:
                texts.append("None")
            elif not isinstance(value, Tensor):
                self.space[constant] = value if wanted is None else convert_operand(value, wanted)
                texts.append(constant)
            else:
                array = self.arrays[self.name(value)]
                if wanted is not None and value.dtype is not wanted:
                    self.space[constant] = (value.dtype, wanted)
                    array = f"cast({array}, *{constant})"
                texts.append(array)
        return texts

    def is_offered(self, step: Step) -> bool:
        """Is it a call that native kernels may take? See Note [Large calls]."""
        arrays = [v._array if isinstance(v, Tensor) else v for v in step.inputs]
        return not step.op.moves_data and is_large(step.op, arrays)

    # --- what is returned and kept ---

    def returned(self, result: Any) -> str:
        """The expression of the function's result."""
        if isinstance(result, Tensor):
            self.kept.add(id(result))
            return self.name(result)
        if not isinstance(result, tuple | list):
            raise Unknown
        members = "".join(f"{None if v is None else self.returned(v)}, " for v in result)
        if result.__class__ is list:
            return f"[{members}]"
        if result.__class__ is tuple:
            return f"({members})"
        name = f"Result{len(self.space)}"
        self.space[name] = result.__class__
        return f"{name}(({members}))"

    def keep(self) -> None:
        """Finds out which results must be tensors: those somebody will see, or look through."""
        kept = self.kept
        for step in reversed(self.steps):
            node = step.node
            for key in () if node is None else node.plan.keys:
                if key >= 0:
                    kept.add(id(step.inputs[key]))
                elif step.op.is_view:  # it shares its storage
                    kept.add(id(step.outputs[~key]))
            if step.op.is_view and any(id(out) in kept for out in step.outputs):
                kept.add(id(step.inputs[0]))

    # --- nodes and tensors ---

    def build(self) -> None:
        for number, step in enumerate(self.steps):
            node = step.node
            if node is not None:
                self.add_node(number, step, node)
            for position, out in enumerate(step.outputs):
                if out._node is not None:
                    if out._node is not node or out._nr != position:
                        raise Unknown
                    self.nodes[id(out)] = f"(n{number}, {position})"
                if id(out) in self.kept:
                    self.add_tensor(number, step, position, out)
            if node is not None:
                self.add_saved(number, step, node)

    def add_node(self, number: int, step: Step, node: Any) -> None:
        edges = []
        for value, needed in zip(step.inputs, node.plan.needs):
            edges.append(self.edge(value) if needed else "None")
        name, space = f"n{number}", self.space
        space[f"N{number}"], space[f"p{number}"] = node.__class__, node.plan
        space[f"u{number}"], space[f"y{number}"] = node.uniform, node.types
        self.building += [
            f"{name} = new(N{number})",
            f"{name}.attrs = k{number}",
            f"{name}.plan = p{number}",
            f"{name}.edges = ({', '.join(edges)},)",
            f"{name}.uniform = u{number}",
            f"{name}.types = y{number}",
            f"{name}.sequence = next_sequence()",
            f"{name}.extra = None",
            f"{name}.place = place",
        ]

    def edge(self, tensor: Any) -> str:
        """Where gradients of a tensor go."""
        name = self.name(tensor)
        if name[0] == "o":
            if id(tensor) not in self.nodes:
                raise Unknown
            return self.nodes[id(tensor)]
        edge = f"e{name[1:]}"
        if edge not in self.edges:
            self.edges.add(edge)
            self.building += [
                f"{edge} = {name}._node",
                f"{edge} = leaf_edge({name}) if {edge} is None else ({edge}, {name}._nr)",
            ]
        return edge

    def add_tensor(self, number: int, step: Step, position: int, out: Tensor) -> None:
        name = self.names[id(out)]
        self.space[f"d{name[1:]}"] = out.dtype
        node = "None" if out._node is None else f"n{number}"
        self.building += [
            f"{name} = new(Tensor)",
            f"{name}._array = {self.arrays[name]}",
            f"{name}.dtype = d{name[1:]}",
            f"{name}._grad = {name}._leaf = None",
            f"{name}._node = {node}",
            f"{name}._nr = {position if out._node is not None else 0}",
            f"{name}._requires_grad = {out._requires_grad}",
            f"{name}._mark = {self.mark(step, out)}",
        ]
        if step.op.is_view:
            self.add_view(step, position, name, out)
        else:
            self.building.append(f"{name}._view = {name}._storage = None")

    def mark(self, step: Step, out: Tensor) -> str:
        """Why a result has no history: a note of its inputs, or where history was switched off."""
        if out._mark is None or out._mark == "inference":  # so are those of all calls like this
            return repr(out._mark)
        if out._mark is state.cut:
            return "state.cut"
        for value in reversed(step.inputs):
            if isinstance(value, Tensor) and value._mark is out._mark:
                name = self.name(value)
                return f"{name}._mark" if name[0] == "x" else self.mark(self.maker(value), value)
        raise Unknown

    def maker(self, tensor: Tensor) -> Step:
        return next(s for s in self.steps if any(out is tensor for out in s.outputs))

    def add_view(self, step: Step, position: int, name: str, out: Tensor) -> None:
        source, view = step.inputs[0], out._view
        if view is None or out._storage is not source._storage:
            raise Unknown
        number = name.partition("_")[0][1:]
        step_name = f"w{name[1:]}"
        self.space[step_name] = (step.op, step.attrs, position if step.op.multi_view else 0)
        base = self.name(source)
        lines = [f"s = {base}._storage"]
        if base[0] == "x" or source._view is None:
            lines.append(f"if s is None: s = {base}._storage = Storage({base}._array)")
        lines += [f"{name}._storage = s", f"v{number} = {name}._view = new(View)",
                  f"v{number}.seen = s.version"]  # fmt: skip
        origin = repr(view.origin)
        if source._view is None:
            self.space[f"{step_name}c"] = (self.space[step_name],)
            lines += [f"v{number}.base = {base}", f"v{number}.chain = {step_name}c"]
        else:
            lines += [f"b = {base}._view", f"v{number}.base = b.base",
                      f"v{number}.chain = (*b.chain, {step_name})"]  # fmt: skip
            if view.origin is source._view.origin and state.grad_enabled and not step.op.multi_view:
                origin = "b.origin"
        self.building += [*lines, f"v{number}.origin = {origin}"]

    def add_saved(self, number: int, step: Step, node: Any) -> None:
        entries, versions = [], []
        for slot, key in enumerate(node.plan.keys):
            version = "0"
            if key < 0:
                entry = f"z{number}_{slot}"
                self.add_saved_output(entry, step.outputs[~key])
            elif isinstance(step.inputs[key], Tensor):
                value = step.inputs[key]
                entry = self.name(value)
                if entry[0] == "x":
                    version = f"0 if {entry}._storage is None else {entry}._storage.version"
                elif value._view is not None:
                    version = f"{entry}._storage.version"
            else:
                entry = f"r{number}_{slot}"
                self.space[entry] = step.inputs[key]
            entries.append(entry)
            versions.append(version)
        comma = "," if entries else ""
        self.building += [f"n{number}.saved = ({', '.join(entries)}{comma})",
                          f"n{number}.versions = ({', '.join(versions)}{comma})"]  # fmt: skip

    def add_saved_output(self, entry: str, out: Tensor) -> None:
        name = self.names[id(out)]
        array = self.arrays[name]
        self.space[f"d{name[1:]}"] = out.dtype
        storage = f"Storage({array})"
        if id(out) in self.kept:
            self.building.append(f"if {name}._storage is None: {name}._storage = {storage}")
            storage = f"{name}._storage"
        self.building += [
            f"{entry} = new(SavedOutput)",
            f"{entry}.twin = None",
            f"{entry}.array = {array}",
            f"{entry}.dtype = d{name[1:]}",
            f"s = {entry}.storage = {storage}",
            f"{entry}.version = s.version",
        ]

    # --- the whole ---

    def text(self, returned: str) -> str:
        given = [f"x{k}" for k in range(len(self.arguments))]
        lines = [f"def call({', '.join(given)}):", "    try:"]
        lines += [f"        {array} = {name}._array" for name, array in self.arrays.items()
                  if name[0] == "x"]  # fmt: skip
        lines += [f"        {line}" for line in self.computing]
        lines += ["    except Exception:", "        return None"]
        if any(".place = place" in line for line in self.building):
            lines += PLACE
        lines += [f"    {line}" for line in self.building]
        return "\n".join([*lines, f"    return {returned}"])
