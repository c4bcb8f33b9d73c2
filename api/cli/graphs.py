"""`wengert run-ir` and `wengert dump`: graphs on the command line."""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np


def register(commands: Any) -> None:
    from . import command

    parser = command(commands, "run-ir", "run a graph from a text dump", run_ir)
    parser.add_argument("file", help="a dump of an IR graph")
    parser.add_argument("--inputs", help="an .npz file with an array per input, by name or number")
    parser.add_argument("--out", help="write the outputs to this .npz file instead of printing")
    parser = command(commands, "dump", "run a script and dump a compiled function of it", dump)
    parser.add_argument("target", help="script.py:function")
    parser.add_argument("--stage", default="trace", help="trace, forward, backward, kernels, ...")


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
    """Arrays for all inputs, by name or by number."""
    given = arrays_of(path) if path else {}
    arrays = []
    for number, item in enumerate(graph.inputs):
        key = next((k for k in (item.name, str(number), f"arr_{number}") if k in given), None)
        if key is None:
            raise ValueError(f"no array for input {number} {item.name!r} of type {item.var.type}; "
                             "give it in --inputs by name or number")  # fmt: skip
        arrays.append(given[key])
    return arrays


def arrays_of(path: str) -> dict[str, Any]:
    """The arrays of an .npz file; objects are refused."""
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as given:
            return dict(given)
    except (ValueError, TypeError, EOFError, MemoryError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is no .npz file of plain arrays: {error}") from None


def load_target(target: str) -> Any:
    """The function named by `script.py:function`, after running the script."""
    path, _, name = target.rpartition(":")
    if not path:
        raise ValueError(f"{target!r} is not of the form script.py:function")
    spec = importlib.util.spec_from_file_location("__wengert_script__", path)
    if spec is None or spec.loader is None or not Path(path).exists():
        raise FileNotFoundError(f"no script at {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return getattr(module, name)


def dump(options: Any) -> int:
    function = load_target(options.target)
    if not hasattr(function, "dump"):
        raise TypeError(f"{options.target} is not a compiled function; decorate it with compile")
    function.show(options.stage)
    return 0
