"""LLVM JIT, memory, threads and the disk cache."""
