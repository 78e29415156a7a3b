"""Bayes rules from counts and moments: problem, solvers, certificate, estimators."""

from mercer.machines.bayes import certificate, solvers  # noqa: F401  to register them
