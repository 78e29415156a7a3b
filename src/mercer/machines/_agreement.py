"""A fit says SOLVED only if its certificate agrees, wherever that is known."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from mercer.certificates import Certificate, StreamQuantities
from mercer.solvers import Solution, Status

_SOLUTIONS = ("solution_", "_solution")  # where machines keep how the solver ended
_CERTIFICATES = ("_judgement", "certificate_")


def agree(machine: Any, stacklevel: int) -> None:
    """Take SOLVED back, with a warning, where the certificate that is kept does not confirm it.

    A certificate that waits to be read is left alone. A stream claims nothing that could be proven.

    Parameters
    ----------
    machine : object
        A fitted machine.
    stacklevel : int
        Of the caller whom the warning is for, as `warnings.warn` counts from here.
    """
    held = machine.__dict__
    certificate = next((held[name] for name in _CERTIFICATES if name in held), None)
    name = next((name for name in _SOLUTIONS if name in held), None)
    if name is None or not isinstance(certificate, Certificate) or certificate.ok:
        return
    if isinstance(certificate.quantities, StreamQuantities):
        return
    solution: Solution = held[name]
    if solution.status is not Status.SOLVED:  # another ending has said its own already
        return
    seen = f"not certified: {certificate.statement}"
    detail = f"{solution.detail}; {seen}" if solution.detail else seen
    held[name] = replace(solution, status=Status.INACCURATE, detail=detail)
    message = f"{type(machine).__name__}: {Status.INACCURATE.value} ({seen})."
    warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel)
