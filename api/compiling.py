"""`compile(fn)`: the first call records, later calls replay native code.

What can't be compiled runs eagerly, and `explain()` says which line is why.

Note [Errors in native code]
    Native code that fails (an index out of range) has written nothing, and random numbers it drew
    are taken back. So the body then runs eagerly: it raises on the user's own line, and leaves
    behind what it did until there.
"""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from typing import Any

from .bodies import Body
from .compile_options import EAGER, check_mode_and_options, checked_backend
from .dropped import Dropped
from .dynamic import DynamicShapes
from .executor import begin, improve
from .faults import is_strict, warn_of_fault
from .given_back import answer, with_answer
from .hooks_inside import NEW, HooksInside
from .inside_autocast import call_inside
from .inspection import FAULT, MAX_KINDS, Failure, Inspected
from .ir.bind import state
from .ir.events import log
from .ir.patches import watch_library
from .ir.types import default_dtype
from .kinds import leaf_key, with_odd_names
from .loose_numbers import replace_loose
from .methods import LikeFunction
from .one_object import OneObject, containers_of
from .packing import PackFailed
from .paths import Path
from .pytree import flatten
from .recording import Recording
from .replay import MISS, Trace
from .runtime import forking
from .settings import settings_of
from .sharing import shared_arguments
from .shortcut import shortcut
from .tracer.hooks import active
from .tracer.recorded import Refused
from .tracer.recorder import Recorder
from .tracer.tape import ANOMALY
from .varying import Varying

MAX_TRACES = 64  # of one kind of call
MAX_WARMUPS = 3
WARM = ("Python state", "`.data` of a tensor is replaced")  # what lazy modules and optimizers do
MAX_SHORTCUTS = 4
MAX_PATHS, MAX_BRANCHES = 64, 64  # of one kind of call; branches of one path


_functions: weakref.WeakSet[CompiledFunction] = weakref.WeakSet()


def _renew_locks() -> None:
    for function in _functions:
        function.lock = threading.RLock()


forking.renew(_renew_locks)


