"""Symbolic sizes: integers known by a formula while a call is recorded.

Note [Dims]
    While a call is recorded for all sizes, `x.shape[0]` is a `Dim`: it has the value of this call
    and a formula in names of sizes. Arithmetic gives Dims. Whatever would make Python's way depend
    on the value (a comparison, a truth, a hash, `int()`, `range()`, printing) gives the plain
    answer and leaves a guard: the recording serves other sizes only where they answer alike. C
    code can't look inside a Dim without asking for `__index__` or `__float__`, since it is no
    subclass of int; so nothing depends on a size without a formula or a guard.

    Sizes 0 and 1 are never symbolic, here or in results (`Sizes.size`): broadcasting and
    contiguity treat them apart. When the recording is over, a Dim acts as its plain value.
"""

from __future__ import annotations

import copy
import math
import operator
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Number
from typing import Any

from .formulas import (
    Call,
    Formula,
    Polynomial,
    as_polynomial,
    combine,
    is_whole,
    name,
    number_at,
    polynomial,
    range_of,
)

RELATIONS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
             ">": operator.gt, ">=": operator.ge}  # fmt: skip
OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True)
class Guard:
    """`left relation right` must hold for a recording to serve other sizes."""

    left: Any
    relation: str
    right: Any
    place: Any = None  # the user's line that asked

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Is it so for these sizes?"""
        try:
            left, right = number_at(self.left, sizes), number_at(self.right, sizes)
            return bool(RELATIONS[self.relation](left, right))
        except ArithmeticError:  # then the body raises, too: it must be run
            return False

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}"


class Sizes:
    """The symbolic sizes of one recording, and what Python was told about them."""

    def __init__(self, where: Callable[[], Any] = lambda: None):
        self.values: dict[str, int] = {}
        self.bounds: dict[str, tuple[float, float]] = {}
        self.known: dict[str, Polynomial] = {}  # names that a guard expresses by others
        self.guards: dict[str, Guard] = {}
        self.live = True
        self.where = where
        self.made: list[weakref.ref[Dim]] = []  # to find those that outlive the recording

    def new(self, label: str, value: int) -> Dim:
        """A size under a new name; at least 2, see Note [Dims]."""
        self.values[label], self.bounds[label] = value, (2.0, math.inf)
        return Dim(name(label), value, self)

    def size(self, value: Any) -> Any:
        """A number as the size of a dimension: 0 and 1 are plain."""
        if not is_dim(value):
            return value
        if value < 2:
            return int(value)
        formula = as_polynomial(value.formula).replaced(self.known)
        return formula.constant if formula.is_constant else value

    def is_fixed(self, label: str) -> bool:
        """Is a size known to be one number?"""
        return label in self.known and self.known[label].is_constant

    def fix_all(self) -> None:
        """From now on all sizes are plain numbers."""
        for label in self.values:
            self.compare(name(label), "==", self.values[label])
        self.live = False

    # --- what is asked about them ---

    def compare(self, left: Any, relation: str, right: Any) -> bool:
        """The answer for this call; a guard, unless all sizes give it."""
        values = self.values
        outcome = bool(RELATIONS[relation](number_at(left, values), number_at(right, values)))
        fact = relation if outcome else OPPOSITE[relation]
        if is_whole(left) and is_whole(right):
            self.learn(as_polynomial(left) - as_polynomial(right), fact)
        else:
            self.guard(left, fact, right)
        return outcome

    def learn(self, difference: Polynomial, relation: str) -> None:
        """`difference relation 0` holds now: a guard, if it does not hold for all sizes."""
        difference = difference.replaced(self.known)
        if relation in ("<", "<="):
            difference, relation = -difference, ">" if relation == "<" else ">="
        if relation == ">":
            difference, relation = difference - polynomial(1), ">="
        factor = math.gcd(*(c for m, c in difference.terms.items() if m))
        if factor > 1 and (relation == ">=" or difference.constant % factor == 0):
            difference = Polynomial({m: c // factor for m, c in difference.terms.items()})
        low, high = range_of(difference, self.bounds)
        if not ((relation == ">=" and low >= 0) or (low == high == 0 and relation == "==")
                or (relation == "!=" and (low > 0 or high < 0))):  # fmt: skip
            self.narrow(difference, relation)
            if next(iter(difference.terms.values())) < 0:
                difference, relation = -difference, "<=" if relation == ">=" else relation
            right = -difference.constant
            self.guard(difference + polynomial(right), relation, right)

    def guard(self, left: Any, relation: str, right: Any) -> None:
        fact = Guard(left, relation, right, self.where())
        self.guards.setdefault(str(fact), fact)

    def narrow(self, difference: Polynomial, relation: str) -> None:
        """What `difference relation 0` says about single names."""
        terms = {m: c for m, c in difference.terms.items() if m}
        if relation == "==":
            self.solve(difference, terms)
        elif relation == ">=" and len(terms) == 1:
            ((monomial, coefficient),) = terms.items()
            if len(monomial) == 1 and isinstance(monomial[0], str):
                low, high = self.bounds[monomial[0]]
                edge = -difference.constant / coefficient
                low, high = self.bounds[monomial[0]] = (
                    (max(low, math.ceil(edge)), high) if coefficient > 0
                    else (low, min(high, math.floor(edge)))
                )  # fmt: skip
                if low == high:
                    self.solve(name(monomial[0]) - polynomial(int(low)), {monomial: 1})

    def solve(self, difference: Polynomial, terms: dict[Any, int]) -> None:
        """An equation that expresses one name by others is put to use from now on."""
        for monomial, coefficient in terms.items():
            if len(monomial) != 1 or not isinstance(monomial[0], str) or abs(coefficient) != 1:
                continue
            rest = difference - Polynomial({monomial: coefficient})
            if monomial[0] not in rest.names():
                meaning = {monomial[0]: -rest if coefficient > 0 else rest}
                self.known = {k: v.replaced(meaning) for k, v in self.known.items()} | meaning
                return


# --- the proxy -----------------------------------------------------------------------------------


class Dim:
    """A number that depends on sizes; see Note [Dims]."""

    __slots__ = ("__weakref__", "formula", "sizes", "value")

    def __init__(self, formula: Formula, value: Any, sizes: Sizes):
        self.formula, self.value, self.sizes = formula, value, sizes
        sizes.made.append(weakref.ref(self))

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # so that isinstance(n, int) is true
        return type(self.value)

    def plain(self) -> Any:
        """The number itself; the recording depends on it from now on."""
        if self.sizes.live:
            self.sizes.compare(self.formula, "==", self.value)
        return self.value

    # --- asking for the value ---

    def __index__(self) -> int:
        if type(self.value) is not int:
            raise TypeError("'float' object cannot be interpreted as an integer")
        return int(self.plain())

    def __int__(self) -> int:
        return int(self.plain())

    def __float__(self) -> float:
        return float(self.plain())

    def __complex__(self) -> complex:
        return complex(self.plain())

    def __bool__(self) -> bool:
        return bool(operator.ne(self, 0))

    def __hash__(self) -> int:
        return hash(self.plain())

    def __repr__(self) -> str:
        return repr(self.plain())

    def __str__(self) -> str:
        return str(self.plain())

    def __format__(self, spec: str) -> str:
        return format(self.plain(), spec)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        # as a Python number, which does not widen arrays
        return getattr(ufunc, method)(*(plain_number(v) for v in inputs), **named)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy

        return numpy.array(self.plain(), dtype)

    def __reduce__(self) -> Any:
        return type(self.value), (self.plain(),)

    def __getattr__(self, attribute: str) -> Any:  # is_integer, bit_length ...
        if not hasattr(type(self.value), attribute):  # looking for it tells nothing of the value
            raise AttributeError(f"{type(self.value).__name__!r} object has no attribute "
                                 f"{attribute!r}")  # fmt: skip
        return getattr(self.plain(), attribute)

    # --- arithmetic ---

    def __neg__(self) -> Any:
        return operator.sub(0, self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if operator.ge(self, 0) else -self

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self


def is_number(value: Any) -> bool:
    return type(value) in (int, float, bool)


def arithmetic(sign: str, how: Callable[[Any, Any], Any], turned: bool) -> Any:
    def method(self: Dim, other: Any, *modulus: Any) -> Any:
        pair = (other, self) if turned else (self, other)
        if modulus:
            return pow(*map(plain_number, (*pair, *modulus)))
        if type(other) is not Dim and not is_number(other):
            return how(*map(plain_number, pair)) if isinstance(other, Number) else NotImplemented
        value = how(*(known_value(v) for v in pair))
        sizes = self.sizes
        if not sizes.live:
            return value
        if (sign == "**" and type(pair[1]) is Dim) or type(value) not in (int, float):
            return how(*map(plain_number, pair))
        formula = combine(sign, *(formula_of(v) for v in pair))
        if isinstance(formula, Polynomial):
            formula = simplified(formula, sizes)
            if formula.is_constant:
                return formula.constant
        return Dim(formula, value, sizes)

    return method


def simplified(formula: Polynomial, sizes: Sizes) -> Polynomial:
    """Without what the known ranges decide: `index % n` of an index in range is the index."""
    formula = formula.replaced(sizes.known)
    if len(formula.terms) != 1:
        return formula
    ((monomial, coefficient),) = formula.terms.items()
    if coefficient != 1 or len(monomial) != 1 or isinstance(monomial[0], str):
        return formula
    call = monomial[0]
    if call.sign != "%":
        return formula
    a, b = map(as_polynomial, call.arguments)
    low, high = range_of(a, sizes.bounds)[0], range_of(b - a, sizes.bounds)[0]
    if low >= 0 and high > 0:
        return a
    if range_of(-a, sizes.bounds)[0] > 0 and range_of(a + b, sizes.bounds)[0] >= 0:
        return a + b
    return formula


def plain_number(value: Any) -> Any:
    return value.plain() if type(value) is Dim else value


def known_value(value: Any) -> Any:
    return value.value if type(value) is Dim else value


def formula_of(value: Any) -> Any:
    return value.formula if type(value) is Dim else value


def comparison(relation: str, how: Callable[[Any, Any], Any]) -> Any:
    def method(self: Dim, other: Any) -> Any:
        if type(other) is not Dim and not is_number(other):
            return how(self.plain(), other) if isinstance(other, Number) else NotImplemented
        if not self.sizes.live:
            return how(self.value, known_value(other))
        return self.sizes.compare(self.formula, relation, formula_of(other))

    return method


for _word, _sign in (("add", "+"), ("sub", "-"), ("mul", "*"), ("floordiv", "//"), ("mod", "%"),
                     ("truediv", "/"), ("pow", "**")):  # fmt: skip
    _how = getattr(operator, _word)
    setattr(Dim, f"__{_word}__", arithmetic(_sign, _how, False))
    setattr(Dim, f"__r{_word}__", arithmetic(_sign, _how, True))
for _relation, _how in RELATIONS.items():
    setattr(Dim, f"__{_how.__name__}__", comparison(_relation, _how))


def by_value(method: str) -> Any:
    return lambda self, *others: getattr(self.plain(), method)(*map(plain_number, others))


for _word in ("and", "or", "xor", "lshift", "rshift"):
    setattr(Dim, f"__{_word}__", by_value(f"__{_word}__"))
    setattr(Dim, f"__r{_word}__", by_value(f"__r{_word}__"))
for _word in ("invert", "trunc", "floor", "ceil", "round"):
    setattr(Dim, f"__{_word}__", by_value(f"__{_word}__"))


# --- in data -------------------------------------------------------------------------------------


def is_dim(value: Any) -> bool:
    return type(value) is Dim


def has_dims(value: Any) -> bool:
    """Is there a Dim among the items of (nested) containers?"""
    kind = type(value)
    if kind is int or kind is str:
        return False
    if isinstance(value, tuple | list | set | frozenset):
        return any(map(has_dims, value))
    if isinstance(value, dict):
        return any(map(has_dims, value.values())) or any(map(has_dims, value))
    if kind is slice:
        return has_dims((value.start, value.stop, value.step))
    return kind is Dim


def replaced(value: Any, meaning: Callable[[Any], Any], kinds: Any) -> Any:
    """`value` with `meaning` of its items of these kinds; itself where there are none.

    What was hashed is known as a number: such Dims are replaced by that.
    """
    if type(value) in kinds:
        return meaning(value)
    if isinstance(value, tuple | list):
        items = [replaced(item, meaning, kinds) for item in value]
        if all(a is b for a, b in zip(items, value)):
            return value
        if isinstance(value, list):
            return type(value)(items)
        return tuple.__new__(type(value), items)  # a Size of formulas, too
    if isinstance(value, dict):
        pairs = [(plain_values(k), replaced(v, meaning, kinds)) for k, v in value.items()]
        if all(a is c and b is d for (a, b), (c, d) in zip(pairs, value.items())):
            return value
        made = {} if type(value) is dict else copy.copy(value)  # with the default of a defaultdict
        made.clear()
        made.update(pairs)
        return made
    if isinstance(value, set | frozenset):
        return type(value)(map(plain_values, value)) if any(map(has_dims, value)) else value
    if type(value) is slice:
        ends = (value.start, value.stop, value.step)
        found = replaced(ends, meaning, kinds)
        return value if found is ends else slice(*found)
    return value


def plain_values(value: Any) -> Any:
    """With the numbers of this call instead of Dims; no guard."""
    return replaced(value, known_value, (Dim,))


def as_formulas(value: Any) -> Any:
    """With formulas instead of Dims: what is kept of a recording."""
    return replaced(value, formula_of, (Dim,))


def at_sizes(value: Any, sizes: Mapping[str, int]) -> Any:
    """With numbers instead of formulas."""
    return replaced(value, lambda f: f.at(sizes), (Polynomial, Call))


def as_index(value: Any) -> Any:
    """An int argument that may be symbolic; else as `operator.index`."""
    return value if type(value) is Dim else value.__index__()


def whole(value: Any) -> Any:
    """`int(value)`, or the Dim as it is."""
    return value if type(value) is Dim else int(value)
