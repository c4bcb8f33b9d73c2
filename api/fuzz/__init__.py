"""Differential fuzzing: random programs that every way of running them must agree on.

`python -m wengert fuzz` draws programs over the catalogue, runs each eagerly, by the reference
interpreter and compiled, and holds all three against a float64 run with a measured error bound.
What fails is made small and printed as a script of its own.

- `program.py`: programs as data, and as Python text
- `grammar.py`: the statements that are drawn, most of them from the catalogue
- `draw.py`: programs grown by running them
- `routes.py`: the ways to run one
- `compare.py`: what must agree, and how closely
- `minimise.py`: smaller programs that fail alike
"""

from .campaign import Finding, examine, search
from .draw import draw_program

__all__ = ["Finding", "draw_program", "examine", "search"]
