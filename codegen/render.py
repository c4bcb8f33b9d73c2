"""The jinja2 environment: templates to text, compiled when first used.

What it costs: importing jinja2 30 ms, compiling a skeleton of 100 lines 3 to 20 ms, rendering it
0.5 ms. So jinja2 is imported at the first render, each template is compiled once per process, and
what is unrolled or arithmetic comes ready from Python as lines: the math functions need no
template at all.

A wheel has its templates compiled (`precompile`). Elsewhere a compiled template is kept where
Python keeps a compiled module of the same name, and believed as that is; where Python writes none
there, in the store that `keep_in` was given, which vouches for what it returns (the object cache's
directory is checked to be the user's own, its entries for damage). A process that finds its kernels
in the object cache need not render at all: `fingerprint()` stands for all text this package would
emit, so that a cache can be asked with a kernel's description instead of its text (`identity`).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import marshal
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Protocol

ROOM = Path(__file__).resolve().parent
TEMPLATES = ROOM / "templates"
COMPILED, VERSION = ROOM / "compiled", "jinja2-version"


class Store(Protocol):
    """Where compiled templates may be kept; keys have 32 bytes."""

    def get(self, key: bytes) -> bytes | None: ...
    def put(self, key: bytes, code: bytes) -> None: ...


_store: Store | None = None


def keep_in(store: Store | None) -> None:
    """Keeps compiled templates in a trusted store (None: in none) where Python keeps no code."""
    global _store
    _store = store
    environment.cache_clear()


def _bytecode_cache(store: Store | None) -> Any:
    import jinja2

    def stamp(bucket: Any) -> bytes:
        parts = (jinja2.__version__, sys.version, bucket.key, bucket.checksum)
        return hashlib.sha256("\0".join(parts).encode()).digest()

    # jinja2's own format holds a pickle, so the code is written here
    class Kept(jinja2.BytecodeCache):
        def load_bytecode(self, bucket: Any) -> None:
            stored = store and store.get
            code = _read_beside(bucket.key, stamp(bucket)) or (stored and stored(stamp(bucket)))
            if code:
                with contextlib.suppress(EOFError, ValueError, TypeError):
                    bucket.code = marshal.loads(code)

        def dump_bytecode(self, bucket: Any) -> None:
            code = marshal.dumps(bucket.code)
            if not _write_beside(bucket.key, stamp(bucket), code) and store is not None:
                store.put(stamp(bucket), code)

    return Kept()


def _beside(name: str) -> Path:
    return Path(importlib.util.cache_from_source(str(TEMPLATES / f"{name}.py")))


def _read_beside(name: str, stamp: bytes) -> bytes | None:
    try:
        data = _beside(name).read_bytes()
    except (OSError, NotImplementedError):
        return None
    return data[len(stamp) :] if data.startswith(stamp) else None


def _write_beside(name: str, stamp: bytes, code: bytes) -> bool:
    if sys.dont_write_bytecode:
        return False
    try:
        path = _beside(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            whole = Path(folder, path.name)
            whole.write_bytes(stamp + code)
            whole.replace(path)
    except (OSError, NotImplementedError):
        return False
    return True


@cache
def environment() -> Any:
    """The environment all templates share."""
    import jinja2

    loaders: list[Any] = [jinja2.FileSystemLoader(TEMPLATES)]
    with contextlib.suppress(OSError):
        if (COMPILED / VERSION).read_text() == jinja2.__version__:
            loaders.insert(0, jinja2.ModuleLoader(COMPILED))
    return _environment(jinja2.ChoiceLoader(loaders), _bytecode_cache(_store))


def _environment(loader: Any, kept: Any = None) -> Any:
    """An undefined name is an error, never empty text."""
    import jinja2

    return jinja2.Environment(
        bytecode_cache=kept,
        loader=loader,
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
        cache_size=-1,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def precompile(folder: Path) -> None:
    """Writes all templates as Python modules; for builds of the package."""
    import jinja2

    sources = _environment(jinja2.FileSystemLoader(TEMPLATES))
    # a checkout that was used has bytecode of its templates beside them
    sources.compile_templates(folder, extensions=["j2"], zip=None, ignore_errors=False)
    (folder / VERSION).write_text(jinja2.__version__)


def render(template: str, **context: Any) -> str:
    """The text of templates/<template> with these fields."""
    return environment().get_template(template).render(**context)


@cache
def fingerprint() -> str:
    """A hash of everything in this package that shapes its output."""
    digest = hashlib.sha256()
    for path in sorted([*ROOM.glob("*.py"), *TEMPLATES.glob("*.j2")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def identity(*description: Any) -> str:
    """What stands for the text made from a description, whose printed form must say all of it."""
    return hashlib.sha256(repr((fingerprint(), description)).encode()).hexdigest()
