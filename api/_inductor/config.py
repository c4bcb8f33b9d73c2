"""`torch._inductor.config`: the options of torch's code generator that programs set.

They are kept and change nothing: what they tune is decided by the compiler here, and results do
not depend on it.
"""

from .. import option_module as _option_module

_OPTIONS = {
    "aggressive_fusion": False, "allow_buffer_reuse": True, "autotune_in_subproc": False,
    "autotune_local_cache": True, "benchmark_fusion": False, "benchmark_kernel": False,
    "comment_origin": False, "compile_threads": 1, "conv_1x1_as_mm": False,
    "coordinate_descent_tuning": False, "cpp.enable_kernel_profile": False, "cpp.simdlen": None,
    "cpp.threads": -1, "cpp_wrapper": False, "dce": False, "debug": False,
    "deterministic": False, "emulate_precision_casts": False, "epilogue_fusion": True,
    "epilogue_fusion_first": False, "fallback_random": False, "force_disable_caches": False,
    "freezing": False, "fx_graph_cache": True, "fx_graph_remote_cache": None,
    "inplace_buffers": True, "keep_output_stride": True, "layout_optimization": True,
    "max_autotune": False, "max_autotune_gemm": False,
    "max_autotune_gemm_backends": "ATEN,TRITON,CPP", "max_autotune_pointwise": False,
    "max_fusion_size": 64,
    "memory_planning": False, "nan_asserts": False, "online_softmax": True,
    "pattern_matcher": True, "permute_fusion": False, "profiler_mark_wrapper_call": False,
    "prologue_fusion": True, "reorder_for_locality": True, "reorder_for_peak_memory": True,
    "shape_padding": True, "size_asserts": True, "split_reductions": True, "trace.enabled": False,
    "trace.graph_diagram": False, "triton.cudagraphs": False, "triton.unique_kernel_names": True,
    "unroll_reductions_threshold": 8, "use_fast_math": False, "use_mixed_mm": True,
    "worker_start_method": "subprocess",
}  # fmt: skip


class _Group:
    """`config.triton`: the options whose names begin so."""

    def __init__(self, prefix):
        object.__setattr__(self, "_prefix", prefix)

    def __getattr__(self, name):
        return getattr(_module(), f"{self._prefix}.{name}")

    def __setattr__(self, name, value):
        setattr(_module(), f"{self._prefix}.{name}", value)


def _module():
    import sys

    return sys.modules[__name__]


cpp, trace, triton = _Group("cpp"), _Group("trace"), _Group("triton")
_option_module.install(__name__, _OPTIONS)
