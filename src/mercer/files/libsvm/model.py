"""A LIBSVM model as its file holds it, and what LIBSVM predicts with it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.compat.sklearn.base.kernels import written
from mercer.files.libsvm.platt import class_probabilities, inlier_probabilities
from mercer.gram.source import KernelExpansion
from mercer.kernels import Kernel, Precomputed
from mercer.points import as_points, to_dense

CLASSIFIERS = ("c_svc", "nu_svc")
SVM_TYPES = (*CLASSIFIERS, "one_class", "epsilon_svr", "nu_svr")
KERNEL_TYPES = ("linear", "polynomial", "rbf", "sigmoid", "precomputed")
PARAMETERS = {
    "linear": (),
    "polynomial": ("degree", "gamma", "coef0"),
    "rbf": ("gamma",),
    "sigmoid": ("gamma", "coef0"),
    "precomputed": (),
}


@dataclass(frozen=True, eq=False)
class LibsvmModel:
    """What a LIBSVM model file says, number by number, with LIBSVM's own order and signs.

    Attributes
    ----------
    svm_type : {"c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr"}
        The machine.
    kernel_type : {"linear", "polynomial", "rbf", "sigmoid", "precomputed"}
        The kernel.
    support_vectors : array or sparse array of shape (n_support, n_features)
        Rows; for a precomputed kernel, of shape (n_support,): their numbers in the training data,
        from 1.
    dual_coef : array of shape (n_support, n_classes - 1)
        Coefficients: in row i of class a the one against class b is in column b - 1 if a < b, else
        in column b. One column for regression and one class.
    rho : array of shape (n_pairs,)
        What is taken off each decision function.
    labels : int array of shape (n_classes,) or None
        Labels, in the order in which LIBSVM met them; for classifiers.
    counts : int array of shape (n_classes,) or None
        How many support vectors each class has; for classifiers.
    degree : int
        Of the polynomial kernel.
    gamma, coef0 : float
        Of the polynomial, rbf and sigmoid kernel.
    prob_a, prob_b : array of shape (n_pairs,) or None
        Platt's slope and offset of each pair; for regression prob_a alone, the scale of a Laplace
        distribution of errors.
    density_marks : array of shape (10,) or None
        Decision values of one class that tenths of the training rows lie below.

    Examples
    --------
    >>> model = LibsvmModel(
    ...     "c_svc", "linear", np.array([[1.0], [-1.0]]), np.array([[0.5], [-0.5]]),
    ...     np.array([0.0]), np.array([3, 7]), np.array([1, 1]),
    ... )
    >>> model.decision_values([[2.0], [-0.5]]).tolist()
    [2.0, -0.5]
    >>> model.predict([[2.0], [-0.5]]).tolist()
    [3, 7]
    """

    svm_type: str
    kernel_type: str
    support_vectors: Any
    dual_coef: Array
    rho: Array
    labels: Array | None = None
    counts: Array | None = None
    degree: int = 3
    gamma: float = 0.0
    coef0: float = 0.0
    prob_a: Array | None = None
    prob_b: Array | None = None
    density_marks: Array | None = None

    @property
    def is_classifier(self) -> bool:
        """Whether it tells classes apart."""
        return self.svm_type in CLASSIFIERS

    @property
    def n_features(self) -> int:
        """The number of columns it reads; of a precomputed kernel the largest row number."""
        if self.kernel_type == "precomputed":
            return int(self.support_vectors.max(initial=0))
        return int(self.support_vectors.shape[1])

    @property
    def kernel(self) -> Kernel:
        """The kernel, in the library's terms."""
        if self.kernel_type == "precomputed":
            return Precomputed()
        found = written(self.kernel_type, self.gamma, self.coef0, self.degree)
        assert found is not None  # every other type has a name there
        return found

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Places in `labels` of the classes of each decision function."""
        return list(combinations(range(len(self.labels)), 2)) if self.labels is not None else []

    def runs(self) -> list[slice]:
        """Return where the support vectors of each class stand."""
        assert self.counts is not None  # called for classifiers
        ends = np.concatenate([[0], np.cumsum(self.counts)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def decision_values(self, X: Any) -> Array:
        """Evaluate the decision functions as LIBSVM does.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel new rows against training rows, in their order.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_pairs)
            Of classifiers positive for the first of two `labels`, (n_samples,) for two classes; the
            prediction itself of regression; negative outside of one class.
        """
        values = self._functions(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> Array:
        """Predict as LIBSVM does.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            Labels, by votes of pairs, those of equal votes the first in `labels`; numbers; or 1 and
            -1, common and novel.
        """
        values = self._functions(X)
        if self.labels is None:
            novel = self.svm_type == "one_class"
            return np.where(values[:, 0] > 0, 1, -1) if novel else values[:, 0]
        votes = np.zeros((len(values), len(self.labels)), dtype=np.intp)
        for (a, b), column in zip(self.pairs, values.T, strict=True):
            votes[:, a] += column > 0
            votes[:, b] += ~(column > 0)
        return np.asarray(self.labels[np.argmax(votes, axis=1)])

    def predict_proba(self, X: Any) -> Array:
        """Estimate probabilities as LIBSVM does (its option -b 1).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            In the order of `labels`; of one class, common and novel.
        """
        if self.labels is not None and self.prob_a is not None and self.prob_b is not None:
            count = len(self.labels)
            return class_probabilities(self._functions(X), self.prob_a, self.prob_b, count)
        if self.svm_type == "one_class" and self.density_marks is not None:
            return inlier_probabilities(self._functions(X)[:, 0], self.density_marks)
        raise ValueError(
            f"this {self.svm_type} model holds no probabilities; train it with LIBSVM's -b 1"
        )

    def _functions(self, X: Any) -> Array:
        """Evaluate all decision functions: (n, functions)."""
        points = self._rows(X)
        if self.labels is None:
            return self._sums(points, slice(None), self.dual_coef) - self.rho
        values = np.tile(-self.rho, (points.shape[0], 1))
        for c, run in enumerate(self.runs()):
            mine = [p for p, pair in enumerate(self.pairs) if c in pair]
            order = [sum(self.pairs[p]) - c for p in mine]  # the other class of each pair
            columns = [other - 1 if other > c else other for other in order]
            values[:, mine] += self._sums(points, run, self.dual_coef[run][:, columns])
        return values

    def _sums(self, points: Points, run: slice, coef: Array) -> Array:
        """Add up coefficients times kernel values of some support vectors."""
        vectors = self.support_vectors[run]
        if self.kernel_type == "precomputed":
            return np.asarray(to_dense(points)[:, vectors - 1] @ coef)
        expression = self.kernel.expression()
        return KernelExpansion(expression, vectors, coef, np.zeros(coef.shape[1]))(points)

    def _rows(self, X: Any) -> Points:
        points = as_points(X)
        given = self.kernel_type == "precomputed"
        width = points.shape[1] if points.ndim == 2 else -1
        if width < self.n_features or (width > self.n_features and not given):
            what = "one for each training row, at least" if given else "as the support vectors have"
            raise ValueError(
                f"X has {width} columns, but the model reads {self.n_features} ({what}); a file "
                "names no columns that are zero in every support vector: "
                "read_libsvm_model(..., n_features=...) adds them"
            )
        return points
