"""Tokens of the text form, and what single ones mean; `parser.py` puts them together."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, NoReturn

from .formulas import parse_formula
from .graph import Origin, Place


class ParseError(ValueError):
    """The text is not a graph; the message says where."""


TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<comment>\#[^\n]*)
      | (?P<var>%[0-9]+)
      | (?P<place>@(?:"(?:[^"\\\n]|\\.)*"|[^\s"\\@{}(),]+):[0-9]+(?!\S))
      | (?P<graph>@[A-Za-z_]\w*)
      | (?P<origin>\^[A-Za-z_]\w*\.[0-9]+)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<formula>`[^`\n]*`)
      | (?P<number>-?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)|-inf\b)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<mark>[(){}\[\],:=])
      | (?P<bad>.)""",
    re.VERBOSE | re.DOTALL,
)
MAX_DIGITS = 400
ESCAPED = {"n": "\n", "r": "\r"}


class Token(NamedTuple):
    """A piece of the text, and where it starts."""

    kind: str
    text: str
    line: int
    column: int


def fail(message: str, token: Token) -> NoReturn:
    raise ParseError(f"line {token.line}, column {token.column}: {message}")


def tokens_of(text: str) -> list[Token]:
    """All tokens but white space; the last one is `end`."""
    found, line, start = [], 1, 0
    for match in TOKEN.finditer(text):
        kind, piece = match.lastgroup or "bad", match.group()
        if kind == "space":
            newlines = piece.count("\n")
            if newlines:
                line += newlines
                start = match.start() + piece.rindex("\n") + 1
            continue
        token = Token(kind, piece, line, match.start() - start + 1)
        if kind == "bad":
            fail(f"unexpected character {piece!r}", token)
        found.append(token)
    found.append(Token("end", "end of text", line, len(text) - start + 1))
    return found


def number_of(token: Token) -> Any:
    if len(token.text) > MAX_DIGITS:
        fail("the number has too many digits", token)
    return int(token.text) if token.text.lstrip("-").isdigit() else float(token.text)


def formula_of(token: Token) -> Any:
    try:
        return parse_formula(token.text.strip("`"))
    except (ValueError, SyntaxError, ArithmeticError, RecursionError, MemoryError) as error:
        fail(f"not a formula of sizes: {error}", token)


def place_of(token: Token | None) -> Place | None:
    if token is None:
        return None
    file, _, line = token.text[1:].rpartition(":")
    if len(line) > MAX_DIGITS:
        fail("the line number has too many digits", token)
    return Place(unquote(file) if file.startswith('"') else file, int(line))


def origin_of(token: Token | None) -> Origin | None:
    if token is None:
        return None
    op, _, index = token.text[1:].rpartition(".")
    if len(index) > MAX_DIGITS:
        fail("the number has too many digits", token)
    return Origin(op, int(index))


def unquote(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: ESCAPED.get(m.group(1), m.group(1)), text[1:-1])
