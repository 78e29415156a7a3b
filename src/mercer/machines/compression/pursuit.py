"""Which vectors to keep: pivoted Cholesky, where the pivot is the vector that explains most of f.

With the vectors S kept, the best coefficients are those of the projection of f on their span, and
|f - g|^2 is what is left of |f|^2. A new vector j lowers it by r(x_j)^2 / d_j, r being what is left
of f and d_j the squared distance of k(x_j, .) from the span; both follow from one more column of
the Cholesky factor. A vector with d_j = 0 depends on those that are kept: nothing is lost with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq, solve_triangular

from mercer.array_types import Array, Points
from mercer.certificates.reduction import rounding_of
from mercer.gram import Source, exact
from mercer.points import take
from mercer.resources import require_memory

_DEPENDENT = 1e-13  # of k(x, x): the rounding of squared distances from the span
_COLUMNS = 64  # of the factor at first; then twice as many whenever they are filled


@dataclass(frozen=True, eq=False)
class Functions:
    """The functions f_c = sum_i coef_ic k(x_i, .) of a machine.

    Attributes
    ----------
    source : Source
        The kernel and the vectors x_i.
    coef : (n, k) array
        Their coefficients.
    allowed : (n, k) bool array or None
        Which vectors a function may have, where not all: those of the two classes it is between.
    """

    source: Source
    coef: Array
    allowed: Array | None = None

    @property
    def norms(self) -> Array:
        """Return |f| of every function; zero for what is rounding alone."""
        if not len(self.coef):
            return np.zeros(self.coef.shape[1])
        values = exact(self.source.in_float64()) @ self.coef
        squares = (self.coef * values).sum(axis=0)
        return np.asarray(np.sqrt(np.where(squares > self.hidden, squares, 0.0)))

    @property
    def hidden(self) -> Array:
        """Return what rounding hides of |f|^2."""
        return rounding_of(np.sqrt(np.abs(self.source.diag())), self.coef)


@dataclass(frozen=True, eq=False)
class Kept:
    """Vectors that stand for all.

    Attributes
    ----------
    origin : (m,) int array
        The vectors that they are, or began at.
    vectors : Points
        The vectors.
    coef : (m, k) array
        Their coefficients.
    """

    origin: Array
    vectors: Points
    coef: Array


@dataclass(eq=False)
class Pursuit:
    """The choice on its way: which vectors are kept so far, and what they leave of f.

    Parameters
    ----------
    functions : Functions
        The vectors and functions.
    weights : (k,) array
        What the squared error of each function counts.
    """

    functions: Functions
    weights: Array
    picks: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        source = self.functions.source.in_float64()
        self._pairs = source.pairs()
        self._own = source.diag()
        self._left = self._own.copy()
        self._values = self._pairs.matmul(self.functions.coef)  # what is left of f, at the vectors
        self._factor = np.empty((len(self._own), min(_COLUMNS, len(self._own))))
        self._shares: list[Array] = []
        self.squares = np.maximum((self.functions.coef * self._values).sum(axis=0), 0.0)

    def best(self) -> int:
        """Return the vector that gains most; -1 if all others depend on those that are kept."""
        free = self._left > _DEPENDENT * np.abs(self._own)
        if not free.any():
            return -1
        gains = np.full(len(free), -1.0)
        gains[free] = np.square(self._values[free]) @ self.weights / self._left[free]
        return int(gains.argmax())

    def keep(self, j: int) -> None:
        """Keep a vector: one column of the factor more."""
        m = len(self.picks)
        if m == self._factor.shape[1]:
            self._grow()
        row = np.asarray(self._pairs.rows(np.array([j])), dtype=np.float64)[0]
        column = (row - self._factor[:, :m] @ self._factor[j, :m]) / np.sqrt(self._left[j])
        self._factor[:, m] = column
        share = self._values[j] / column[j]
        self._shares.append(share)
        self._values -= np.multiply.outer(column, share)
        self._left -= np.square(column)
        self._left[j] = 0.0  # itself, whatever rounding says
        self.squares = np.maximum(self.squares - np.square(share), 0.0)
        self.picks.append(j)

    def kept(self, count: int) -> Kept:
        """Return the first vectors that were kept, with the coefficients that are best for them."""
        origin = np.array(self.picks[:count], dtype=np.int64)
        coef = np.zeros((0, self.functions.coef.shape[1]))
        if len(origin):
            L = self._factor[origin, : len(origin)]
            shares = np.array(self._shares[:count])
            if self.functions.allowed is None:
                coef = solve_triangular(L, shares, lower=True, trans="T")
            else:  # K = L L' among the vectors, and L times the shares is f there
                coef = best_coefficients(L @ L.T, L @ shares, self.functions.allowed[origin])
        return Kept(origin, take(self.functions.source.X, origin), coef)

    def _grow(self) -> None:
        n, m = self._factor.shape
        more = min(2 * m, n)
        require_memory(
            8 * n * more,
            f"compress: {more} of {n} vectors at a time",
            "Ask for fewer with n_vectors, or for a larger tol",
        )
        wider = np.empty((n, more))
        wider[:, :m] = self._factor
        self._factor = wider


def best_coefficients(K: Array, values: Array, allowed: Array | None) -> Array:
    """Return the coefficients of the projection of each f on the span of the vectors it may have.

    Parameters
    ----------
    K : (m, m) array
        The kernel among the vectors.
    values : (m, k) array
        f there.
    allowed : (m, k) bool array or None
        Which vectors each f may have.
    """
    if allowed is None:
        return solved(K, values)
    coef = np.zeros_like(values)
    patterns, which = np.unique(allowed, axis=1, return_inverse=True)
    for p, pattern in enumerate(patterns.T):
        rows, columns = np.flatnonzero(pattern), np.flatnonzero(which.ravel() == p)
        if len(rows):
            coef[np.ix_(rows, columns)] = solved(
                K[np.ix_(rows, rows)], values[np.ix_(rows, columns)]
            )
    return coef


def solved(K: Array, values: Array) -> Array:
    """Solve K b = values; vectors may nearly depend on each other."""
    shifted = K + np.diag(_DEPENDENT * np.diag(K))
    try:
        return np.asarray(cho_solve(cho_factor(shifted, lower=True), values))
    except LinAlgError:
        return np.asarray(lstsq(shifted, values)[0])
