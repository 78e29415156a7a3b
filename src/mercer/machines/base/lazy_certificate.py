"""Certificates made when first read: judging may cost as much as the fit itself.

What is needed for it is the machine's own copy of its training rows, so nothing a caller does to
his arrays in the meantime changes the verdict. Once the certificate is made, the rows are dropped.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from mercer import deadline
from mercer.array_types import Array
from mercer.certificates import Certificate, certify
from mercer.certificates.margin.box_qp import VACUOUS
from mercer.gram import Gram, Source, exact
from mercer.gram.definite import has_negative_curvature, is_soon_shown
from mercer.gram.policy import PROVEN_ROWS
from mercer.machines.base.agreement import agree
from mercer.machines.base.conditioning import is_well_conditioned
from mercer.solvers import Solution, Status

Judge = Callable[[Any, Any], Certificate]

_FEASIBLE = 1e-9


@dataclass(frozen=True, eq=False)
class LazyPointsCertificate:
    """A certificate to be made: the kernel on the rows, what is asked of their Gram, the answer.

    Attributes
    ----------
    source : Source
        The kernel and the rows; no matrix is kept.
    question : callable
        Returns the problem on a Gram.
    value : object
        The answer.
    judge : callable
        Judges a problem and its answer.
    doubtful : bool
        Whether rounding could decide, so that the ending of the fit must wait for the verdict.
    """

    source: Source
    question: Callable[[Gram], Any]
    value: Any
    judge: Judge
    doubtful: bool = False

    @property
    def rows(self) -> int:
        """Count the rows to evaluate the kernel on."""
        return self.source.n

    def compute(self) -> Certificate:
        """Evaluate the kernel anew in float64, and judge."""
        return self.judge(self.question(exact(self.source)), self.value)


@dataclass(frozen=True, eq=False)
class LazyDataCertificate:
    """A certificate to be made from a Gram that is the data itself: a matrix, or features."""

    problem: Any
    value: Any
    judge: Judge
    doubtful: bool = False
    rows: int = 0

    def compute(self) -> Certificate:
        """Judge."""
        return self.judge(self.problem, self.value)


def lazy_certificate(
    gram: Gram,
    question: Callable[[Gram], Any],
    value: Any,
    judge: Judge,
    weights: Array | None = None,
    penalty: float | None = None,
    *,
    doubtful: bool = False,
) -> LazyPointsCertificate | LazyDataCertificate | Certificate:
    """Put the judgement off where kernels must be evaluated for it; elsewhere it is cheap.

    Where rounding could decide, as sizes of K, rows, weights and the like tell, where a few
    products meet negative curvature, where K is not known to be positive semidefinite and small, or
    where the machine itself is `doubtful`, the fit asks for it before it says SOLVED (`agreement`).
    """
    if gram.source is None and gram.csr is None and not _to_be_factored(gram):
        return certificate_in_time(gram, question, value, judge)
    doubtful = doubtful or is_soon_shown(gram) or has_negative_curvature(gram)
    if gram.csr is None:
        doubtful = doubtful or not is_well_conditioned(gram, value, weights, penalty)
    return _later(gram, question, value, judge, doubtful)


def certificate_in_time(
    gram: Gram, question: Callable[[Gram], Any], value: Any, judge: Judge
) -> LazyPointsCertificate | LazyDataCertificate | Certificate:
    """Judge at once, if the time limit of the fit allows it; else as soon as it does."""
    later = _later(gram, question, value, judge, doubtful=True)
    if not deadline.is_over():
        with deadline.cut_short():
            return later.compute()
    return later


def _later(
    gram: Gram, question: Callable[[Gram], Any], value: Any, judge: Judge, doubtful: bool
) -> LazyPointsCertificate | LazyDataCertificate:
    if gram.source is not None:
        return LazyPointsCertificate(gram.source, question, value, judge, doubtful)
    return LazyDataCertificate(question(gram), value, judge, doubtful, gram.shape[0])


def _to_be_factored(gram: Gram) -> bool:
    """Return whether judging takes a factor of a given matrix, to see that it is a kernel's."""
    return not gram.valid and gram.shape[0] <= PROVEN_ROWS


def certify_gap(problem: Any, value: Any, tol: float) -> Certificate:
    """Judge an answer by its duality gap, relative to the objective.

    A gap of 100 % bounds nothing, whatever the tolerance.
    """
    found = certify(problem, value, tol)
    measured = found.quantities
    ok = measured.relative_gap <= min(tol, VACUOUS) and measured.infeasibility <= _FEASIBLE
    if not isfinite(measured.indefiniteness):
        return replace(found, ok=False)  # nothing is known of an optimum
    statement = f"the objective is within {measured.relative_gap:.1e} of the optimum, relatively"
    return Certificate(bool(ok), measured, tol, statement)


def not_convex(solution: Solution, gram: Gram) -> Solution:
    """Say so where K is not positive semidefinite and the solver did not see it.

    A positive definite K + penalty I, which is all that a solver of equations needs, hides it.
    """
    if not solution.status.ok or not has_negative_curvature(gram):
        return solution
    status = Status.NOT_CONVEX
    warnings.warn(f"{solution.solver}: {status.value}.", ConvergenceWarning, stacklevel=4)
    return replace(solution, status=status)


class Certified:
    """A machine with a `certificate_` that is made when it is first read, copied or pickled."""

    _judgement: LazyPointsCertificate | LazyDataCertificate | Certificate

    @property
    def certificate_(self) -> Certificate:
        """The judgement of the fit, from the data, in float64; computed when first read."""
        held = self.__dict__.get("_judgement")
        if held is None:
            raise AttributeError(
                f"{type(self).__name__} has no certificate_ before it is fitted; call fit first"
            )
        if isinstance(held, LazyPointsCertificate | LazyDataCertificate):
            held = held.compute()
            self._judgement = held
            agree(self, stacklevel=3)
        return held

    def __getstate__(self) -> Any:
        # a copy carries the verdict, not the training rows
        if "_judgement" in self.__dict__:
            _ = self.certificate_
        return super().__getstate__()
