"""Maximum entropy: problem, solvers, certificate, estimator."""

from mercer.machines.entropy import certificate, solvers  # noqa: F401  to register them
