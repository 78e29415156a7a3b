"""What solvers of ridge paths over folds have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.blas import one_blas_thread
from mercer.problems import FoldedRidgePath
from mercer.solvers.base import Solution, Solver, Watch
from mercer.solvers.ridge.folds.fits import FoldFits, reported
from mercer.solvers.ridge.folds.system import FoldSystem, fold_systems


class FoldSolver(Solver):
    """A solver of the folds of a `FoldedRidgePath`, from K."""

    def refuses(self, problem: Any) -> str | None:
        """Take ridge paths over folds, leave-one-out apart."""
        name = type(self).__name__
        refusal = refuses(name, problem)
        if refusal is None and problem.folds is None:
            return f"{name} needs folds; use solver=BandLeaveOneOut()"
        return refusal


class DirectFolds(FoldSolver):
    """A solver that factors the matrix of one fold after another."""

    def run(self, problem: FoldedRidgePath, watch: Watch, start: Any = None) -> Solution:
        """Answer fold by fold."""
        fits: list[FoldFits] = []
        # factors have threads of ours; the rest is small, or would depend on how many there are
        with one_blas_thread(), watch.keeping(lambda: bool(fits)):
            for system in fold_systems(problem):
                if watch.tick(len(fits), np.nan):
                    break
                fits.append(self.fold(system, problem.penalties, watch))
        return reported(self, problem, fits, len(fits), watch)

    @abstractmethod
    def fold(self, system: FoldSystem, penalties: Array, watch: Watch) -> FoldFits:
        """Answer one fold."""


def refuses(name: str, problem: Any) -> str | None:
    """Return why a problem is no ridge path over folds, with positive penalties; None if it is."""
    if not isinstance(problem, FoldedRidgePath):
        return f"{name} answers FoldedRidgePath problems, not {type(problem).__name__}"
    if not (problem.penalties > 0).all():
        return f"{name} needs positive penalties; solve a LinearSystem for a penalty of zero"
    return None
