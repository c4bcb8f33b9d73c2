"""LLVM text to object code, and object code to a loaded library.

The only module that imports llvmlite, and it does so at the first use: `import wengert` stays
light, and a program that never compiles never pays for LLVM.

Invariants:
- Object code is position independent (small code model, pic), so that one object serves the
  JIT, the disk cache and `linker.py` alike. Addresses enter as imports when it is loaded.
- A pass manager runs once. Running one twice aborts the process, so each module gets its own.
- A `Library` owns its code: an address is valid while the Library is open and referenced.
- The text is generated, so an error in it is our fault: `JitError` shows the lines at fault.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from . import forking, machine
from .elf import LinkError
from .ending import in_llvm
from .machine import Host
from .mapping import Mapped
from .refused import explain

T = TypeVar("T")


class JitError(RuntimeError):
    """LLVM refused generated text or object code: a fault of the compiler, not of its user."""


class NoCompiler(JitError):
    """LLVM is there, but can't be loaded: there may be too little memory left."""


@dataclass(frozen=True)
class Options:
    """How a module is optimised; part of the cache's key, so every field must be printable.

    `light` cleans up only (simplifycfg, instcombine): hand-scheduled kernels such as a GEMM gain
    nothing from the full pipeline and compile several times faster without it.
    """

    level: int = 2
    codegen_level: int = 2
    loop_vectorize: bool = True
    slp: bool = False
    unroll: bool = True
    light: bool = False


DEFAULT = Options()
LIGHT = Options(light=True)
# A sixth of the time, for code that mostly calls and waits, and for what is replaced: see Note
# [Brief first] in improving.py. It only inlines.
BRIEF = Options(light=True, codegen_level=0)

# Guards the choice of an engine. What is made once may as well be made twice when two threads come
# first; see Note [Compiling in several threads].
_lock = forking.hold(threading.Lock())
_names = itertools.count()


@cache
def _llvm() -> Any:
    try:
        import llvmlite.binding as llvm  # type: ignore[import-untyped]

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    except OSError as error:
        raise NoCompiler(f"LLVM can't be loaded: {error}") from error
    forking.hold(llvm.ffi.lib._lock)  # a child would wait for ever for a thread that is in LLVM
    return llvm


@cache
def host() -> Host:
    """This machine and this LLVM."""
    known = machine.recall()
    if known is None:
        known = _asked()
        machine.keep(known)
    return known


def _asked() -> Host:
    llvm = _llvm()
    import llvmlite  # type: ignore[import-untyped]

    return Host(
        llvmlite=llvmlite.__version__,
        llvm=".".join(map(str, llvm.llvm_version_info)),
        triple=llvm.get_process_triple(),
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
    )


@cache
def trouble() -> str:
    """Why nothing can be compiled here; "" if it can."""
    try:
        host()
    except Exception as error:  # missing, damaged, or not for this machine
        return f"llvmlite can't be used: {type(error).__name__}: {error}"
    return ""


def _new_target_machine(codegen_level: int) -> Any:
    here = host()
    target = _llvm().Target.from_triple(here.triple)
    return target.create_target_machine(
        cpu=here.cpu,
        features=here.features,
        opt=codegen_level,
        reloc="pic",
        codemodel="small",
        jit=True,
    )


# Note [Compiling in several threads]
# llvmlite has one lock around each of its calls. LLVM itself needs none as long as threads share no
# context and no target machine, so every module has a context of its own, every compilation takes
# tools that no other has, and the two calls that take nearly all the time go around the lock. If a
# later llvmlite has no function behind its wrapper, they go through it, and threads wait for each
# other. Tools are used again, by any thread.

# Note [Builders are replaced]
# llvmlite leaks 1.5 KB of every pass builder, so one is used again. But every run adds callbacks to
# it that all later runs call, 10 us each: the thousandth module would take ten times as long as
# the first. So each serves a few modules only.
MODULES_PER_BUILDER = 16


