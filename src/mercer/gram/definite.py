"""Tests of whether K is positive semidefinite: by construction, by a factor, or not shown.

Duality gaps, lengths and distances in feature space rest on v'Kv >= 0. Kernels of the library and
features have a theorem for it. A matrix or a function of the user's own is looked at: a Cholesky
factor of K + shift I proves that no eigenvalue is below -shift, and what rounding may hide is
bounded and added (`_by_eigenvectors`, `_by_factor`). What is not proven must not be claimed;
certificates ask here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.gram.accurate_products import UNIT, gamma
from mercer.gram.base import Gram
from mercer.gram.evaluated import DenseGram
from mercer.gram.policy import PROVEN_ROWS
from mercer.gram.precomputed import PrecomputedGram
from mercer.gram.sparse import SparseGram
from mercer.resources import within_budget

_WHOLE = 300  # rows: up to here all eigenvalues are found in a moment
NEGATIVE = 1e-6  # of the longest point: a squared length or distance below minus this is none
_LOOKED_AT = 1000  # rows of a given matrix, where a glance at some of them has to do
_ROUNDED = 1e-5  # of its largest entry: eigenvalues that rounding to float32 may have made
_STEPS = 24  # products, to see a negative eigenvalue before anything is factored
_EPS = float(np.finfo(np.float64).eps)
_ROWS_AT_ONCE = 256
# Of the Frobenius norm: what rounding to float32 of the entries, or of the points they were
# computed from, can take from an eigenvalue. What is below is no kernel in any precision.
_SINGLE = 4 * float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Definiteness:
    """Whether K is positive semidefinite.

    Attributes
    ----------
    shift : float
        K + shift I is positive semidefinite: zero by construction, with a bound of rounding where
        K was factored, infinite where nothing is shown.
    seen : float
        A negative number that some eigenvalue of K is not above; zero if none was seen.
    """

    shift: float
    seen: float = 0.0

    @property
    def shown(self) -> bool:
        """Whether K is positive semidefinite, but for rounding."""
        return isfinite(self.shift)

    @property
    def obstacle(self) -> str:
        """What stands in the way, in words."""
        if self.seen < 0:
            return (
                "the kernel matrix is not positive semidefinite (it has an eigenvalue of "
                f"{self.seen:.2g} or below)"
            )
        return (
            "the kernel matrix was not shown to be positive semidefinite (matrices and functions "
            f"of one's own are factored for it up to {PROVEN_ROWS} rows, if memory allows)"
        )


BY_CONSTRUCTION = Definiteness(0.0)
_OPEN = Definiteness(inf)


def definiteness(gram: Gram, *, sums_to_zero: bool = False) -> Definiteness:
    """Return whether K is positive semidefinite, without what a part or a shift makes of it.

    Parameters
    ----------
    gram : Gram
        K.
    sums_to_zero : bool
        Ask for vectors only whose entries add up to zero: those by which two answers with one
        sum differ. Kernels such as -|x - y|^2 are positive semidefinite there, and nowhere else.

    Returns
    -------
    Definiteness

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> points = np.arange(4.0)[:, None]
    >>> distances = PrecomputedGram(-np.square(points - points.T))
    >>> definiteness(distances).shown, definiteness(distances, sums_to_zero=True).shown
    (False, True)
    """
    base = gram.unwrapped().base
    if base.valid:
        return BY_CONSTRUCTION
    n = base.shape[0]
    if n == 0:
        return BY_CONSTRUCTION
    if n <= PROVEN_ROWS and within_budget(2 * 8 * n * n):
        return _factored(base, sums_to_zero)
    return _glanced(base, sums_to_zero)


def looks_indefinite(K: Array) -> bool:
    """Return whether a given matrix, by some of its rows, is not positive semidefinite.

    Descents on it may have several lowest points, and where one starts decides where it ends.
    """
    some = np.arange(0, len(K), max(1, -(-len(K) // _LOOKED_AT)))
    part = np.array(K[np.ix_(some, some)], dtype=np.float64)
    part.flat[:: len(part) + 1] += _ROUNDED * np.abs(part).max(initial=np.finfo(float).tiny)
    try:
        np.linalg.cholesky(part)
    except np.linalg.LinAlgError:
        return True
    return False


def is_soon_shown(gram: Gram) -> bool:
    """Return whether it takes but a moment to show that K is positive semidefinite, or is not."""
    base = gram.unwrapped().base
    return not base.valid and base.shape[0] <= min(_WHOLE, PROVEN_ROWS)


def has_negative_curvature(gram: Gram) -> bool:
    """Return whether a few products with a stored K, without its shift, meet v'Kv < 0.

    For those who cannot wait for a proof: what is met is one, what is not says nothing.
    """
    base = gram.unwrapped().base
    return not base.valid and base.shape[0] > 0 and _glanced(base, False).seen < 0


def _factored(base: Gram, sums_to_zero: bool) -> Definiteness:
    K, unit = _matrix(base, sums_to_zero)
    if not isfinite(unit):  # NaN and overflow
        return _OPEN
    if len(K) <= _WHOLE:
        values, vectors = np.linalg.eigh(K)
        least, largest = float(values[0]), float(np.abs(values).max())
    else:
        least, largest = _extremes(K.__matmul__, len(K))
    rounding = len(K) * _EPS * largest  # an estimate: which shifts are tried, not what is claimed
    limit = max(_SINGLE * float(np.linalg.norm(K)), rounding)
    if least < -limit:
        return Definiteness(inf, unit * least)
    lost = _lost_in_matrix(K, sums_to_zero)
    if len(K) <= _WHOLE:
        return Definiteness(unit * (_by_eigenvectors(K, values, vectors) + lost))
    for shift in sorted({max(rounding, -4 * least), limit}):
        K.flat[:: len(K) + 1] += shift
        added = UNIT * (1.0 + 4.0 * sums_to_zero + shift)  # Higham (2.4), of no larger an entry
        if choose_backend().cholesky(K) == 0:
            return Definiteness(unit * (shift + added + _by_factor(K) + lost))
        K, unit = _matrix(base, sums_to_zero)
    return Definiteness(inf, -unit * limit)


def _lost_in_matrix(K: Array, sums_to_zero: bool) -> float:
    """Bound the norm of what rounding took from K / unit, by Higham (2.4) for each entry.

    Entries are at most 1 before the means are taken off. A mean that is rounded itself does no
    harm: v'(1 m' + m 1')v is zero for every m where the entries of v add up to zero. Three
    roundings are of entries of up to 2, 4 and 8.
    """
    if sums_to_zero:
        return 16.0 * UNIT * len(K)
    return gamma(2) * float(np.linalg.norm(K))


def _by_eigenvectors(K: Array, values: Array, vectors: Array) -> float:
    """Bound how far the least eigenvalue is below zero, from what eigenvectors leave of K.

    With K = V diag(m) V' + R, v'Kv is at least (min(m, 0) |V|^2 - |R|) |v|^2. R and V'V are sums of
    n products, off by no more than gamma_n of their sizes, Higham (3.5).
    """
    n, size = len(K), np.abs(vectors)
    left = float(np.linalg.norm(K - (vectors * values) @ vectors.T))
    left += gamma(n + 3) * float(np.linalg.norm((size * np.abs(values)) @ size.T))
    apart = float(np.linalg.norm(vectors.T @ vectors - np.eye(n)))
    apart += gamma(n + 3) * float(np.linalg.norm(size.T @ size))
    return (1.0 + gamma(n * n + 8)) * (max(-float(values[0]), 0.0) * (1.0 + apart) + left)


def _by_factor(L: Array) -> float:
    """Bound how far below zero an eigenvalue can be of a matrix that has the factor L.

    Higham, theorem 10.3: L L' = A + E with |E| <= gamma_(n + 1) |L| |L|', so that the norm of E is
    at most gamma_(n + 1) times the largest sum of a row of |L| |L|'.
    """
    n = len(L)
    columns, most = np.zeros(n), 0.0
    parts = [slice(first, first + _ROWS_AT_ONCE) for first in range(0, n, _ROWS_AT_ONCE)]
    for rows in parts:
        deadline.check()
        columns += np.abs(np.tril(L[rows], rows.start)).sum(axis=0)
    for rows in parts:
        deadline.check()
        sums = np.abs(np.tril(L[rows], rows.start)) @ columns
        most = max(most, float(sums.max(initial=0.0)))
    return gamma(3 * n + 4) * most


def _glanced(base: Gram, sums_to_zero: bool) -> Definiteness:
    """Look without a factor, where products are cheap: a matrix that is there is multiplied."""
    if not isinstance(base, DenseGram | PrecomputedGram | SparseGram):
        return _OPEN
    gram, n = base, base.shape[0]

    def product(v: Array) -> Array:
        if not sums_to_zero:
            return np.asarray(gram @ v)
        found = np.asarray(gram @ (v - v.mean()))
        return np.asarray(found - found.mean())

    with np.errstate(over="ignore", invalid="ignore"):
        least, largest = _extremes(product, n)
    # |K|_F <= sqrt(n) |K|_2
    return Definiteness(inf, least) if least < -_SINGLE * np.sqrt(n) * largest else _OPEN


def _matrix(base: Gram, sums_to_zero: bool) -> tuple[Array, float]:
    """Return a new matrix in units of its largest entry, and that; centred for sums of zero."""
    with np.errstate(over="ignore", invalid="ignore"):  # found by the unit
        given = base.exact().dense()
        K = np.empty(given.shape)
        for rows in deadline.row_slices(len(K), len(K)):
            K[rows] = given[rows]
    unit = float(max(K.max(), -K.min()))
    if not isfinite(unit) or unit == 0:
        return K, unit
    for rows in deadline.row_slices(len(K), len(K)):
        K[rows] /= unit
    if sums_to_zero:
        K -= K.mean(axis=0)
        K -= K.mean(axis=1)[:, None]
        K = (K + K.T) / 2  # the means are rounded
    return K, unit


def _extremes(product: Callable[[Array], Array], n: int) -> tuple[float, float]:
    """Return the smallest Ritz value of a few Lanczos steps, and the largest in magnitude."""
    v = np.random.default_rng(0).standard_normal(n)
    Q = np.zeros((n, min(_STEPS, n)))
    images, done = np.zeros_like(Q), 0
    while done < Q.shape[1]:
        before = float(np.linalg.norm(v))
        for _ in range(2):  # twice is enough
            v = v - Q @ (Q.T @ v)
        length = float(np.linalg.norm(v))
        if not length > _EPS * n * before:  # the space is exhausted
            break
        Q[:, done] = v / length
        images[:, done] = v = np.asarray(product(Q[:, done]))
        done += 1
    if not done:
        return 0.0, 0.0
    small = Q[:, :done].T @ images[:, :done]
    if not np.isfinite(small).all():
        return 0.0, 0.0
    values = np.linalg.eigvalsh((small + small.T) / 2)
    return float(values[0]), float(np.abs(values).max())
