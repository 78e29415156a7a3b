"""Drop-in for `sklearn.neighbors.KNeighborsClassifier`, and checks of distances."""

from __future__ import annotations

from math import inf, log
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.neighbors import KNeighborsClassifier as ScikitNeighbors
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer import machines
from mercer.array_types import Array
from mercer.gram import Source
from mercer.kernels import Linear
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.parameters import is_real
from mercer.machines.neighbors.search import RowSearch
from mercer.rows.points import is_sparse
from mercer.solvers.base import Solution
from mercer.solvers.certificate import Certificate

# --- distances -----------------------------------------------------------------------------------
#
# Distances that scikit-learn would compute beyond float64, refused in words.

_DISTANCES_LARGEST = log(np.finfo(np.float64).max)
_INTEGERS = 2**63  # NumPy has no larger ones, nor does a larger power differ from infinity
_SQUARED = ("euclidean", "l2", "sqeuclidean", "nan_euclidean", "seuclidean", "cosine")


def check_power(name: str, metric: Any, p: Any) -> None:
    """Raise where scikit-learn would compare, or hand on, a power that is no number of NumPy's.

    Parameters
    ----------
    name : str
        Of the machine.
    metric : str or callable
        The distance.
    p : object
        The power of metric="minkowski"; None passes scikit-learn's own check.
    """
    if metric != "minkowski":
        return
    if p is None:
        raise ValueError(f"{name}: p must be a number for metric='minkowski', not None")
    if is_real(p) and _INTEGERS <= p < inf:
        raise ValueError(
            f"{name}: p must be below 2**63, or infinite, but is {float(p):.3g}; p=np.inf asks for "
            "the largest difference of two entries"
        )


def refuse_overflow(name: str, X: Any, metric: Any, p: Any) -> None:
    """Raise where distances between rows of X may leave the range of float64.

    Parameters
    ----------
    name : str
        Of the machine.
    X : array-like, sparse matrix or None
        Rows; what holds no numbers is left to other checks.
    metric : str or callable
        The distance; of a function nothing is known.
    p : float
        The power of metric="minkowski".
    """
    if X is None or not isinstance(metric, str) or metric == "precomputed":
        return
    rows: Any = X if is_sparse(X) else np.asarray(X)
    entries = rows.tocsr().data if is_sparse(X) else rows
    if entries.dtype.kind not in "fiu" or not entries.size:
        return
    largest = max(float(entries.max()), -float(entries.min()))
    power = 2.0 if metric in _SQUARED else float(p) if metric == "minkowski" else 1.0
    # d differences of at most twice the largest entry, each to the power, added up
    if (
        0.5 < largest < inf
        and power * log(2 * largest) + log(max(rows.shape[-1], 1)) > _DISTANCES_LARGEST
    ):
        raise ValueError(
            f"{name}: distances between rows of X overflow: the largest entry is {largest:.1e} and "
            f"metric={metric!r} adds up powers of {power:g}; divide the columns by a large number, "
            "or use metric='chebyshev'"
        )


# --- neighbors -----------------------------------------------------------------------------------
#
# Drop-in for `sklearn.neighbors.KNeighborsClassifier`.

_NEIGHBORS_LARGEST = 1e150  # entries beyond, squared and added up, leave the range of float64
_BLOCK = 1024  # queries whose differences from their neighbours are held together
_ANYHOW = ("auto", "brute")  # algorithms that name no tree


