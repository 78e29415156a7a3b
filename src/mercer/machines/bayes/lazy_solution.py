"""A problem that is solved when its answer is first wanted: streams learn more often than they ask.

The answer is kept in here, so that asking leaves the machine itself as it was.
"""

from __future__ import annotations

from typing import Any

from mercer.certificates import certify
from mercer.machines.base.certificate import LazyDataCertificate
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
