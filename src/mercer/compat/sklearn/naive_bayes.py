"""Drop-ins for `sklearn.naive_bayes`: scikit-learn's own counts, with a certificate.

There is nothing to solve: the answers are shares of counts, in closed form, and scikit-learn
computes them as fast as they can be read. So these classes are scikit-learn's, and what they store
is judged. `mercer.NaiveBayes` takes tables of mixed columns with gaps.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn import naive_bayes

from mercer.array_types import Array
from mercer.compat.sklearn.base import check_priors, in_words
from mercer.machines.bayes.problem import (
    ColumnGaussians,
    LogShares,
    MeansAndVariances,
    SmoothedShares,
)
from mercer.solvers.base import Solution, Status
from mercer.solvers.certificate import Certificate, certify


class ClosedForm:
    """A class of scikit-learn whose fitted numbers are judged when somebody asks."""

    _priors = "class_prior"

    @property
    def solution_(self) -> Solution:
        """How the fit ended: closed forms are solved."""
        self._check_fitted("solution_")
        return Solution(self._value(), Status.SOLVED, 1, 0.0, "closed form of scikit-learn")

    @property
    def certificate_(self) -> Certificate:
        """The judgement of what is stored, from what was counted."""
        self._check_fitted("certificate_")
        return certify(self._problem(), self._value())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit as scikit-learn does; numbers beyond float64 are refused in words."""
        check_priors(self, self._priors)
        with in_words(type(self).__name__):
            super().fit(X, y, sample_weight)  # type: ignore[misc]
        return self

    def _joint_log_likelihood(self, X: Any) -> Any:
        with in_words(type(self).__name__):  # a prior of zero, densities that vanish
            return super()._joint_log_likelihood(X)  # type: ignore[misc]

    def _check_fitted(self, name: str) -> None:
        if "classes_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no {name} before it is fitted")

    def _problem(self) -> Any:
        """Return what the closed form answers."""
        raise NotImplementedError

    def _value(self) -> Any:
        """Return what is stored."""
        raise NotImplementedError


class MultinomialNB(ClosedForm, naive_bayes.MultinomialNB):
    """`sklearn.naive_bayes.MultinomialNB` with a certificate.

    Parameters, attributes and methods are scikit-learn's; `solution_` and `certificate_` come on
    top.

    Examples
    --------
    >>> from mercer.compat.sklearn import MultinomialNB
    >>> machine = MultinomialNB().fit([[2, 0], [3, 1], [0, 4]], ["a", "a", "b"])
    >>> machine.predict([[1, 0], [0, 1]]).tolist(), machine.certificate_.ok
    (['a', 'b'], True)
    """

    def _problem(self) -> SmoothedShares:
        return SmoothedShares((self.feature_count_,), self._check_alpha())

    def _value(self) -> LogShares:
        return LogShares((self.feature_log_prob_,))


class ComplementNB(ClosedForm, naive_bayes.ComplementNB):
    """`sklearn.naive_bayes.ComplementNB` with a certificate.

    Parameters, attributes and methods are scikit-learn's; `solution_` and `certificate_` come on
    top. What is judged are the shares of the rows outside each class. With `norm=True` only their
    logarithms over the sum of these are stored: they are scaled back first.

    Examples
    --------
    >>> from mercer.compat.sklearn import ComplementNB
    >>> machine = ComplementNB().fit([[2, 0], [3, 1], [0, 4]], ["a", "a", "b"])
    >>> machine.predict([[1, 0], [0, 1]]).tolist(), machine.certificate_.ok
    (['a', 'b'], True)
    """

    def _problem(self) -> SmoothedShares:
        return SmoothedShares((self.feature_all_ - self.feature_count_,), self._check_alpha())

    def _value(self) -> LogShares:
        if not self.norm:
            return LogShares((-self.feature_log_prob_,))
        outside = self.feature_all_ + self._check_alpha() - self.feature_count_
        scale = np.log(outside / outside.sum(axis=1, keepdims=True)).sum(axis=1, keepdims=True)
        return LogShares((self.feature_log_prob_ * scale,))


