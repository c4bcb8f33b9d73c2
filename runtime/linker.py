"""A linker for our own object code: x86-64 ELF objects in, a shared library out.

So that an exported program is a `.so` that C, or `dlopen`, can use, on a machine without any
compiler; it needs neither LLVM nor Python to run.

Invariants:
- Objects are small+pic, as `jit.compile_text` makes them; anything else is refused by name.
- The result is a function of the objects and the arguments: same input, same bytes.
- Three segments: read only, executable, writable. No page is both writable and executable, and
  nothing but the writable segment is changed when it is loaded.
- References inside the library are bound inside it; what it lacks, the loader looks up at once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from . import elf
from .elf import LinkError, Relocation, Section, Symbol

PAGE = 4096
HEADERS = 64 + 5 * 56  # the file header and five program headers

# Relocations of objects, and those left to the loader.
R_64, R_PC32, R_PLT32, R_GOTPCREL, R_PC64 = 1, 2, 4, 9, 24
R_GOTPCRELX, R_REX_GOTPCRELX = 41, 42
R_GLOB_DAT, R_RELATIVE = 6, 8
RELATIVE_KINDS = (R_PC32, R_PLT32, R_PC64)
GOT_KINDS = (R_GOTPCREL, R_GOTPCRELX, R_REX_GOTPCRELX)

(
    DT_NULL,
    DT_NEEDED,
    DT_HASH,
    DT_STRTAB,
    DT_SYMTAB,
    DT_RELA,
    DT_RELASZ,
    DT_RELAENT,
    DT_STRSZ,
    DT_SYMENT,
    DT_SONAME,
    DT_FLAGS,
) = 0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 14, 30
DF_BIND_NOW = 8


def link(
    objects: Iterable[bytes],
    *,
    exports: Sequence[str] | None = None,
    soname: str = "",
    needed: Sequence[str] = ("libc.so.6", "libm.so.6"),
) -> bytes:
    """The bytes of a shared library made of `objects`.

    `exports` limits what others can see (default: every visible global symbol); `needed` are the
    libraries that the loader searches for what is missing here.

    >>> Path("libmodel.so").write_bytes(link([jit.compile_text(text)], exports=["forward"]))
    """
    return _Link([elf.read(data) for data in objects], exports, soname, needed).library()


class _Strings:
    """A table of zero-terminated strings."""

    def __init__(self) -> None:
        self.data = bytearray(b"\0")
        self._at = {"": 0}

    def add(self, text: str) -> int:
        if text not in self._at:
            self._at[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return self._at[text]


class _Link:
    """One run: resolve names, place sections, apply relocations, write tables."""

    def __init__(
        self,
        objects: list[elf.Object],
        exports: Sequence[str] | None,
        soname: str,
        needed: Sequence[str],
    ) -> None:
        self.inside = [section for item in objects for section in item.sections]
        self.relocations = [r for item in objects for r in item.relocations]
        self.definitions = _definitions(objects)
        self.externals: dict[str, Symbol] = {}
        self.slots: dict[Symbol, int] = {}  # of the global offset table, in order
        self.stubs: dict[Symbol, int] = {}
        for relocation in self.relocations:
            self._find(relocation)
        self.exported = self._exported(exports)
        self.strings = _Strings()
        self.dynamic_symbols = [*self.externals.values(), *self.exported]
        self.for_loader: list[tuple[int, int, int]] = []
        self.soname, self.needed = soname, needed
        self._make_tables()
        self._place()

    def _find(self, relocation: Relocation) -> None:
        """Resolves the symbol, and reserves a slot or a stub if it needs one."""
        kind, symbol = relocation.kind, relocation.symbol
        if symbol.section is None:
            if not symbol.name:
                raise LinkError("a relocation refers to a section that is not loaded")
            symbol = self.definitions.get(symbol.name) or self.externals.setdefault(
                symbol.name, Symbol(symbol.name, None, binding=symbol.binding)
            )
            relocation.symbol = symbol
        outside = symbol.section is None
        if kind in GOT_KINDS or (kind in RELATIVE_KINDS and outside):
            self.slots.setdefault(symbol, len(self.slots))
        if kind in RELATIVE_KINDS and outside:
            self.stubs.setdefault(symbol, len(self.stubs))
        elif kind == R_64 and not relocation.section.flags & elf.WRITE:
            raise LinkError(
                f"{relocation.section.name} holds the address of {symbol.name!r}, but is read only"
            )
        elif kind not in (*GOT_KINDS, *RELATIVE_KINDS, R_64):
            raise LinkError(
                f"relocation of kind {kind} for {symbol.name!r}: "
                "compile with the small code model and pic"
            )

    def _exported(self, exports: Sequence[str] | None) -> list[Symbol]:
        visible = {
            name: symbol
            for name, symbol in self.definitions.items()
            if symbol.visibility == elf.DEFAULT_VISIBILITY
        }
        missing = sorted(set(exports or ()) - set(visible))
        if missing:
            raise LinkError(f"no object defines {', '.join(missing)}")
        return [symbol for name, symbol in visible.items() if exports is None or name in exports]

    def _make_tables(self) -> None:
        """The sections that the linker itself adds, at their final sizes."""
        for symbol in self.dynamic_symbols:
            self.strings.add(symbol.name)
        for name in (*self.needed, self.soname):
            self.strings.add(name)
        symbols = 1 + len(self.dynamic_symbols)
        absolute = sum(r.kind == R_64 for r in self.relocations)

        def table(name: str, size: int, alignment: int, flags: int) -> Section:
            return Section(name, bytearray(size), size, alignment, flags | elf.ALLOC)

        self.hash = table(".hash", 4 * (2 + _buckets(symbols) + symbols), 8, 0)
        self.dynsym = table(".dynsym", 24 * symbols, 8, 0)
        self.dynstr = table(".dynstr", len(self.strings.data), 1, 0)
        self.rela = table(".rela.dyn", 24 * (len(self.slots) + absolute), 8, 0)
        self.plt = table(".plt", 16 * len(self.stubs), 16, elf.EXECUTE)
        self.dynamic = table(
            ".dynamic", 16 * (len(self.needed) + 10 + bool(self.soname)), 8, elf.WRITE
        )
        self.got = table(".got", 8 * len(self.slots), 8, elf.WRITE)

    def _place(self) -> None:
        """Gives every section its address: by segment, zeros last."""
        fixed = [self.hash, self.dynsym, self.dynstr, self.rela, self.plt, self.dynamic, self.got]
        self.sections = sorted(
            [*fixed, *self.inside],
            key=lambda s: (bool(s.flags & elf.WRITE), bool(s.flags & elf.EXECUTE), s.data is None),
        )
        position, segment = HEADERS, 0
        self.segments: dict[int, list[Section]] = {}
        for section in self.sections:
            kind = section.flags & (elf.WRITE | elf.EXECUTE)
            if kind != segment:
                position, segment = up(position, PAGE), kind
            position = section.address = up(position, section.alignment)
            position += section.size
            self.segments.setdefault(kind, []).append(section)
        filled = [s for s in self.sections if s.data is not None]
        self.end = max(s.address + s.size for s in filled)

    def library(self) -> bytes:
        self._fill_slots_and_stubs()
        for relocation in self.relocations:
            self._apply(relocation)
        self._fill_tables()
        file = bytearray(self.end)
        for section in self.sections:
            if section.data is not None:
                file[section.address : section.address + section.size] = section.data
        headers, tables = self._section_headers()
        start = up(len(file) + len(tables), 8)
        file += tables.ljust(start - len(file), b"\0")
        self._write_headers(file, start, len(headers))
        return bytes(file + b"".join(headers))

    def _fill_slots_and_stubs(self) -> None:
        assert self.got.data is not None and self.plt.data is not None
        for symbol, i in self.slots.items():
            at = self.got.address + 8 * i
            if symbol.section is None:
                self.for_loader.append((at, self._index(symbol) << 32 | R_GLOB_DAT, 0))
            else:
                self.for_loader.append((at, R_RELATIVE, symbol.address))
        for symbol, i in self.stubs.items():
            # jmp *slot(%rip), six bytes long
            to = self.got.address + 8 * self.slots[symbol] - (self.plt.address + 16 * i + 6)
            struct.pack_into("<HI", self.plt.data, 16 * i, 0x25FF, to & 0xFFFFFFFF)

    def _apply(self, relocation: Relocation) -> None:
        section, symbol = relocation.section, relocation.symbol
        place = section.address + relocation.offset
        if section.data is None:
            raise LinkError(f"a relocation in {section.name}, which has no bytes")
        if relocation.kind == R_64:
            entry = (
                (R_RELATIVE, symbol.address + relocation.addend)
                if symbol.section
                else (self._index(symbol) << 32 | R_64, relocation.addend)
            )
            self.for_loader.append((place, *entry))
            return
        if relocation.kind in GOT_KINDS:
            target = self.got.address + 8 * self.slots[symbol]
        elif symbol.section is None:
            target = self.plt.address + 16 * self.stubs[symbol]
        else:
            target = symbol.address
        form = "<q" if relocation.kind == R_PC64 else "<i"
        struct.pack_into(form, section.data, relocation.offset, target + relocation.addend - place)

    def _fill_tables(self) -> None:
        self.dynstr.data = self.strings.data
        symbols = [bytes(24), *(self._dynamic_symbol(s) for s in self.dynamic_symbols)]
        self.dynsym.data = bytearray(b"".join(symbols))
        self.rela.data = bytearray(
            b"".join(elf.RELOCATION.pack(*entry) for entry in self.for_loader)
        )
        self.hash.data = bytearray(_hash_table([s.name for s in self.dynamic_symbols]))
        entries = [(DT_NEEDED, self.strings.add(name)) for name in self.needed]
        if self.soname:
            entries.append((DT_SONAME, self.strings.add(self.soname)))
        entries += [
            (DT_HASH, self.hash.address),
            (DT_STRTAB, self.dynstr.address),
            (DT_SYMTAB, self.dynsym.address),
            (DT_STRSZ, self.dynstr.size),
            (DT_SYMENT, 24),
            (DT_RELA, self.rela.address),
            (DT_RELASZ, self.rela.size),
            (DT_RELAENT, 24),
            (DT_FLAGS, DF_BIND_NOW),
            (DT_NULL, 0),
        ]
        self.dynamic.data = bytearray(b"".join(struct.pack("<QQ", *entry) for entry in entries))

    def _index(self, symbol: Symbol) -> int:
        return 1 + list(self.externals.values()).index(symbol)

    def _dynamic_symbol(self, symbol: Symbol) -> bytes:
        if symbol.section is None:
            place = (elf.UNDEFINED, 0, 0)
        else:
            place = (1 + self.sections.index(symbol.section), symbol.address, symbol.size)
        return elf.SYMBOL.pack(
            self.strings.add(symbol.name),
            symbol.binding << 4 | symbol.kind,
            symbol.visibility,
            *place,
        )

    def _section_headers(self) -> tuple[list[bytes], bytes]:
        """For tools and other linkers, which do not look at segments; and their names."""
        names = _Strings()
        number = {section: i + 1 for i, section in enumerate(self.sections)}
        kinds = {
            self.hash: (5, self.dynsym, 4),
            self.dynsym: (11, self.dynstr, 24),
            self.rela: (4, self.dynsym, 24),
            self.dynstr: (3, None, 0),
            self.dynamic: (6, self.dynstr, 16),
        }
        headers = [bytes(64)]
        for section in self.sections:
            default = elf.NOBITS if section.data is None else elf.PROGBITS
            kind, linked, entry = kinds.get(section, (default, None, 0))
            headers.append(
                elf.SECTION_HEADER.pack(
                    names.add(section.name),
                    kind,
                    section.flags & 7,
                    section.address,
                    min(section.address, self.end),
                    section.size,
                    number[linked] if linked else 0,
                    int(section is self.dynsym),
                    section.alignment,
                    entry,
                )
            )
        at = names.add(".shstrtab")
        headers.append(elf.SECTION_HEADER.pack(at, 3, 0, 0, self.end, len(names.data), 0, 0, 1, 0))
        return headers, bytes(names.data)

    def _write_headers(self, file: bytearray, section_headers: int, count: int) -> None:
        file[:16] = b"\x7fELF\2\1\1".ljust(16, b"\0")
        struct.pack_into(
            "<HHIQQQIHHHHHH",
            file,
            16,
            3,
            62,
            1,
            0,
            64,
            section_headers,
            0,
            64,
            56,
            5,
            64,
            count,
            count - 1,
        )
        # Readable is 4, writable 2, executable 1: not the bits of section flags.
        programs = [self._segment(0, 4), self._segment(elf.EXECUTE, 5), self._segment(elf.WRITE, 6)]
        dynamic = self.dynamic
        programs.append(
            (2, 6, dynamic.address, dynamic.address, dynamic.address, dynamic.size, dynamic.size, 8)
        )
        programs.append((0x6474E551, 6, 0, 0, 0, 0, 0, 16))  # the stack is not executable
        for i, program in enumerate(programs):
            struct.pack_into("<IIQQQQQQ", file, 64 + 56 * i, *program)

    def _segment(self, kind: int, rights: int) -> tuple[int, ...]:
        sections = [s for s in self.segments.get(kind, []) if s.size]
        if kind == 0:
            start = 0  # the headers are loaded too
        elif sections:
            start = sections[0].address
        else:
            return (0, rights, 0, 0, 0, 0, 0, PAGE)  # nothing to load
        end = max(s.address + s.size for s in sections)
        filled = max([start, *(s.address + s.size for s in sections if s.data is not None)])
        return (1, rights, start, start, start, filled - start, end - start, PAGE)


def _definitions(objects: list[elf.Object]) -> dict[str, Symbol]:
    found: dict[str, Symbol] = {}
    for item in objects:
        for symbol in item.symbols:
            if symbol.binding == elf.LOCAL or symbol.section is None:
                continue
            other = found.get(symbol.name)
            if other and elf.WEAK not in (other.binding, symbol.binding):
                raise LinkError(f"two objects define {symbol.name}")
            if other is None or other.binding == elf.WEAK:
                found[symbol.name] = symbol
    return found


def _hash_table(names: list[str]) -> bytes:
    """The table by which the loader finds a name: buckets of chains of symbol indices."""
    count = 1 + len(names)
    buckets, chain = [0] * _buckets(count), [0] * count
    for index, name in enumerate(names, 1):
        bucket = _elf_hash(name) % len(buckets)
        chain[index], buckets[bucket] = buckets[bucket], index
    return struct.pack(f"<{2 + len(buckets) + count}I", len(buckets), count, *buckets, *chain)


def _buckets(symbols: int) -> int:
    return max(1, symbols // 2)


def _elf_hash(name: str) -> int:
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value


def up(value: int, alignment: int) -> int:
    """The next multiple of `alignment`."""
    return -(-value // alignment) * alignment
