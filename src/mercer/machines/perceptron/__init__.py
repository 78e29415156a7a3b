"""The perceptron: problem, solvers, certificate, estimator."""

from mercer.machines.perceptron import certificate  # noqa: F401  for what it registers
