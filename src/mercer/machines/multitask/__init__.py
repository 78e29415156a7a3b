"""Gaussian processes of several tasks: problem, solvers, certificate, estimator."""

from mercer.machines.multitask import certificate, posterior  # noqa: F401  for what it registers
