"""Public conformance kits: a new kernel, Gram, solver or backend costs a two-line test."""

from mercer.testing.backend import check_backend
from mercer.testing.kits import check_gram, check_kernel, check_solver

__all__ = ["check_backend", "check_gram", "check_kernel", "check_solver"]
