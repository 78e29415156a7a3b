"""The perceptron: problem, solvers, certificate, estimator."""

from mercer.machines.perceptron import certificate, solvers  # noqa: F401  to register them
