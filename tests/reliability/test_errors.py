"""Errors: every code is provoked, and every `raise` of the library is of a kind users can rely on.

The catalogue is the sources: `sites` walks them. What a site says is tested where it is raised;
here it is tested that each says something, in a type that torch's users catch.
"""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest
import wengert as torch
from wengert import codes
from wengert.cli import main

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("api", "ir", "tracer", "codegen", "runtime")
HERE = Path(__file__).name


class Site:
    """A `raise` in the sources: its place, the type raised, and the literal text of its message."""

    def __init__(self, path, node):
        self.path, self.line = path.relative_to(ROOT), node.lineno
        call = node.exc
        self.kind = ast.unparse(call.func if isinstance(call, ast.Call) else call).split(".")[-1]
        self.text = " ".join(
            part.value for argument in getattr(call, "args", ()) for part in ast.walk(argument)
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        )  # fmt: skip
        self.given = bool(getattr(call, "args", ()))

    def __str__(self):
        return f"{self.path}:{self.line} {self.kind}"


def sites():
    """All `raise` statements that make an exception."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Raise) and node.exc is not None:
                    yield Site(path, node)


SITES = list(sites())
# Python's own protocols, or faults of the library itself, which print the graph around them.
TORCHS_WORDS = {"ZeroDivisionError"}
WORDLESS = {"StopIteration", "KeyboardInterrupt", "SystemExit", "AttributeError", "KeyError",
            "NotImplementedError"}  # fmt: skip
RELIED_ON = {"RuntimeError", "TypeError", "ValueError", "IndexError", "NotImplementedError",
             "KeyError", "AttributeError", "AssertionError", "ImportError", "ModuleNotFoundError",
             "FileNotFoundError", "MemoryError", "ZeroDivisionError", "OverflowError",
             "StopIteration", "OSError", "EOFError", "BufferError",
             "UnpicklingError", "LookupError"}  # fmt: skip


def test_there_is_a_catalogue():
    assert len(SITES) > 800


def test_types_are_those_that_users_catch():
    """Builtin ones, subclasses of them, or a helper that makes one in torch's words."""
    files = [p.relative_to(ROOT) for room in ROOMS for p in (ROOT / room).rglob("*.py")]
    own = {name for path in files for name in exceptions_of(path)}
    strange = [
        str(s) for s in SITES if s.kind[:1].isupper() and not set(kinds_of(s)) <= RELIED_ON | own
    ]
    assert strange == []


def exceptions_of(path):
    """Names of the exceptions in sight in a source file."""
    room, *rest = path.with_suffix("").parts
    parts = [part for part in (*(() if room == "api" else (room,)), *rest) if part != "__init__"]
    if parts[-1:] == ["__main__"]:
        return []
    found = vars(importlib.import_module(".".join(("wengert", *parts))))
    return [n for n, v in found.items() if inspect.isclass(v) and issubclass(v, Exception)]


def kinds_of(site):
    """The types of `raise (A if ... else B)(...)`; usually one."""
    return re.findall(
        r"\b[A-Z]\w*(?:Error|Iteration|Exit|Interrupt|Refused|Unwritable)\b", site.kind
    )


def test_every_error_says_something():
    """Three words at least, unless Python's protocol wants the bare type or a helper words it."""
    silent = [
        str(s) for s in SITES
        if s.kind in RELIED_ON - WORDLESS and s.given and len(s.text.split()) < 2
        and not wordy(s) and s.text not in TORCHS_WORDS
    ]  # fmt: skip
    assert silent == []
    bare = [str(s) for s in SITES if s.kind in RELIED_ON - WORDLESS and not s.given]
    assert len(bare) <= 1, bare  # a setter of torch's that raises the bare type


def wordy(site):
    """Is the message a name or a call, worded elsewhere?"""
    line = (ROOT / site.path).read_text(encoding="utf-8").splitlines()[site.line - 1]
    return re.search(r"\((_?[A-Za-z]\w*[.(\[]?|f\"\{|$)", line) is not None


# --- every code is provoked ----------------------------------------------------------------------


def refused(function, *arguments, times=4):
    """What `explain()` says of a function that was called."""
    compiled = torch.compile(function)
    for _ in range(times):
        compiled(*[a() if callable(a) else a for a in arguments])
    return compiled.explain()


