"""Reads the text form of graphs; errors point at line and column."""

from __future__ import annotations

import re
from typing import Any

from .graph import INPUT_KINDS, OUTPUT_KINDS, RESULT, Graph, Input, Node, Origin, Output, Place, Var
from .op import TABLE
from .types import BY_SHORT, TensorType


class ParseError(ValueError):
    """The text is not a graph; the message says where."""


TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+|\#[^\n]*)
      | (?P<var>%\d+)
      | (?P<graph>@[A-Za-z_][\w.]*)(?=[\s({,}]|$)
      | (?P<place>@[^\n]*:\d+)
      | (?P<origin>\^[A-Za-z_]\w*\.\d+)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<number>-?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\d+(?:[eE][-+]?\d+)?|\.\d+|inf\b|nan\b))
      | (?P<word>[A-Za-z_]\w*)
      | (?P<mark>[(){}\[\],:=])
      | (?P<bad>.)""",
    re.VERBOSE,
)
MAX_NESTING = 50


class Token:
    __slots__ = ("column", "kind", "line", "text")

    def __init__(self, kind: str, text: str, line: int, column: int):
        self.kind, self.text, self.line, self.column = kind, text, line, column


def tokens_of(text: str) -> list[Token]:
    found, line, start = [], 1, 0
    for match in TOKEN.finditer(text):
        kind, piece = match.lastgroup or "bad", match.group()
        column = match.start() - start + 1
        if kind == "bad":
            raise ParseError(f"line {line}, column {column}: unexpected character {piece!r}")
        if kind != "space":
            found.append(Token(kind, piece, line, column))
        newlines = piece.count("\n")
        if newlines:
            line += newlines
            start = match.start() + piece.rindex("\n") + 1
    found.append(Token("end", "end of text", line, len(text) - start + 1))
    return found


def parse(text: str) -> Graph:
    """The graph that `text` prints; nested graphs follow the first one."""
    if not isinstance(text, str):
        raise TypeError(f"parse needs text, not {type(text).__name__}")
    return Parser(text).module()


class Parser:
    """Recursive descent; each method's docstring is its line of the grammar."""

    def __init__(self, text: str):
        self.tokens = tokens_of(text)
        self.position = 0
        self.pending: list[tuple[list[Any], int, str, str, Token]] = []
        self.notes = tuple(
            line[1:].strip() for line in text.split("graph @", 1)[0].splitlines()
            if line.startswith("#")
        )  # fmt: skip

    # --- helpers ---

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def fail(self, message: str, token: Token | None = None) -> ParseError:
        token = token or self.token
        return ParseError(f"line {token.line}, column {token.column}: {message}")

    def take(self, kind: str, text: str | None = None) -> Token:
        token = self.token
        if token.kind != kind or (text is not None and token.text != text):
            wanted = repr(text) if text is not None else kind
            raise self.fail(f"expected {wanted}, got {token.text!r}")
        self.position += 1
        return token

    def accept(self, kind: str, text: str | None = None) -> Token | None:
        token = self.token
        if token.kind == kind and (text is None or token.text == text):
            self.position += 1
            return token
        return None

    # --- grammar ---

    def module(self) -> Graph:
        """module := graph+"""
        parsed: list[tuple[str, Any]] = []
        while self.token.kind != "end":
            parsed.append(self.graph())
        if not parsed:
            raise self.fail("expected a graph")
        by_name = dict(parsed)
        if len(by_name) != len(parsed):
            raise self.fail("two graphs have one name")
        return self.assemble(parsed[0][0], by_name, ())

    def graph(self) -> tuple[str, Any]:
        """graph := "graph" @name "(" inputs ")" "{" node* "return" outputs "}" """
        self.take("word", "graph")
        name = self.take("graph").text[1:]
        self.vars: dict[str, Var] = {}
        self.take("mark", "(")
        inputs = []
        while not self.accept("mark", ")"):
            inputs.append(self.input())
            if not self.accept("mark", ","):
                self.take("mark", ")")
                break
        self.take("mark", "{")
        nodes = []
        while not self.accept("word", "return"):
            nodes.append(self.node())
        outputs = []
        while self.token.kind == "var":
            outputs.append(self.output(len(inputs)))
            if not self.accept("mark", ","):
                break
        self.take("mark", "}")
        return name, (tuple(inputs), nodes, tuple(outputs))

    def input(self) -> Input:
        """input := %n ":" type kind? string?"""
        var = self.definition()
        kind = "argument"
        if self.token.kind == "word":
            token = self.take("word")
            kind = token.text
            if kind not in INPUT_KINDS:
                raise self.fail(f"unknown kind of input {kind!r}", token)
        label = self.accept("string")
        return Input(var, kind, unescape(label.text[1:-1]) if label else "")

    def definition(self) -> Var:
        """definition := %n ":" dtype "[" sizes "]" """
        token = self.take("var")
        if token.text in self.vars:
            raise self.fail(f"{token.text} is defined twice", token)
        self.take("mark", ":")
        var = Var(self.type())
        self.vars[token.text] = var
        return var

    def type(self) -> TensorType:
        word = self.take("word")
        if word.text not in BY_SHORT:
            raise self.fail(f"unknown dtype {word.text!r}; known: {', '.join(BY_SHORT)}", word)
        self.take("mark", "[")
        sizes = []
        while not self.accept("mark", "]"):
            token = self.take("number")
            if not token.text.isdigit():
                raise self.fail(f"a size must be a whole number, got {token.text}", token)
            sizes.append(int(token.text))
            if not self.accept("mark", ","):
                self.take("mark", "]")
                break
        return TensorType(BY_SHORT[word.text], tuple(sizes))

    def node(self) -> Any:
        """node := definitions "=" op operands? attributes? origin? place?"""
        outputs = [self.definition()]
        while self.accept("mark", ","):
            outputs.append(self.definition())
        self.take("mark", "=")
        token = self.take("word")
        op = TABLE.get(token.text)
        if op is None:
            raise self.fail(f"unknown op {token.text!r}", token)
        operands = self.operands(set(map(id, outputs)))
        attrs = self.attributes(op, token)
        origin = self.accept("origin")
        place = self.accept("place")
        return (op, operands, tuple(outputs), attrs, self.place_of(place), self.origin_of(origin))

    def operands(self, own: set[int]) -> tuple[Var | None, ...]:
        found: list[Var | None] = []
        while self.token.kind == "var" or (self.token.kind == "word" and self.token.text == "none"):
            token = self.tokens[self.position]
            self.position += 1
            if token.kind == "word":
                found.append(None)
            else:
                var = self.vars.get(token.text)
                if var is None or id(var) in own:
                    raise self.fail(f"{token.text} is used before it is defined", token)
                found.append(var)
            if not self.accept("mark", ","):
                break
        return tuple(found)

    def attributes(self, op: Any, token: Token) -> list[Any]:
        """attributes := "{" name "=" value ("," ...)* "}" """
        found: list[Any] = []
        if not (self.token.kind == "mark" and self.token.text == "{"):
            return found
        self.take("mark", "{")
        while not self.accept("mark", "}"):
            name = self.take("word")
            if name.text not in op.attributes:
                raise self.fail(f"{op.name} has no attribute {name.text!r}", name)
            self.take("mark", "=")
            found.append((name.text, self.value(0)))
            if not self.accept("mark", ","):
                self.take("mark", "}")
                break
        return found

    def value(self, depth: int) -> Any:
        """value := number | string | True | False | None | dtype | @graph | "(" values ")" """
        if depth > MAX_NESTING:
            raise self.fail("attributes are nested too deeply")
        token = self.token
        self.position += 1
        if token.kind == "number":
            return number_of(token.text)
        if token.kind == "string":
            return unescape(token.text[1:-1])
        if token.kind == "graph":
            return ("@", token.text[1:], token)
        if token.kind == "mark" and token.text == "(":
            return self.sequence(depth)
        if token.kind == "word":
            return self.word_value(token)
        raise self.fail(f"expected a value, got {token.text!r}", token)

    def word_value(self, token: Token) -> Any:
        constants = {"True": True, "False": False, "None": None, "inf": float("inf"),
                     "nan": float("nan")}  # fmt: skip
        if token.text in constants:
            return constants[token.text]
        if token.text in BY_SHORT:
            return BY_SHORT[token.text]
        if token.text == "complex":
            self.take("mark", "(")
            real, imaginary = self.sequence(0)
            return complex(real, imaginary)
        raise self.fail(f"unknown value {token.text!r}", token)

    def sequence(self, depth: int) -> tuple[Any, ...]:
        items = []
        while not self.accept("mark", ")"):
            items.append(self.value(depth + 1))
            if not self.accept("mark", ","):
                self.take("mark", ")")
                break
        return tuple(items)

    def output(self, count: int) -> Output:
        """output := %n (kind ("=" number)?)?"""
        token = self.take("var")
        var = self.vars.get(token.text)
        if var is None:
            raise self.fail(f"{token.text} is returned but not defined", token)
        kind, target = RESULT, None
        if self.token.kind == "word":
            word = self.take("word")
            kind = word.text
            if kind not in OUTPUT_KINDS:
                raise self.fail(f"unknown kind of output {kind!r}", word)
        if self.accept("mark", "="):
            place = self.take("number")
            target = int(place.text) if place.text.isdigit() else -1
            if not 0 <= target < count:
                raise self.fail(f"there is no input {place.text}", place)
        return Output(var, kind, target)

    def place_of(self, token: Token | None) -> Place | None:
        if token is None:
            return None
        file, _, line = token.text[1:].rpartition(":")
        return Place(file, int(line))

    def origin_of(self, token: Token | None) -> Origin | None:
        if token is None:
            return None
        op, _, index = token.text[1:].rpartition(".")
        return Origin(op, int(index))

    # --- nested graphs ---

    def assemble(self, name: str, by_name: dict[str, Any], path: tuple[str, ...]) -> Graph:
        if name in path:
            raise self.fail(f"graph @{name} contains itself")
        inputs, nodes, outputs = by_name[name]

        def resolve(value: Any) -> Any:
            if isinstance(value, tuple) and len(value) == 3 and value[0] == "@":
                if value[1] not in by_name:
                    raise self.fail(f"unknown graph @{value[1]}", value[2])
                return self.assemble(value[1], by_name, (*path, name))
            return tuple(map(resolve, value)) if isinstance(value, tuple) else value

        made = tuple(
            Node(op, ins, outs, tuple(sorted((k, resolve(v)) for k, v in attrs)), place, origin)
            for op, ins, outs, attrs, place, origin in nodes
        )
        return Graph(name, inputs, made, outputs, () if path else self.notes)


def number_of(text: str) -> Any:
    if text.lstrip("-").isdigit():
        return int(text)
    return float(text)


def unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: "\n" if m.group(1) == "n" else m.group(1), text)
