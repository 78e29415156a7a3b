"""Estimator `NearestMean`: classification by the nearest class mean in feature space."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from mercer.approximation import Approximation
from mercer.array_types import Array, Points
from mercer.gram import Gram, Need, centered, make_gram
from mercer.gram.build import factor_gram, refuse_overflow
from mercer.kernels import Kernel, Linear
from mercer.machines.base.certificate import Certified, lazy_certificate
from mercer.machines.base.machine import KernelMachine, all_or_nothing, kernel_of
from mercer.machines.base.sharing import SharedMatrix
from mercer.machines.base.targets import (
    check_weights,
    classes_of,
    refuse_mixed_labels,
    refuse_targets,
)
from mercer.machines.neighbors.problem import ClassMeans
from mercer.rows.points import is_sparse, take
from mercer.solvers.base import Solution
from mercer.solvers.certificate import certify
from mercer.solvers.dispatch import solve


class NearestMean(Certified, ClassifierMixin, KernelMachine):
    """Nearest-mean classifier in the space of any kernel.

    With means mu_c, a row x scores 2 mu_c'phi(x) - |mu_c|^2, which is |phi(x)|^2 less its squared
    distance to the mean; the mean of all rows is taken for the origin. For two classes the decision
    is sum_i a_i k(x_i, x) + b with a_i = y_i / m_{y_i} and b = (|mu_-|^2 - |mu_+|^2) / 2: zero
    exactly where both means are equally far.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="linear"
        What similarity is.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    kernel_ : Kernel
        The kernel used.
    approximation_error_ : StatedError
        With features in place of the kernel: how far they are from it.
    dual_coef_ : array of shape (n_samples, n_classes)
        Shares of the rows in the means.
    squared_lengths_ : array of shape (n_classes,)
        Squared lengths of the means, from the mean of all rows.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Shares and lengths recomputed from the data; made when first read.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import NearestMean
    >>> from mercer.kernels import Gaussian
    >>> X = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> machine = NearestMean(Gaussian(2.0)).fit(X, ["low", "low", "high", "high"])
    >>> machine.predict([[0.5], [4.0]]).tolist()
    ['low', 'high']
    """

    shares = (SharedMatrix(),)

    def __init__(
        self,
        kernel: Kernel | str | Any = "linear",
        *,
        approximation: Approximation | str | None = "auto",
    ) -> None:
        self.kernel = kernel
        self.approximation = approximation

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Average the rows of each class.

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
        refuse_mixed_labels(self, y)
        X, y = self._training_points(X, y)
        refuse_targets(y)
        weights = check_weights(self, sample_weight, len(y))
        self.classes_, codes = classes_of(self, y, weights)
        names = self._column_names()
        self._use_kernel(kernel_of(self.kernel, X, weights, names), X, weights, names)
        rows = np.flatnonzero(weights)
        gram = self._gram(X, rows)
        question = partial(
            _means, codes=codes[rows], weights=weights[rows], count=len(self.classes_)
        )
        problem = question(gram)
        solution: Solution = solve(problem)
        self.solution_ = solution
        self._judgement = lazy_certificate(gram, question, solution.value, certify, weights[rows])
        means = solution.value
        self._expansion = problem.gram.expand(2.0 * means.coef).plus(-means.squared)
        self.squared_lengths_ = means.squared
        self.dual_coef_ = np.zeros((len(y), len(self.classes_)))
        self.dual_coef_[rows] = means.coef
        return self

    def _gram(self, X: Points, rows: Array) -> Gram:
        if isinstance(self.kernel_, Linear) and not is_sparse(X):
            used = take(X, rows).astype(np.float64, copy=False)
            gram = factor_gram(rows_as_features, used)
            refuse_overflow(gram, self.kernel_, rows)
            return gram
        names = self._column_names()
        return make_gram(self.kernel_, X, Need.PRODUCTS, rows=rows, names=names)

    def decision_function(self, X: Any) -> Array:
        """Score new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel the matrix of new rows against training rows.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            For two classes f(x), positive for the second; for more, the score of each class.
        """
        scores = self._values(X)
        return (scores[:, 1] - scores[:, 0]) / 2 if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Array:
        """Return new rows the class of the nearest mean; where two are equally far, the first.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            Labels.
        """
        scores = self.decision_function(X)
        best = scores > 0 if len(self.classes_) == 2 else scores.argmax(axis=1)
        return np.asarray(self.classes_[np.asarray(best, dtype=np.intp)])


def _means(gram: Gram, codes: Array, weights: Array, count: int) -> ClassMeans:
    """Put the question around the mean of all rows: distances are the same, and digits are kept."""
    return ClassMeans(centered(gram, weights), codes, weights, count)


def rows_as_features(Z: Points) -> Points:
    """Return the features of the linear kernel."""
    return Z
