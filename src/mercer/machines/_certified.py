"""Certificates made when first read: judging may cost as much as the fit itself.

What is needed for it is the machine's own copy of its training rows, so nothing a caller does to
his arrays in the meantime changes the verdict. Once the certificate is made, the rows are dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mercer._types import Array
from mercer.certificates import Certificate, certify
from mercer.gram import CachedGram, DenseGram, Gram, LazyGram, Source, SparseGram
from mercer.machines._agreement import agree
from mercer.machines._ordinary import is_ordinary

Judge = Callable[[Any, Any], Certificate]

_FEASIBLE = 1e-9


@dataclass(frozen=True, eq=False)
class Pending:
    """A certificate to be made: the kernel on the rows, what is asked of their Gram, the answer.

    Attributes
    ----------
    source : Source
        The kernel and the rows; no matrix is kept.
    question : callable
        Gives the problem on a Gram.
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

    def made(self) -> Certificate:
        """Evaluate the kernel anew in float64, and judge."""
        return self.judge(self.question(LazyGram(self.source.in_float64())), self.value)


@dataclass(frozen=True, eq=False)
class Kept:
    """A certificate to be made from a Gram that is the data itself: sparse, or features."""

    problem: Any
    value: Any
    judge: Judge

    def made(self) -> Certificate:
        """Judge."""
        return self.judge(self.problem, self.value)


def promise(
    gram: Gram,
    question: Callable[[Gram], Any],
    value: Any,
    judge: Judge,
    weights: Array | None = None,
    penalty: float | None = None,
) -> Pending | Kept | Certificate:
    """Put the judgement off where kernels must be evaluated for it; elsewhere it is cheap.

    Where rounding could decide, as sizes of K, rows, weights and the like tell, the fit itself
    asks for it before it says SOLVED (`_agreement`).
    """
    if isinstance(gram, DenseGram | CachedGram | LazyGram):
        doubtful = not is_ordinary(gram, value, weights, penalty)
        return Pending(gram.source, question, value, judge, doubtful)
    if isinstance(gram, SparseGram):
        return Kept(question(gram), value, judge)
    return judge(question(gram), value)


def certify_gap(problem: Any, value: Any, tol: float) -> Certificate:
    """Judge an answer by its duality gap, relative to the objective."""
    found = certify(problem, value, tol)
    measured = found.quantities
    ok = measured.relative_gap <= tol and measured.infeasibility <= _FEASIBLE
    statement = f"the objective is within {measured.relative_gap:.1e} of the optimum, relatively"
    return Certificate(bool(ok), measured, tol, statement)


class Certified:
    """A machine with a `certificate_` that is made when it is first read, copied or pickled."""

    _judgement: Pending | Kept | Certificate

    @property
    def certificate_(self) -> Certificate:
        """The judgement of the fit, from the data, in float64; computed when first read."""
        held = self.__dict__.get("_judgement")
        if held is None:
            raise AttributeError(
                f"{type(self).__name__} has no certificate_ before it is fitted; call fit first"
            )
        if isinstance(held, Pending | Kept):
            held = held.made()
            self._judgement = held
            agree(self, stacklevel=3)
        return held

    def __getstate__(self) -> Any:
        # a copy carries the verdict, not the training rows
        if "_judgement" in self.__dict__:
            _ = self.certificate_
        return super().__getstate__()
