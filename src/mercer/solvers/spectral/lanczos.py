"""A few eigenpairs from products alone: block Lanczos, and corrections where K is in float32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram, exact
from mercer.problems import Eigenproblem
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.spectral.eigen_units import evaluated, in_units
from mercer.solvers.spectral.eigh import ordered
from mercer.solvers.spectral.krylov import FLOOR, Ritz, block_width, largest_pairs
from mercer.solvers.spectral.mixed_precision import refine_pairs
from mercer.solvers.spectral.sampled_residuals import sampled_residuals

# Residuals that products leave, over the length of the diagonal of K before centring: rounding of
# the entries is some 1e-7 of them in float32 and averages out. What was measured is below.
_NOISE = {4: 5e-7, 8: 1e-15}
_FINEST = 2e-7  # relative residual: float32 is not asked for more
_LEFT = 0.7  # of the tolerance, for a recurrence that does not see its own rounding
_SURE = 0.85  # of the tolerance: what residuals of some rows may be, two standard errors below it


@dataclass(frozen=True)
class Lanczos(Solver):
    """Block Lanczos for the largest eigenpairs.

    A Gram in float32 is enough for residuals of about 1e-7 of the largest eigenvalue. Where more is
    asked, or a few rows in float64 say that products were less exact than that, one product in
    float64, from the points, and small corrections give the rest.

    Parameters
    ----------
    tol : float
        Stop when the residual |K v - m v| of every pair is at most tol times its eigenvalue, or
        times a thousandth of the largest eigenvalue where that is more.
    max_iter : int
        Largest number of passes over K.
    block : int or None
        Vectors per pass; None takes 16, or 32 when 50 pairs or more are wanted.
    random_state : int
        Seed of the starting block.
    """

    answers = Eigenproblem

    tol: float = 1e-10
    max_iter: int = 300
    block: int | None = None
    random_state: int = 0

    def _obstacle(self, problem: Eigenproblem) -> str | None:
        """Take eigenproblems that want few of many pairs."""
        width = block_width(problem.count) if self.block is None else self.block
        if 3 * (problem.count + width) > problem.gram.shape[0] - problem.known_count:
            return "Lanczos is for few of many eigenpairs; use solver=Eigh()"
        return None

    def run(self, problem: Eigenproblem, watch: Watch, start: Any = None) -> Solution:
        """Grow a Krylov space until the wanted pairs stand still; correct them if need be."""
        problem, unit = in_units(problem)
        gram, precise = problem.gram, exact(problem.gram)
        vectors = None if start is None else start.vectors
        if np.dtype(gram.dtype) == np.float32 and np.dtype(precise.dtype) == np.float64:
            found = self._search(problem, gram, max(_LEFT * self.tol, _FINEST), watch, vectors)
            if found.status is Status.SOLVED and self._beyond(gram, found):
                found = refine_pairs(problem, found, self.tol, noise_of(gram), watch)
            if found.status is Status.INACCURATE:  # the slow way, from where they are
                found = self._search(problem, precise, self.tol, watch, found.vectors)
        else:
            found = self._search(problem, gram, self.tol, watch, vectors)
        modes = ordered(found.values * unit * unit, found.vectors, problem.count)
        return report(self, modes, found.status, found.iterations, watch)

    def _search(
        self, problem: Eigenproblem, gram: Gram, tol: float, watch: Watch, start: Array | None
    ) -> Ritz:
        return largest_pairs(
            gram.operator(),
            gram.shape[0],
            problem.count,
            tol=tol,
            max_iter=self.max_iter,
            block=self.block,
            random_state=self.random_state,
            watch=watch,
            start=start,
            known=problem.known,
            noise=noise_of(gram),
        )

    def _beyond(self, gram: Gram, found: Ritz) -> bool:
        """Return whether the rounding of float32 may be too much, or is, on some rows of K."""
        sizes, noise = np.abs(found.values), noise_of(gram)
        floor = FLOOR * float(sizes.max(initial=0.0))
        least = max(float(sizes.min(initial=np.inf)), floor)
        if float(np.hypot(_LEFT * self.tol * least, noise)) > self.tol * least:
            return True
        residuals = sampled_residuals(gram, found.values, found.vectors, self.random_state)
        return bool((residuals > _SURE * self.tol * np.maximum(sizes, floor)).any())


def noise_of(gram: Gram) -> float:
    """Return the length of the rounding in K v for a unit vector v."""
    base, factor = evaluated(gram)
    return float(_NOISE[np.dtype(gram.dtype).itemsize] * np.linalg.norm(factor * base.diag()))
