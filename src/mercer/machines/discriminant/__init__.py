"""Discriminants: problem, solvers, certificate, estimator."""

from mercer.machines.discriminant import certificate  # noqa: F401  for what it registers