def r101():
    return refused(lambda x: x * abs(x.sum().item()), torch.ones(3))


def r108():
    return refused(lambda x: x[x > 0] * 2, torch.ones(3))


def r113():
    import numpy as np

    array = np.ones(3)
    return refused(lambda x: x + torch.from_numpy(array), torch.ones(3))


def raised(function):
    with pytest.raises(Exception) as caught:
        function()
    return str(caught.value)


def e201():
    def function():
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        y.add_(1)
        y.sum().backward()

    return raised(function)


def e202():
    x = torch.ones(3, requires_grad=True)
    y = x.exp().sum()
    y.backward()
    return raised(y.backward)


def e203():
    return raised(torch.ones(3).sum().backward)


def e204():
    return raised(torch.ones(3, requires_grad=True).exp().backward)


PROVOKED = {f.__name__.upper(): f for f in (r101, r108, r113, e201, e202, e203, e204)}


@pytest.mark.parametrize("code", PROVOKED)
def test_codes_are_said_with_words_line_and_advice(code, capsys):
    known = next(c for c in codes.CODES if c.code == code)
    said = PROVOKED[code]()
    assert known.words in said
    if code in ("R101", "R108", "E201"):
        assert HERE in said  # the user's line
    assert main(["explain", code]) == 0
    assert known.remedy.split(".")[0].split("(")[0][:30] in " ".join(
        capsys.readouterr().out.split()
    )


# --- hostile arguments ---------------------------------------------------------------------------

ARGUMENTS = {
    "nothing": (), "None": (None,), "text": ("text",), "object": (object(),),
    "empty": (lambda: torch.empty(0),), "scalar": (lambda: torch.tensor(1.0),),
    "bool": (lambda: torch.tensor([True, False]),),
    "complex": (lambda: torch.ones(2, 2, dtype=torch.complex64),),
    "two": (lambda: torch.ones(2, 3), lambda: torch.ones(4, 5)),
    "odd dim": (lambda: torch.ones(2, 3), 99),
    "texts": (lambda: torch.ones(2, 3), "a", "b"),
    "nested": (lambda: torch.ones(2, 3), [[1, [2]]]),
    "many": tuple(lambda: torch.ones(2) for _ in range(9)),
}  # fmt: skip
# Accidents of Python's or NumPy's that no user can act on.
ACCIDENTS = ("has no attribute", "not subscriptable", "to unpack", "UnboundLocal", "numpy.core",
             "ufunc '")  # fmt: skip


SPACES = {"torch": torch, "linalg": torch.linalg, "fft": torch.fft, "special": torch.special,
          "nn.functional": torch.nn.functional, "Tensor": torch.Tensor}  # fmt: skip


def public_functions(space):
    """By name, as users call them."""
    for name in dir(space):
        function = getattr(space, name)
        if name.startswith("_") or inspect.isclass(function) or not callable(function):
            continue
        if space is not torch or hasattr(function, "__wrapped__"):
            yield name, function


def accident(function, arguments):
    """What a call with nonsense ended in, if that is nothing a user can catch and act on."""
    try:
        function(*arguments)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError) as error:
        if any(word in str(error) for word in ACCIDENTS):
            return f"{type(error).__name__}: {error}"
    except AttributeError as error:  # torch's class for losses of what has no size; ours says more
        if "must be Tensor" not in str(error):
            return f"{type(error).__name__}: {error}"
    except Exception as error:
        if "not compiled with" not in str(error):  # torch's AssertionError for other devices
            return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("space", SPACES)
def test_hostile_arguments_are_refused_in_words(space):
    """Public functions, called with nonsense, work or raise what a user can catch and read."""
    strange, count = {}, 0
    for name, function in public_functions(SPACES[space]):
        for what, arguments in ARGUMENTS.items():
            made = [a() if inspect.isfunction(a) else a for a in arguments]
            if space != "Tensor" or (made and isinstance(made[0], torch.Tensor)):
                count += 1
                strange[f"{name}({what})"] = accident(function, made)
    assert count > 100
    assert {call: said for call, said in strange.items() if said} == {}
