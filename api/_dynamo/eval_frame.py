"""`torch._dynamo.eval_frame`: the class that programs ask compiled modules for."""

from ..compiled_module import OptimizedModule

__all__ = ["OptimizedModule"]
