"""`wengert run-ir`, `wengert dump` and `wengert report`: graphs and functions of scripts."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np

RUN_EXAMPLES = """  wengert dump train.py:step --stage trace > step.ir
  wengert run-ir step.ir --inputs x.npz              arrays by name or number
  wengert run-ir step.ir --inputs x.npz --out y.npz
"""
DUMP_EXAMPLES = """  wengert dump train.py:step                         what was recorded
  wengert dump train.py:step --stage backward        its derivative
  wengert dump model.py:net --call "torch.randn(2, 8)" --stage listing
"""
REPORT_EXAMPLES = """  wengert report train.py:step                 runs train.py, writes step.html
  wengert report model.py:net --call "torch.randn(2, 8)" --out net.html
"""


def register(commands: Any) -> None:
    from . import command

    parser = command(commands, "run-ir", "run a graph from a text dump", run_ir, RUN_EXAMPLES)
    parser.add_argument("file", help="a dump of an IR graph")
    parser.add_argument("--inputs", help="an .npz file with an array per input, by name or number")
    parser.add_argument("--out", help="write the outputs to this .npz file instead of printing")
    parser = command(commands, "dump", "run a script and dump a function of it", dump,
                     DUMP_EXAMPLES)  # fmt: skip
    target(parser)
    parser.add_argument("--stage", default="trace",
                        help="trace, forward, backward, passes, kernels, llvm, llvm-opt, asm, "
                        "listing (default: trace)")  # fmt: skip
    parser = command(commands, "report", "run a script, write the page of a function of it",
                     report, REPORT_EXAMPLES)  # fmt: skip
    target(parser)
    parser.add_argument("--out", help="the page (default: function.html)")


def target(parser: Any) -> None:
    parser.add_argument("target", help="script.py:function; functions are compiled if they are not")
    parser.add_argument("--call", metavar="ARGUMENTS",
                        help="call it with these, written as in the script")  # fmt: skip


# --- graphs --------------------------------------------------------------------------------------


def run_ir(options: Any) -> int:
    from ..ir.parser import parse

    graph = parse(Path(options.file).read_text())
    arrays = inputs_of(graph, options.inputs)
    result = graph.compile()(*arrays)
    results = result if isinstance(result, tuple) else (result,)
    if options.out:
        np.savez(options.out, *[t.detach().numpy() for t in results])
        print(f"wrote {len(results)} outputs to {options.out}")
    else:
        for tensor in results:
            print(tensor)
    return 0


def inputs_of(graph: Any, path: str | None) -> list[Any]:
    """Arrays for all inputs, by name or by number; random states are the default generator's."""
    from ..ir.graph import RANDOM
    from ..tracer.random import default_generator

    given = arrays_in(path) if path else {}
    arrays = []
    for number, item in enumerate(graph.inputs):
        key = next((k for k in (item.name, str(number), f"arr_{number}") if k in given), None)
        if key is None and item.kind == RANDOM:
            arrays.append(default_generator)
            continue
        if key is None:
            raise ValueError(f"no array for input {number} {item.name!r} of type {item.var.type}; "
                             "give it in --inputs by name or number")  # fmt: skip
        arrays.append(given[key])
    return arrays


def arrays_in(path: str) -> dict[str, Any]:
    """All arrays of an .npz file, which is closed whatever is in it."""
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as found:
        return dict(found)


# --- functions of scripts ------------------------------------------------------------------------


def function_of(options: Any) -> Any:
    """The function named by `script.py:function`, compiled, after running the script."""
    path, _, name = options.target.rpartition(":")
    if not path:
        raise ValueError(f"{options.target!r} is not of the form script.py:function")
    names = run_script(path)
    if name not in names:
        functions = [n for n, v in names.items() if callable(v) and not n.startswith("_")]
        raise LookupError(
            f"{path} has no {name!r}; it has {', '.join(functions) or 'no functions'}"
        )
    function = names[name]
    if not hasattr(function, "dump"):
        from .. import compile

        function = compile(function)
    if options.call is not None:
        from .. import Tensor

        result = eval(f"__function__({options.call})", {**names, "__function__": function})
        if isinstance(result, Tensor) and result.requires_grad:
            result.sum().backward()  # so that there is a backward pass to look at
    elif function.newest() is None and function.failure is None:
        raise RuntimeError(f"{path} does not call {name}; give arguments with --call")
    return function


def run_script(path: str) -> dict[str, Any]:
    """The names of a script after it ran as `python script.py` would run it."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"no script at {path}")
    argv, before = sys.argv, list(sys.path)
    sys.argv, sys.path[:0] = [path], [str(Path(path).resolve().parent)]
    try:
        return runpy.run_path(path, run_name="__main__")
    finally:
        sys.argv, sys.path[:] = argv, before


def dump(options: Any) -> int:
    function_of(options).show(options.stage)
    return 0


def report(options: Any) -> int:
    function = function_of(options)
    path = function.report(options.out or f"{options.target.rpartition(':')[2]}.html")
    print(f"wrote {path}")
    return 0
