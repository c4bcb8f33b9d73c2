"""Names of `torch` that are imported when first used, so that `import wengert` stays light."""

from __future__ import annotations

import importlib
from typing import Any

# Submodules: `torch.nn` is the module `wengert.nn`.
MODULES = (
    "_C", "_dynamo", "_inductor", "_tensor", "_tensor_str", "_utils", "accelerator", "amp",
    "backends", "compiler", "cpu",
    "cuda", "distributed", "distributions", "func", "functional", "futures", "hub", "jit",
    "library", "masked", "mps", "multiprocessing", "nn", "onnx", "ops", "optim", "overrides",
    "profiler",
    "quasirandom", "random", "return_types", "serialization", "sparse", "storage", "testing",
    "torch_version", "types", "utils", "version", "xpu",
)  # fmt: skip

# Names found in a module of the package.
NAMES = {
    "as_torch": "torch_alias",
    **dict.fromkeys(("compile", "is_compiling"), "compiling"),
    "draw": "drawing",
    "load_exported": "exported",
    "profile": "profiling",
    "vmap": "func",
    "load": "serialization",
    "save": "serialization",
    "typename": "nn.modules._names",
    **dict.fromkeys(("cond", "while_loop"), "control_flow"),
    **dict.fromkeys(
        ("_assert", "get_deterministic_debug_mode",
         "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled",
         "set_deterministic_debug_mode", "set_flush_denormal", "set_warn_always", "sym_float",
         "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sum"), "switches"),
    **dict.fromkeys(
        ("BFloat16Storage", "BoolStorage", "ByteStorage", "CharStorage", "DoubleStorage",
         "FloatStorage", "HalfStorage", "IntStorage", "LongStorage", "ShortStorage"), "storage"),
    "Future": "futures",
    **dict.fromkeys(("AcceleratorError", "OutOfMemoryError"), "cuda"),
    **dict.fromkeys(("autocast", "clear_autocast_cache", "get_autocast_cpu_dtype",
                     "get_autocast_dtype", "get_autocast_gpu_dtype", "GradScaler",
                     "is_autocast_cpu_enabled", "is_autocast_enabled"), "amp"),
    **dict.fromkeys(("eig", "lstsq", "matrix_rank", "solve", "symeig"), "removed"),
    **dict.fromkeys(
        ("sparse_bsc", "sparse_bsc_tensor", "sparse_bsr", "sparse_bsr_tensor",
         "sparse_compressed_tensor", "sparse_coo", "sparse_coo_tensor", "sparse_csc",
         "sparse_csc_tensor", "sparse_csr", "sparse_csr_tensor", "spmm"), "sparse"),
    **dict.fromkeys(("lobpcg", "pca_lowrank", "svd_lowrank"), "lowrank"),
    **dict.fromkeys(
        ("BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor",
         "HalfTensor", "IntTensor", "LongTensor", "ShortTensor"), "legacy"),
    **dict.fromkeys(
        ("are_deterministic_algorithms_enabled", "can_cast", "e", "finfo", "get_default_device",
         "get_float32_matmul_precision", "get_num_interop_threads", "get_num_threads", "iinfo",
         "inf", "is_complex", "is_floating_point", "is_storage", "is_tensor", "nan", "newaxis",
         "pi", "promote_types", "result_type", "set_default_device", "set_default_tensor_type",
         "set_float32_matmul_precision", "set_num_interop_threads", "set_num_threads",
         "use_deterministic_algorithms"), "facts"),
}  # fmt: skip


def attribute_of(package: str) -> Any:
    """The `__getattr__` of the package: imports what a name needs, once."""

    def find(name: str) -> Any:
        if name in MODULES:
            return importlib.import_module(f"{package}.{name}")
        if name in NAMES:
            module = importlib.import_module(f"{package}.{NAMES[name]}")
            return getattr(module, name)
        if name.startswith("_foreach_"):
            return getattr(importlib.import_module(f"{package}.foreach"), name)
        raise AttributeError(f"module '{package}' has no attribute '{name}'")

    return find