class KNeighborsClassifier(ScikitNeighbors):
    """`sklearn.neighbors.KNeighborsClassifier` with Mercer's search for Euclidean neighbours.

    Runs on Mercer's compiled search for dense rows, Euclidean distances and `algorithm` "auto" or
    "brute"; other metrics, trees that are asked for by name, and sparse rows are left to
    scikit-learn, and then there is neither `solution_` nor `certificate_`.

    Parameters
    ----------
    n_neighbors : int, default=5
        How many rows vote.
    weights : {"uniform", "distance"}, callable or None, default="uniform"
        What a vote counts.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        How neighbours are found; a tree is scikit-learn's.
    leaf_size : int, default=30
        Of a tree.
    p : float, default=2
        Of metric="minkowski".
    metric : str or callable, default="minkowski"
        The distance.
    metric_params : dict or None, default=None
        Arguments of the metric.
    n_jobs : int or None, default=None
        Of scikit-learn's search; `mercer.config(threads=...)` sets what Mercer's may use.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    effective_metric_ : str or callable
        The distance used.
    effective_metric_params_ : dict
        Its arguments.
    n_samples_fit_ : int
        How many rows there are.
    outputs_2d_ : bool
        Whether there are several columns of labels.
    n_features_in_ : int
        The number of columns of X.
    machine_ : mercer.NearestNeighbors
        The Mercer machine of the same rows; fitted when first read.
    solution_ : Solution
        The neighbourhoods of a sample of rows.
    certificate_ : Certificate
        Whether these are right, from all distances of the sample in float64.

    Examples
    --------
    >>> from mercer.compat.sklearn import KNeighborsClassifier
    >>> machine = KNeighborsClassifier(n_neighbors=3).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
    >>> machine.predict([[1.1]]).tolist(), machine.certificate_.ok
    ([0], True)
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Keep the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; distances between them for metric="precomputed".
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels.

        Returns
        -------
        self
            The fitted machine.
        """
        check_power(type(self).__name__, self.metric, self._power())
        super().fit(X, y)
        held: Any = vars(self)["_fit_X"]
        kind = getattr(held, "dtype", None)  # a tree shows its memory alone
        if kind is not None and not kind.isnative:  # a copy would be, and break ties otherwise
            self._fit_X = held.astype(kind.newbyteorder("="))
        self._refuse_overflow(self._fit_X)
        for name in ("_search", "_machine"):  # of an earlier fit
            self.__dict__.pop(name, None)
        euclidean = self.effective_metric_ == "euclidean" and self.algorithm in _ANYHOW
        if euclidean and isinstance(self._fit_X, np.ndarray) and _have_distances(self._fit_X):
            self._rows = np.ascontiguousarray(self._fit_X, dtype=np.float64)
            self._search = RowSearch(Source(Linear().expression(), self._rows))
        return self

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Find the nearest rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features), optional
            New rows; those of the fit, each without itself, if left out.
        n_neighbors : int, optional
            How many; those of the machine, if left out.
        return_distance : bool, default=True
            Whether to give distances, too.

        Returns
        -------
        distances : array of shape (n_queries, n_neighbors)
            In ascending order, if wanted.
        indices : int array of shape (n_queries, n_neighbors)
            Numbers of rows.
        """
        check_is_fitted(self)
        count = self._count(n_neighbors)
        self._refuse_overflow(X)
        if not self._is_here(X, count):
            return super().kneighbors(X, count, return_distance)
        rows = self._rows
        if X is None:
            asked, index = rows, self._search.among(int(count)).index
        else:
            asked = validate_data(self, X, reset=False, order="C", dtype=np.float64)
            index = self._search.of(asked, int(count)).index
        index = index.astype(np.intp, copy=False)
        if not return_distance:
            return index
        away = _distances(asked, rows, index)
        order = np.argsort(away, axis=1, kind="stable")  # by distances without rounding of products
        return np.take_along_axis(away, order, 1), np.take_along_axis(index, order, 1)

    def predict_proba(self, X: Any) -> Any:
        """Return the share of the votes that each class has.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features), or None
            New rows; None for those of the fit, each without itself.

        Returns
        -------
        array of shape (n_queries, n_classes), or a list of such for several outputs
            Shares, in the order of `classes_`.
        """
        check_is_fitted(self)
        plain = self.weights in ("uniform", None) and not self.outputs_2d_
        if not plain or not self._is_here(X, self.n_neighbors):
            self._count()
            self._refuse_overflow(X)
            # the reciprocal of a distance that is next to none is infinite, and counts as such
            with np.errstate(over="ignore"):
                return super().predict_proba(X)
        return self._shares(X)

    def predict(self, X: Any) -> Any:
        """Return new rows the class with the most votes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features), or None
            New rows; None for those of the fit, each without itself.

        Returns
        -------
        array of shape (n_queries,) or (n_queries, n_outputs)
            Labels; of several with most votes, the first.
        """
        check_is_fitted(self)
        plain = self.weights in ("uniform", None) and not self.outputs_2d_
        if not plain or not self._is_here(X, self.n_neighbors):
            self._count()
            self._refuse_overflow(X)
            # the reciprocal of a distance that is next to none is infinite, and counts as such
            with np.errstate(over="ignore"):
                return super().predict(X)
        return self.classes_[self._shares(X).argmax(axis=1)]

    @property
    def machine_(self) -> machines.NearestNeighbors:
        """The Mercer machine of the same rows."""
        if "_search" not in self.__dict__ or self.outputs_2d_:
            raise AttributeError(
                "there is no Mercer machine before a fit, nor where scikit-learn's search runs"
            )
        count = self.n_neighbors
        if len(self.classes_) < 2 or count is None or int(count) > self.n_samples_fit_:
            raise AttributeError(
                "there is no Mercer machine where y has one class only, or where there are fewer "
                f"rows (n_samples={self.n_samples_fit_}) than n_neighbors={count}"
            )
        if "_machine" not in self.__dict__:
            machine = machines.NearestNeighbors(n_neighbors=int(count))
            self._machine = machine.fit(self._rows, self.classes_[self._y])
        return self._machine

    @property
    def solution_(self) -> Solution:
        """The neighbourhoods of a sample of rows."""
        return self.machine_.solution_

    @property
    def certificate_(self) -> Certificate:
        """Whether these are right."""
        return self.machine_.certificate_

    def _count(self, asked: Any = None) -> Any:
        """Return how many neighbours are asked for; a truth value is a number, as in Python."""
        count = self.n_neighbors if asked is None else asked
        if count is None:
            raise ValueError(
                f"{type(self).__name__}: n_neighbors must be an integer, at least 1, not None"
            )
        return int(count) if isinstance(count, Integral) else count

    def _power(self) -> Any:
        return (self.metric_params or {}).get("p", self.p)

    def _refuse_overflow(self, X: Any) -> None:
        refuse_overflow(type(self).__name__, X, self.effective_metric_, self._power())

    def _is_here(self, X: Any, count: Any) -> bool:
        """Return whether Mercer's search answers; what is wrong, scikit-learn's says."""
        if "_search" not in self.__dict__ or not isinstance(count, Integral) or is_sparse(X):
            return False
        return bool(0 < int(count) < self.n_samples_fit_ + (X is not None))

    def _shares(self, X: Any) -> Array:
        codes = self._y[self.kneighbors(X, return_distance=False)]
        votes = [(codes == c).sum(axis=1) for c in range(len(self.classes_))]
        return np.asarray(np.column_stack(votes) / codes.shape[1])


def _have_distances(rows: Array) -> bool:
    """Return whether squared distances of rows are finite."""
    return float(np.abs(rows).max(initial=0.0)) < _NEIGHBORS_LARGEST


def _distances(asked: Array, rows: Array, index: Array) -> Array:
    """Return the distances to given rows, by differences of entries."""
    away = np.empty(index.shape)
    for first in range(0, len(asked), _BLOCK):
        part = slice(first, first + _BLOCK)
        apart = asked[part, None, :] - rows[index[part]]
        away[part] = np.sqrt(np.einsum("qkd,qkd->qk", apart, apart))
    return away
