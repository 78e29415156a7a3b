"""Kernel ridge regression: problem, solvers, certificate, estimator."""

from mercer.machines.ridge import certificate, choice  # noqa: F401  for what it registers
