"""Random bodies with loops, branches, handlers and values that go to Python, as source text."""

import contextlib
import linecache
import random

import pytest
import wengert as torch
from scenarios import close, plain

TENSORS, FLOATS = ("x", "y", "z", "u"), ("a", "b", "c")


class Writer:
    """Writes a function of a tensor `x`, a parameter `w`, a float `a` and a list `seen`."""

    def __init__(self, seed):
        self.random, self.lines = random.Random(seed), []
        self.loops = 0

    def pick(self, *choices):
        return self.random.choice(choices)

    def tensor(self):
        name = self.pick(*TENSORS, "x", "w")
        return self.pick(name, f"{name} * {self.pick(*FLOATS, '0.5')}", f"{name}.sin()",
                         f"({name} + {self.pick(*TENSORS)})", f"{name}[1:].sum() * {name}",
                         f"{name}.clamp(-3, 3)", f"torch.where({name} > 0, x, {name})")  # fmt: skip

    def number(self):
        return self.pick(f"float({self.tensor()}.sum())", f"({self.tensor()}).mean().item()",
                         f"{self.tensor()}.tolist()[0]", f"{self.pick(*FLOATS)} / 2",
                         f"max({self.pick(*FLOATS)}, float({self.tensor()}.max()))",
                         f"abs({self.pick(*FLOATS)}) + float(({self.tensor()}).sum())")  # fmt: skip

    def simple(self):
        target, number = self.pick(*TENSORS), self.pick(*FLOATS)
        return self.pick(
            *[f"{target} = {self.tensor()}" for _ in range(3)],
            f"{number} = {self.number()}", f"{number} += {self.number()}",
            f"seen.append({self.number()})", f"seen.append(round({self.number()}, 2))",
            f"{target} = {target} + {number}",
            f"{target}, {number} = {self.tensor()}, {self.number()}",
            f"{target} = [t * {number} for t in {self.pick(*TENSORS)}.unbind()][0] + x",
            f"{target} = {target}.clone(); {target}.mul_({self.pick('0.5', number)})",
            f"seen.append(f'{{{self.number()}:.2f}}')",
            f"(w * {self.tensor()}).sum().backward(); seen.append(w.grad.sum().item())",
            "w.grad = None",
        )  # fmt: skip

    def write(self, depth, text):
        self.lines.append("    " * depth + text)

    def block(self, depth, loop=False):
        for _ in range(self.pick(1, 2, 3)):
            kind = self.pick("simple", "simple", "simple", "if", "for", "with", "try", "while")
            if depth > 3 or kind == "simple":
                self.write(depth, self.simple())
            else:
                getattr(self, f"write_{kind}")(depth, loop)
        if loop and self.random.random() < 0.2:
            self.write(depth, f"if {self.pick(*FLOATS)} > 1: {self.pick('break', 'continue')}")

    def write_if(self, depth, loop):
        condition = self.pick(f"{self.number()} > 0", f"{self.pick(*FLOATS)} > 0.5",
                              f"({self.tensor()}).sum() > 0", "flag")  # fmt: skip
        self.write(depth, f"if {condition}:")
        self.block(depth + 1, loop)
        if self.random.random() < 0.5:
            self.write(depth, "else:")
            self.block(depth + 1, loop)
        elif self.random.random() < 0.2:
            self.write(depth + 1, f"return {self.pick(*TENSORS)}, {self.pick(*FLOATS)}")

    def write_for(self, depth, loop):
        self.write(depth, f"for {self.pick('k', 'c')} in {self.pick('range(2)', '(0.5, 1.5)')}:")
        self.block(depth + 1, True)

    def write_while(self, depth, loop):
        self.loops += 1
        name = f"n{self.loops}"
        self.write(depth, f"{name} = 0")
        self.write(depth, f"while {name} < 2 and {self.number()} < 50:")
        self.write(depth + 1, f"{name} += 1")
        self.block(depth + 1, True)

    def write_with(self, depth, loop):
        manager = self.pick("torch.no_grad()", "torch.enable_grad()", "suppress()")
        self.write(depth, f"with {manager}:")
        self.block(depth + 1, loop)

    def write_try(self, depth, loop):
        self.write(depth, "try:")
        self.block(depth + 1, loop)
        self.write(depth + 1, f"if {self.number()} > 2: raise KeyError")
        self.write(depth, f"except {self.pick('KeyError', '(KeyError, NameError)')}:")
        self.block(depth + 1, loop)

    def text(self):
        self.write(0, "def body(x, w, a, seen, flag=True):")
        self.write(1, f"y = x * 2; b = {self.pick('0.25', 'a')}")
        self.block(1)
        self.block(1)
        self.write(1, f"return {self.tensor()}, {', '.join(FLOATS[:2])}, {self.pick(*TENSORS)}")
        return "\n".join(self.lines) + "\n"


def function_of(text, name):
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"torch": torch, "suppress": lambda: contextlib.suppress(NameError)}
    exec(compile(text, name, "exec"), space)
    return space["body"]


def history(function, seed):
    """What calls give, raise, append and leave in `w`."""
    found, draws = [], random.Random(seed)
    for _ in range(6):
        x = torch.tensor([draws.uniform(-1, 1) for _ in range(3)])
        w = torch.tensor([draws.uniform(-1, 1) for _ in range(3)], requires_grad=True)
        seen = []
        try:
            result = function(x, w, draws.uniform(-1, 1), seen, draws.random() < 0.5)
            if result[0].requires_grad:
                result[0].sum().backward()
        except Exception as error:
            result = error
        found.append((result, seen, w.grad))
    return plain(found)


def check_seeds(first):
    for seed in range(first, first + 8):
        text = Writer(seed).text()
        function = function_of(text, f"<body {seed}>")
        want, got = history(function, seed), history(torch.compile(function), seed)
        assert close(got, want), f"seed {seed}\n{text}\ncompiled: {got}\neager:    {want}"


@pytest.mark.parametrize("first", [0, 8])
def test_bodies_are_as_they_are_written(first):
    check_seeds(first)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(16, 400, 8))
def test_more_bodies_are_as_they_are_written(first):
    check_seeds(first)
