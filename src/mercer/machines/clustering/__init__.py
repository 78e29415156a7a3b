"""Clusters: problems, solvers, certificates, estimators."""

from mercer.machines.clustering import certificate  # noqa: F401  for what it registers
