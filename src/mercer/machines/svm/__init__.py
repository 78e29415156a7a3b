"""Support vector machines: problem, solvers, certificate, estimators."""

from mercer.machines.svm import certificate  # noqa: F401  for what it registers
