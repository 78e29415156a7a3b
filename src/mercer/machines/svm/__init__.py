"""Support vector machines: problem, solvers, certificate, estimators."""

from mercer.machines.svm import certificate, choice  # noqa: F401  for what it registers
