"""Canonical correlation: problem, solvers, certificate, estimator."""

from mercer.machines.correlation import certificate  # noqa: F401  for what it registers
