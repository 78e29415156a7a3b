"""Gaussian processes: problem, solvers, certificate, estimators."""

from mercer.machines.gaussian_process import certificate  # noqa: F401  for what it registers
