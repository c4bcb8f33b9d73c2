"""Smaller programs that fail alike, and the script that shows one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from .compare import Difference, difference
from .program import Input, Program, Statement

MOST_TRIES = 400


def minimise(program: Program, fault: Difference,
             find: Callable[[Program], Difference | None] = difference) -> Program:  # fmt: skip
    """The smallest program found by taking away and simplifying that still fails like `fault`."""
    tries = 0
    smaller = True
    while smaller and tries < MOST_TRIES:
        smaller = False
        for candidate in candidates(program):
            tries += 1
            if fault.alike(attempt(candidate, find)):
                program, smaller = candidate, True
                break
            if tries >= MOST_TRIES:
                break
    return program


def attempt(program: Program, find: Callable[[Program], Difference | None]) -> Difference | None:
    try:
        return find(program)
    except Exception:
        return None  # a candidate need not make sense


def candidates(program: Program) -> Iterator[Program]:
    """Simpler programs, the most different first."""
    yield from fewer_calls(program)
    yield from fewer_outputs(program)
    yield from shorter(program)
    yield from simpler_statements(program)
    yield from fewer_inputs(program)
    for k, made in enumerate(program.inputs):
        for simpler in simpler_inputs(made):
            inputs = (*program.inputs[:k], simpler, *program.inputs[k + 1 :])
            yield program.with_changes(inputs=inputs)


def fewer_calls(program: Program) -> Iterator[Program]:
    for calls in range(1, program.calls):
        yield program.with_changes(calls=calls)


def fewer_outputs(program: Program) -> Iterator[Program]:
    if len(program.outputs) > 1:
        for name in program.outputs:
            yield program.with_changes(outputs=(name,))


def shorter(program: Program) -> Iterator[Program]:
    """Without a statement: what used its result uses one of its arguments."""
    for k in reversed(range(len(program.statements))):
        gone = program.statements[k]
        rest = program.statements[:k] + program.statements[k + 1 :]
        if gone.target is None:
            yield program.with_changes(statements=rest)
            continue
        for name in dict.fromkeys(gone.arguments):
            yield replaced(program.with_changes(statements=rest), gone.target, name)


def replaced(program: Program, old: str, new: str) -> Program:
    def other(name: str) -> str:
        return new if name == old else name

    statements = tuple(replace(s, arguments=tuple(map(other, s.arguments)))
                       for s in program.statements)  # fmt: skip
    outputs = tuple(dict.fromkeys(map(other, program.outputs)))
    return program.with_changes(statements=statements, outputs=outputs)


def simpler_statements(program: Program) -> Iterator[Program]:
    for k, statement in enumerate(program.statements):
        for simpler in simplified(statement):
            statements = (*program.statements[:k], simpler, *program.statements[k + 1 :])
            yield program.with_changes(statements=statements)


def simplified(statement: Statement) -> Iterator[Statement]:
    """One arm of a branch, one turn of a loop; the same argument twice."""
    if "{target}" in statement.text:
        for arm in re.findall(r"\{target\} = (.*)", statement.text):
            if "{target}" not in arm:
                yield replace(statement, text=arm)
    first, *others = statement.arguments
    if any(name != first for name in others):
        yield replace(statement, arguments=(first,) * len(statement.arguments))


def fewer_inputs(program: Program) -> Iterator[Program]:
    used = {name for s in program.statements for name in s.arguments} | set(program.outputs)
    text = " ".join(s.text for s in program.statements)
    for k, made in enumerate(program.inputs):
        if made.name not in used and made.name not in text:
            yield program.with_changes(inputs=program.inputs[:k] + program.inputs[k + 1 :])


def simpler_inputs(made: Input) -> Iterator[Input]:
    if made.dtype == "number":
        return
    for change in ({"layout": "t"}, {"hard": False}, {"captured": False},
                   {"requires_grad": False}, {"dtype": "float32"}):  # fmt: skip
        simpler = replace(made, **change)  # type: ignore[arg-type]
        if simpler != made and not (made.dtype.startswith(("int", "uint", "bool"))
                                    and simpler.dtype == "float32"):  # fmt: skip
            yield simpler
    for k, size in enumerate(made.shape):
        for less in (n for n in (1, 2, size - 1) if n < size):
            yield replace(made, shape=(*made.shape[:k], less, *made.shape[k + 1 :]))
    if made.shape:
        yield replace(made, shape=made.shape[1:])


def script(program: Program, fault: Difference) -> str:
    """A program that needs nothing but wengert and shows the fault."""
    lines = [f"# {' '.join(str(fault).split())}", "import os", "",
             'os.environ["WENGERT_STRICT"] = "1"', ""]  # fmt: skip
    if fault.route == "interpreter":
        lines[-1:] = ['os.environ["WENGERT_BACKEND"] = "interpreter"', ""]
    lines += ["import wengert as torch", "import wengert.nn.functional as F", ""]
    lines += [f"{i.name} = {i.expression(program.seed)}" for i in program.inputs if i.captured]
    lines += ["", "", program.source(), "", "", "def outcome(function, arguments):"]
    lines += [f"    {line}" for line in OUTCOME]
    lines += ["", "", "compiled = torch.compile(program)"]
    names = ", ".join(i.name for i in program.inputs if not i.captured)
    for call in range(program.calls):
        lines += ["", "", f"def arguments_{call}():"]
        lines += [f"    {i.name} = {i.expression(program.seed + call)}" for i in program.inputs
                  if not i.captured]  # fmt: skip
        lines += [f"    return [{names}]", "", ""]
        lines += [f'print("{how}", outcome({how}, arguments_{call}))'
                  for how in ("program", "compiled")]  # fmt: skip
    return "\n".join(lines) + "\n"


OUTCOME = (
    "values = arguments()",
    "torch.manual_seed(0)",
    "results = function(*values)",
    "roots = [r for r in results if r.requires_grad]",
    "weights = [(torch.arange(r.numel()).view(r.shape) % 7 - 2.5).to(r.dtype) for r in roots]",
    "if roots:",
    "    torch.autograd.backward(roots, weights)",
    "tensors = [v for v in values if isinstance(v, torch.Tensor)]",
    "return results, values, [t.grad for t in tensors]",
)
