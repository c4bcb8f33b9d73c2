"""Fusion, scheduling and LLVM text."""
