"""Numbers as formulas in the names of sizes: what a symbolic dimension is.

Integers built by + - * are kept as polynomials in normal form, so equal formulas are equal objects
and `n * 64 // 64` is `n`. What is not a polynomial (`//` and `%` that do not come out even, true
division, powers) is a `Call` of the Python operator. Formulas are immutable and never pretend to
be numbers; `ir/dims.py` has the proxy that does.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Iterable, Mapping
from typing import Any

OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
    "%": operator.mod, "/": operator.truediv, "**": operator.pow,
}  # fmt: skip


MAX_POWER = 8  # higher powers stay as they are


class Formula:
    """Base of all formulas."""

    __slots__ = ()

    def at(self, sizes: Mapping[str, int]) -> Any:
        """The number for these sizes."""
        raise NotImplementedError

    def names(self) -> set[str]:
        """The sizes it mentions."""
        raise NotImplementedError

    def replaced(self, known: Mapping[str, Polynomial]) -> Formula:
        """With formulas in place of names."""
        raise NotImplementedError

    def quoted(self) -> str:
        """As the text form of graphs has it: names plain, the rest between backquotes."""
        text = str(self)
        return text if text.isidentifier() else f"`{text}`"


class Call(Formula):
    """A Python operator on formulas and numbers."""

    __slots__ = ("arguments", "sign")

    def __init__(self, sign: str, *arguments: Any):
        self.sign, self.arguments = sign, arguments

    def at(self, sizes: Mapping[str, int]) -> Any:
        return OPERATORS[self.sign](*(number_at(a, sizes) for a in self.arguments))

    def names(self) -> set[str]:
        return set().union(*(a.names() for a in self.arguments if isinstance(a, Formula)))

    def replaced(self, known: Mapping[str, Polynomial]) -> Formula:
        left, right = (a.replaced(known) if isinstance(a, Formula) else a for a in self.arguments)
        if isinstance(left, Polynomial) and isinstance(right, Polynomial):
            if self.sign == "//":
                return quotient(left, right)
            if self.sign == "%":
                return remainder(left, right)
        return Call(self.sign, left, right)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Call) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return f" {self.sign} ".join(map(inside, self.arguments))

    __repr__ = __str__


def inside(part: Any) -> str:
    """A formula's text as an operand of another."""
    text = str(part)
    return f"({text})" if " " in text else text


def number_at(value: Any, sizes: Mapping[str, int]) -> Any:
    return value.at(sizes) if isinstance(value, Formula) else value


Atom = str | Call
Monomial = tuple[Atom, ...]  # sorted by text; a square has its atom twice


