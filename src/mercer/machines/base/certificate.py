"""The certificate of a fit: judged at once, or when it is first read.

Judging may cost as much as the fit itself. What is needed for it is the machine's own copy of its
training rows, so nothing a caller does to his arrays in the meantime changes the verdict. Once the
certificate is made, the rows are dropped.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.backends.lapack import blas_threads_for
from mercer.gram import Gram, Source, exact
from mercer.gram.definite import NEGATIVE, has_negative_curvature, is_soon_shown
from mercer.gram.policy import PROVEN_ROWS
from mercer.machines.base.approximate import in_words, is_trying_settings
from mercer.rows.devices import where_rows_are
from mercer.rows.points import is_objects, is_sparse, to_host
from mercer.solvers.base import Solution, Solver, Status
from mercer.solvers.certificate import VACUOUS, Certificate, StreamQuantities, certify

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
    eager : bool
        Whether rounding could decide, so that the ending of the fit must wait for the verdict.
    """

    source: Source
    question: Callable[[Gram], Any]
    value: Any
    judge: Judge
    eager: bool = False
    keeps_card_rows = True  # until it is made, where they lie

    @property
    def rows(self) -> int:
        """Count the rows to evaluate the kernel on."""
        return self.source.n

    def compute(self) -> Certificate:
        """Evaluate the kernel anew in float64, where the rows are, and judge."""
        with where_rows_are(self.source.X):
            return self.judge(self.question(exact(self.source)), self.value)


@dataclass(frozen=True, eq=False)
class LazyDataCertificate:
    """A certificate to be made from a Gram that is the data itself: a matrix, or features."""

    problem: Any
    value: Any
    judge: Judge
    eager: bool = False
    rows: int = 0
    keeps_card_rows = True

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
    eager: bool = False,
) -> LazyPointsCertificate | LazyDataCertificate | Certificate:
    """Put the judgement off where kernels must be evaluated for it; elsewhere it is cheap.

    It is put off, too, where settings are compared: nobody reads the certificates of such fits.
    Where rounding could decide, as sizes of K, rows, weights and the like tell, where a few
    products meet negative curvature, where K is not known to be positive semidefinite and small, or
    where the machine itself is `eager`, the fit asks for it before it says SOLVED (`agree`).
    """
    soon = gram.source is None and gram.csr is None and not _to_be_factored(gram)
    if soon and not is_trying_settings():
        return certificate_in_time(gram, question, value, judge)
    if not gram.valid:
        eager = eager or is_soon_shown(gram) or has_negative_curvature(gram)
    if gram.csr is None:
        eager = eager or not is_well_conditioned(gram, value, weights, penalty)
    return _later(gram, question, value, judge, eager)


def certificate_in_time(
    gram: Gram, question: Callable[[Gram], Any], value: Any, judge: Judge
) -> LazyPointsCertificate | LazyDataCertificate | Certificate:
    """Judge at once, if the time limit of the fit allows it; else as soon as it does."""
    later = _later(gram, question, value, judge, eager=True)
    if not deadline.is_over():
        with deadline.cut_short():
            return later.compute()
    return later


def _later(
    gram: Gram, question: Callable[[Gram], Any], value: Any, judge: Judge, eager: bool
) -> LazyPointsCertificate | LazyDataCertificate:
    if gram.source is not None:
        return LazyPointsCertificate(gram.source, question, value, judge, eager)
    return LazyDataCertificate(question(gram), value, judge, eager, gram.shape[0])


def _to_be_factored(gram: Gram) -> bool:
    """Return whether judging takes a factor of a given matrix, to see that it is a kernel's."""
    return not gram.valid and gram.shape[0] <= PROVEN_ROWS


