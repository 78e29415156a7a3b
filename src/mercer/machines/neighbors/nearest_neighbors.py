"""Estimator `NearestNeighbors`: votes of the k nearest or most similar training samples."""

from __future__ import annotations

import time
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.approximation import Approximation
from mercer.array_types import Array, Points
from mercer.expression import bind_columns
from mercer.gram import Source
from mercer.gram.build import matrix_gram, refuse_overflow_of
from mercer.gram.graph import is_exact
from mercer.kernels import Kernel, Precomputed
from mercer.machines.base.certificate import Certified, LazyPointsCertificate
from mercer.machines.base.inputs import new_rows
from mercer.machines.base.machine import KernelMachine, all_or_nothing, kernel_of
from mercer.machines.base.parameters import check_choice, check_count, refuse
from mercer.machines.base.targets import (
    DistinctRows,
    check_weights,
    classes_of,
    distinct_rows,
    refuse_mixed_labels,
    refuse_targets,
    rows_as_they_are,
)
from mercer.machines.neighbors.problem import MostSimilar, Nearest, Neighbourhoods
from mercer.machines.neighbors.search import (
    WEIGHINGS,
    FoundRows,
    MatrixSearch,
    MatrixSimilarity,
    NeighbourSearch,
    RowSearch,
    RowSimilarity,
    copies_of,
    unit_of,
    votes,
    warn_of_silent_rows,
    winners,
    with_copies,
)
from mercer.rows.points import take
from mercer.solvers.base import Solution, Status
from mercer.solvers.certificate import certify

_CHECKED = 200  # rows whose neighbourhoods the certificate looks at