class Polynomial(Formula):
    """A sum of monomials with whole coefficients."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Monomial, int]):
        self.terms = dict(sorted(
            ((m, c) for m, c in terms.items() if c), key=lambda t: (-len(t[0]), str(t[0]))
        ))  # fmt: skip

    @property
    def constant(self) -> int:
        """The term without names."""
        return self.terms.get((), 0)

    @property
    def is_constant(self) -> bool:
        return not self.terms or list(self.terms) == [()]

    def at(self, sizes: Mapping[str, int]) -> int:
        return sum(c * math.prod(atom_at(a, sizes) for a in m) for m, c in self.terms.items())

    def names(self) -> set[str]:
        found: set[str] = set()
        for monomial in self.terms:
            for atom in monomial:
                found |= {atom} if isinstance(atom, str) else atom.names()
        return found

    def replaced(self, known: Mapping[str, Polynomial]) -> Polynomial:
        if not known or not self.names() & known.keys():
            return self
        total = polynomial(0)
        for monomial, coefficient in self.terms.items():
            product = polynomial(coefficient)
            for atom in monomial:
                product = product * replaced_atom(atom, known)
            total = total + product
        return total

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            terms[monomial] = terms.get(monomial, 0) + coefficient
        return Polynomial(terms)

    def __neg__(self) -> Polynomial:
        return Polynomial({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial) -> Polynomial:
        terms: dict[Monomial, int] = {}
        for a, ca in self.terms.items():
            for b, cb in other.terms.items():
                monomial = ordered((*a, *b))
                terms[monomial] = terms.get(monomial, 0) + ca * cb
        return Polynomial(terms)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(tuple(self.terms.items()))

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        text = ""
        for monomial, coefficient in self.terms.items():
            factors = [inside(a) for a in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            sign = " - " if coefficient < 0 else " + "
            text += sign + "*".join(factors)
        return text[3:] if text.startswith(" + ") else "-" + text[3:]

    __repr__ = __str__


def atom_at(atom: Atom, sizes: Mapping[str, int]) -> Any:
    return sizes[atom] if isinstance(atom, str) else atom.at(sizes)


def replaced_atom(atom: Atom, known: Mapping[str, Polynomial]) -> Polynomial:
    if isinstance(atom, str):
        return known.get(atom) or name(atom)
    return as_polynomial(atom.replaced(known))


def ordered(atoms: Iterable[Atom]) -> Monomial:
    return tuple(sorted(atoms, key=str))


def polynomial(number: int) -> Polynomial:
    """A whole number."""
    return Polynomial({(): number})


def name(text: str) -> Polynomial:
    """The size of that name."""
    return Polynomial({(text,): 1})


def as_polynomial(formula: Any) -> Polynomial:
    """An integer formula or number as a polynomial."""
    if isinstance(formula, Polynomial):
        return formula
    return Polynomial({(formula,): 1}) if isinstance(formula, Call) else polynomial(formula)


# --- arithmetic ----------------------------------------------------------------------------------


def is_whole(value: Any) -> bool:
    """An integer: a whole number, or a formula of one?"""
    if isinstance(value, Call):
        return value.sign in ("//", "%") and all(map(is_whole, value.arguments))
    return isinstance(value, Polynomial | int)


def combine(sign: str, left: Any, right: Any) -> Formula:
    """`left sign right`."""
    if sign == "**" and is_whole(left) and type(right) is int and 0 <= right <= MAX_POWER:
        return math.prod([as_polynomial(left)] * right, start=polynomial(1))
    if sign in ("/", "**") or not (is_whole(left) and is_whole(right)):
        return Call(sign, left, right)
    a, b = as_polynomial(left), as_polynomial(right)
    if sign == "//":
        return quotient(a, b)
    if sign == "%":
        return remainder(a, b)
    return a + b if sign == "+" else a - b if sign == "-" else a * b


def parse_formula(text: str) -> Formula:
    """The formula that prints as `text`; ValueError if there is none."""
    tree = ast.parse(text, mode="eval").body
    value = from_tree(tree)
    return value if isinstance(value, Formula) else polynomial(value)


SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%",
         ast.Div: "/", ast.Pow: "**"}  # fmt: skip


def from_tree(tree: ast.expr) -> Any:
    if isinstance(tree, ast.BinOp) and type(tree.op) in SIGNS:
        return combine(SIGNS[type(tree.op)], from_tree(tree.left), from_tree(tree.right))
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        value = from_tree(tree.operand)
        return -value if isinstance(value, int | float | Polynomial) else combine("*", -1, value)
    if isinstance(tree, ast.Name):
        return name(tree.id)
    if isinstance(tree, ast.Constant) and type(tree.value) in (int, float):
        return tree.value
    raise ValueError(f"{ast.unparse(tree)!r} is no formula of sizes")


# --- division ------------------------------------------------------------------------------------


def quotient(a: Polynomial, b: Polynomial) -> Polynomial:
    """`a // b`, simplified where it comes out even."""
    whole, rest = split(a, b)
    if not rest.terms:
        return whole
    if rest.is_constant and b.is_constant:
        return whole + polynomial(rest.constant // b.constant)
    return whole + as_polynomial(Call("//", rest, b))


def remainder(a: Polynomial, b: Polynomial) -> Polynomial:
    """`a % b`, simplified where it comes out even."""
    _, rest = split(a, b)
    if not rest.terms:
        return rest
    if rest.is_constant and b.is_constant:
        return polynomial(rest.constant % b.constant)
    return as_polynomial(Call("%", rest, b))


def split(a: Polynomial, b: Polynomial) -> tuple[Polynomial, Polynomial]:
    """`a` as `whole * b + rest`, as much of it as divides evenly."""
    if len(b.terms) != 1:
        return (polynomial(1), polynomial(0)) if a == b else (polynomial(0), a)
    ((divisor, factor),) = b.terms.items()
    whole, rest = {}, {}
    for monomial, coefficient in a.terms.items():
        left = without(monomial, divisor)
        if left is None or coefficient % factor:
            rest[monomial] = coefficient
        else:
            whole[left] = coefficient // factor
    return Polynomial(whole), Polynomial(rest)


def without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """The monomial divided by another, or None."""
    left = list(monomial)
    for atom in divisor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


# --- ranges --------------------------------------------------------------------------------------

Range = tuple[float, float]
ANY: Range = (-math.inf, math.inf)


def range_of(formula: Polynomial, bounds: Mapping[str, Range]) -> Range:
    """Between which numbers it lies, as far as that is easily seen."""
    low = high = 0.0
    for monomial, coefficient in formula.terms.items():
        ends = (float(coefficient), float(coefficient))
        for atom in monomial:
            corners = [product(x, y) for x in ends for y in atom_range(atom, bounds)]
            ends = (min(corners), max(corners))
        low, high = low + ends[0], high + ends[1]
    return low, high


def product(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b


def atom_range(atom: Atom, bounds: Mapping[str, Range]) -> Range:
    if isinstance(atom, str):
        return bounds[atom]
    (a, b), (c, d) = (range_of(as_polynomial(x), bounds) for x in atom.arguments)
    if c <= 0:
        return ANY
    if atom.sign == "%":
        return (0.0, d - 1)
    return floor(a, d if a >= 0 else c), floor(b, c if b >= 0 else d)


def floor(a: float, b: float) -> float:
    """`a // b` for positive b, of which each may be infinite."""
    if math.isinf(a):
        return a
    return a // b if math.isfinite(b) else (0.0 if a >= 0 else -1.0)
