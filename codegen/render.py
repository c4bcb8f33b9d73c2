"""The jinja2 environment: templates to text, compiled when first used.

What it costs: importing jinja2 30 ms, compiling a skeleton of 100 lines 5 to 10 ms, rendering it
0.2 ms. So jinja2 is imported at the first render, each template is compiled once per process, and
what is unrolled or arithmetic comes ready from Python as lines: the math functions need no
template at all. Compiled templates are not kept on disk, where they would be code that anybody
who can write there could change. A process that finds its kernels in the object cache renders
nothing: `fingerprint()` stands for all text this package would emit, so that a cache can be asked
with a kernel's description instead of its text.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

ROOM = Path(__file__).resolve().parent
TEMPLATES = ROOM / "templates"


@cache
def environment() -> Any:
    """The environment all templates share: an undefined name is an error, never empty text."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
        cache_size=-1,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


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