class NearestNeighbors(Certified, ClassifierMixin, KernelMachine):
    """k-nearest-neighbours classifier in the space of any kernel.

    Distances are |phi(x) - phi(z)|^2 = k(x, x) - 2 k(x, z) + k(z, z). Equally distant rows are
    taken in an order that does not depend on how the training rows were ordered; equally many
    votes go to the class with the nearest row among those voting.

    Parameters
    ----------
    n_neighbors : int or "loo", default=5
        How many rows vote; "loo" picks the number, up to `max_neighbors`, with the fewest
        leave-one-out errors, the smallest of several.
    kernel : Kernel, str or callable, default="linear"
        What similarity is; the linear kernel gives the usual distances.
    approximation : Approximation, str or None, default="auto"
        Features in place of the kernel, such as `Nystrom(1000)` or "random_features:2000"; None for
        the kernel itself. "auto" takes the kernel itself as long as that is not refused, and past
        the limit landmarks, with a warning that says so.
    max_neighbors : int, default=50
        Largest number tried by "loo".
    votes : {"plain", "similarity", "signed"}, default="plain"
        Whether each neighbour has one vote, or k(x, z) of them. Where that is negative,
        "similarity" takes no vote and warns, and "signed" counts a vote against the class: one for
        the others, in equal parts. With two classes, 0 and 1, the latter decides by the sign of
        sum_n k(x, x_n) (2 y_n - 1).
    by : {"distance", "similarity"}, default="distance"
        Whether neighbours are the rows at the smallest distance, or those of the largest k(x, z).
        Both are the same where k(x, x) is constant. Similarities need no positive semidefinite
        kernel.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    kernel_ : Kernel
        The kernel used.
    approximation_error_ : StatedError
        With features in place of the kernel: how far they are from it.
    n_neighbors_ : int
        How many rows vote.
    loo_errors_ : array of shape (max_neighbors,)
        With n_neighbors="loo": the share of rows that 1, 2, ... neighbours get wrong, the row
        itself left out (one copy of it, where weights are above one).
    solution_ : Solution
        The neighbourhoods of a sample of rows.
    certificate_ : Certificate
        Whether these are right, from all distances (or similarities) of the sample in float64;
        made when first read.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import NearestNeighbors
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0]])
    >>> machine = NearestNeighbors(n_neighbors=3).fit(X, [0, 0, 0, 1, 1])
    >>> machine.predict([[1.4], [9.0]]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        n_neighbors: int | str = 5,
        kernel: Kernel | str | Any = "linear",
        *,
        approximation: Approximation | str | None = "auto",
        max_neighbors: int = 50,
        votes: str = "plain",
        by: str = "distance",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.approximation = approximation
        self.max_neighbors = max_neighbors
        self.votes = votes
        self.by = by

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Keep the rows; with n_neighbors="loo", find out how many should vote.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the Gram matrix itself for a precomputed kernel; strings for string kernels.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        refuse_mixed_labels(self, y)
        X, y = self._training_points(X, y)
        refuse_targets(y)
        weights = check_weights(self, sample_weight, len(y))
        self.classes_, codes = classes_of(self, y, weights)
        names = self._column_names()
        self._use_kernel(kernel_of(self.kernel, X, weights, names), X, weights, names)
        given = isinstance(self.kernel_, Precomputed)
        rows = rows_as_they_are(codes, weights) if given else distinct_rows(X, codes, weights)
        self._search = self._searched(X, rows)
        self._codes, self._weights, self._rows = codes[rows.first], rows.weight, rows
        self.__dict__.pop("loo_errors_", None)
        self.n_neighbors_ = self._chosen()
        self._promise(X, rows)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the share of the votes that each class has.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel the matrix of new rows against training rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Shares, in the order of `classes_`.
        """
        found = self._near(X)
        weight = self._weights[found.index]
        warn_of_silent_rows(found, weight, self.n_neighbors_, WEIGHINGS[self.votes])
        total = self._count(found, weight, self.n_neighbors_)
        share = total / total.sum(axis=1, keepdims=True)
        # of equal shares the one that `predict` decides for is the largest, by a rounding
        first = (np.arange(len(share)), winners(total, found, weight, self._codes))
        share[first] = np.where(share[first] < 1, np.nextafter(share.max(axis=1), 2), share[first])
        return np.asarray(share)

    def predict(self, X: Any) -> Array:
        """Return new rows the class with the most votes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            Labels.
        """
        found = self._near(X)
        weight = self._weights[found.index]
        warn_of_silent_rows(found, weight, self.n_neighbors_, WEIGHINGS[self.votes])
        best = self._winners(found, weight, self.n_neighbors_)
        return np.asarray(self.classes_[best])

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Find the nearest training rows, or with by="similarity" the most similar ones.

        Distances are those of the kernel's space.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), optional
            New rows. Without them, the neighbours of each training row, itself left out.
        n_neighbors : int, optional
            How many; by default as many as vote. Copies of a row are counted one by one.
        return_distance : bool, default=True
            Whether distances are wanted, too.

        Returns
        -------
        distances : array of shape (n_samples, n_neighbors)
            Ascending; only with `return_distance`. With by="similarity": k(x, z), descending.
        indices : int array of shape (n_samples, n_neighbors)
            Numbers of training rows; of equally near ones the smaller first.
        """
        check_is_fitted(self)
        count: Any = self.n_neighbors_ if n_neighbors is None else n_neighbors
        copies = copies_of(self._rows)
        present = len(copies.owner)
        if not (isinstance(count, Integral) and 0 < int(count) <= present - (X is None)):
            must = f"be an integer from 1 to {present - (X is None)}, the rows there are"
            refuse(self, "n_neighbors", count, must)
        if X is None:
            found = self._search.among(min(int(count), len(self._weights) - 1))
            index, squared = copies.of_training_rows(found, self._search.own()[0], int(count))
        else:
            points = new_rows(self, X, isinstance(self.kernel_, Precomputed))
            found = self._search.of(points, min(int(count), len(self._weights)))
            index, squared = copies.of_new_rows(found, int(count))
        if not return_distance:
            return index
        if self._by_similarity():
            return -squared, index
        if isinstance(self.kernel_, Precomputed):
            raise ValueError(
                "NearestNeighbors: distances need k(z, z) of the new rows, which a precomputed "
                "matrix does not have; pass return_distance=False"
            )
        unit = self._search.unit if isinstance(self._search, RowSearch) else 1.0
        return np.sqrt(np.maximum(squared, 0.0)) * unit, index

    def _near(self, X: Any) -> FoundRows:
        check_is_fitted(self)
        points = new_rows(self, X, isinstance(self.kernel_, Precomputed))
        return self._search.of(points, self._rows_for(self.n_neighbors_))

    def _count(self, found: FoundRows, weight: Array, k: int) -> Array:
        weighing = WEIGHINGS[self.votes]
        return votes(found, weight, k, self._codes, len(self.classes_), weighing)

    def _by_similarity(self) -> bool:
        return isinstance(self._search, (RowSimilarity, MatrixSimilarity))

    def _winners(self, found: FoundRows, weight: Array, k: int) -> Array:
        return winners(self._count(found, weight, k), found, weight, self._codes)

    def _rows_for(self, k: int) -> int:
        """Count the rows that have k votes together, even those that weigh least."""
        reached = np.cumsum(np.sort(self._weights))
        return min(int(np.searchsorted(reached, k * (1 - 1e-12))) + 1, len(reached))

    def _chosen(self) -> int:
        total = float(self._weights.sum())
        if not isinstance(self.n_neighbors, str):
            if self.n_neighbors > total:
                must = f"be at most the total weight of the rows; n_samples = {total:g}"
                refuse(self, "n_neighbors", self.n_neighbors, must)
            return int(self.n_neighbors)
        if total <= 1:
            raise ValueError("NearestNeighbors: leave-one-out needs two rows, but n_samples = 1")
        most = max(1, min(int(self.max_neighbors), int(total - 1)))
        found, weight = self._left_out(most)
        right = [self._winners(found, weight, k) == self._codes for k in range(1, most + 1)]
        self.loo_errors_ = np.array([1.0 - r @ self._weights / total for r in right])
        return int(self.loo_errors_.argmin()) + 1

    def _left_out(self, most: int) -> tuple[FoundRows, Array]:
        """Find the neighbours of every row, and their weights, without one copy of itself."""
        n = len(self._weights)
        count, none = min(self._rows_for(most), n - 1), np.zeros((n, 0))
        found = self._search.among(count) if count else FoundRows(none.astype(np.int64), none, none)
        copies = np.maximum(self._weights - 1.0, 0.0)
        weight = self._weights[found.index]
        if not copies.any():
            return found, weight
        return with_copies(found, self._search.own(), weight, copies)

    def _searched(self, X: Points, rows: DistinctRows) -> NeighbourSearch:
        if isinstance(self.kernel_, Precomputed):
            gram = matrix_gram(X, rows.first)
            of_matrix = {"distance": MatrixSearch, "similarity": MatrixSimilarity}[self.by]
            return of_matrix(gram.dense(), rows.first, X.shape[0])
        expression = bind_columns(self.kernel_.expression(), self._column_names())
        points = take(X, rows.first)
        unit = unit_of(expression, points) if self.by == "distance" else 1.0
        source = Source(expression, points if unit == 1.0 else points / unit)
        if (self.votes, self.by) != ("plain", "distance"):  # which compare rows without k(x, z)
            refuse_overflow_of(source, self.kernel_, rows.first)
        return RowSearch(source, unit) if self.by == "distance" else RowSimilarity(source)

    def _promise(self, X: Points, rows: DistinctRows) -> None:
        n, started = len(rows.first), time.perf_counter()
        sample = np.unique(np.linspace(0, n - 1, min(n, _CHECKED)).astype(np.int64))
        count = self._rows_for(self.n_neighbors_)
        asked = take(X, rows.first[sample])
        value = Neighbourhoods(self._search.of(asked, count).index)
        seconds = time.perf_counter() - started
        self.solution_ = Solution(value, Status.SOLVED, 1, seconds, "Search")
        asks = MostSimilar if self._by_similarity() else Nearest
        question = partial(asks, points=sample, count=count)
        if isinstance(self._search, (RowSearch, RowSimilarity)):
            # distances need a positive semidefinite kernel, and only those of rows as they are
            # given are compared without rounding
            exact = self.kernel_.psd and is_exact(self._search.source)
            eager = self._by_similarity() or not exact
            self._judgement = LazyPointsCertificate(
                self._search.source, question, value, certify, eager
            )
        else:
            self._judgement = certify(question(matrix_gram(X, rows.first)), value)

    def _check_parameters(self) -> None:
        check_choice(self, "votes", tuple(WEIGHINGS))
        check_choice(self, "by", ("distance", "similarity"))
        check_count(self, "max_neighbors")
        if not (isinstance(self.n_neighbors, str) and self.n_neighbors == "loo"):
            check_count(self, "n_neighbors")