def certify_gap(problem: Any, value: Any, tol: float) -> Certificate:
    """Judge an answer by its duality gap, relative to the objective.

    A gap of 100 % bounds nothing, whatever the tolerance. Where no slack is allowed, every
    violation costs infinitely much: then the gap of the rescaled classifier counts.
    """
    found = certify(problem, value, tol)
    measured = found.quantities
    if not isfinite(measured.indefiniteness):
        return replace(found, ok=False)  # nothing is known of an optimum
    gap, objective = measured.relative_gap, "the objective"
    if not isfinite(gap) and isfinite(getattr(measured, "rescaled_gap", gap)):
        gap = measured.rescaled_gap
        objective = "multiplied by a constant that brings its margin to 1, its objective"
    ok = gap <= min(tol, VACUOUS) and measured.infeasibility <= _FEASIBLE
    statement = f"{objective} is within {gap:.1e} of the optimum, relatively"
    return Certificate(bool(ok), measured, tol, statement)


def not_convex(solution: Solution, gram: Gram) -> Solution:
    """Return the solution as NOT_CONVEX, with a warning, if K has negative curvature.

    A positive definite K + penalty I, which is all that a solver of equations needs, hides it.
    """
    if gram.valid or not solution.status.ok or not has_negative_curvature(gram):
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
            with blas_threads_for(range(held.rows)):
                held = held.compute()
            self._judgement = held
            agree(self, stacklevel=3)
        held = self._judgement = in_words(self, held)
        return held

    def __getstate__(self) -> Any:
        # a copy carries the verdict, not the training rows
        if "_judgement" in self.__dict__:
            _ = self.certificate_
        return super().__getstate__()


# --- has float64 digits to spare for this fit? If not, the certificate is made before the fit ends
#
# Certificates that need kernels anew are made when they are read. That is safe while rounding is
# far below every tolerance, so this asks, at the price of one row of K: of what size K, rows,
# weights and coefficients are, and whether differences are left of them. The bounds are cautious:
# beyond them an answer is still right as a rule, and all that is lost is the time to judge it at
# once.

_LARGE = 1e8  # k(x, x) above this, or below its inverse
_ALIKE = 1e-6  # of k(x, x): squared distances between rows below this cancel
_FAR = 1e3  # of the spread of the rows: their distance from the origin
_MIDDLE = 1000  # rows that tell where the middle is
_SLIGHT = 1e-6  # of k(x, x): a penalty below it leaves K nearly singular
_UNEVEN = 1e4  # largest over smallest weight
_CANCELLING = 1e8  # what coefficients sum up to before they cancel; f itself is about one
_SQUARED = 1e4  # the same for directions, which are judged by c'Kc: squares of the sums cancel


