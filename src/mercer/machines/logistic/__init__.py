"""Logistic regression: problem, solvers, certificate, estimator."""

from mercer.machines.logistic import certificate, newton  # noqa: F401  for what it registers