class _Tools:
    """What compiles modules, one at a time."""

    def __init__(self) -> None:
        self.machines: dict[int, Any] = {}
        self.builders: dict[Options, tuple[Any, int]] = {}  # with how many modules it served

    def machine(self, codegen_level: int) -> Any:
        if codegen_level not in self.machines:
            self.machines[codegen_level] = _new_target_machine(codegen_level)
        return self.machines[codegen_level]

    def builder(self, options: Options) -> Any:
        """A pass builder for one more module; see Note [Builders are replaced]."""
        builder, served = self.builders.get(options, (None, 0))
        if served % MODULES_PER_BUILDER == 0:
            builder = self.new_builder(options)
        self.builders[options] = builder, served + 1
        return builder

    def new_builder(self, options: Options) -> Any:
        tuning = _llvm().create_pipeline_tuning_options(options.level)
        tuning.loop_vectorization = options.loop_vectorize
        tuning.slp_vectorization = options.slp
        tuning.loop_unrolling = options.unroll
        return _llvm().create_pass_builder(self.machine(options.codegen_level), tuning)


_idle: list[_Tools] = []


@contextmanager
def _tools() -> Iterator[_Tools]:
    try:
        tools = _idle.pop()
    except IndexError:
        tools = _Tools()
    yield tools
    _idle.append(tools)  # not after an error: it may have left them in any state


@cache
def _data_layout() -> str:
    return str(_new_target_machine(DEFAULT.codegen_level).target_data)


def _without_lock(name: str) -> Any:
    """A function of LLVM, for objects that no other thread has."""
    wrapper = getattr(_llvm().ffi.lib, name)
    return getattr(wrapper, "_cfn", wrapper)


