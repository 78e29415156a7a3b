"""Discriminants: problem, solvers, certificate, estimator."""

from mercer.machines.discriminant import certificate, solvers  # noqa: F401  for what it registers
