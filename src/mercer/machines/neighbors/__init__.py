"""Nearest rows and nearest means: problem, solver, certificate, estimators."""

from mercer.machines.neighbors import certificate, problem  # noqa: F401  for what it registers
