"""Eigenpairs by LAPACK on the whole matrix, or on F'F when K = F F'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._points import to_dense
from mercer._resources import require_memory
from mercer._types import Array
from mercer.backends.interruptible import interruptible
from mercer.gram import FactoredGram, Gram
from mercer.problems import Eigenproblem, Modes
from mercer.solvers.base import Solution, Solver, Status, Watch, report


@dataclass(frozen=True)
class Eigh(Solver):
    """Dense symmetric eigenvalues; exact to rounding, for small problems or many pairs."""

    def refuses(self, problem: Any) -> str | None:
        """Take any eigenproblem."""
        if not isinstance(problem, Eigenproblem):
            return f"Eigh answers Eigenproblem problems, not {type(problem).__name__}"
        return None

    def run(self, problem: Eigenproblem, watch: Watch, start: Any = None) -> Solution:
        """Decompose the smaller of the two matrices."""
        gram, k = problem.gram, min(problem.count, problem.gram.shape[0])
        if isinstance(gram, FactoredGram) and k <= gram.rank < gram.shape[0]:
            modes = _from_features(gram, k)
        else:
            modes = _from_matrix(gram, k)
        return report(self, modes, Status.SOLVED, 1, watch)


def _from_matrix(gram: Gram, k: int) -> Modes:
    n = gram.shape[0]
    require_memory(
        3 * 8 * n * n,
        f"the eigendecomposition of {n} points",
        "Ask for fewer pairs with solver=Lanczos(), which needs products only.",
    )
    values, vectors = interruptible(np.linalg.eigh, np.asarray(gram.dense(), dtype=np.float64))
    return ordered(values, vectors, k)


def _from_features(gram: FactoredGram, k: int) -> Modes:
    """Take the left singular vectors of F: they are orthonormal also where eigenvalues are tiny."""
    U, s, _ = interruptible(np.linalg.svd, to_dense(gram.factor), full_matrices=False)
    return ordered(s**2, U, k)


def ordered(values: Array, vectors: Array, k: int) -> Modes:
    """Sort by size, keep k, and fix signs: the largest entry of a vector is positive."""
    order = np.argsort(values)[::-1][:k]
    vectors = vectors[:, order]
    # ties go to the first entry; a little slack keeps rounding from deciding
    magnitude = np.abs(vectors)
    first = np.argmax(magnitude >= magnitude.max(axis=0, initial=0.0) * (1 - 1e-8), axis=0)
    signs = np.where(vectors[first, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
    return Modes(values[order], vectors * signs)
