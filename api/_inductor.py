"""`torch._inductor`: settings of torch's code generator, which `config` keeps and nothing reads."""

from types import SimpleNamespace

__all__ = ["config"]

config = SimpleNamespace(
    coordinate_descent_tuning=False, epilogue_fusion=True, force_fuse_int_mm_with_mul=False,
    freezing=False, fx_graph_cache=True, max_autotune=False, max_autotune_gemm_backends="",
    cpp=SimpleNamespace(), triton=SimpleNamespace(cudagraphs=False, unique_kernel_names=True),
)  # fmt: skip
