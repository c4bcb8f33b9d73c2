"""Reading x86-64 ELF objects: the sections, symbols and relocations that a linker needs.

Invariants:
- Only what runs is kept: sections that are loaded, without unwind tables and notes.
- Whatever `linker.py` could not place rightly (thread-local data, constructors, common symbols)
  is refused here, with its name.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

PROGBITS, SYMTAB, RELA, NOBITS = 1, 2, 4, 8
INIT_ARRAY, FINI_ARRAY, PREINIT_ARRAY = 14, 15, 16
WRITE, ALLOC, EXECUTE, TLS = 0x1, 0x2, 0x4, 0x400
LOCAL, GLOBAL, WEAK = 0, 1, 2
DEFAULT_VISIBILITY = 0
UNDEFINED, ABSOLUTE, COMMON = 0, 0xFFF1, 0xFFF2

SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")


class LinkError(RuntimeError):
    """Object code that cannot be linked."""


@dataclass(eq=False, slots=True)
class Section:
    """Bytes to be loaded; `data` is None for zeros. `address` is the linker's."""

    name: str
    data: bytearray | None
    size: int
    alignment: int
    flags: int
    address: int = 0


@dataclass(eq=False, slots=True)
class Symbol:
    """A name for a place, or for something elsewhere if `section` is None."""

    name: str
    section: Section | None
    value: int = 0
    size: int = 0
    binding: int = GLOBAL
    kind: int = 0
    visibility: int = DEFAULT_VISIBILITY

    @property
    def address(self) -> int:
        """Where it is, once its section has been placed."""
        assert self.section is not None
        return self.section.address + self.value


@dataclass(eq=False, slots=True)
class Relocation:
    """A place in a section that depends on where a symbol will be."""

    section: Section
    offset: int
    kind: int
    symbol: Symbol
    addend: int


@dataclass(eq=False, slots=True)
class Object:
    """What an object file holds; of its symbols, those that somebody can ask for."""

    sections: list[Section]
    symbols: list[Symbol]
    relocations: list[Relocation]


def read(data: bytes) -> Object:
    """Reads an object file."""
    # 64-bit, little endian, version 1; relocatable, for x86-64
    if data[:7] != b"\x7fELF\2\1\1" or struct.unpack_from("<HH", data, 16) != (1, 62):
        raise LinkError("not an x86-64 ELF object")
    (table,) = struct.unpack_from("<Q", data, 0x28)
    _, count, names_at = struct.unpack_from("<HHH", data, 0x3A)
    headers = [
        SECTION_HEADER.unpack_from(data, table + i * SECTION_HEADER.size) for i in range(count)
    ]
    name = _names(data, headers[names_at])
    sections = {
        i: section
        for i, header in enumerate(headers)
        if (section := _section(data, header, name(header[0]))) is not None
    }
    listed = [
        (sections[header[7]], *entry)
        for header in headers
        if header[1] == RELA and header[7] in sections
        for entry in RELOCATION.iter_unpack(data[header[4] : header[4] + header[5]])
    ]
    symbols: dict[int, Symbol] = {}
    for header in headers:
        if header[1] == SYMTAB:
            used = {info >> 32 for _, _, info, _ in listed}
            symbols = _symbols(data, header, _names(data, headers[header[6]]), sections, used)
    relocations = [
        Relocation(section, offset, info & 0xFFFFFFFF, symbols[info >> 32], addend)
        for section, offset, info, addend in listed
    ]
    return Object(list(sections.values()), list(symbols.values()), relocations)


def _section(data: bytes, header: tuple[int, ...], name: str) -> Section | None:
    _, kind, flags, _, start, size, _, _, alignment, _ = header
    if not flags & ALLOC or size == 0:
        return None
    if (
        flags & TLS
        or kind in (INIT_ARRAY, FINI_ARRAY, PREINIT_ARRAY)
        or name.startswith((".ctors", ".dtors"))
    ):
        raise LinkError(f"section {name}: thread-local data and constructors are not supported")
    if kind not in (PROGBITS, NOBITS) or name == ".eh_frame":
        return None
    content = bytearray(data[start : start + size]) if kind == PROGBITS else None
    return Section(name, content, size, max(1, alignment), flags)


def _symbols(
    data: bytes,
    header: tuple[int, ...],
    name: Callable[[int], str],
    sections: dict[int, Section],
    used: set[int],
) -> dict[int, Symbol]:
    """By number, those that can be seen from outside and those that relocations use: the rest,
    most of them, are names of labels."""
    found = {}
    entries = SYMBOL.iter_unpack(data[header[4] : header[4] + header[5]])
    for number, (at, info, other, index, value, size) in enumerate(entries):
        binding = info >> 4
        if index == COMMON or (index == ABSOLUTE and binding != LOCAL):
            raise LinkError(f"{name(at)}: common and absolute symbols are not supported")
        if binding != LOCAL or number in used:
            found[number] = Symbol(
                name(at), sections.get(index), value, size, binding, info & 15, other & 3
            )
    return found


def _names(data: bytes, header: tuple[int, ...]) -> Callable[[int], str]:
    start = header[4]
    return lambda at: data[start + at : data.index(b"\0", start + at)].decode()