class BernoulliNB(ClosedForm, naive_bayes.BernoulliNB):
    """`sklearn.naive_bayes.BernoulliNB` with a certificate.

    Parameters, attributes and methods are scikit-learn's; `solution_` and `certificate_` come on
    top.

    Examples
    --------
    >>> from mercer.compat.sklearn import BernoulliNB
    >>> machine = BernoulliNB().fit([[1, 0], [1, 1], [0, 1]], ["a", "a", "b"])
    >>> machine.predict([[1, 0], [0, 1]]).tolist(), machine.certificate_.ok
    (['a', 'b'], True)
    """

    def _problem(self) -> SmoothedShares:
        missed = self.class_count_[:, None] - self.feature_count_
        alpha = np.broadcast_to(self._check_alpha(), missed.shape)
        return SmoothedShares((_pairs(self.feature_count_, missed),), _pairs(alpha, alpha))

    def _value(self) -> LogShares:
        with np.errstate(divide="ignore"):  # a probability of one leaves none
            missed = np.log1p(-np.exp(self.feature_log_prob_))
        return LogShares((_pairs(self.feature_log_prob_, missed),))


class CategoricalNB(ClosedForm, naive_bayes.CategoricalNB):
    """`sklearn.naive_bayes.CategoricalNB` with a certificate.

    Parameters, attributes and methods are scikit-learn's; `solution_` and `certificate_` come on
    top.

    Examples
    --------
    >>> from mercer.compat.sklearn import CategoricalNB
    >>> machine = CategoricalNB().fit([[1, 0], [1, 2], [0, 2]], ["a", "a", "b"])
    >>> machine.predict([[1, 0], [0, 2]]).tolist(), machine.certificate_.ok
    (['a', 'b'], True)
    """

    def _problem(self) -> SmoothedShares:
        return SmoothedShares(tuple(self.category_count_), self._check_alpha())

    def _value(self) -> LogShares:
        return LogShares(tuple(self.feature_log_prob_))


class GaussianNB(ClosedForm, naive_bayes.GaussianNB):
    """`sklearn.naive_bayes.GaussianNB` with a certificate.

    Parameters, attributes and methods are scikit-learn's; `solution_` and `certificate_` come on
    top. The certificate is made from the rows, so `fit` keeps them until it is read; after
    `partial_fit` there are no rows to judge by, and it is refused.

    Examples
    --------
    >>> from mercer.compat.sklearn import GaussianNB
    >>> machine = GaussianNB().fit([[1.0], [2.0], [5.0], [6.5]], ["a", "a", "b", "b"])
    >>> machine.predict([[1.8], [5.5]]).tolist(), machine.certificate_.ok
    (['a', 'b'], True)
    """

    _judgement: Any
    _priors = "priors"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit as scikit-learn does, and remember the rows for the certificate."""
        super().fit(X, y, sample_weight)
        self._judgement = None
        if not np.isfinite(float(self.epsilon_)):
            raise ValueError("GaussianNB: squares of a column of X overflow; scale that column")
        if not float(self.epsilon_) > 0 and bool((self.var_ == 0).any()):
            raise ValueError(
                "GaussianNB: a column has variance zero in a class, and no smoothing lifts it "
                "(n_samples = 1, columns that are all constant, or var_smoothing=0); leave such "
                "columns out, or give a larger var_smoothing"
            )
        if type(self.theta_) is np.ndarray:  # rows of other array libraries are not looked at
            rows = np.array(X, dtype=np.float64)
            codes = np.searchsorted(self.classes_, np.asarray(y).ravel())
            weights = np.ones(len(rows)) if sample_weight is None else np.array(sample_weight)
            self._judgement = (rows, codes, weights)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows as scikit-learn does; nothing is kept to judge by."""
        super().partial_fit(X, y, classes, sample_weight)
        self._judgement = None
        return self

    @property
    def certificate_(self) -> Certificate:
        """The judgement of means and variances, from the rows; computed when first read."""
        self._check_fitted("certificate_")
        if self._judgement is None:
            raise AttributeError(
                "GaussianNB has no certificate_ after partial_fit: the rows are gone; call fit"
            )
        if not isinstance(self._judgement, Certificate):
            self._judgement = certify(self._problem(), self._value())
        return self._judgement

    def _problem(self) -> ColumnGaussians:
        rows, codes, weights = self._judgement
        return ColumnGaussians(rows, codes, weights, len(self.classes_), float(self.epsilon_))

    def _value(self) -> MeansAndVariances:
        return MeansAndVariances(self.theta_, self.var_)

    def __getstate__(self) -> Any:
        if isinstance(self.__dict__.get("_judgement"), tuple):
            _ = self.certificate_  # a copy carries the verdict, not the rows
        return super().__getstate__()


def _pairs(ones: Array, zeros: Array) -> Array:
    """Lay two tables of one shape side by side, a row for each entry."""
    return np.stack([ones.ravel(), zeros.ravel()], axis=1)