def _emit(machine: Any, module: Any) -> bytes:
    """What `machine.emit_object(module)` gives, without the lock."""
    lib = _llvm().ffi.lib
    with _llvm().ffi.OutputString() as error:
        buffer = _without_lock("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, error)
        if not buffer:
            raise JitError(f"internal error: LLVM emitted no code: {error}")
    try:
        start, size = lib.LLVMPY_GetBufferStart(buffer), lib.LLVMPY_GetBufferSize(buffer)
        return ctypes.string_at(start, size)
    finally:
        lib.LLVMPY_DisposeMemoryBuffer(buffer)


# Note [Engines are replaced]
# An LLJIT keeps 9 KB of every library it ever held, even unloaded ones. So each takes a few
# libraries only and is then left to them: their references keep it alive, and when the last of
# them goes, it goes with all it kept. A new one costs 0.5 ms, shared by the libraries it takes.
LIBRARIES_PER_ENGINE = 16
_engine: Any = None
_engine_room = 0


def _an_engine() -> Any:
    """An LLJIT with room for one more library; see Note [Engines are replaced]."""
    global _engine, _engine_room
    with _lock:
        if _engine_room == 0:
            # A target machine of its own: the JIT may keep it, so it must not be one that emits.
            _engine = _llvm().create_lljit_compiler(
                _new_target_machine(2), use_jit_link=True, suppress_errors=True
            )
            _engine_room = LIBRARIES_PER_ENGINE
        _engine_room -= 1
        return _engine


def compile_text(text: str, *, options: Options = DEFAULT) -> bytes:
    """Object code of a module of LLVM text."""
    with _optimised(text, options) as (module, machine):
        return _emit(machine, module)


def optimised_text(text: str, *, options: Options = DEFAULT) -> str:
    """The module as LLVM's own optimiser leaves it."""
    with _optimised(text, options) as (module, _):
        return str(module)


def assembly(text: str, *, options: Options = DEFAULT) -> str:
    """The machine code of a module, as assembly text."""
    with _optimised(text, options) as (module, machine):
        return machine.emit_assembly(module)


def stages(text: str, *, options: Options = DEFAULT) -> tuple[str, str]:
    """The optimised text and the assembly of a module, for the price of one."""
    with _optimised(text, options) as (module, machine):
        return str(module), machine.emit_assembly(module)


@contextmanager
def _optimised(text: str, options: Options) -> Iterator[tuple[Any, Any]]:
    with in_llvm():
        context = _llvm().create_context()
        try:
            module = _parse(text, context)
            try:
                with _tools() as tools:
                    _optimise(module, tools.builder(options), options)
                    yield module, tools.machine(options.codegen_level)
            finally:
                module.close()
        finally:
            context.close()


def _parse(text: str, context: Any) -> Any:
    llvm = _llvm()
    module = None
    try:
        module = llvm.parse_assembly(text, context)
        module.triple = host().triple
        # The text names no layout: without one, LLVM would guess sizes and alignments.
        module.data_layout = _data_layout()
        module.verify()
    except RuntimeError as error:
        if module is not None:
            module.close()
        raise JitError(explain(str(error), text)) from None
    return module


def _optimise(module: Any, builder: Any, options: Options) -> None:
    llvm = _llvm()
    if options.light:
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        if options.codegen_level:  # else they take longer than they save
            passes.add_simplify_cfg_pass()
            passes.add_instruction_combine_pass()
    else:
        passes = builder.getModulePassManager()
    _without_lock("LLVMPY_RunNewModulePassManager")(passes, module, builder)
    _dispose(passes)


def _dispose(passes: Any) -> None:
    # llvmlite's class order hides the manager's own disposal behind an empty one, so `close()`
    # leaks 60 KB per module. Detached after: nothing may dispose of it a second time.
    _llvm().newpassmanagers.NewPassManager._dispose(passes)
    passes.detach()


class Library:
    """Loaded code. `close()` unloads it; so does dropping the last reference to it."""

    def __init__(self, addresses: dict[str, int], unload: Callable[[], object]) -> None:
        self._addresses = addresses
        self._unload: Callable[[], object] | None = unload

    def address(self, name: str) -> int:
        """Where `name` is; it must be one of the symbols the library was loaded with."""
        if self._unload is None:
            raise JitError(f"address of {name!r} asked of a closed library")
        if name not in self._addresses:
            raise JitError(
                f"{name!r} was not asked for at load; these were: "
                f"{', '.join(sorted(self._addresses))}"
            )
        return self._addresses[name]

    def close(self) -> None:
        """Unloads the code. Nobody may be running it, and its addresses are dead."""
        unload, self._unload = self._unload, None
        if unload is not None:
            unload()

    def __del__(self, at_exit: Callable[[], bool] = sys.is_finalizing) -> None:
        # At exit the code stays: a daemon thread may still be running it. (A default, because
        # the name `sys` may be gone by then.)
        if not at_exit():
            self.close()


def kept(make: Callable[[], T]) -> Callable[[], T]:
    """A function of no arguments that is run once, for what holds native code.

    Threads may race to the first call. All get the first result, and the others are not dropped:
    `functools.cache` would give a second thread what nobody else holds, code that is unloaded while
    its address is in use.
    """
    made: list[T] = []

    @functools.wraps(make)
    def first() -> T:
        if not made:
            made.append(make())
        return made[0]

    return first


def load(
    object_code: bytes, symbols: Iterable[str], imports: Mapping[str, int] | None = None
) -> Library:
    """Loads object code; `imports` gives addresses, the process (libc, libm) gives the rest."""
    symbols = tuple(dict.fromkeys(symbols))
    try:
        mapped = Mapped(object_code, symbols, imports or {})
        return Library(mapped.addresses, mapped.close)
    except LinkError:  # another system, or an object that LLVM has to explain
        return _load_by_llvm(object_code, symbols, imports or {})


def _load_by_llvm(
    object_code: bytes, symbols: tuple[str, ...], imports: Mapping[str, int]
) -> Library:
    builder = _llvm().JITLibraryBuilder().add_object_img(object_code).add_current_process()
    for name, address in imports.items():
        builder.import_symbol(name, address)
    for name in symbols:
        builder.export_symbol(name)
    engine = _an_engine()
    try:
        # LLVM never lets a library name be used again, not even after unloading.
        tracker = builder.link(engine, f"wengert.{next(_names)}")
    except RuntimeError as error:
        raise JitError(f"object code did not load: {str(error).strip()}") from None

    def unload(engine: Any = engine) -> None:  # it may go with its last library, but not before
        tracker.close()

    return Library({name: tracker[name] for name in symbols}, unload)
