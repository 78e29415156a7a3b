"""Learning what to do: problem, solvers, certificate, estimators."""

from mercer.machines.reinforcement import certificate, solvers  # noqa: F401  to register them
