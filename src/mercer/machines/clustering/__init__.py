"""Clusters: problems, solvers, certificates, estimators."""

from mercer.machines.clustering import balanced, certificate, lloyd, minimum_cut, sinkhorn  # noqa: F401  for what it registers
