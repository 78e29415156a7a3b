"""A fit says SOLVED only if its certificate agrees, wherever that is known."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.certificates import Certificate, StreamQuantities
from mercer.gram.definite import NEGATIVE
from mercer.solvers import Solution, Solver, Status

_SOLUTIONS = ("solution_", "_solution")  # where machines keep how the solver ended
_CERTIFICATES = ("_judgement", "certificate_")
_QUICK = 10_000  # rows: judging so many takes a fraction of a second


def agree(machine: Any, stacklevel: int) -> None:
    """Take SOLVED back, with a warning, where the certificate does not confirm it.

    A certificate that waits to be read is made now if rounding could decide, and left alone if not.
    A stream claims nothing that could be proven; a solver chosen by the user answers for itself.

    Parameters
    ----------
    machine : object
        A fitted machine.
    stacklevel : int
        Of the caller whom the warning is for, as `warnings.warn` counts from here.
    """
    held = machine.__dict__
    name = next((name for name in _SOLUTIONS if name in held), None)
    solution: Solution | None = None if name is None else held[name]
    if name is None or solution is None or solution.status is not Status.SOLVED:
        return  # another ending has said its own already
    certificate = _known(machine)
    if certificate is None or certificate.ok or _asks_less(machine, certificate):
        return
    seen = f"not certified: {certificate.statement}"
    detail = f"{solution.detail}; {seen}" if solution.detail else seen
    status = Status.INACCURATE if _has_lengths(certificate) else Status.NOT_CONVEX
    held[name] = replace(solution, status=status, detail=detail)
    message = f"{type(machine).__name__}: {status.value} ({seen})."
    warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel)


def _asks_less(machine: Any, certificate: Certificate) -> bool:
    """Return whether the user asked for less than certificates do; SOLVED means what was asked for.

    A solver of the user's choice ends by its own tolerance, Lloyd's steps alone (`refine=False`)
    where the move of a single point may still gain, if there are distances at all.
    """
    own = isinstance(getattr(machine, "solver", None), Solver)
    return own or (not getattr(machine, "refine", True) and _has_lengths(certificate))


def _has_lengths(certificate: Certificate) -> bool:
    """Return whether nothing was seen that a positive semidefinite K rules out."""
    found = certificate.quantities
    squares = (getattr(found, name, 0.0) for name in ("smallest_distance", "smallest_square"))
    return bool(np.isfinite(getattr(found, "indefiniteness", 0.0)) and min(squares) >= -NEGATIVE)


def _known(machine: Any) -> Certificate | None:
    """Return the certificate if it is made, or has to be."""
    held = machine.__dict__
    found: Any = next((held[name] for name in _CERTIFICATES if name in held), None)
    # a time limit is kept: what takes longer to judge is judged when it is read
    limited = getattr(machine, "time_limit", None) is not None
    if getattr(found, "doubtful", False) and not (limited and found.rows > _QUICK):
        found = held["_judgement"] = found.compute()
    if not isinstance(found, Certificate) or isinstance(found.quantities, StreamQuantities):
        return None
    return found
