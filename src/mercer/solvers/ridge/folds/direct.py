"""Which factorisation of a fold: decided by how many penalties it serves."""

from __future__ import annotations

from mercer.solvers.ridge.folds.band import BandFolds
from mercer.solvers.ridge.folds.cholesky import CholeskyFolds
from mercer.solvers.ridge.folds.fold_solver import DirectFolds

_FEW = 6  # penalties: reducing a matrix to a band costs as much as so many factorisations


def direct(penalties: int) -> DirectFolds:
    """Return the solver that factors the matrix of a fold for so many penalties."""
    return CholeskyFolds() if penalties <= _FEW else BandFolds()
