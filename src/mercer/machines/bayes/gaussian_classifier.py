"""Classes as Gaussians: spherical, diagonal or full, one covariance for each or for all."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.array_types import Array
from mercer.machines.base.inputs import read_rows, refuse_nonfinite
from mercer.machines.base.machine import Machine, all_or_nothing
from mercer.machines.base.parameters import check_choice, check_flag, check_real, refuse
from mercer.machines.base.targets import (
    PosteriorDecisions,
    batch_codes,
    check_loss,
    check_prior,
    check_weights,
    classes_for,
    classes_of,
    labels_of,
    prior_of,
    rule_of,
)
from mercer.machines.bayes.counts import SolvedLater
from mercer.machines.bayes.gaussian_scores import axes, check_range, planes, scatter_of, scores
from mercer.machines.bayes.problem import GaussianClasses, Scatter, Spread

_LEAST_FLOOR = 1e-290  # smaller floors overflow when inverted and multiplied by differences


class GaussianClassifier(PosteriorDecisions, SolvedLater, ClassifierMixin, Machine, BaseEstimator):
    """Gaussian classes by maximum likelihood: linear and quadratic discriminants.

    With one covariance for all classes the decision boundary of two classes is a hyperplane, that
    of linear discriminant analysis; with one for each, a quadric.

    Parameters
    ----------
    covariance : {"full", "diagonal", "spherical"}, default="full"
        The form of the covariances.
    shared : bool, default=False
        Whether all classes have one covariance.
    prior : "uniform", array of shape (n_classes,) or None, default=None
        Probabilities of the classes; None takes their shares in the data.
    loss : matrix of shape (n_classes, n_classes) or None, default=None
        Entry (i, j) is the cost of predicting class i when j is true.
    floor : float, default=1e-9
        The smallest variance in any direction, of columns scaled to variance one over all rows.
    unbiased : bool, default=False
        Whether covariances are divided by the weight minus one (shared: minus the number of
        classes) instead of the weight.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    class_count_ : array of shape (n_classes,)
        Total weight of each class.
    prior_ : array of shape (n_classes,)
        Probabilities of the classes.
    means_ : array of shape (n_classes, n_features)
        Means.
    covariance_ : array
        Covariances, of shape (n_features, n_features) if full, (n_features,) if diagonal, () if
        spherical, with n_classes in front unless shared.
    floored_ : int array of shape (n_classes,) or (1,)
        Number of variances of each covariance that were raised to the floor.
    coef_, intercept_ : arrays of shape (n_classes, n_features), (n_classes,); one row for two
        The hyperplanes, if the covariance is shared.
    solution_ : Solution
        How the fit ended.
    certificate_ : Certificate
        Whether means and covariances are the most likely ones.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GaussianClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(size=(50, 2)), rng.normal(size=(50, 2)) + 3])
    >>> y = np.repeat(["a", "b"], 50)
    >>> machine = GaussianClassifier(shared=True).fit(X, y)
    >>> machine.predict([[0, 0], [3, 3]]).tolist(), machine.coef_.shape
    (['a', 'b'], (1, 2))
    >>> machine.certificate_.ok
    True
    """

    def __init__(
        self,
        covariance: str = "full",
        *,
        shared: bool = False,
        prior: npt.ArrayLike | str | None = None,
        loss: npt.ArrayLike | None = None,
        floor: float = 1e-9,
        unbiased: bool = False,
    ) -> None:
        self.covariance = covariance
        self.shared = shared
        self.prior: Any = prior
        self.loss: Any = loss
        self.floor = floor
        self.unbiased = unbiased

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit Gaussians.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        rows = self._rows(X, True, y)
        y = labels_of(self, y, len(rows))
        weights = check_weights(self, sample_weight, len(y))
        self.classes_, codes = classes_of(self, y, weights)
        self._keep(self._scatter(rows, codes, weights))
        self._asked.solution  # noqa: B018  overflow raises here, not when it is read
        return self

    @all_or_nothing
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Add rows: many batches give what one `fit` to all of them gives.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), optional
            All labels there will be; needed at the first call.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The estimator.
        """
        self._check_parameters()
        first = "_held" not in self.__dict__
        rows = self._rows(X, first, y)
        y = labels_of(self, y, len(rows))
        weights = check_weights(self, sample_weight, len(y))
        self.classes_ = classes_for(self, classes, first)
        if not first and (self.covariance == "full") != (self._held.scatter.ndim == 3):
            held = "full" if self.covariance != "full" else "diagonal or spherical"
            must = f"stay {held} during a stream, which keeps no other state; call fit to restart"
            refuse(self, "covariance", self.covariance, must)
        batch = self._scatter(rows, batch_codes(self, y, weights), weights)
        self._keep(batch if first else self._held.merged(batch))
        return self

    def _scatter(self, rows: Array, codes: Array, weights: Array) -> Scatter:
        full = self.covariance == "full"
        return scatter_of(self, rows, codes, weights, len(self.classes_), full)

    def _keep(self, held: Scatter) -> None:
        rule_of(self, len(self.classes_))
        check_range(self, held)
        self._held = held
        self.class_count_ = held.weight
        self.prior_ = prior_of(self, held.weight)
        shape = (self.covariance == "spherical", bool(self.shared))
        problem = GaussianClasses(held, *shape, float(self.floor), bool(self.unbiased))
        self._ask(problem)

    @property
    def _spread(self) -> Spread:
        found: Spread = self.solution_.value
        return found

    @property
    def means_(self) -> Array:
        """Means of the classes."""
        return self._spread.mean

    @property
    def covariance_(self) -> Array:
        """Covariances in their form: matrices, diagonals, or numbers."""
        spread = self._spread
        found = np.array([spread.covariance(c) for c in range(len(spread.values))])
        if self._asked.problem.round:
            found = found[:, 0]
        return np.asarray(found[0] if self._asked.problem.shared else found)

    @property
    def floored_(self) -> Array:
        """Number of variances of each covariance that were raised to the floor."""
        low = self._asked.problem.floor * (1 + 1e-9)
        return np.asarray(np.count_nonzero(self._spread.values <= low, axis=1))

    @property
    def coef_(self) -> Array:
        """Normals of the hyperplanes, if the covariance is shared."""
        return self._planes()[0]

    @property
    def intercept_(self) -> Array:
        """Offsets of the hyperplanes, if the covariance is shared."""
        return self._planes()[1]

    def _planes(self) -> tuple[Array, Array]:
        if not self.__sklearn_is_fitted__() or not self._asked.problem.shared:
            raise AttributeError("coef_ and intercept_ exist after a fit with shared=True")
        normals, offsets, centre = planes(self._spread, self.prior_)
        offsets = offsets - normals @ centre
        if len(offsets) == 2:
            return normals[1:] - normals[:1], offsets[1:] - offsets[:1]
        return normals, offsets

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw rows and labels from the fitted model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of samples.
        random_state : int, RandomState or None, default=None
            Source of randomness.

        Returns
        -------
        tuple of arrays of shape (n_samples, n_features) and (n_samples,)
            Rows and labels.
        """
        check_is_fitted(self, "_held")
        if isinstance(n_samples, bool) or not isinstance(n_samples, int | np.integer):
            raise TypeError(f"GaussianClassifier: n_samples={n_samples!r} must be an integer")
        if n_samples < 1:
            raise ValueError(f"GaussianClassifier: n_samples={n_samples} must be at least 1")
        rng, spread = check_random_state(random_state), self._spread
        codes = rng.choice(len(self.classes_), size=n_samples, p=self.prior_)
        X = rng.standard_normal((n_samples, spread.mean.shape[1]))
        for c in range(len(self.classes_)):
            mine = codes == c
            half = axes(spread, c)
            X[mine] = spread.mean[c] + (X[mine] * half if half.ndim == 1 else X[mine] @ half.T)
        return X, np.asarray(self.classes_[codes])

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self, "_held")
        return scores(self, self._rows(X, False), self._spread, self.prior_)

    def _rows(self, X: Any, fitting: bool, y: Any = "no_validation") -> Array:
        if y is None:
            validate_data(self, X, y)
        rows = read_rows(self, X, fitting=fitting, dtype=np.float64)
        refuse_nonfinite(self, rows)
        return np.asarray(rows)

    def _check_parameters(self) -> None:
        check_choice(self, "covariance", ("full", "diagonal", "spherical"))
        check_flag(self, "shared")
        check_flag(self, "unbiased")
        check_real(self, "floor", above=0.0)
        if self.floor < _LEAST_FLOOR:
            refuse(self, "floor", self.floor, f"be at least {_LEAST_FLOOR:g}, to divide by")
        check_prior(self)
        check_loss(self)
