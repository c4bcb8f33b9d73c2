"""A call that is recorded: what it reads, computes and does, ready to be replayed."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

from .arguments import GivenArguments, leaf_names
from .arithmetic import is_arithmetic, question_asked
from .class_tests import tells_sizes
from .custom_backwards import State
from .dynamic import Symbols
from .effects import Effects
from .environment import Environment
from .given_back import HandedBack, answering
from .hooks_inside import HooksInside
from .ir.bind import interpreting, state
from .ir.dims import plain_values
from .ir.graph import ARGUMENT, BUFFER, CAPTURED, SCALAR
from .ir.ops.blas import OneThread
from .ir.types import default_dtype
from .looks import Looks
from .loose_numbers import replace_loose
from .number_inputs import NumberInputs
from .outputs import Outputs
from .packing import packing_outside, packing_problem
from .paths import path_of
from .plain import same_items
from .pytree import flatten, unflatten
from .quiet_code import is_quiet
from .returns import Handed, places_returned, with_handed
from .saved_values import (
    hooked_inside,
    is_spent,
    leaves_behind,
    overwritten,
    reread_results,
    saved_by_graph,
)
from .settling import settle_all
from .sources import (
    Argument,
    Captured,
    GradOf,
    Number,
    Reached,
)
from .tracer.random import default_generator
from .tracer.recorded import Refused
from .tracer.recorder import Recorder
from .tracer.tensor import Tensor
from .varying import Varying, numbers_at


class Recording(NumberInputs):
    """A call that runs eagerly with the recorder on."""

    def __init__(
        self,
        function: Any,
        structure: Any,
        leaves: list[Any],
        name: str,
        specialised: set[int],
        varying: Varying,
        axes: Sequence[Any] = (),
        call: Any = None,
        hooks: HooksInside | None = None,
    ):
        super().__init__()
        self.leaves, self.varying = leaves, varying
        self.hooks = HooksInside() if hooks is None else hooks
        self.environment = Environment(function, leaves, varying, self.hooks.known)
        self.names = leaf_names(function, structure, leaves)
        if axes and tells_sizes(self.environment.functions(), self.tensor_names()):
            axes = ()
        self.symbols = Symbols(leaves, axes, self.names)
        self.recorder = recorder = self.symbols.recorder(name, leaves) if axes else Recorder(name)
        self.sources: list[Any] = []
        self.parameter_names: dict[int, str] | None = None
        self.begun: dict[int, list[Tensor]] = {}  # parameters whose state was made, by optimizer
        self.assigned: list[tuple[Any, Tensor]] = []  # places, and what the body put there
        self.flags: list[bool] = []  # did the external require grad when it was met?
        recorder.body_code = getattr(function, "__code__", None)  # methods know their function's
        recorder.on_lift = self.on_lift
        recorder.naming = self.naming
        recorder.on_handed, recorder.is_arithmetic = self.on_handed, self.is_arithmetic
        recorder.question_asked = question_asked
        recorder.may_run_ahead = is_quiet
        recorder.reads_state, recorder.is_known_object = self.reads_state, self.is_known_object
        self.custom_states: dict[str, State] = {}
        self.handed: list[Handed] = []
        self.argument_places = {
            id(leaf): k for k, leaf in enumerate(leaves) if isinstance(leaf, Tensor)
        }
        self.plain_places = {
            id(leaf): k for k, leaf in enumerate(leaves) if not isinstance(leaf, Tensor | float)
        }
        recorder.is_argument = lambda tensor: id(tensor) in self.argument_places
        recorder.given_numbers = self.numbers
        recorder.hyper_parameter = self.hyper_parameter
        recorder.hyper_branch = self.hyper_branch
        recorder.state_begins = self.state_begins
        call = unflatten(structure, iter(leaves)) if call is None else call
        given = GivenArguments(call, self.with_numbers(call, leaves, specialised))
        self.placed = self.numbers_at_places()
        self.known_containers = self.environment.seen | given.container_ids()
        self.problems = self.run(function, given)

    def escapes(self) -> set[Any] | None:
        """The places in the body at which a value went to Python; None where the body looks at
        nodes, which are not eager's where it is taken apart."""
        if self.recorder.asks_for_nodes:
            return None
        found = [self.recorder.escapes.get(problem) for problem in self.problems]
        return {place for place in found if place is not None}

    def run(self, function: Any, given: GivenArguments) -> list[str]:
        """Calls the body; returns what stands against replaying it."""
        recorder = self.recorder
        before = default_generator.state()
        modes, numbers = modes_now(), self.environment.option_numbers()
        attributes = self.attributes_of_tensors()
        effects, looks = Effects(self.environment.functions()), Looks(self.environment)
        try:
            with interpreting(recorder), recorder.watching(), effects.watching(), OneThread(), \
                    packing_outside(recorder), looks.watching(), \
                    numbers_at(self.placed) as replaced:  # fmt: skip
                for leaf in self.leaves:
                    if isinstance(leaf, Tensor):
                        recorder.var_of(leaf)
                self.output = function(*given.call[0], **given.call[1])
        except BaseException:
            given.were_changed()  # the caller gets what the body did until there
            given.give_back()
            recorder.close()
            replace_loose(self.loose_numbers())
            raise
        self.back = HandedBack(self.output, given, self.environment)
        self.recorded_output = self.back.output
        self.output = self.without_numbers(given.handed_back(self.output))
        self.loose = self.loose_numbers()
        drew = (before != default_generator.state()).any()
        problems = [*recorder.problems, *effects.problems, *self.environment.problems]
        if recorder.hooks_run and (problem := self.hooks.problem(recorder.hooks_run)):
            problems.append(problem)
        if any(attributes) or any(self.attributes_of_tensors()):
            problems.append("the body may look for attributes that users put on tensors; pass "
                            "values")  # fmt: skip
        if given.were_changed():
            problems.append("the body changes a container it was given; return a new one")
        given.give_back()
        if modes_now() != modes:
            problems.append("the body leaves a grad mode or the default dtype changed")
        if not same_items(self.environment.option_numbers(), numbers):
            problems.append("the body changes options of an optimizer; do so outside")
        if recorder.used_numbers or self.left_plain or self.left_in_place:
            problems.append("a number argument's value is used by Python; later calls specialise "
                            "on it")  # fmt: skip
        if drew and default_generator not in recorder.states:
            problems.append("random numbers were drawn outside the recorded ops")
        if self.symbols.values:
            settle_all(given.given)
            self.environment.settle()
        for optimizer, parameters in self.begun.items():
            self.environment.optimizer_states[optimizer].begun(parameters)
        environment = self.environment
        changed = next(iter(replaced), None) or environment.failure() or self.note_assigned()
        environment.rely_on(looks.guards(set(map(id, recorder.externals))))
        if changed is not None:
            problems.append(f"the body changes Python state while it runs: {changed}; keep it in a "
                            "tensor")  # fmt: skip
        return problems

    def note_assigned(self) -> str | None:
        """Where the body put tensors that it computed in the place of others: replays do, too."""
        for place, now in self.environment.findings.replaced():
            if type(now) is not Tensor or not place.writable or not self.recorder.computed(now):
                return f"{place.name} is another object now"
            self.assigned.append((place, now))
        return None

    def attributes_of_tensors(self) -> list[set[str]]:
        """The names that code in sight knows of what users put on the arguments."""
        names = self.environment.names
        return [{name for name in leaf.__dict__ if name in names}
                for leaf in self.leaves if isinstance(leaf, Tensor)]  # fmt: skip

    def let_go(self) -> None:
        """It is over: nothing of the call is held until the collector comes."""
        recorder = self.recorder
        recorder.let_go()
        recorder.is_argument = None
        recorder.on_lift = recorder.on_handed = recorder.is_arithmetic = recorder.naming = None
        recorder.hyper_parameter = recorder.hyper_branch = recorder.state_begins = None
        recorder.reads_state = recorder.is_known_object = None

    def naming(self, tensor: Tensor) -> tuple[str, str]:
        """What a tensor from outside is called in the graph."""
        place = self.argument_places.get(id(tensor))
        if place is not None:
            return ARGUMENT, self.names[place]
        known = self.number_places.get(id(tensor))
        if known is not None:
            return SCALAR, self.names[known]
        name = self.known_parameters().get(id(tensor), "")
        if not name:
            return CAPTURED, ""
        from .nn.parameter import Parameter  # loaded by then: only modules have names for tensors

        return CAPTURED if isinstance(tensor, Parameter) else BUFFER, name

    def state_begins(self, optimizer: Any, parameter: Tensor) -> bool:
        """Is an optimizer's state that is made now from outside? See Note [State made in a step].

        That of an optimizer which the body itself makes is not.
        """
        apart = id(optimizer) in self.environment.optimizer_states and not state.inference
        if apart:
            self.begun.setdefault(id(optimizer), []).append(parameter)
        return apart

    def reads_state(self, node: Any) -> bool:
        """Does the backward of a custom Function read what may change until it runs?"""
        read = State(node, self.environment.seen)
        if read.can_change():
            name = f"{node.name()}_{self.recorder.custom_count}"
            self.custom_states[name] = read
            return True
        return False

    def is_known_object(self, value: Any) -> bool:
        """Is it one that the body finds at places of its own, and so at each call?"""
        return id(value) in self.environment.seen

    def captured(self) -> list[Tensor]:
        """Leaves from outside that are not arguments: parameters, buffers, closures."""
        return [t for t in self.recorder.externals
                if id(t) not in self.argument_places and id(t) not in self.numbers]  # fmt: skip

    def on_handed(self, tensor: Tensor, how: str, value: Any, problem: str) -> bool:
        """Does a value that Python got go straight into what the body returns?"""
        places = places_returned(how, value, Recording.run.__code__)
        if not places:
            return False
        if how != "numpy":  # which shares memory: the array shows what is written later
            before = tensor
            tensor = Tensor._wrap(tensor._array.copy(), tensor.dtype)
            tensor._mark = before._mark
            self.recorder.aliased(before, tensor)
        self.handed.append(Handed(tensor, how, value, places, problem))
        return True

    def is_arithmetic(self, how: str) -> bool:
        """May a number of a tensor be one of the graph? See Note [Numbers of tensors]."""
        return self.varying.reckons and is_arithmetic(how, Recording.run.__code__)

    # --- where inputs come from at each call ---

    def on_lift(self, tensor: Tensor) -> None:
        self.sources.append(self.source_of(tensor))
        self.flags.append(tensor._requires_grad)

    def source_of(self, tensor: Tensor) -> Any:
        known = self.numbers.get(id(tensor))
        if known is not None:
            return Number(known[1])
        owner = self.recorder.grad_owners.get(id(tensor))
        if owner is not None and id(tensor) not in self.argument_places:
            return GradOf(self.owner_source(owner))
        return self.owner_source(tensor)

    def owner_source(self, owner: Tensor) -> Any:
        place = self.argument_places.get(id(owner))
        if place is not None:
            return Argument(place)
        found = self.environment.findings.tensors.get(id(owner))
        if found is None or id(owner) in self.environment.findings.bound:
            return Captured(owner)
        return Reached(found)

    def is_from_outside(self, tensor: Tensor) -> bool:
        """Is it an argument, or was it in sight before the body ran?"""
        known = (self.argument_places, self.environment.findings.tensors, self.known_parameters())
        return any(id(tensor) in tensors for tensors in known)

    def known_parameters(self) -> dict[int, str]:
        """Names of the parameters and buffers of modules in sight, by id."""
        if self.parameter_names is None:
            self.parameter_names = self.environment.parameter_names()
        return self.parameter_names

    # --- the end ---

    def finish(self) -> bool:
        """Is the call replayable? If not, `problems` say why."""
        try:
            if not self.problems:
                with self.recorder.watching():
                    self.build()
        except Refused as refused:
            self.problems.append(str(refused))
        finally:
            self.recorder.close()
        return not self.problems

    def build(self) -> None:
        recorder = self.recorder
        out_leaves: list[Any] = []
        returned = self.back.made
        if any(c in self.known_containers for c in returned):
            raise Refused("the body returns a container that it was given or found; return a new "
                          "one")  # fmt: skip
        if len(set(returned)) < len(returned):
            raise Refused("the body returns a container in two places; return two")
        structure = flatten(with_handed(self.recorded_output, self.handed), out_leaves)
        self.structure = plain_values(structure) if self.symbols.values else structure
        known = [x.__dict__ for x in out_leaves if isinstance(x, Tensor) and recorder.computed(x)]
        if any("_conjugated" in names for names in known):
            raise Refused("the body returns what is_conj() is true of; return resolve_conj() of it")
        if any(known):
            raise Refused("the body may look for attributes that users put on tensors, or does so "
                          "itself; return values")  # fmt: skip
        self.structure, out_leaves = answering(self.structure, out_leaves)
        out_leaves += [tensor for _, tensor in self.assigned]
        outputs = Outputs(self, out_leaves)
        self.results, self.makers = outputs.results, outputs.makers
        self.grad_effects, self.versions = outputs.grad_effects, outputs.versions()
        out_leaves = [x.tensor if isinstance(x, Handed) else x for x in out_leaves]
        self.graph = recorder.finish_with(outputs.variables())
        unseen = frozenset(outputs.histories)
        del outputs
        if recorder.differentiable_writes():
            raise Refused("a write into a tensor from outside takes part in autograd; write under "
                          "no_grad() or return the new value")  # fmt: skip
        # they must not keep alive what `leaked` looks for
        self.recorded_output, self.handed = None, []
        self.needs = [
            k for k, t in enumerate(self.results)
            if t._requires_grad and t._node is not None and not is_spent(recorder, t)
        ]  # fmt: skip
        for flagged in recorder.flagged.values() if self.needs else ():
            raise Refused("requires_grad of a tensor from outside changes, and a result has "
                          f"history; detach() it ({flagged.place})")  # fmt: skip
        with_history = [self.results[k] for k in self.needs]
        changed = overwritten(recorder, with_history) or self.reaches_made_leaves(
            with_history, out_leaves
        )
        if changed:
            raise Refused(changed)
        hooked = recorder.packs_inside and hooked_inside(with_history)
        if hooked or (recorder.restores_history and self.needs):
            raise Refused("saved_tensors_hooks inside the function see what backward needs; put "
                          "them around it")  # fmt: skip
        self.reread = reread_results(self.results, self.needs, unseen)
        leaked = self.leaked(out_leaves)
        if leaked:
            self.problems.append(f"{leaked} is kept in Python state by the body")
        changed = packing_problem(self)
        if changed:
            raise Refused(changed)
        self.path = path_of(self)

    def reaches_made_leaves(self, results: list[Tensor], returned: list[Any]) -> str:
        """Will backward from the results end in leaves that the body made, as anybody can see?"""
        reached = leaves_behind(results)
        made = {id(leaf) for leaf in reached if self.recorder.is_made_leaf(leaf)}
        if made and (len(made) == len(reached) or any(id(x) in made for x in returned)):
            return "backward from a result leads to a leaf that the body made; call it in the body"
        return ""

    def leaked(self, out_leaves: list[Any]) -> str:
        """Tensors made by the body that outlive it other than as results or gradients."""
        recorder = self.recorder
        tensors = [t for t in out_leaves if isinstance(t, Tensor)]
        allowed = {id(t) for t in tensors}
        allowed |= {id(t._view.base) for t in tensors if t._view is not None}
        made = [t for t in (*tensors, *leaves_behind(tensors)) if recorder.is_made_leaf(t)]
        allowed |= {id(t) for t in made}
        owners = [*recorder.externals, *recorder.grad_assigned.values(), *made]
        allowed |= {id(t._grad) for t in owners if t._grad is not None}
        allowed |= saved_by_graph(tensors)
        allowed |= {key for key, _ in recorder.packed or ()}
        del tensors, owners, made

        def alive() -> list[Any]:
            return [e.var.type for key, e in list(recorder.entries.items())
                    if e.memory.external is None and key not in allowed]  # fmt: skip

        if alive():
            gc.collect()
        kept = alive()
        return f"a {kept[0]} tensor it computed" if kept else ""


def modes_now() -> Any:
    """What a body must leave as it was."""
    return state.grad_enabled, state.grad_asked, state.inference, default_dtype()
