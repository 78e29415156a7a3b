"""Kernel ridge regression: problem, solvers, certificate, estimator."""

from mercer.machines.ridge import certificate  # noqa: F401  for what it registers
