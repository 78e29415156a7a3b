"""Mixtures: problems, solver, certificate, estimators."""

from mercer.machines.mixture import certificate  # noqa: F401  for what it registers
