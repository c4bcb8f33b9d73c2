"""Reads the text form of graphs; errors point at line and column."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

from .graph import (
    ARGUMENT,
    INPUT_KINDS,
    OUTPUT_KINDS,
    RESULT,
    Graph,
    Input,
    Node,
    Output,
    Var,
)
from .op import TABLE, Op
from .tokens import (
    MAX_DIGITS,
    ParseError,
    Token,
    fail,
    formula_of,
    number_of,
    origin_of,
    place_of,
    tokens_of,
    unquote,
)
from .types import BY_SHORT, TensorType

__all__ = ["ParseError", "parse"]


MAX_NESTING = 50  # of tuples in an attribute, and of graphs in graphs
MAX_BYTES = 2**62  # of a tensor: sizes beyond are no sizes
CONSTANTS = {"True": True, "False": False, "None": None}
FLOATS = {"inf": math.inf, "nan": math.nan}  # words: `nan` is also the name of an attribute


class Reference(NamedTuple):
    """A graph named by an attribute, before all graphs are read."""

    name: Token


class Draft(NamedTuple):
    """A graph as it was read: attributes may still be References."""

    name: Token
    inputs: tuple[Input, ...]
    nodes: list[Node]
    outputs: tuple[Output, ...]
    notes: tuple[str, ...]


def parse(text: str) -> Graph:
    """The graph that `text` prints; nested graphs follow the first one."""
    if not isinstance(text, str):
        raise TypeError(f"parse needs text, not {type(text).__name__}")
    return Parser(text).module()


class Parser:
    """Recursive descent; each method's docstring is its line of the grammar."""

    def __init__(self, text: str):
        self.comments: dict[int, list[str]] = {}  # those before a token, by its position
        self.tokens: list[Token] = []
        for token in tokens_of(text):
            if token.kind == "comment":
                note = token.text[1:].removeprefix(" ").rstrip()
                self.comments.setdefault(len(self.tokens), []).extend([note] if note else [])
            else:
                self.tokens.append(token)
        self.position = 0
        self.token = self.tokens[0]
        self.vars: dict[str, Var] = {}

    # --- helpers ---

    def next(self) -> Token:
        """Takes the token whatever it is."""
        token = self.token
        if token.kind != "end":
            self.position += 1
            self.token = self.tokens[self.position]
        return token

    def accept(self, kind: str, text: str | None = None) -> Token | None:
        token = self.token
        if token.kind == kind and (text is None or token.text == text):
            return self.next()
        return None

    def take(self, kind: str, text: str | None = None) -> Token:
        found = self.accept(kind, text)
        if found is None:
            wanted = repr(text) if text is not None else kind
            fail(f"expected {wanted}, got {self.token.text!r}", self.token)
        return found

    def listed(self, end: str, item: Any) -> list[Any]:
        """[item ("," item)*] end"""
        found: list[Any] = []
        while not self.accept("mark", end):
            found.append(item())
            if not self.accept("mark", ","):
                self.take("mark", end)
                break
        return found

    # --- grammar ---

    def module(self) -> Graph:
        """module := graph+"""
        drafts: dict[str, Draft] = {}
        while self.token.kind != "end" or not drafts:
            draft = self.graph()
            if draft.name.text in drafts:
                fail(f"graph {draft.name.text} is defined twice", draft.name)
            drafts[draft.name.text] = draft
        return Assembly(drafts).module()

    def graph(self) -> Draft:
        """graph := "graph" @name "(" inputs ")" "{" node* "return" outputs "}" """
        notes = tuple(self.comments.get(self.position, ()))
        self.take("word", "graph")
        name = self.take("graph")
        self.vars = {}
        self.take("mark", "(")
        inputs = tuple(self.listed(")", self.input))
        self.take("mark", "{")
        nodes = []
        while not self.accept("word", "return"):
            nodes.append(self.node())
        outputs = tuple(self.listed("}", lambda: self.output(len(inputs))))
        return Draft(name, inputs, nodes, outputs, notes)

    def input(self) -> Input:
        """input := %n ":" type kind? string?"""
        var = self.define(*self.definition())
        kind = self.accept("word")
        if kind is not None and kind.text not in INPUT_KINDS:
            fail(f"unknown kind of input {kind.text!r}; known: {', '.join(INPUT_KINDS)}", kind)
        label = self.accept("string")
        return Input(var, kind.text if kind else ARGUMENT, unquote(label.text) if label else "")

    def definition(self) -> tuple[Token, Var]:
        """definition := %n ":" type"""
        token = self.take("var")
        self.take("mark", ":")
        return token, Var(self.type())

    def define(self, token: Token, var: Var) -> Var:
        if token.text in self.vars:
            fail(f"{token.text} is defined twice", token)
        self.vars[token.text] = var
        return var

    def type(self) -> TensorType:
        """type := dtype "[" sizes "]" """
        word = self.take("word")
        if word.text not in BY_SHORT:
            fail(f"unknown dtype {word.text!r}; known: {', '.join(BY_SHORT)}", word)
        self.take("mark", "[")
        sizes = tuple(self.listed("]", self.symbolic_size))
        type_ = TensorType(BY_SHORT[word.text], sizes)
        plain = [max(size, 1) for size in type_.shape if isinstance(size, int)]
        if math.prod(plain) * type_.dtype.itemsize > MAX_BYTES:
            fail("the type is larger than any memory", word)
        return type_

    def symbolic_size(self) -> Any:
        """size := number | name | formula"""
        token = self.accept("word") or self.accept("formula")
        return self.size() if token is None else formula_of(token)

    def size(self) -> int:
        token = self.take("number")
        if not token.text.isdigit() or len(token.text) > MAX_DIGITS:
            fail(f"a size must be a whole number, got {token.text[:MAX_DIGITS]}", token)
        return int(token.text)

    def node(self) -> Node:
        """node := [definition ("," definition)* "="] op operands? attributes? over? origin?
        place?"""
        results = []
        if self.token.kind == "var":
            results.append(self.definition())
            while self.accept("mark", ","):
                results.append(self.definition())
            self.take("mark", "=")
        token = self.take("word")
        op = TABLE.get(token.text)
        if op is None:
            fail(f"unknown op {token.text!r}", token)
        operands = self.operands()
        outputs = tuple(self.define(*result) for result in results)
        attrs = self.attributes(op)
        over = self.over(operands)
        origin, place = self.accept("origin"), self.accept("place")
        return Node(op, operands, outputs, attrs, place_of(place), origin_of(origin), over)

    def operands(self) -> tuple[Var | None, ...]:
        """operands := [operand ("," operand)*]; operand := %n | "none" """
        found: list[Var | None] = []
        if self.begins_definition():
            return ()
        while True:
            token = self.accept("var") or self.accept("word", "none")
            if token is None:
                if found:
                    fail(f"expected an operand, got {self.token.text!r}", self.token)
                return ()
            found.append(None if token.kind == "word" else self.known(token))
            if not self.accept("mark", ","):
                return tuple(found)

    def over(self, operands: tuple[Var | None, ...]) -> tuple[int, ...]:
        """over := "over" %n ("," %n)*"""
        found: list[int] = []
        more = self.accept("word", "over")
        while more:
            token = self.take("var")
            var = self.known(token)
            if var not in operands:
                fail(f"{token.text} is no operand here: nothing can be written over it", token)
            found.append(operands.index(var))
            more = self.accept("mark", ",")
        return tuple(found)

    def begins_definition(self) -> bool:
        """Does the next node begin here?"""
        return self.token.kind == "var" and self.tokens[self.position + 1].text == ":"

    def known(self, token: Token) -> Var:
        var = self.vars.get(token.text)
        if var is None:
            fail(f"{token.text} is used before it is defined", token)
        return var

    def attributes(self, op: Op) -> tuple[tuple[str, Any], ...]:
        """attributes := "{" name "=" value ("," name "=" value)* "}" """
        found: dict[str, Any] = {}

        def attribute() -> None:
            name = self.take("word")
            if name.text not in op.attributes:
                fail(f"{op.name} has no attribute {name.text!r}", name)
            if name.text in found:
                fail(f"attribute {name.text!r} is given twice", name)
            self.take("mark", "=")
            found[name.text] = self.value(0)

        if self.accept("mark", "{"):
            self.listed("}", attribute)
        return tuple(sorted(found.items()))

    def value(self, depth: int) -> Any:
        """value := number | string | True | False | None | dtype | @graph | "(" values ")"
        | formula | "complex(" number "," number ")" """
        token = self.next()
        if depth > MAX_NESTING:
            fail("attributes are nested too deeply", token)
        if token.kind == "number":
            return number_of(token)
        if token.kind == "string":
            return unquote(token.text)
        if token.kind == "formula":
            return formula_of(token)
        if token.kind == "graph" and not depth:
            return Reference(token)
        if token.kind == "mark" and token.text == "(":
            return tuple(self.listed(")", lambda: self.value(depth + 1)))
        if token.kind == "word":
            return self.word_value(token)
        fail(f"expected a value, got {token.text!r}", token)

    def word_value(self, token: Token) -> Any:
        if token.text in CONSTANTS:
            return CONSTANTS[token.text]
        if token.text in FLOATS:
            return FLOATS[token.text]
        if token.text in BY_SHORT:
            return BY_SHORT[token.text]
        if token.text == "complex":
            real, imaginary = self.numbers(2)
            return complex(real, imaginary)
        fail(f"unknown value {token.text!r}", token)

    def numbers(self, count: int) -> list[Any]:
        """numbers := "(" number ("," number)* ")", as many as asked for"""
        start = self.take("mark", "(")
        found = self.listed(")", self.number)
        if len(found) != count:
            fail(f"expected {count} numbers, got {len(found)}", start)
        return found

    def number(self) -> Any:
        token = self.next()
        if token.kind == "number":
            return number_of(token)
        if token.text in FLOATS:
            return FLOATS[token.text]
        fail(f"expected a number, got {token.text!r}", token)

    def output(self, count: int) -> Output:
        """output := %n [kind ["=" number] ["donated"]]"""
        token = self.take("var")
        if token.text not in self.vars:
            fail(f"{token.text} is returned but not defined", token)
        kind, target = self.accept("word"), None
        if kind is not None and kind.text not in OUTPUT_KINDS:
            fail(f"unknown kind of output {kind.text!r}; known: {', '.join(OUTPUT_KINDS)}", kind)
        if self.accept("mark", "="):
            place = self.token
            target = self.size()
            if target >= count:
                fail(f"there is no input {target}", place)
        donated = self.accept("word", "donated") is not None
        return Output(self.vars[token.text], kind.text if kind else RESULT, target, donated)


