"""Wengert: autograd with torch's names and semantics, and a compiler that shows its work.

import wengert as torch
"""

import os as _os

from . import tracer
from .ir import types as _types
from .ir.overriding import asking as _asking
from .ir.types import DType as dtype
from .ir.types import (
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .ir.value import namespace as _namespace
from .naming import found_in as _found_in
from .tracer import tape as _tape
from .tracer.creation import (
    as_tensor,
    asarray,
    empty,
    empty_like,
    from_dlpack,
    from_numpy,
    full,
    full_like,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from .tracer.generator import Generator
from .tracer.hooks import RemovableHandle as _RemovableHandle
from .tracer.memory import TypedStorage, UntypedStorage
from .tracer.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .tracer.printing import set_printoptions
from .tracer.random import (
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    seed,
    set_rng_state,
)
from .tracer.ranges import (
    arange,
    empty_permuted,
    eye,
    frombuffer,
    linspace,
    logspace,
    range,
    scalar_tensor,
    tril_indices,
    triu_indices,
)
from .tracer.strided import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    empty_strided,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from .tracer.tensor import Size, Tensor, device
from .tracer.windows import (
    bartlett_window,
    blackman_window,
    hamming_window,
    hann_window,
    kaiser_window,
)

_found_in(__name__, Size, device, dtype, layout, memory_format, Generator)
_found_in(f"{__name__}.utils.hooks", _RemovableHandle)
_tape.add_package_folder(_os.path.dirname(_os.path.realpath(__file__)))
__version__ = "0.1.0"

float, double, half = float32, float64, float16
long, int, short = int64, int32, int16
bool = _types.bool_
cfloat, cdouble = complex64, complex128
get_default_dtype = _types.default_dtype
set_default_dtype = _types.set_default_dtype

globals().update(_namespace("torch"))
# called without tensors, they ask the modes; see Note [Function modes]
globals().update({_maker.__name__: _asking(_maker) for _maker in (
    arange, as_tensor, asarray, bartlett_window, blackman_window, empty, empty_permuted,
    empty_strided, eye, frombuffer, from_numpy, full, hamming_window, hann_window, kaiser_window,
    linspace, logspace, ones, rand, randint, randn, randperm, range, scalar_tensor, tensor,
    tril_indices, triu_indices, zeros)})  # fmt: skip
# methods that torch also has as functions
as_strided_, detach_, fill_ = Tensor.as_strided_, Tensor.detach_, Tensor.fill_
resize_as_, zero_ = Tensor.resize_as_, Tensor.zero_

from . import autograd, fft, linalg, signal, special  # noqa: E402
from .autograd import is_anomaly_check_nan_enabled, is_anomaly_enabled  # noqa: E402


def backend_available():
    """Can graphs be compiled to native code here?"""
    from .runtime import jit

    return not jit.trouble()


from . import late as _late  # noqa: E402
from . import tensor_facts as _tensor_facts  # noqa: E402
from .lazy import attribute_of as _attribute_of  # noqa: E402

__getattr__ = _attribute_of(__name__)