def is_well_conditioned(
    gram: Gram, value: Any, weights: Array | None, penalty: float | None
) -> bool:
    """Return whether rounding is far from deciding anything about an answer.

    Parameters
    ----------
    gram : Gram
        Of a kernel and rows, or of a matrix that is given.
    value : object
        The answer; its coefficients, if it has any, are looked at.
    weights : (n,) array or None
        What rows count, all positive.
    penalty : float or None
        What is added to K, if anything is.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        diagonal = np.abs(gram.diag())
        size = float(diagonal.max(initial=0.0))
        return bool(
            1 / _LARGE < size < _LARGE
            and (penalty is None or penalty > _SLIGHT * size * _most(weights))
            and _even(weights, size)
            and (gram.source is None or _near(gram.source.X))
            and _apart(gram, diagonal, size)
            and _sums(value, np.sqrt(diagonal)) * np.sqrt(size) < _CANCELLING
            and (not hasattr(value, "values") or _sums(value, np.sqrt(diagonal)) < _SQUARED)
        )


def _most(weights: Array | None) -> float:
    """Return the largest weight, at least 1, by which what is added to K is divided in its row."""
    return 1.0 if weights is None else float(weights.max(initial=1.0))


def _even(weights: Array | None, size: float) -> bool:
    """Return whether no row counts far more than another, or than K leaves digits for."""
    if weights is None or len(weights) == 0:
        return True
    most, least = float(weights.max()), float(weights.min())
    return most * size < _LARGE and most <= _UNEVEN * least


def _near(X: Points) -> bool:
    """Return whether rows are near the origin, and their mean, for the digits of their spread.

    The spread is that of rows in the middle: a single one that is far away moves the mean, from
    which distances are taken, away from all others.
    """
    if is_sparse(X) or is_objects(X) or X.dtype.kind != "f" or X.size == 0:
        return True  # zeros in most places, or no numbers
    # sums and ends of columns are soon found along them; not of all rows, which would copy X
    some = np.ascontiguousarray(to_host(X[:: max(1, len(X) // _MIDDLE)]).T)
    if some.shape[1] == len(X):
        low, high, mean = some.min(axis=1), some.max(axis=1), some.mean(axis=1)
    else:
        low, high, mean = X.min(axis=0), X.max(axis=0), X.mean(axis=0, dtype=np.float64)
    spread = float((high - low).max())
    if not max(float(high.max()), -float(low.min())) <= _FAR * spread < np.inf:
        return False
    half = some.shape[1] // 2  # the upper of two medians serves; np.median takes ten times as long
    middle = np.partition(some, half, axis=1)[:, half]
    away, moved = (some - middle[:, None]) / spread, (mean - middle) / spread
    typical = np.partition(np.einsum("ji,ji->i", away, away), half)[half]
    return bool(moved @ moved <= _FAR**2 * typical)


def _apart(gram: Gram, diagonal: Array, size: float) -> bool:
    """Return whether some row differs from the first one by more than rounding of K."""
    first = gram.rows(np.zeros(1, int))[0]
    return bool((diagonal[0] + diagonal - 2 * first).max() > _ALIKE * size)


def _sums(value: Any, lengths: Array) -> float:
    """Return the largest sum of |coefficient| |phi(x)| that the answer has."""
    if hasattr(value, "parts"):
        return max((_sums(part, lengths) for part in value.parts), default=0.0)
    coef = getattr(value, "coef", None)
    if coef is None or len(coef) != len(lengths):
        return 0.0 if coef is None else float(np.abs(coef).sum() * lengths.max(initial=0.0))
    # by the loops of NumPy: BLAS would wake its threads for a sum of n numbers
    return float(np.einsum("i,i...->...", lengths, np.abs(coef)).max(initial=0.0))


# --- a fit says SOLVED only if its certificate agrees, wherever that is known --------------------

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
    held[name] = confirmed(type(machine).__name__, solution, certificate, stacklevel + 1)


def confirmed(name: str, solution: Solution, certificate: Certificate, stacklevel: int) -> Solution:
    """Return the solution, with SOLVED taken back and a warning if the certificate is not ok.

    Parameters
    ----------
    name : str
        Of the machine or function that answers for it.
    solution : Solution
        How the solver ended.
    certificate : Certificate
        The judgement of its answer.
    stacklevel : int
        Of the caller whom the warning is for, as `warnings.warn` counts from here.
    """
    if certificate.ok or solution.status is not Status.SOLVED:
        return solution
    seen = f"not certified: {certificate.statement}"
    detail = f"{solution.detail}; {seen}" if solution.detail else seen
    status = Status.INACCURATE if _has_lengths(certificate) else Status.NOT_CONVEX
    warnings.warn(f"{name}: {status.value} ({seen}).", ConvergenceWarning, stacklevel=stacklevel)
    return replace(solution, status=status, detail=detail)


def _asks_less(machine: Any, certificate: Certificate) -> bool:
    """Return whether the user asked for less than certificates do; SOLVED means what was asked for.

    A solver of the user's choice ends by its own tolerance, if it has one, Lloyd's steps alone
    (`refine=False`) where the move of a single point may still gain, if there are distances at all.
    A machine inside another one, which chose the solver, has the attribute `_solver_is_given`.
    """
    solver = getattr(machine, "solver", None)
    own = isinstance(solver, Solver) and hasattr(solver, "tol")
    own = own and getattr(machine, "_solver_is_given", True)
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
    lazy = isinstance(found, LazyPointsCertificate | LazyDataCertificate)
    if lazy and found.eager and not (limited and found.rows > _QUICK):
        found = held["_judgement"] = found.compute()
    if not isinstance(found, Certificate) or isinstance(found.quantities, StreamQuantities):
        return None
    return found
