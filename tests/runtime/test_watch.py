"""Watches see every change of what they watch, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from wengert.runtime import watch

if watch.trouble():
    pytest.skip(watch.trouble(), allow_module_level=True)

LEVEL = 1000


class Settings:
    def __init__(self) -> None:
        self.depth = 1000


class Slotted:
    __slots__ = ("size",)


def watching(words: watch.Words) -> Any:
    unchanged = watch.watch(words)
    assert unchanged() is True and unchanged() is True
    return unchanged


def test_a_dict_is_watched_as_a_whole() -> None:
    rates = {"lr": 0.5}
    unchanged = watching(watch.of_dict(rates))
    assert rates["lr"] == 0.5 and dict(rates) == rates and unchanged()
    rates["lr"] = 0.25
    assert not unchanged()


def test_removing_a_key_is_a_change() -> None:
    rates = {"lr": 0.5, "decay": 0.0}
    unchanged = watching(watch.of_dict(rates))
    del rates["decay"]
    assert not unchanged()


def test_an_entry_is_watched_among_others_that_change() -> None:
    space = {"LEVEL": 1000, "i": 0}
    unchanged = watching(watch.of_entry(space, "LEVEL"))
    for i in range(1000, 1010):
        space["i"] = i
    assert unchanged()
    space["LEVEL"] = 1001
    assert not unchanged()


def test_an_entry_is_lost_when_its_dict_grows() -> None:
    space = {"LEVEL": 1000}
    unchanged = watching(watch.of_entry(space, "LEVEL"))
    space.update((str(k), k) for k in range(100))
    assert not unchanged()  # which only means: look yourself
    assert watching(watch.of_entry(space, "LEVEL"))()


def test_globals_of_a_module() -> None:
    global LEVEL
    unchanged = watching(watch.of_entry(globals(), "LEVEL"))
    LEVEL = 2000
    assert not unchanged()


def test_items_and_length_of_a_list() -> None:
    sizes = [1000, 2000]
    unchanged = watching(watch.of_list(sizes))
    sizes[1] = 2001
    assert not unchanged()
    unchanged = watching(watch.of_list(sizes))
    sizes.append(3000)
    assert not unchanged()


def test_variables_of_a_closure() -> None:
    scale = 1000

    def grow() -> None:
        nonlocal scale
        scale += 1

    unchanged = watching(watch.of_cell(grow.__closure__[0]))
    grow()
    assert not unchanged()


def test_attributes_of_an_object() -> None:
    settings = Settings()
    for _ in range(50):
        unchanged = watching(watch.of_attributes(settings))
        settings.depth += 1000
        assert not unchanged()
    unchanged = watching(watch.of_attributes(settings))
    settings.__dict__ = {"depth": 3}
    assert not unchanged()


def test_slots() -> None:
    owner = Slotted()
    owner.size = 1000
    unchanged = watching(watch.of_slot(owner, "size"))
    owner.size = 2000
    assert not unchanged()


def test_several_words_at_once() -> None:
    numbers = [{"a": k} for k in range(100)]
    unchanged = watching([word for n in numbers for word in watch.of_dict(n)])
    numbers[99]["a"] = -1
    assert not unchanged()
