"""Nyström features, and the rules that draw landmarks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
from scipy import linalg
from scipy.linalg.lapack import dpstrf, dtrtri

from mercer.approximation.base import ApproximateKernel, Approximation, Features, StatedError
from mercer.array_types import Array, Points
from mercer.backends import Pairs, choose_backend
from mercer.backends.contract import BoundRows, Factor
from mercer.backends.lapack import one_blas_thread
from mercer.expression import Expression
from mercer.gram import LazyGram, Source, pivoted_cholesky
from mercer.gram.evaluated import KernelExpansion
from mercer.kernels import Kernel
from mercer.resources import require_memory, rows_at_once
from mercer.rows.chunks import chunk_count, chunked, slices
from mercer.rows.device_rows import CardRows
from mercer.rows.points import as_points, row_count, take, to_host

# --- nystrom -------------------------------------------------------------------------------------
#
# Nystrom features: k(x, y) through its values at m landmarks, k_x' K_m^-1 k_y.

# Pivots below this fraction of the largest entry are rounding: their contribution is divided by
# their
# root, 1e-6, so that features keep ten digits.
_ROUNDING = 1e-12
_ROWS_AT_ONCE = 1024  # of a thread: kernel values stay in its cache
_FEWEST = 256  # rows of a thread that give it enough operations
_OPERATIONS = 1 << 30
_ALONE = 4000  # landmarks up to which threads of BLAS wait for one another longer than they work
_PANELS, _NARROWEST = 8, 64  # columns of features made together: eighths, at least so many
_SENT_AT_ONCE = 8192  # to a GPU
_MATRICES = 3  # of landmarks on a GPU: the kernel, the factored matrix, and the factor
_SQUARES = 2  # of landmarks on the host: the right-hand side, and the inverse
_TRACED = 2000  # rows for the estimate of the trace, if there are more
_MEASURE = "trace(K - FF') / trace(K)"


@dataclass(frozen=True, repr=False)
class Nystrom(Approximation):
    """Features from the kernel's values at landmarks: phi(x) = L^-1 k(landmarks, x), K_m = L L'.

    The kernel of the features is the projection of k on the functions k(z, .) of the landmarks z:
    never above k on the diagonal, exact between landmarks. Any kernel has it, of any rows.

    Parameters
    ----------
    n_components : int, default=1000
        Landmarks, at most; fewer where the kernel has a smaller rank on the rows.
    sampling : {"pivoted", "uniform", "leverage", "kmeans++"}, default="pivoted"
        Distribution of the landmarks: in proportion to the unexplained diagonal (randomly pivoted
        Cholesky), uniform, by ridge leverage scores, or by the squared distance in feature space
        to those drawn.
    random_state : int, default=0
        Seed of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.approximation import Nystrom
    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(500, 1))
    >>> kernel = Nystrom(20).of(Gaussian(1.0), X)
    >>> kernel.error(X) < 1e-5
    True
    >>> machine = KernelRidge(1e-3, kernel).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(machine.predict([[1.0]])[0] - np.sin(1.0)) < 1e-3)
    True
    """

    n_components: int = 1000
    sampling: str = "pivoted"
    random_state: int = 0

    def __post_init__(self) -> None:
        if self.n_components < 1:
            raise ValueError(f"Nystrom: n_components={self.n_components!r} must be at least 1")
        if self.sampling not in RULES:
            raise ValueError(f"Nystrom: sampling={self.sampling!r} must be one of {sorted(RULES)}")

    def features(self, kernel: Kernel, X: Points, weights: Array | None = None) -> NystromFeatures:
        """Draw landmarks among the rows, and factor the kernel between them."""
        source = Source(kernel.expression(), X)
        drawn = self.drawn(source, weights)
        found = NystromFeatures.at(source.expression, to_host(take(X, drawn.rows)))
        if drawn.left is not None and found.dimension == len(drawn.rows):
            found.left = Left(ref(X), drawn.left)
        return found

    def drawn(self, source: Source, weights: Array | None = None) -> Drawn:
        """Return which rows are landmarks."""
        rng = np.random.default_rng(self.random_state)
        return RULES[self.sampling](source, min(self.n_components, source.n), weights, rng)

    def stated_error(self, kernel: ApproximateKernel, X: Points) -> StatedError:
        """Return the unexplained fraction of the trace: exact, or estimated from a sample."""
        known = kernel.phi.left if isinstance(kernel.phi, NystromFeatures) else None
        if known is not None and known.rows() is X:
            return StatedError(known.share, _MEASURE, row_count(X))
        left, standard_error = kernel.left_out(X, most=_TRACED)
        rows = min(row_count(X), _TRACED)
        return StatedError(max(0.0, left), _MEASURE, rows, standard_error)


class Left(NamedTuple):
    """Results of the landmark selection for all rows that it evaluated.

    Attributes
    ----------
    rows : weak reference to Points
        Those rows, for as long as others hold them.
    share : float
        Fraction of the trace of their kernel that the features do not explain.
    """

    rows: ref[Any]
    share: float


class NystromFeatures(Features):
    """phi(x) = L^-1 k(landmarks, x).

    Parameters
    ----------
    expression : Expression
        The kernel.
    landmarks : Points
        m rows.
    inverse : (m, m) array, optional
        L^-1, lower triangular, of k(landmarks, landmarks) = L L'.
    factor : Factor, optional
        L itself, if a GPU computed it; L^-1 is then fetched on request.
    """

    left: Left | None = None  # result of a selection among all rows of a fit

    def __init__(
        self,
        expression: Expression,
        landmarks: Points,
        inverse: Array | None = None,
        factor: Factor | None = None,
    ) -> None:
        self.expression, self.landmarks, self.factor = expression, landmarks, factor
        if inverse is not None:
            self.__dict__["inverse"] = inverse

    def __getstate__(self) -> dict[str, Any]:
        held = ("expression", "landmarks", "inverse")
        return {"factor": None, **{name: getattr(self, name) for name in held}}

    @cached_property
    def inverse(self) -> Array:
        """L^-1, lower triangular."""
        assert self.factor is not None
        m = row_count(self.landmarks)
        require_memory(
            _SQUARES * 8 * m * m,
            f"the features at {m} landmarks, fetched from a GPU",
            "Use fewer landmarks, or a larger budget with mercer.config(memory=...).",
        )
        return self.factor.half_solve(np.eye(m))

    @classmethod
    def at(cls, expression: Expression, landmarks: Points) -> NystromFeatures:
        """Factor the kernel between landmarks; those that the others explain are left out."""
        backend, m = choose_backend(), row_count(landmarks)
        pairs = backend.pairs(expression, landmarks, None, np.float64)
        if backend.keeps(_MATRICES * 8.0 * m * m):
            factor = pairs.stored().cholesky(np.zeros(m))
        else:
            factor = pairs.packed_factor()
        if factor is not None:
            size = float(np.abs(backend.diagonal(expression, landmarks, np.float64)).max(initial=0))
            if (np.square(factor.diagonal()) > _ROUNDING * size).all():
                return cls(expression, landmarks, factor=factor)
        return cls._pivoted(expression, landmarks, pairs.dense())

    @classmethod
    def _pivoted(cls, expression: Expression, landmarks: Points, matrix: Array) -> NystromFeatures:
        size = float(np.abs(matrix.diagonal()).max(initial=0.0))
        alone = len(matrix) <= _ALONE
        with one_blas_thread() if alone else nullcontext():
            return cls._factored(expression, landmarks, matrix, _ROUNDING * size)

    @classmethod
    def _factored(
        cls, expression: Expression, landmarks: Points, matrix: Array, tol: float
    ) -> NystromFeatures:
        factor, pivots, rank, _ = dpstrf(matrix, lower=1, tol=tol)
        if rank == 0:  # the kernel is zero at all landmarks, and LAPACK has no empty matrices
            return cls(expression, take(landmarks, slice(0, 0)), np.zeros((0, 0)))
        # products are several times as fast as solving, and lose nothing: pivots are not small
        inverse, _ = dtrtri(np.asfortranarray(np.tril(factor[:rank, :rank])), lower=1)
        return cls(expression, take(landmarks, pivots[:rank] - 1), inverse)

    @property
    def dimension(self) -> int:
        """Count the features."""
        return row_count(self.landmarks)

    @property
    def width(self) -> int:
        """Count the landmarks."""
        return row_count(self.landmarks)

    def mix(self, W: Array) -> Array:
        """Solve with L' if it is present, or multiply by its inverse."""
        if self.factor is not None:
            return self.factor.half_solve(W, transposed=True)
        return np.asarray(self.inverse.T @ W)

    def mix_transposed(self, V: Array) -> Array:
        """Solve with L if it is present, or multiply by its inverse."""
        return np.asarray(self.inverse @ V) if self.factor is None else self.factor.half_solve(V)

    @property
    def mixing(self) -> Array:
        """Return L'^-1, which turns values at the landmarks into features."""
        return self.inverse.T

    def raw(self, X: Points, dtype: Any) -> Array:
        """Evaluate the kernel at the landmarks."""
        return choose_backend().pairs(self.expression, X, self.landmarks, dtype).dense()

    def pairs(self, X: Points, dtype: Any) -> Pairs:
        """Bind points and landmarks."""
        return choose_backend().pairs(self.expression, X, self.landmarks, dtype)

    def pairs_back(self, X: Points, dtype: Any) -> Pairs:
        """Bind landmarks and points."""
        return choose_backend().pairs(self.expression, self.landmarks, X, dtype)

    def squared_lengths(self, X: Points) -> Array:
        """Add up squares where the factor is."""
        bound = self.bound(X)
        if bound is None:
            return super().squared_lengths(X)
        return bound.squared_lengths()

    def bound(self, X: Points) -> BoundRows | None:
        """Send points where the factor is."""
        if self.factor is None:
            return None
        return choose_backend().landmark_rows(self.expression, X, self.landmarks, self.factor)

    def longest(self, X: Points) -> Array:
        """Return k(x, x): a projection is not longer."""
        return choose_backend().diagonal(self.expression, X, np.float64)

    def made_for(self) -> Points:
        """Return the landmarks."""
        return self.landmarks

    def expansion(self, weights: Array) -> KernelExpansion:
        """Return the same function by coefficients of the landmarks: c = L'^-1 w."""
        coef = self.mix(weights)
        return KernelExpansion(self.expression, self.landmarks, coef, np.zeros(coef.shape[1]))

    def features_on_card(self, X: CardRows) -> CardRows | None:
        """Evaluate and solve where the factor is."""
        bound = self.bound(X)
        return None if bound is None else bound.features()

    def __call__(self, X: Any) -> Array:
        """Evaluate the kernel at the landmarks, and multiply by L^-1."""
        points = as_points(X)
        out = np.empty((row_count(points), self.dimension))
        self.write(points, out)
        return out

    def write(self, X: Points, out: Array) -> None:
        """Evaluate and multiply chunks of rows in threads, each block of rows by block."""
        n, m = out.shape
        if self.factor is not None:
            return self._write_by(self.factor, X, out)
        least = max(_FEWEST, min(4096, _OPERATIONS // max(1, m * m)))
        step = rows_at_once(m, _ROWS_AT_ONCE, arrays=2 * chunk_count(n, least))

        def chunk(rows: slice) -> None:
            for part in slices(rows.start, rows.stop, step):
                _times_triangle(self.raw(take(X, part), np.float64), self.inverse, out[part])

        with one_blas_thread():
            chunked(chunk, n, least)
        return None

    def _write_by(self, factor: Factor, X: Points, out: Array) -> None:
        """Solve where the factor is."""
        step = rows_at_once(out.shape[1], _SENT_AT_ONCE, arrays=2)
        for part in slices(0, len(out), step):
            out[part] = factor.half_solve(self.raw(take(X, part), np.float64).T).T


def _times_triangle(K: Array, inverse: Array, out: Array) -> None:
    """Write K R for R = L'^-1, upper triangular: few columns together, without the zeros below.

    NumPy's products let other threads work; SciPy's triangular ones hold them up.
    """
    m = len(inverse)
    for part in slices(0, m, max(_NARROWEST, -(-m // _PANELS))):
        used = slice(0, part.stop)
        np.matmul(K[:, used], inverse[part, used].T, out=out[:, part])


# --- landmarks -----------------------------------------------------------------------------------
#
# Which rows stand for all: four ways to draw landmarks.
#
# Of many rows the draws are made among a sample: what all rows would add to the choice is small,
# and the cost of the choice stays that of the sample.

# Rows for each landmark, among which it is drawn, and rows of which none are left out.
_SAMPLED, _ALL = 5, 10_000
_COPIES = 2  # of the sample's values at the landmarks: a factor, and the product with it
_SHARE = 0.5  # of the budget, for both
_TOGETHER = 32  # landmarks drawn before distances are computed again


class Drawn(NamedTuple):
    """Landmarks, and results for the other rows.

    Attributes
    ----------
    rows : (m,) int array
        Their numbers.
    left : float or None
        Unexplained fraction of the trace of K; None unless all rows were evaluated.
    """

    rows: Array
    left: float | None = None


Rule = Callable[[Source, int, Array | None, np.random.Generator], Drawn]


def uniform(source: Source, m: int, weights: Array | None, rng: np.random.Generator) -> Drawn:
    """Draw m different rows, all alike or by their weights."""
    return Drawn(np.sort(rng.choice(source.n, m, replace=False, p=_shares(weights))))


def pivoted(source: Source, m: int, weights: Array | None, rng: np.random.Generator) -> Drawn:
    """Draw in proportion to the remaining diagonal: randomly pivoted Cholesky."""
    among = _sample(source, m, weights, rng)
    seed = int(rng.integers(2**31))
    looked_at = source.only(among)
    part = pivoted_cholesky(LazyGram(looked_at), m, seed)
    total = float(looked_at.diag().sum()) if len(among) == source.n else 0.0
    return Drawn(among[part.pivots], part.trace_left / total if total > 0 else None)


def leverage(source: Source, m: int, weights: Array | None, rng: np.random.Generator) -> Drawn:
    """Draw by ridge leverage scores, estimated from a factor of half as many columns.

    The penalty is what that factor leaves out for each landmark, so that scores sum to about m.
    """
    among = _sample(source, m, weights, rng)
    part = source.only(among)
    rough = pivoted_cholesky(LazyGram(part), max(1, m // 2), int(rng.integers(2**31)))
    F, left = rough.factor, np.maximum(part.diag(), 0.0)
    left = np.maximum(left - np.einsum("ij,ij->i", F, F), 0.0)
    penalty = max(float(left.sum()) / m, 1e-12 * float(part.diag().sum()))
    if not penalty > 0:  # the kernel is zero
        return uniform(source, m, weights, rng)
    A = F.T @ F
    A.flat[:: len(A) + 1] += penalty
    solved = linalg.solve_triangular(np.linalg.cholesky(A), F.T, lower=True)
    scores = np.einsum("ij,ij->j", solved, solved) + left / penalty
    m = min(m, int(np.count_nonzero(scores)))  # rows that explain no variance cannot be landmarks
    return Drawn(among[np.sort(rng.choice(len(among), m, False, scores / scores.sum()))])


def kmeans_plus_plus(
    source: Source, m: int, weights: Array | None, rng: np.random.Generator
) -> Drawn:
    """Draw by the squared distance in feature space to the nearest landmark so far."""
    among = _sample(source, m, weights, rng)
    part = source.only(among)
    own, drawn = part.diag(), [int(rng.integers(len(among)))]
    nearest = np.full(len(among), np.inf)
    done = 0
    while len(drawn) < m:
        new = np.asarray(drawn[done:])
        done = len(drawn)
        K = choose_backend().pairs(part.expression, part.X, take(part.X, new), np.float64).dense()
        nearest = np.minimum(nearest, (own[:, None] - 2 * K + own[new]).min(axis=1))
        nearest = np.maximum(nearest, 0.0)
        nearest[new] = 0.0
        if not nearest.sum() > 0:  # every row is a copy of a landmark
            break
        count = min(_TOGETHER, m - len(drawn), int(np.count_nonzero(nearest)))
        picked = rng.choice(len(among), count, replace=False, p=nearest / nearest.sum())
        drawn.extend(picked.tolist())
    return Drawn(among[np.sort(drawn)])


RULES: dict[str, Rule] = {
    "pivoted": pivoted,
    "uniform": uniform,
    "leverage": leverage,
    "kmeans++": kmeans_plus_plus,
}


def _sample(source: Source, m: int, weights: Array | None, rng: np.random.Generator) -> Array:
    fewest = min(source.n, _SAMPLED * m)
    require_memory(
        8 * _COPIES * fewest * m,
        f"choosing {m} landmarks among {fewest} rows",
        "Use fewer components, sampling='uniform', which looks at no rows, or a larger budget "
        "with mercer.config(memory=...).",
    )
    most = max(fewest, rows_at_once(m, max(_ALL, fewest), arrays=_COPIES, share=_SHARE))
    if source.n <= most:
        return np.arange(source.n)
    return np.sort(rng.choice(source.n, most, replace=False, p=_shares(weights)))


def _shares(weights: Array | None) -> Array | None:
    return None if weights is None else np.asarray(weights / weights.sum())
