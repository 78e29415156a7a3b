"""Conformance kit for solvers: an answer must be certified, repeatable, and end when asked to."""

from __future__ import annotations

from typing import Any

from mercer.certificates import certify
from mercer.solvers import Solver, Status, Watch


def check_solver(solver: Solver, problem: Any, tol: float | None = None) -> None:
    """Run a solver on a problem it should take, and judge it by certificate alone.

    Parameters
    ----------
    solver : Solver
        What is tested.
    problem : LinearSystem, RidgePath, Eigenproblem or BoxQP
        A problem of the solver's kind.
    tol : float, optional
        Tolerance of the certificate; the kind's default when not given.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.problems import Eigenproblem
    >>> from mercer.solvers import Eigh
    >>> check_solver(Eigh(), Eigenproblem(PrecomputedGram(np.diag([3.0, 2.0, 1.0])), count=2))
    """
    refusal = solver.refuses(problem)
    assert refusal is None, refusal
    assert solver.refuses(object()) is not None, "a solver must refuse what it cannot take"
    solution = solver.run(problem, Watch())
    assert solution.status is Status.SOLVED, solution.status.value
    assert solution.seconds >= 0
    assert solution.iterations >= 0
    certificate = certify(problem, solution.value, tol)
    assert certificate.ok, str(certificate)
    again = solver.run(problem, Watch())
    assert repr(certify(problem, again.value, tol)) == repr(certificate), "runs must repeat"
    warm = solver.run(problem, Watch(), start=solution.value)
    assert certify(problem, warm.value, tol).ok, "a warm start must not spoil the answer"
