"""Kernels as text: names, parsing, defaults, printing."""
