"""Schemas of custom ops: `(Tensor x, float scale=1.0) -> Tensor`, of annotations or as text."""

from __future__ import annotations

import ast
import collections.abc
import functools
import inspect
import operator
import re
import types
import typing
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..ir.types import DType
from ..tracer.tensor import Tensor, device

WORDS = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str",
         DType: "ScalarType", device: "Device", int | float: "Scalar",
         int | float | bool: "Scalar"}  # fmt: skip
KINDS: dict[str, Any] = {
    "Tensor": Tensor, "SymInt": int, "int": int, "float": (float, int), "bool": bool, "str": str,
    "Scalar": (int, float, bool, complex), "ScalarType": DType, "Device": (device, str),
}  # fmt: skip


class Argument(NamedTuple):
    """One argument; `is_list` and `optional` are told by `[]` and `?` after the word."""

    name: str
    word: str
    is_list: bool
    optional: bool
    keyword_only: bool
    default: Any
    mutated: bool

    def accepts(self, value: Any) -> bool:
        if value is None:
            return self.optional
        if self.is_list:
            return isinstance(value, list | tuple) and all(
                item is None or isinstance(item, KINDS[self.word]) for item in value)  # fmt: skip
        return isinstance(value, KINDS.get(self.word, object))


class Schema:
    """A schema that was read: binds the arguments of calls, and checks them."""

    def __init__(self, name: str, text: str):
        self.name, self.text = name, text.strip()
        found = re.fullmatch(r"\((.*)\)\s*->\s*(.+)", self.text, re.S)
        if found is None:
            raise RuntimeError(f"{name}: a schema must be like (Tensor x) -> Tensor, got {text}")
        self.returns = found[2]
        self.arguments: list[Argument] = []
        keyword_only = False
        for part in split(found[1]):
            if part == "*":
                keyword_only = True
            else:
                self.arguments.append(argument_of(part, keyword_only))

    def __str__(self) -> str:
        return f"{self.name}{self.text}"

    @property
    def mutated(self) -> list[int]:
        """The places of arguments that are written."""
        return [k for k, argument in enumerate(self.arguments) if argument.mutated]

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The value of each argument, or torch's error."""
        known = {argument.name for argument in self.arguments}
        for name in kwargs:
            if name not in known:
                raise RuntimeError(f"Unknown keyword argument '{name}' for operator '{self.name}'. "
                                   f"Schema: {self}")  # fmt: skip
        count = sum(not argument.keyword_only for argument in self.arguments)
        if len(args) > count:
            raise RuntimeError(f"{self.name}() expected at most {count} argument(s) but received "
                               f"{len(args)} argument(s). Declaration: {self}")  # fmt: skip
        values = []
        for place, argument in enumerate(self.arguments):
            value = args[place] if place < len(args) else kwargs.get(
                argument.name, argument.default)  # fmt: skip
            if value is inspect.Parameter.empty:
                raise RuntimeError(f"{self.name}() is missing value for argument "
                                   f"'{argument.name}'. Declaration: {self}")  # fmt: skip
            if not argument.accepts(value):
                word = argument.word + "[]" * argument.is_list
                raise RuntimeError(
                    f"{self.name}() Expected a value of type '{word}' for argument "
                    f"'{argument.name}' but instead found type '{type(value).__name__}'.\n"
                    f"Position: {place}\nValue: {value!r}\nDeclaration: {self}"
                )
            values.append(value)
        return values


def split(text: str) -> list[str]:
    """The parts between commas that stand outside of brackets and quotes."""
    parts = re.findall(r"(?:\[[^\]]*\]|\([^)]*\)|\"[^\"]*\"|'[^']*'|[^,])+", text)
    return [part.strip() for part in parts if part.strip()]


def argument_of(text: str, keyword_only: bool) -> Argument:
    """`Tensor(a0!)? x=None` in parts."""
    found = re.fullmatch(r"(\w+)(\([^)]*\))?(\?)?(\[\d*\])?(\?)?\s+(\w+)(?:\s*=\s*(.+))?", text)
    if found is None:
        raise RuntimeError(f"an argument of a schema must be like `Tensor x`, got `{text}`")
    word, alias, _, several, optional, name, default = found.groups()
    optional = optional or (found[3] if not several else None)
    value = inspect.Parameter.empty if default is None else ast.literal_eval(default)
    return Argument(name, word, bool(several), bool(optional), keyword_only, value,
                    "!" in (alias or ""))  # fmt: skip


def infer_schema(prototype_function: Any, /, *, mutates_args: str | Iterable[str],
                 op_name: str | None = None) -> str:  # fmt: skip
    """infer_schema(fn, mutates_args=()): a function's schema, by its annotations."""
    signature = inspect.signature(prototype_function)

    def fail(what: str) -> Any:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    parameters = signature.parameters.values()
    for parameter in parameters:
        if parameter.annotation is inspect.Parameter.empty:
            fail(f"Parameter {parameter.name} must have a type annotation.")
    if signature.return_annotation is inspect.Signature.empty:
        fail("No return type annotation was provided. Please add one.")
    if mutates_args != "unknown":
        strange = set(mutates_args) - set(signature.parameters)
        if strange:
            fail(f"{strange} in mutates_args were not found in the custom op's signature. "
                 "mutates_args should contain the names of all args that the custom op mutates, or "
                 "just the string 'unknown' if you don't know.")  # fmt: skip
    hints = typing.get_type_hints(prototype_function)
    parts: list[str] = []
    for place, parameter in enumerate(parameters):
        word = word_of(hints[parameter.name])
        if word is None:
            fail(f"Parameter {parameter.name} has unsupported type {hints[parameter.name]}.")
        if mutates_args == "unknown" or parameter.name in mutates_args:
            if not word.startswith("Tensor") and mutates_args != "unknown":
                fail(f"Parameter {parameter.name} is in mutable_args but only Tensors or "
                     "collections of Tensors can be mutated")  # fmt: skip
            word = word.replace("Tensor", f"Tensor(a{place}!)")
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        given = "" if parameter.default is parameter.empty else f"={default_of(parameter, fail)}"
        parts.append(f"{word} {parameter.name}{given}")
    returned = results_of(hints.get("return"))
    if returned is None:
        fail(f"Return has unsupported type {hints.get('return')}.")
    return f"{op_name or ''}({', '.join(parts)}) -> {returned}"


def default_of(parameter: Any, fail: Any) -> str:
    value = parameter.default
    if value is not None and not isinstance(value, int | float | bool | str):
        fail(f"Parameter {parameter.name} has an unsupported default value type {type(value)}.")
    return f'"{value}"' if isinstance(value, str) else repr(value)


def word_of(hint: Any) -> str | None:
    """The schema's word for an annotation."""
    if hint in WORDS:
        return WORDS[hint]
    inside = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType) and type(None) in inside:
        rest = [part for part in inside if part is not type(None)]
        word = word_of(functools.reduce(operator.or_, rest))
        return None if word is None else f"{word}?"
    if typing.get_origin(hint) in (list, collections.abc.Sequence, Sequence) and inside:
        word = word_of(inside[0])
        return None if word is None else f"{word}[]"
    return None


def results_of(hint: Any) -> str | None:
    """The schema's words for what is returned."""
    if hint is None or hint is type(None):
        return "()"
    if typing.get_origin(hint) is tuple:
        words = [word_of(part) for part in typing.get_args(hint)]
        return None if None in words else f"({', '.join(map(str, words))})"
    return word_of(hint)
