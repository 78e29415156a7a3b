"""Mixtures: problems, solver, certificate, estimators."""

from mercer.machines.mixture import certificate, em_loop  # noqa: F401  for what it registers
