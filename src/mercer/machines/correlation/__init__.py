"""Canonical correlation: problem, solvers, certificate, estimator."""

from mercer.machines.correlation import certificate, solvers  # noqa: F401  for what it registers
