"""Function `solve`: choose the solver of a problem, run it, and report; stored solutions.

Each family registers with `choose` which solver solves its problems.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning

from mercer.deadline import check, within
from mercer.solvers.base import Callback, Solution, Solver, Status, Watch


@singledispatch
def choose(problem: Any) -> Solver:
    """Return the solver that solves the problem best."""
    raise TypeError(f"no solver for {type(problem).__name__}")


@singledispatch
def is_finite(value: Any) -> bool:
    """Return whether a solution holds finite numbers only; scores may be infinite."""
    parts = (getattr(value, field.name) for field in fields(value) if field.name != "scores")
    return all(
        is_finite(part)
        if is_finite.dispatch(type(part)) is not is_finite.dispatch(object)
        else part is None or bool(np.isfinite(part).all())
        for part in parts
    )


# --- solve ---------------------------------------------------------------------------------------
#
# solve(): choose an algorithm, run it, report. The one door to all of them.


class SolverError(RuntimeError):
    """A solver refused the problem or found no answer; the message has the remedy."""


def solve(
    problem: Any,
    solver: Solver | None = None,
    *,
    start: Any = None,
    callback: Callback | None = None,
    time_limit: float | None = None,
    warn: bool = True,
) -> Solution:
    """Answer a problem.

    Parameters
    ----------
    problem : LinearSystem, RidgePath, Eigenproblem, BoxQP, Many, MarginPath, ...
        What is asked.
    solver : Solver, optional
        How; chosen by what the problem is when not given.
    start : object, optional
        An earlier answer to a similar problem, to start from.
    callback : callable, optional
        Called with `Progress` while the solver runs; a true return value stops it.
    time_limit : float, optional
        Seconds after which to stop with the best answer so far.
    warn : bool
        Whether to warn about an ending other than `Status.SOLVED`; without, read the status.

    Returns
    -------
    Solution
        The answer and how it ended. `TimeLimitError` is raised if the time was over before
        there was any answer.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import Need, make_gram
    >>> from mercer.kernels import Gaussian
    >>> from mercer.problems import Eigenproblem
    >>> gram = make_gram(Gaussian(1.0), np.arange(5.0)[:, None], Need.PRODUCTS)
    >>> solve(Eigenproblem(gram, count=2)).status.name
    'SOLVED'
    """
    known = known_answer(problem)
    if known is not None:
        return known
    solver = choose(problem) if solver is None else solver
    refusal = solver.refuses(problem)
    if refusal is not None:
        raise SolverError(refusal)
    watch = Watch(callback, time_limit, goal=float(getattr(solver, "tol", None) or 0.0))
    check()  # passes over many rows may have gone before
    with within(time_limit, type(solver).__name__):
        solution = solver.run(problem, watch, start)
    status = solution.status
    if status in (Status.NOT_DEFINITE, Status.NO_MINIMUM, Status.NOT_FINITE):
        raise SolverError(f"{solution.solver}: {status.value}")
    if not is_finite(solution.value):
        raise SolverError(f"{solution.solver}: {Status.NOT_FINITE.value}")
    if warn and not (status.ok or status is Status.EARLY_STOPPED):  # which was asked for
        category = LinAlgWarning if solution.status is Status.SINGULAR else ConvergenceWarning
        seen = f"{solution.iterations} iterations" + (solution.detail and f"; {solution.detail}")
        message = f"{solution.solver}: {solution.status.value}{_advice(status, solver)} ({seen})."
        warnings.warn(message, category, stacklevel=3)
    return solution


def _advice(status: Status, solver: Solver) -> str:
    """Return which of the solver's own options would let it go on: only those that it has."""
    if status is not Status.ITERATION_LIMIT:
        return ""
    has = {field.name for field in fields(solver)}  # type: ignore[arg-type]
    ways = [f"raise {name}" for name in ("max_iter", "max_epochs") if name in has]
    ways += ["ask for a larger tol"] if "tol" in has else []
    return "".join(f", or {way}" for way in ways)


# --- known answers -------------------------------------------------------------------------------
#
# Answers that are known beforehand: how a stored answer is judged by the problem it was given to.
#
# A fit writes a problem, has it solved, and makes everything else from the answer. Inside
# `known_answers` a problem whose answer is known is not solved: `solve` gives the answer back. So
# the path of a fit, run again on the data, ends in the certificate of the stored answer.

Find = Callable[[Any], Solution | None]

_FIND: ContextVar[Find | None] = ContextVar("find", default=None)


@contextmanager
def known_answers(find: Find) -> Iterator[None]:
    """Let `solve` ask first whether an answer is known.

    Parameters
    ----------
    find : callable
        Returns the solution of a problem, or None where it must be solved.
    """
    token = _FIND.set(find)
    try:
        yield
    finally:
        _FIND.reset(token)


def known_answer(problem: Any) -> Solution | None:
    """Return the solution of a problem, if it is known."""
    find = _FIND.get()
    return None if find is None else find(problem)
