"""The eager tensor, its autograd engine and the recorder."""

from pathlib import Path

from ..ir import ops
from . import (
    absent,
    backward,
    callables,
    convert,
    creation,
    eager,
    engine,
    inplace,
    layout,
    memory,
    modes,
    random,
    random_methods,
    ranges,
    reshaping,
    strided,
    tape,
    tensor,
    writing,
)

# Frames of our rooms are not the user's: `user_place` walks past them.
tape.add_package_folder(str(Path(__file__).resolve().parent))
tape.add_package_folder(str(Path(ops.__file__).resolve().parent.parent))