class CompiledFunction(Inspected, LikeFunction):
    """A function that is recorded, compiled and replayed; see `compile`."""

    __slots__ = ("hot",)  # native code reads it: runtime/calling.py

    def __init__(self, function: Any, options: dict[str, Any]):
        self.function = function
        self.options = options
        self.name = getattr(function, "__name__", type(function).__name__)
        self.traces: dict[Any, list[Trace]] = {}
        self.dynamic = DynamicShapes(options.get("dynamic"))
        self.refusals: dict[Any, str] = {}
        self.warmups: dict[Any, int] = {}
        self.dropped = Dropped()  # kinds of call, to keep at most MAX_KINDS
        self.next_use = itertools.count(1).__next__
        self.events: list[str] = []
        self.warned = False
        self.settings = settings_of(options.get("numerics", "default"), options.get("threads"))
        self.body = self.new_body()
        self.lock = threading.RLock()
        watch_library()
        _functions.add(self)
        self.hot: list[Any] = []  # shortcuts for the kinds of call seen last
        self.shortcuts: dict[int, Any] = {}  # by trace, those in `hot`, the oldest first
        self.specialised: set[int] = set()  # float arguments whose value is part of the key
        self.varying = Varying()  # floats that are read at each call, beside arguments
        self.containers = OneObject()
        self.hooks = HooksInside()
        functools.update_wrapper(self, function, updated=())
        self.is_made = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for hot in self.hot:
            try:
                result = hot(args, kwargs)
            except Exception:
                return self.run_eagerly(args, kwargs)  # see Note [Errors in native code]
            if result is not MISS:
                return result
        return self.call_generally(args, kwargs)

    def call_generally(self, args: Any, kwargs: Any) -> Any:
        """A call that no shortcut serves."""
        if self.body.eager and self.body.is_eager(args, kwargs):
            return self.body.pieces.run(*args, **kwargs)
        if state.top is not state.bottom and state.top is not state.marking:
            return call_inside(self, args, kwargs)
        if ANOMALY:
            return self.run_eagerly(args, kwargs)
        call, leaves = (args, kwargs), list[Any]()
        structure = flatten(call, leaves)
        key = self.key_of(structure, leaves, call)
        try:
            found = self.traces.get(key)
        except TypeError:  # an argument can't be part of a key
            return self.run_eagerly(args, kwargs)
        result = MISS if found is None else self.serve(key, call, structure, leaves)
        if result is MISS and key not in self.refusals and self.instantiate(key, leaves):
            result = self.serve(key, call, structure, leaves)
        if result is not MISS:
            return result
        if key in self.refusals:
            return self.run_body(key, args, kwargs)
        return self.record(key, call, structure, leaves)

    def serve(self, key: Any, call: Any, structure: Any, leaves: list[Any]) -> Any:
        """The result by one of the traces for a kind of call, or MISS."""
        for trace in self.traces.get(key, ()):
            if trace.applies(leaves) is None:
                if not trace.loaded and not self.load(key, trace):
                    return self.run_eagerly(*call)
                try:
                    result = trace.rewinding(trace.replay)(leaves)
                except PackFailed as failed:
                    trace.replays += failed.is_done
                    return failed.run_eagerly(self.function, *call)
                except Exception:
                    return self.run_eagerly(*call)  # see Note [Errors in native code]
                if result is not MISS:
                    trace.used = self.next_use()
                    self.shorten(trace, structure, leaves, call)
                    return answer(result, *call) if trace.hands_back else result
        return MISS

    def shorten(self, trace: Trace, structure: Any, leaves: list[Any], call: Any) -> None:
        """The next call like this one need not come that far."""
        if trace.packs:
            return  # hooks are Python
        from .compiled_module import call_natively

        call_natively()
        made = shortcut(trace, structure, leaves, self.specialised)
        if trace.hands_back:
            made = with_answer(made)
        made = self.containers.checked(made, call, MISS)
        with self.lock:
            self.shortcuts.pop(id(trace), None)
            if made is not None:
                self.shortcuts[id(trace)] = made
            if len(self.shortcuts) > MAX_SHORTCUTS:
                del self.shortcuts[next(iter(self.shortcuts))]
            self.hot = [*reversed(self.shortcuts.values())]
        improve()

    def forget_shortcuts(self) -> None:
        self.shortcuts.clear()
        self.hot = []

    def instantiate(self, key: Any, leaves: list[Any]) -> bool:
        """Takes symbolic traces at the sizes of a call; is there one more to try?"""
        placed = False
        with self.lock:
            try:
                for path in self.dynamic.instances(key, leaves):
                    log("guards", lambda sizes=path.sizes: f"{self.name}: taken at sizes {sizes}")
                    self.place_path(key, path).prepare()
                    placed = True
            except Exception as error:
                self.warn_of_fault(error)
                self.traces.pop(key, None)
                self.refusals[key] = f"{FAULT}: {type(error).__name__}: {error}"
        return placed and key in self.traces

    def key_of(self, structure: Any, leaves: list[Any], call: Any) -> Any:
        """What selects a trace. Floats are data, unless the body was seen to look at them."""
        hooked = state.grad_enabled and bool(active.saved)  # see Note [Packed calls]
        modes = (state.grad_enabled, state.inference, default_dtype(), hooked)
        parts = [leaf_key(leaf) for leaf in leaves]
        for place in self.specialised:
            if place < len(leaves) and type(leaves[place]) is float:
                parts[place] = ("value", leaves[place].hex())  # zeros have signs, NaN is a value
        ones = self.containers.pattern(containers_of(call)) if self.containers.matters else None
        structure = with_odd_names(structure)
        return (structure, *parts, shared_arguments(leaves), *modes, ones)

    def run_eagerly(self, args: Any, kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def run_body(self, key: Any, args: Any, kwargs: Any) -> Any:
        """A call that can't do without Python: its arithmetic runs in compiled segments."""
        self.dropped.again.add(key)
        if self.refusals.get(key, "").startswith(FAULT):
            return self.run_eagerly(args, kwargs)
        return self.body(key, args, kwargs)

    # --- recording ---

    def record(self, key: Any, call: Any, structure: Any, leaves: list[Any]) -> Any:
        if not self.dropped.is_due(key):
            return self.run_eagerly(*call)
        why = self.why_recorded(key, leaves)
        log("guards", lambda: f"{self.name}: {why or 'the first call'}")
        with self.lock:
            # another thread may have recorded this kind of call meanwhile
            result = self.serve(key, call, structure, leaves)
            if result is not MISS:
                return result
            if key in self.refusals:
                return self.run_body(key, *call)
            if len(self.traces.get(key, ())) >= MAX_TRACES:
                self.refusals[key] = f"more than {MAX_TRACES} traces for one kind of call"
                return self.run_body(key, *call)
            self.dropped.make_room(self, MAX_KINDS)
            self.varying.learn(trace for found in self.traces.values() for trace in found)
            return self.record_call(key, call, structure, leaves, why)

    def record_call(self, key: Any, call: Any, structure: Any, leaves: list[Any], why: str) -> Any:
        begin()
        given = [*containers_of(call)]  # which the body may change
        try:
            axes = self.dynamic.axes(key, leaves)
            recording = Recording(
                self.function, structure, leaves, self.name, self.specialised, self.varying, axes,
                call, self.hooks,
            )  # fmt: skip
        except Refused as refused:
            # nothing was changed by the recorder, but the body may have begun to write: the
            # reasons that stop a recording in the middle are found before any write
            self.refusals[key] = str(refused)
            self.failure = Failure(str(refused))
            return self.run_eagerly(*call)
        output, loose = recording.output, recording.loose
        if given and self.containers.learn(recording):
            key = (*key[:-1], self.containers.pattern(given))
        self.conclude(key, recording, why)
        recording.let_go()
        del recording
        replace_loose(loose)
        return output

    def conclude(self, key: Any, recording: Recording, why: str) -> None:
        """Keeps what was recorded, or why it is not to be replayed."""
        finished = self.finish(key, recording, why)
        self.tell(recording)
        if finished:
            # what comes later is new state again: that of parameters an optimizer was given since
            self.warmups.pop(key, None)
            return
        if recording.used_of_tensors():
            self.varying.reckons = False
            return
        used, floats = recording.used_places() - self.specialised, recording.used_floats()
        if used or floats:
            self.specialised |= used
            self.varying.fix(floats)
            self.forget_shortcuts()
            return
        if {*recording.problems} == {NEW}:
            return
        reason = next((r for r in recording.problems if r != NEW), "unknown reason")
        if any(words in reason for words in WARM):
            self.warmups[key] = self.warmups.get(key, 0) + 1
            if self.warmups[key] < MAX_WARMUPS:
                self.events.append(f"warm-up: {reason}")
                return
        self.refusals[key] = reason
        self.body.note_escapes(recording.escapes())

    def finish(self, key: Any, recording: Recording, why: str) -> bool:
        """Builds and compiles; an internal fault falls back to eager with one warning."""
        trace = None
        try:
            self.limit_branches(key, recording)
            if not recording.finish():
                graph = recording.recorder.finish_with([])
                self.failure = Failure(recording.problems[0], graph)
                return False
            trace = self.place_path(key, self.dynamic.keep(key, recording, self.traces), why)
            trace.prepare()
            if is_strict():
                trace.load()
            return True
        except Exception as error:
            if hasattr(error, "no_derivative"):
                recording.problems.append(
                    f"a result comes from an op without a derivative: {error}"
                )
                self.traces.pop(key, None)
                return False
            self.warn_of_fault(error)
            recording.problems.append(f"{FAULT}: {type(error).__name__}: {error}")
            graph = recording.recorder.finish_with([])
            self.failure = Failure(recording.problems[0], graph, trace, error.with_traceback(None))
            self.traces.pop(key, None)
            return False

    def load(self, key: Any, trace: Trace) -> bool:
        """Waits for what is being compiled; an internal fault falls back to eager, as above."""
        with self.lock:
            try:
                trace.load()
                return True
            except Exception as error:
                self.warn_of_fault(error)
                reason = f"{FAULT}: {type(error).__name__}: {error}"
                self.failure = Failure(reason, trace.graphs[-1], trace, error.with_traceback(None))
                self.traces.pop(key, None)
                self.refusals[key] = reason
                return False

    def limit_branches(self, key: Any, recording: Recording) -> None:
        """A tree of segments pays for a few branches; windows of the body serve any number."""
        branches = recording.recorder.branches
        paths = sum(len(trace.graphs) for trace in self.traces.get(key, ()))
        if branches and (len(branches) > MAX_BRANCHES or paths >= MAX_PATHS):
            recording.problems.append(
                f"a loop or branches on values ({branches[-1].place}) went more than {MAX_PATHS} "
                f"ways, or through {MAX_BRANCHES} branches in a call")  # fmt: skip

    def warn_of_fault(self, error: Exception) -> None:
        warn_of_fault(self, error)

    def place_path(self, key: Any, path: Path, why: str = "") -> Trace:
        """A new path joins the trace whose guards hold now, or starts one."""
        for trace in self.traces.get(key, ()):
            if trace.accepts(path):
                if path.hands_back and not trace.hands_back:
                    self.forget_shortcuts()
                trace.insert(path)
                return trace
        trace = Trace(path, self.settings, why)
        trace.used = self.next_use()
        self.traces.setdefault(key, []).append(trace)
        if len(self.traces) > MAX_KINDS:
            self.drop_oldest()
        return trace

    def new_body(self) -> Body:
        return Body(self.function, self.name, self.warn_of_fault, self.settings, self.piece)

    def piece(self, function: Any) -> CompiledFunction:
        """A piece of the body; see Note [Pieces of a body] in outlining.py."""
        from .pieces import Piece

        return Piece(function, self.options)

    def drop_oldest(self) -> None:
        """Forgets the kind of call that was not seen for longest."""
        oldest = min(self.traces, key=lambda k: max(t.used for t in self.traces[k]))
        self.dropped.add(self.traces.pop(oldest))
        self.dynamic.forget(oldest)

    def cache_clear(self) -> None:
        """Forgets all traces."""
        with self.lock:
            self.traces.clear()
            self.dynamic.clear()
            self.forget_shortcuts()
            self.refusals.clear()
            self.warmups.clear()
            self.varying = Varying()
            self.containers = OneObject()
            self.specialised.clear()
            self.events.clear()
            self.dropped, self.failure, self.casting = Dropped(), None, {}
            self.body = self.new_body()

    def __repr__(self) -> str:
        return f"<compiled {self.name}>"


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: Any = None,
    backend: Any = None,
    mode: Any = None,
    options: Any = None,
    disable: bool = False,
    numerics: str = "default",
    threads: int | None = None,
) -> Any:
    """Compiles a function or module; also a decorator, with or without arguments."""
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode,
            options=options, disable=disable, numerics=numerics, threads=threads,
        )  # fmt: skip
    if not callable(model):
        raise RuntimeError(f"torch.compile() expects a callable, got {type(model).__name__}")
    if disable:
        return model
    backend = checked_backend(backend)
    if backend not in EAGER:
        check_mode_and_options(mode, options)
    settings = {"dynamic": dynamic, "numerics": numerics, "threads": threads,
                "fullgraph": fullgraph, "backend": backend}  # fmt: skip
    if isinstance(model, CompiledFunction):
        return model
    if hasattr(model, "_parameters") and hasattr(model, "_modules"):
        from .compiled_module import OptimizedModule

        return OptimizedModule(model, settings)
    from .full_graph import kind_of

    return kind_of(settings, model)(model, settings)


def all_functions() -> list[CompiledFunction]:
    """The compiled functions that are in use."""
    return list(_functions)


def is_compiling() -> bool:
    return isinstance(state.top, Recorder)