class Assembly:
    """Puts nested graphs in the places that name them."""

    def __init__(self, drafts: dict[str, Draft]):
        self.drafts = drafts
        self.made: dict[str, Graph] = {}

    def module(self) -> Graph:
        """The first graph, which the others are part of."""
        first, *others = self.drafts.values()
        result = self.graph(first, ())
        for draft in others:
            if draft.name.text not in self.made:
                fail(f"graph {draft.name.text} is not part of {first.name.text}", draft.name)
        return result

    def graph(self, draft: Draft, path: tuple[str, ...]) -> Graph:
        name = draft.name.text
        if name not in self.made:
            nodes = tuple(self.node(node, (*path, name)) for node in draft.nodes)
            self.made[name] = Graph(name[1:], draft.inputs, nodes, draft.outputs, draft.notes)
        return self.made[name]

    def node(self, node: Node, path: tuple[str, ...]) -> Node:
        if not any(isinstance(value, Reference) for _, value in node.attrs):
            return node
        attrs = tuple((k, self.resolved(value, path)) for k, value in node.attrs)
        return replace(node, attrs=attrs)

    def resolved(self, value: Any, path: tuple[str, ...]) -> Any:
        if not isinstance(value, Reference):
            return value
        token = value.name
        if token.text not in self.drafts:
            fail(f"unknown graph {token.text}", token)
        if token.text in path:
            fail(f"graph {token.text} contains itself", token)
        if len(path) > MAX_NESTING:
            fail("graphs are nested too deeply", token)
        return self.graph(self.drafts[token.text], path)
