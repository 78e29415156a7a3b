"""Eigenpairs: the problem, dense and iterative solvers, and the certificate."""

from mercer.solvers.eigen import certificate, choice  # noqa: F401  for what it registers
