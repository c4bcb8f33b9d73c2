"""einsum and tensordot: contractions as permutations, reshapes and one batched product each."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, NamedTuple

from ..arguments import must_be
from ..types import normalize_dim
from ..value import Value, public
from .products import bmm, mm

Label = Hashable  # a letter, or (k,) for the k-th dimension under the ellipsis
DOTS = "..."


class Term(NamedTuple):
    """A tensor whose dimensions have labels."""

    value: Any
    labels: tuple[Label, ...]

    def size(self, label: Label) -> int:
        size: int = self.value.shape[self.labels.index(label)]
        return size

    def arranged(self, labels: list[Label]) -> Any:
        """The tensor with its dimensions in the order of `labels`."""
        order = tuple(self.labels.index(label) for label in labels)
        return self.value if order == tuple(range(len(order))) else self.value.permute(order)


# --- reading the equation ------------------------------------------------------------------------


def _subscripts(text: str, operand: str) -> list[str]:
    """The labels of one operand: letters and at most one ellipsis."""
    found: list[str] = []
    k = 0
    while k < len(text):
        if text[k] == " ":
            k += 1
        elif text.startswith(DOTS, k):
            if DOTS in found:
                raise RuntimeError(f"einsum(): found '.' for {operand} for which an ellipsis was "
                                   "already found")  # fmt: skip
            found.append(DOTS)
            k += 3
        elif text[k] == ".":
            raise RuntimeError("einsum(): found '.' that is not part of any ellipsis; use '...'")
        elif text[k].isascii() and text[k].isalpha():
            found.append(text[k])
            k += 1
        else:
            raise RuntimeError(f"einsum(): invalid subscript given at index {k} in the equation "
                               "string, subscripts must be in [a-zA-Z]")  # fmt: skip
    return found


def _read(equation: str) -> tuple[list[list[str]], list[str] | None]:
    left, arrow, right = equation.partition("->")
    words = [_subscripts(part, f"operand {k}") for k, part in enumerate(left.split(","))]
    return words, _subscripts(right, "the output") if arrow else None


def _letter(position: Any) -> str:
    if position is Ellipsis:
        return DOTS
    if not 0 <= position < 52:
        raise ValueError("einsum(): subscript in subscript list is not within the valid range "
                         "[0, 52)")  # fmt: skip
    return chr((ord("A") if position < 26 else ord("a") - 26) + position)


def _from_sublists(args: tuple[Any, ...]) -> tuple[list[Any], list[list[str]], list[str] | None]:
    """The format `einsum(a, [0, 1], b, [1, 2], [0, 2])`."""
    pairs, output = (args[:-1], args[-1]) if len(args) % 2 else (args, None)
    words = [[_letter(position) for position in row] for row in pairs[1::2]]
    result = None if output is None else [_letter(position) for position in output]
    return list(pairs[::2]), words, result


# --- labelling -----------------------------------------------------------------------------------


def _labelled(value: Any, word: list[str], dots: int, place: int) -> Term:
    """Spells the ellipsis out and takes diagonals of repeated labels."""
    hidden = value.ndim - len([label for label in word if label != DOTS])
    if hidden < 0 or (hidden and DOTS not in word):
        raise RuntimeError(
            "einsum(): the number of subscripts in the equation "
            f"({value.ndim - hidden}) {'is more than' if hidden < 0 else 'does not match'} the "
            f"number of dimensions ({value.ndim}) for operand {place}"
            f"{'' if hidden < 0 else ' and no ellipsis was given'}"
        )
    labels: list[Label] = []
    for label in word:
        labels += [(k,) for k in range(dots - hidden, dots)] if label == DOTS else [label]
    kept: list[Label] = []
    for name in labels:
        if name not in kept:
            kept.append(name)
            continue
        first, second = kept.index(name), len(kept)
        if value.shape[first] != value.shape[second]:
            raise RuntimeError(f"einsum(): subscript {name} is repeated for operand {place} but "
                               f"the sizes don't match, {value.shape[second]} != "
                               f"{value.shape[first]}")  # fmt: skip
        value = value.diagonal(0, first, second).movedim(-1, first)
    return Term(value, tuple(kept))


def _output(words: list[list[str]], output: list[str] | None, dots: int) -> list[Label]:
    """The labels of the result: the ellipsis, then letters that occur once, by alphabet."""
    hidden: list[Label] = [(k,) for k in range(dots)]
    letters = [label for word in words for label in word if label != DOTS]
    if output is None:
        return hidden + sorted(label for label in set(letters) if letters.count(label) == 1)
    result: list[Label] = []
    for label in output:
        if label != DOTS and label in result:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the "
                               "output")  # fmt: skip
        if label != DOTS and label not in letters:
            raise RuntimeError(f"einsum(): output subscript {label} does not appear in the "
                               "equation for any input operand; leave it out")  # fmt: skip
        result += hidden if label == DOTS else [label]
    return result


def _check_sizes(terms: list[Term]) -> None:
    sizes: dict[Label, int] = {}
    for number, term in enumerate(terms):
        for label, size in zip(term.labels, term.value.shape):
            if sizes.setdefault(label, size) != size and 1 not in (size, sizes[label]):
                raise RuntimeError(
                    f"einsum(): subscript {label} has size {size} for operand {number} which does "
                    f"not broadcast with previously seen size {sizes[label]}"
                )
            sizes[label] = max(size, sizes[label])


# --- contracting ---------------------------------------------------------------------------------


def _without(term: Term, dropped: list[Label], summed: bool) -> Term:
    """`term` with some labels summed away, or dropped where their size is 1."""
    if not dropped:
        return term
    dims = tuple(term.labels.index(label) for label in dropped)
    value = term.value.sum(dims) if summed else term.value.squeeze(dims)
    return Term(value, tuple(label for label in term.labels if label not in dropped))


def _pair(a: Term, b: Term, keep: set[Label], output: list[Label]) -> Term:
    """The contraction of two terms over the labels that nothing else needs."""
    shared = set(a.labels) & set(b.labels)
    a = _without(a, [s for s in a.labels if s in shared and a.size(s) == 1 != b.size(s)], False)
    b = _without(b, [s for s in b.labels if s in shared and b.size(s) == 1 != a_size(a, s)], False)
    shared = set(a.labels) & set(b.labels)
    a = _without(a, [s for s in a.labels if s not in keep and s not in shared], True)
    b = _without(b, [s for s in b.labels if s not in keep and s not in shared], True)
    batch = [s for s in a.labels if s in shared and s in keep]
    summed = [s for s in a.labels if s in shared and s not in keep]
    left = [s for s in a.labels if s not in shared]
    right = [s for s in b.labels if s not in shared]
    labels = (*batch, *left, *right)
    shape = [*map(a.size, batch), *map(a.size, left), *map(b.size, right)]
    if not summed:
        places = {label: place for place, label in enumerate(output)}
        labels = tuple(sorted(labels, key=lambda s: places.get(s, len(places))))
        return Term(_spread(a, labels) * _spread(b, labels), labels)
    count = [math.prod(map(a.size, names)) for names in (batch, left, summed)]
    first = a.arranged([*batch, *left, *summed]).reshape((count[0], count[1], count[2]))
    second = b.arranged([*batch, *summed, *right]).reshape(
        (count[0], count[2], math.prod(map(b.size, right))))  # fmt: skip
    return Term(bmm(first, second).view(tuple(shape)), labels)


def _spread(term: Term, labels: tuple[Label, ...]) -> Any:
    """`term` in the order of `labels`, with size 1 where it lacks one."""
    value = term.arranged([label for label in labels if label in term.labels])
    return value.reshape([term.size(s) if s in term.labels else 1 for s in labels])


def a_size(term: Term, label: Label) -> int:
    """The size of a label, 1 where the term has lost it."""
    return term.size(label) if label in term.labels else 1


def _cheapest(terms: list[Term], output: set[Label]) -> tuple[int, int]:
    """The pair whose contraction shrinks memory most."""

    def growth(i: int, j: int) -> Any:
        others = output.union(*(t.labels for k, t in enumerate(terms) if k not in (i, j)))
        sizes = dict(zip(terms[i].labels, terms[i].value.shape))
        for label, size in zip(terms[j].labels, terms[j].value.shape):
            sizes[label] = max(size, sizes.get(label, 1))
        result = math.prod(n for label, n in sizes.items() if label in others)
        return result - math.prod(terms[i].value.shape) - math.prod(terms[j].value.shape)

    pairs = [(i, j) for j in range(len(terms)) for i in range(j)]
    return min(pairs, key=lambda pair: growth(*pair))


def contract(terms: list[Term], output: list[Label]) -> Any:
    """All terms multiplied and summed to the labels of `output`."""
    wanted, alone = set(output), len(terms) == 1
    while len(terms) > 1:
        i, j = (0, 1) if len(terms) == 2 else _cheapest(terms, wanted)
        a, b = terms[i], terms[j]
        terms = [t for k, t in enumerate(terms) if k not in (i, j)]
        keep = wanted.union(*(t.labels for t in terms))
        terms.append(_pair(a, b, keep, output))
    last = _without(terms[0], [s for s in terms[0].labels if s not in wanted], True)
    order = tuple(last.labels.index(label) for label in output)
    if alone:  # never the operand itself
        return last.value.permute(order) if last.value is terms[0].value or order != tuple(
            range(len(order))) else last.value  # fmt: skip
    if order == tuple(range(len(order))):
        return last.value
    result = last.value.permute(order)
    return result.view(tuple(result.shape))


@public("einsum", method=False, out="none")
def einsum(*args: Any) -> Any:
    """einsum(equation, *operands), or einsum(op1, sublist1, op2, sublist2, ..., [output])."""
    if len(args) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or "
                         "at least one operand and its subscripts list")  # fmt: skip
    if isinstance(args[0], Value):
        operands, words, output = _from_sublists(args)
    else:
        if not isinstance(args[0], str):
            raise TypeError("einsum(): argument 'equation' (position 1) must be str, not "
                            f"{type(args[0]).__name__}")  # fmt: skip
        operands = list(args[1:])
        if len(operands) == 1 and isinstance(operands[0], list | tuple):
            operands = list(operands[0])
        words, output = _read(args[0])
    if len(operands) != len(words):
        few = len(operands) < len(words)
        raise RuntimeError(f"einsum(): {'fewer' if few else 'more'} operands were provided than "
                           f"specified in the equation ({len(operands)}, but it needs "
                           f"{len(words)})")  # fmt: skip
    dots = max((v.ndim - len(w) + 1 for v, w in zip(operands, words) if DOTS in w), default=0)
    terms = [_labelled(v, w, dots, k) for k, (v, w) in enumerate(zip(operands, words))]
    _check_sizes(terms)
    return contract(terms, _output(words, output, dots))


# --- tensordot -----------------------------------------------------------------------------------


def _contracted(dims: Any, a: Any, b: Any) -> tuple[list[int], list[int]]:
    """torch's three spellings: a number, two lists, a tensor of two rows."""
    if isinstance(dims, Value):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError("tensordot expects dims < ndim_a or ndim_b, but got dims="
                               f"{dims}")  # fmt: skip
        return list(range(a.ndim - dims, a.ndim)), list(range(dims))
    if not isinstance(dims, list | tuple) or len(dims) != 2:
        raise RuntimeError("tensordot expects dims to be int or tuple[list[int], list[int]] or list"
                           f"[list[int]] containing two lists, but got dims={dims}")  # fmt: skip
    for place, (name, d) in enumerate(zip(("dims_self", "dims_other"), dims), 3):
        if not isinstance(d, list | tuple):
            raise must_be("tensordot", name, "tuple of ints", d, place)
    first, second = (list(d) for d in dims)
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length, got "
                           f"{first} and {second}")  # fmt: skip
    return ([normalize_dim(d, a.ndim) for d in first], [normalize_dim(d, b.ndim) for d in second])


@public("tensordot", method=False)
def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    """tensordot(a, b, dims=2): sums of products over the named dimensions of both."""
    first, second = _contracted(dims, a, b)
    for i, j in zip(first, second):
        m, n = a.shape[i], b.shape[j]
        if m == 1 and n != 1:
            b = b.sum(j, keepdim=True, dtype=b.dtype)
        elif n == 1 and m != 1:
            a = a.sum(i, keepdim=True, dtype=a.dtype)
        elif m != n:
            raise RuntimeError("contracted dimensions need to match, but first has size "
                               f"{m} in dim {i} and second has size {n} in dim {j}")  # fmt: skip
    kept_a = [d for d in range(a.ndim) if d not in first]
    kept_b = [d for d in range(b.ndim) if d not in second]
    shape = (*(a.shape[d] for d in kept_a), *(b.shape[d] for d in kept_b))
    inner = math.prod(a.shape[d] for d in first)
    left = a.permute((*kept_a, *first)).reshape((math.prod(a.shape[d] for d in kept_a), inner))
    right = b.permute((*second, *kept_b)).reshape((inner, math.prod(b.shape[d] for d in kept_b)))
    return mm(left, right).view(shape)
