"""A problem that is solved when its answer is first wanted: streams learn more often than they ask.

The answer is kept in here, so that asking leaves the machine itself as it was.
"""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from mercer.certificates import certify
from mercer.machines.base.certificate import Certified, LazyDataCertificate
from mercer.solvers import Solution, solve


class LazySolution:
    """A problem and, once asked for, its solution.

    Parameters
    ----------
    problem : object
        What is asked.
    """

    def __init__(self, problem: Any) -> None:
        self.problem = problem
        self._solution: Solution | None = None

    @property
    def solution(self) -> Solution:
        """The solution, found when first asked for."""
        if self._solution is None:
            self._solution = solve(self.problem)
        return self._solution

    def kept(self) -> LazyDataCertificate:
        """Return what a certificate is made from."""
        return LazyDataCertificate(self.problem, self.solution.value, certify)


class SolvedLater(Certified):
    """A machine that keeps what it has seen, and works out the answer when it is wanted."""

    _asked: LazySolution

    def _ask(self, problem: Any) -> None:
        """Put a problem in the place of the one before."""
        self._asked = LazySolution(problem)
        self.__dict__.pop("_judgement", None)

    @property
    def solution_(self) -> Solution:
        """The answer, worked out from what was seen when first asked for."""
        check_is_fitted(self, "_asked")
        return self._asked.solution

    @property
    def certificate_(self) -> Any:
        """The judgement of the answer from what was seen; made when first read."""
        if "_asked" in self.__dict__ and "_judgement" not in self.__dict__:
            self._judgement = self._asked.kept()
        return super().certificate_

    def __sklearn_is_fitted__(self) -> bool:
        return "_asked" in self.__dict__
