"""The eager tensor, its autograd engine and the recorder."""

import importlib
import os

from ..ir import ops
from . import (
    absent,
    backward,
    callables,
    convert,
    copying,
    creation,
    eager,
    engine,
    inplace,
    layout,
    memory,
    modes,
    outputs,
    random,
    random_methods,
    ranges,
    reshaping,
    sparse_gradients,
    strided,
    subclasses,
    tape,
    tensor,
    writing,
)

# The last imports: they put the short ways in front of what the others defined.
fast = importlib.import_module(".fast", __name__)
familiar_calls = importlib.import_module(".familiar_calls", __name__)

# Frames of our rooms are not the user's: `user_place` walks past them.
tape.add_package_folder(os.path.dirname(os.path.realpath(__file__)))
tape.add_package_folder(os.path.dirname(os.path.dirname(os.path.realpath(ops.__file__))))
