"""Gaussian processes: problem, solvers, certificate, estimators."""

from mercer.machines.gaussian_process import certificate, laplace, marginal_likelihood  # noqa: F401  for what it registers
