"""Object code in memory, ready to run, without LLVM: what `linker.py` does for files.

LLVM can load its objects as well, but a process that finds all its code compiled would import
llvmlite (40 ms and more) for that alone. What this loader does not know is left to LLVM.

Invariants:
- No page is both writable and executable: relocations are applied before rights are taken.
- What an object refers to is bound when it is loaded, or it does not load.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from . import elf
from .elf import LinkError, Relocation, Section, Symbol
from .linker import GOT_KINDS, PAGE, R_64, R_PC64, RELATIVE_KINDS, up

STUB = 16  # bytes of a jump through a slot
FAILED = 2**64 - 1


class Mapped:
    """Loaded object code: addresses by name, until `close`."""

    def __init__(self, code: bytes, symbols: Iterable[str], imports: Mapping[str, int]) -> None:
        try:
            item = elf.read(code)
        except (struct.error, IndexError, KeyError, ValueError) as error:
            raise LinkError(f"not an object file: {error!r}") from None
        self.outside: dict[str, int] = {}  # by name, where it is
        self.slots: dict[Any, int] = {}  # by symbol or name of what is outside, their order
        for relocation in item.relocations:
            self.prepare(relocation, imports)
        self.place(item.sections)
        self.addresses = self.find(item.symbols, symbols)
        self.start = libc().mmap(0, self.size, mmap.PROT_READ | mmap.PROT_WRITE,
                                 mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)  # fmt: skip
        if self.start == FAILED:
            raise LinkError("no memory for code")
        try:
            self.fill(item)
        except BaseException:
            self.close()
            raise
        self.addresses = {name: self.start + at for name, at in self.addresses.items()}

    def prepare(self, relocation: Relocation, imports: Mapping[str, int]) -> None:
        """Finds what is outside, and reserves slots."""
        symbol, kind = relocation.symbol, relocation.kind
        if kind not in (*GOT_KINDS, *RELATIVE_KINDS, R_64) or relocation.section.data is None:
            raise LinkError(f"relocation of kind {kind} in {relocation.section.name}")
        if symbol.section is None and symbol.name not in self.outside:
            address = imports.get(symbol.name) or in_process(symbol.name)
            if not address:
                raise LinkError(f"{symbol.name!r} is not defined")
            self.outside[symbol.name] = address
        if kind in GOT_KINDS or symbol.section is None:
            self.slots.setdefault(slot_key(symbol), len(self.slots))

    def place(self, sections: list[Section]) -> None:
        """Slots and stubs, what is only read or run, and on pages of its own what is written."""
        self.stubs = up(8 * len(self.slots), STUB)
        position = self.stubs + STUB * len(self.slots)
        for written in (False, True):
            if written:
                position = self.fixed = up(position, PAGE)
            for section in sections:
                if bool(section.flags & elf.WRITE) is written:
                    position = section.address = up(position, section.alignment)
                    position += section.size
        self.size = max(PAGE, up(position, PAGE))

    def find(self, defined: list[Symbol], wanted: Iterable[str]) -> dict[str, int]:
        inside = {s.name: s for s in defined if s.section is not None and s.binding != elf.LOCAL}
        missing = [name for name in wanted if name not in inside]
        if missing:
            raise LinkError(f"the object does not define {', '.join(missing)}")
        return {name: inside[name].address for name in wanted}

    def fill(self, item: elf.Object) -> None:
        image = bytearray(self.size)
        for section in item.sections:
            if section.data is not None:
                image[section.address : section.address + section.size] = section.data
        for key, number in self.slots.items():
            to = self.outside[key] if isinstance(key, str) else self.start + key.address
            struct.pack_into("<Q", image, 8 * number, to)
            # jmp *slot(%rip), six bytes long
            at = self.stubs + STUB * number
            struct.pack_into("<Hi", image, at, 0x25FF, 8 * number - (at + 6))
        for relocation in item.relocations:
            self.apply(image, relocation)
        ctypes.memmove(self.start, (ctypes.c_char * self.size).from_buffer(image), self.size)
        rights = mmap.PROT_READ | mmap.PROT_EXEC
        if libc().mprotect(self.start, self.fixed, rights):
            raise LinkError("memory for code can't be made executable")

    def apply(self, image: bytearray, relocation: Relocation) -> None:
        symbol, kind = relocation.symbol, relocation.kind
        place = relocation.section.address + relocation.offset
        if kind == R_64:
            inside = symbol.section is not None
            to = self.start + symbol.address if inside else self.outside[symbol.name]
            struct.pack_into("<Q", image, place, (to + relocation.addend) % 2**64)
            return
        if kind in GOT_KINDS:
            to = 8 * self.slots[slot_key(symbol)]
        elif symbol.section is None:
            to = self.stubs + STUB * self.slots[symbol.name]
        else:
            to = symbol.address
        form = "<q" if kind == R_PC64 else "<i"
        struct.pack_into(form, image, place, to + relocation.addend - place)

    def close(self) -> None:
        """Gives the memory back. Nobody may be running the code."""
        libc().munmap(self.start, self.size)


def slot_key(symbol: Symbol) -> Any:
    """One slot for all symbols that are the same thing."""
    return symbol.name if symbol.section is None else symbol


@cache
def libc() -> Any:
    """The functions of this process that are needed here."""
    if sys.platform != "linux":
        raise LinkError(f"code is not loaded this way on {sys.platform}")
    library = ctypes.CDLL(None)
    word, number = ctypes.c_size_t, ctypes.c_int
    library.mmap.restype, library.mmap.argtypes = word, [word, word, number, number, number, word]
    library.mprotect.argtypes = [word, word, number]
    library.munmap.argtypes = [word, word]
    return library


def in_process(name: str) -> int:
    """Where the process has a function; 0 if it has none."""
    try:
        return ctypes.cast(getattr(libc(), name), ctypes.c_void_p).value or 0
    except AttributeError:
        return 0
