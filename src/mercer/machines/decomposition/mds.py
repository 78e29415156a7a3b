"""Multidimensional scaling, and dissimilarities of rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.backends.factorizations import eigh
from mercer.deadline import row_slices
from mercer.gram.build import matrix_gram
from mercer.machines.base.inputs import new_rows, training_rows_alone
from mercer.machines.base.machine import Machine, all_or_nothing
from mercer.machines.base.parameters import check_count, check_limits, refuse
from mercer.machines.base.targets import check_weights
from mercer.machines.decomposition.components import pairs_of
from mercer.resources import require_memory
from mercer.rows.points import is_objects, is_sparse, row_count, take, to_dense
from mercer.solvers.base import Callback, Solution
from mercer.solvers.certificate import Certificate, certify
from mercer.solvers.dispatch import solve
from mercer.solvers.eigen.dense import signs_of
from mercer.solvers.eigen.problem import Eigenproblem, Modes

# --- distances -----------------------------------------------------------------------------------
#
# Dissimilarities between rows: by a metric, by a function, or as they are given.

METRICS = (
    "euclidean",
    "cityblock",
    "chebyshev",
    "canberra",
    "braycurtis",
    "correlation",
    "cosine",
    "hamming",
    "jaccard",
)
_RANGE = 1e150  # of dissimilarities and their inverses, whose squares are numbers
_BLOCK = 1 << 20  # distances between two looks at the clock
_SYMMETRIC = 1e-8  # of the largest: by how much d(x, y) and d(y, x) may differ

Metric = str | Callable[[Array, Array], float]


def check_metric(machine: Any) -> None:
    """Refuse what is no metric."""
    metric = machine.metric
    if not callable(metric) and metric not in (*METRICS, "precomputed"):
        names = ", ".join(map(repr, METRICS))
        refuse(machine, "metric", metric, f"be 'precomputed', a function of two rows, or {names}")


def between(machine: Any, Z: Points, X: Points) -> Array:
    """Return the dissimilarities of rows Z (m, d) from rows X (n, d): (m, n)."""
    m, n = row_count(Z), row_count(X)
    what = f"dissimilarities of {m} rows from {n}"
    written = sum(8 * A.shape[0] * A.shape[1] for A in (Z, X) if is_sparse(A))
    require_memory(8 * m * n + written, what, "Use fewer rows.")
    Z, X = (np.asarray(to_dense(A), dtype=np.float64) for A in (Z, X))
    if machine.metric == "jaccard":
        Z, X = Z != 0, X != 0
    unit = _unit(Z, X) if machine.metric == "euclidean" else 1.0  # which squares differences
    X = X / unit if unit != 1.0 else X
    found, step = np.empty((m, n)), max(1, _BLOCK // max(1, n))
    for first in range(0, m, step):
        deadline.check()
        part = slice(first, first + step)
        found[part] = cdist(Z[part] / unit, X, machine.metric)
    found *= unit
    refuse_no_dissimilarities(machine, found)
    return found


def _unit(Z: Array, X: Array) -> float:
    """Return the largest power of two that is no more than the largest entry."""
    largest = max(float(np.abs(A).max(initial=0.0)) for A in (Z, X))
    return float(2.0 ** np.floor(np.log2(largest))) if 0 < largest < np.inf else 1.0


def refuse_no_dissimilarities(machine: Any, D: Array) -> None:
    """Refuse numbers that are no dissimilarities: negative, or none."""
    largest = float(D.max(initial=0.0))
    if largest > _RANGE or 0 < largest < 1.0 / _RANGE:
        raise ValueError(
            f"{type(machine).__name__}: the largest dissimilarity is {largest:.0e}, and squares "
            "leave the range of float64. Scale the features, or the dissimilarities"
        )
    bad = np.argwhere(~(np.isfinite(D) & (D >= 0)))
    if len(bad):
        i, j = bad[0]
        wrong = "Negative values in data" if D[i, j] < 0 else "not finite"
        raise ValueError(
            f"{type(machine).__name__}: {wrong}: the dissimilarity of rows {i} and {j} is "
            f"{D[i, j]:g} (metric={machine.metric!r}). Use another metric, or leave such rows out; "
            "similarities belong to PCA(kernel='precomputed')"
        )


def as_given(machine: Any, D: Array) -> Array:
    """Check a square matrix of dissimilarities; return it symmetric to the last bit."""
    owner = type(machine).__name__
    if D.shape[0] != D.shape[1]:
        raise ValueError(
            f"{owner}: metric='precomputed' takes a square matrix of dissimilarities, not one of "
            f"shape {D.shape}; for rows use metric='euclidean'"
        )
    refuse_no_dissimilarities(machine, D)
    largest = float(D.max(initial=0.0))
    apart = np.argwhere(np.abs(D - D.T) > _SYMMETRIC * largest)
    if len(apart):
        i, j = apart[0]
        raise ValueError(
            f"{owner}: dissimilarities must be symmetric, but those of rows {i} and {j} are "
            f"{D[i, j]:g} and {D[j, i]:g}. Pass (D + D.T) / 2 if they mean the same"
        )
    own = np.flatnonzero(D.diagonal() > _SYMMETRIC * largest)
    if len(own):
        i = own[0]
        raise ValueError(
            f"{owner}: the dissimilarity of row {i} from itself is {D[i, i]:g}, not 0. "
            "Similarities belong to PCA(kernel='precomputed')"
        )
    half = 0.5 * D  # the sum may be out of range where no entry is
    return np.asarray(half + half.T)


# --- mds -----------------------------------------------------------------------------------------
#
# Multidimensional scaling: places of rows from their distances.

_EPS = float(np.finfo(float).eps)
_SMALLEST = 1e-12  # of the largest eigenvalue: below, places are rounding
_MATRICES = 9  # of n by n numbers that a fit holds


class MDS(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Machine, BaseEstimator):
    """Classical multidimensional scaling: places of rows from their dissimilarities.

    With squares D2 of the dissimilarities and H = I - 1 1' / n, the matrix B = -H D2 H / 2 holds
    the inner products of the places about their mean, if there are any with these distances. The
    places are its leading eigenvectors, each times the root of its eigenvalue (Torgerson, Gower).
    For Euclidean distances of rows these are their principal component scores, up to signs.

    Parameters
    ----------
    n_components : int, default=2
        Dimensions of the places; those beyond the positive eigenvalues are zero.
    metric : str or callable, default="euclidean"
        How rows differ: "euclidean", "cityblock", "chebyshev", "canberra", "braycurtis",
        "correlation", "cosine", "hamming" or "jaccard"; a function of two rows; or "precomputed",
        and X is the matrix of dissimilarities.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the search.
    time_limit : float or None, default=None
        Seconds after which a fit without an answer ends.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        The places, mean zero; in each column the entry of largest magnitude is positive.
    eigenvalues_ : array of shape (n_components,)
        Of B, largest first: sums of squares of the columns of the places.
    explained_ : float
        The sum of these over the sum of the sizes of all eigenvalues.
    negative_share_ : float
        The sum of the sizes of negative eigenvalues over that of all: zero, but for rounding, where
        the dissimilarities are Euclidean distances. No place can show that part.
    stress_ : float
        Root of the sum of squared differences between distances of places and dissimilarities,
        over that of squared dissimilarities (Kruskal's stress-1). Classical scaling minimises the
        difference of inner products (strain), not this.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Residuals and orthonormality of the eigenpairs of B, and a search for a larger one.

    Examples
    --------
    Three towns on a line, by their distances:

    >>> import numpy as np
    >>> from mercer import MDS
    >>> D = np.array([[0.0, 3.0, 5.0], [3.0, 0.0, 2.0], [5.0, 2.0, 0.0]])
    >>> machine = MDS(1, metric="precomputed").fit(D)
    >>> np.abs(machine.embedding_ - machine.embedding_[0]).ravel().round(6).tolist()
    [0.0, 3.0, 5.0]
    >>> machine.certificate_.ok
    True
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        metric: Metric = "euclidean",
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.metric = metric
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Find places.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the matrix of dissimilarities with metric="precomputed".
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        X = self._read(X)
        weights = check_weights(self, sample_weight, X.shape[0])
        kept = np.flatnonzero(weights)
        what = f"classical scaling of {len(kept)} rows"
        require_memory(8 * _MATRICES * len(kept) ** 2, what, "Use fewer rows.")
        self._kept: Array = kept
        self._rows: Points | None = None if self._is_given() else take(X, kept)
        D = X[np.ix_(kept, kept)] if self._rows is None else between(self, self._rows, self._rows)
        if self.n_components > len(kept):
            must = f"be at most the number of rows that count, n_samples={len(kept)}"
            refuse(self, "n_components", self.n_components, must)
        self._scale(D, weights[kept])
        self.embedding_ = np.zeros((len(weights), int(self.n_components)))
        self.embedding_[kept] = self._places
        del self._places
        absent = np.flatnonzero(weights == 0)
        if len(absent):
            self.embedding_[absent] = self._placed(take(X, absent))
        return self

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> Array:
        """Find places, and give them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the matrix of dissimilarities with metric="precomputed".
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        array of shape (n_samples, n_components)
            The places.
        """
        return np.array(self.fit(X, y, sample_weight).embedding_)

    def transform(self, X: Any) -> Array:
        """Place new rows by their dissimilarities from the training rows (Gower's formula).

        With b the squared distances of the places from their mean and d2 the squared
        dissimilarities of a new row from them, its place is L^-1 P'(b - d2) / 2, P the places and L
        their eigenvalues. The places of training rows stay as they are.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; with metric="precomputed" their dissimilarities from all training rows.

        Returns
        -------
        array of shape (n_samples, n_components)
            Places.
        """
        check_is_fitted(self)
        return self._placed(new_rows(self, X, self._is_given()))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_given()
        tags.input_tags.pairwise = self._is_given()
        tags.input_tags.positive_only = self._is_given()
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def _is_given(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def _read(self, X: Any) -> Points:
        rows = training_rows_alone(self, X, self._is_given())
        if is_objects(rows):
            raise TypeError(
                "MDS: rows must be numbers; of texts pass a matrix of dissimilarities with "
                "metric='precomputed'"
            )
        if not self._is_given():
            return rows
        return as_given(self, np.asarray(rows, dtype=np.float64))

    def _scale(self, D: Array, s: Array) -> None:
        """Decompose the doubly centred squares, in units of the largest dissimilarity."""
        largest = float(D.max(initial=0.0))
        self._unit = 2.0 ** np.round(np.log2(largest)) if largest > 0 else 1.0
        K = np.empty(D.shape)
        for some in row_slices(len(D), len(D)):
            K[some] = np.square(D[some] / self._unit) * -0.5
        count = int(self.n_components)
        problem = pairs_of(matrix_gram(K), s, count)
        options: dict[str, Any] = {"callback": self.callback, "time_limit": self.time_limit}
        solution: Solution = solve(problem, **options)
        values = self._all_values(problem, solution.value.values)
        rounding = max(_SMALLEST * float(np.abs(values).max()), 16 * _EPS * float(np.abs(K).sum()))
        rank = int((values[:count] > rounding).sum())
        modes = self._signed(solution.value, max(rank, 1), s)
        self.solution_ = replace(solution, value=modes)
        self._keep(modes, values, rounding, rank)
        share = s / s.sum()
        coef = np.zeros((len(s), count))
        coef[:, :rank] = modes.vectors[:, :rank] * np.sqrt(s)[:, None] / np.sqrt(values[:rank])
        scores = np.zeros(count)
        scores[:rank] = values[:rank]
        self._places = coef * scores * self._unit / s[:, None]
        self._coef = coef - share[:, None] * coef.sum(axis=0)
        self._offset = (share @ K) @ self._coef
        self.stress_ = _stress(D, self._places, s)
        found = certify(Eigenproblem(problem.gram, len(modes.values)), modes)
        self.certificate_: Certificate = replace(found, statement=self._statement(found))

    def _all_values(self, problem: Eigenproblem, found: Array) -> Array:
        """Return all eigenvalues, largest first; of Euclidean distances the last is their rest."""
        if not callable(self.metric) and self.metric == "euclidean":  # none is negative
            rest = float(problem.gram.diag().sum() - found.sum())
            return np.append(found, max(rest, 0.0))
        values = eigh(problem.gram.dense())[0][::-1]
        return np.append(found, values[len(found) :])

    def _signed(self, modes: Modes, count: int, s: Array) -> Modes:
        vectors = modes.vectors[:, :count]
        return Modes(modes.values[:count], vectors * signs_of(vectors / np.sqrt(s)[:, None]))

    def _keep(self, modes: Modes, values: Array, rounding: float, rank: int) -> None:
        self.eigenvalues_ = np.zeros(int(self.n_components))
        self.eigenvalues_[:rank] = modes.values[:rank] * self._unit**2
        sizes = np.where(np.abs(values) > rounding, np.abs(values), 0.0)
        total = float(sizes.sum())
        self.negative_share_ = float(sizes[values < 0].sum()) / total if total > 0 else 0.0
        self.explained_ = float(modes.values[:rank].sum()) / total if total > 0 else 1.0
        last = float(values[rank - 1]) if rank else 0.0
        if rank and -float(values.min()) > max(last, rounding):
            warnings.warn(
                f"MDS: a negative eigenvalue is larger than the last one used: the dissimilarities "
                f"are far from Euclidean distances ({100 * self.negative_share_:.0f} % of the "
                "eigenvalues are negative). Use fewer components, or another metric",
                UserWarning,
                stacklevel=6,
            )

    def _statement(self, found: Certificate) -> str:
        return (
            f"{found.statement}; {100 * self.negative_share_:.2g} % of the eigenvalues, by size, "
            f"are negative and shown by no place; distances differ by a stress of "
            f"{self.stress_:.2g}, which is not what is minimised"
        )

    def _placed(self, X: Points) -> Array:
        """Place rows by Gower's formula, in units of the largest dissimilarity."""
        if self._rows is None:
            D = np.asarray(X, dtype=np.float64)[:, self._kept]
            refuse_no_dissimilarities(self, D)
        else:
            D = between(self, X, self._rows)
        squares = np.square(D / self._unit) * -0.5
        return np.asarray((squares @ self._coef - self._offset) * self._unit)

    def _check_parameters(self) -> None:
        check_count(self, "n_components")
        check_metric(self)
        check_limits(self)


def _stress(D: Array, places: Array, s: Array) -> float:
    """Return the root of the weighted sum of squared differences, over that of squares."""
    above, below = 0.0, 0.0
    unit = float(D.max(initial=0.0)) or 1.0
    for i, row in enumerate(places):
        near = np.sqrt(np.square(places - row).sum(axis=1))
        above += float(s[i] * (s @ np.square((near - D[i]) / unit)))
        below += float(s[i] * (s @ np.square(D[i] / unit)))
    return float(np.sqrt(above / below)) if below > 0 else 0.0
