"""Logistic regression: problem, solvers, certificate, estimator."""

from mercer.machines.logistic import certificate, newton_lbfgs  # noqa: F401  for what it registers
