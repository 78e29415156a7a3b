"""Decisions from a joint table: likelihood, posterior, least expected risk, and refusal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
from mercer.certificates import certify
from mercer.machines.base.certificate import Certified, LazyDataCertificate
from mercer.machines.base.decision import check_loss, check_prior, expected_risks, loss_of, prior_of
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.other_names import Machine
from mercer.machines.base.parameters import check_choice, is_real, refuse
from mercer.machines.base.targets import (
    batch_codes,
    check_weights,
    classes_for,
    classes_of,
    labels_of,
)
from mercer.machines.bayes.columns import read_table
from mercer.machines.bayes.joint_table import JointTable
from mercer.machines.bayes.smoothing import check_smoothing
from mercer.machines.bayes.symbols import (
    joined,
    likelihoods,
    numbered,
    ordered,
    posteriors,
    question,
    symbols,
    tallied,
    totals_of,
)
from mercer.solvers import Solution, solve


class BayesDecision(Certified, ClassifierMixin, Machine, BaseEstimator):
    """Bayes decisions from a joint table of observations and classes, with costs of errors.

    P(h | x) = P(x | h) P(h) / P(x). The decision with the least expected risk
    R(i | x) = sum_j loss(i, j) P(j | x) is taken; with the 0/1 loss, that is the most probable
    class; with equal priors, the most likely one. An observation is the whole row: a table needs a
    cell for each, so this is for few attributes with few values (`NaiveBayes` for others). A row
    never seen leaves the prior as it is.

    `rule`, `loss` and `reject` may be changed after the fit; `prior` and `alpha` belong to it.

    Parameters
    ----------
    rule : {"risk", "map", "ml"}, default="risk"
        Least expected risk, largest posterior (ignores `loss`), or largest likelihood (ignores
        `loss` and `prior`).
    loss : matrix of shape (n_classes, n_classes) or None, default=None
        Entry (i, j) is the cost of deciding i when j is true; None is 0/1.
    reject : float or None, default=None
        Cost of not deciding; None never rejects.
    reject_label : object, default="reject"
        What `predict` gives where it does not decide.
    prior : "uniform", array of shape (n_classes,) or None, default=None
        Probabilities of the classes; None takes their shares in the data.
    alpha : float, default=0.0
        Count added to each cell.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    values_ : list of tuple
        The observations, one for each row of the tables.
    counts_ : array of shape (n_values, n_classes)
        The weight of each cell.
    likelihood_ : array of shape (n_values, n_classes)
        P(x | h).
    prior_ : array of shape (n_classes,)
        P(h).
    joint_ : JointTable
        P(x, h), with the variables "x" and "h".
    evidence_ : array of shape (n_values,)
        P(x).
    posterior_ : array of shape (n_values, n_classes)
        P(h | x).
    solution_ : Solution
        How the table was made.
    certificate_ : Certificate
        Whether the likelihoods are those of the counts.

    Examples
    --------
    >>> from mercer import BayesDecision
    >>> kit = BayesDecision.from_likelihood(
    ...     [[0.98, 0.03], [0.02, 0.97]], [0.01, 0.99], classes=["cancer", "healthy"],
    ...     values=["+", "-"])
    >>> kit.predict_proba([["+"]]).round(3).tolist()  # 0.0098 / 0.0395
    [[0.248, 0.752]]
    >>> costly = kit.set_params(loss=[[0, 1], [20, 0]])  # to miss a cancer costs 20
    >>> costly.predict([["+"]]).tolist(), costly.set_params(reject=0.5).predict([["+"]]).tolist()
    (['cancer'], ['reject'])
    """

    def __init__(
        self,
        rule: str = "risk",
        *,
        loss: npt.ArrayLike | None = None,
        reject: float | None = None,
        reject_label: Any = "reject",
        prior: npt.ArrayLike | str | None = None,
        alpha: float = 0.0,
    ) -> None:
        self.rule = rule
        self.loss: Any = loss
        self.reject = reject
        self.reject_label = reject_label
        self.prior: Any = prior
        self.alpha = alpha

    @classmethod
    def from_table(
        cls, table: npt.ArrayLike, *, classes: Any = None, values: Any = None, **params: Any
    ) -> Self:
        """Make a machine from counts or probabilities.

        Parameters
        ----------
        table : array-like of shape (n_values, n_classes)
            Weight of each observation in each class.
        classes : array-like of shape (n_classes,), optional
            Labels; 0, 1, ... if not given.
        values : sequence, optional
            The observations, single values or tuples; 0, 1, ... if not given.
        **params
            Parameters of the machine.

        Returns
        -------
        BayesDecision
            The machine, ready to decide.
        """
        return cls(**params)._tabled(JointTable(table).counts, None, classes, values)

    @classmethod
    def from_likelihood(
        cls,
        likelihood: npt.ArrayLike,
        prior: npt.ArrayLike,
        *,
        classes: Any = None,
        values: Any = None,
        **params: Any,
    ) -> Self:
        """Make a machine from P(x | h) and P(h).

        Parameters
        ----------
        likelihood : array-like of shape (n_values, n_classes)
            Columns add up to one.
        prior : array-like of shape (n_classes,)
            Probabilities of the classes.
        classes, values : sequences, optional
            As for `from_table`.
        **params
            Parameters of the machine.

        Returns
        -------
        BayesDecision
            The machine, ready to decide.
        """
        table, shares = np.asarray(likelihood, dtype=float), np.asarray(prior, dtype=float)
        good = table.ndim == 2 and np.allclose(table.sum(axis=0), 1.0, atol=1e-6)
        if not good or shares.shape != table.shape[1:] or abs(shares.sum() - 1.0) > 1e-6:
            raise ValueError(
                "BayesDecision: the columns of likelihood, and prior, must each add up to one"
            )
        counts = JointTable(table * shares).counts
        return cls(**params)._tabled(counts, table, classes, values)

    def _tabled(self, counts: Array, likelihood: Array | None, classes: Any, values: Any) -> Self:
        """Take counts, and likelihoods where classes have no counts, by their names."""
        self._check_parameters()
        if counts.ndim != 2 or counts.shape[1] < 2:
            raise ValueError("BayesDecision: table must have a column for each of two classes")
        self.classes_, order = ordered(self, classes, counts.shape[1])
        place = numbered(self, range(len(counts)) if values is None else values, len(counts))
        self.n_features_in_ = len(next(iter(place)))
        self._keep(place, counts[:, order], None if likelihood is None else likelihood[:, order])
        return self

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Count how often each row occurs with each label.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows of discrete attributes.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The fitted machine.
        """
        return self._count(X, y, None, sample_weight, stream=False)

    @all_or_nothing
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Count more rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
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
            The machine.
        """
        return self._count(X, y, classes, sample_weight, stream=True)

    def _count(self, X: Any, y: Any, classes: Any, sample_weight: Any, stream: bool) -> Self:
        self._check_parameters()
        first = not stream or "_place" not in self.__dict__
        rows = symbols(self, read_table(self, X, first, y, sparse_too=False))
        y = labels_of(self, y, len(rows))
        weights = check_weights(self, sample_weight, len(y))
        if stream:
            self.classes_ = classes_for(self, classes, first)
            codes = batch_codes(self, y, weights)
        else:
            self.classes_, codes = classes_of(self, y, weights)
        batch = tallied(rows, codes, weights, len(self.classes_))
        self._keep(*(batch if first else joined((self._place, self.counts_), batch)))
        return self

    def _keep(self, place: dict[Any, int], counts: Array, likelihood: Array | None = None) -> None:
        loss_of(self, len(self.classes_))
        totals = totals_of(self, counts)
        self._place = place
        self.counts_ = counts
        self.values_ = list(place)
        self.prior_ = prior_of(self, totals)
        if likelihood is not None:  # a class of no probability still has its likelihoods
            counts = np.where(totals > 0, counts, likelihood)
        self.likelihood_, self._unseen = likelihoods(counts, self.alpha)
        self.evidence_ = self.likelihood_ @ self.prior_
        names = (self.values_, self.classes_.tolist())
        self.joint_ = JointTable(self.likelihood_ * self.prior_, ("x", "h"), names)
        self.posterior_ = posteriors(self.likelihood_, self.prior_)
        problem = question(counts, self.alpha, self.prior_)
        self.solution_: Solution = solve(problem)
        self._judgement = LazyDataCertificate(problem, self.solution_.value, certify)

    def predict(self, X: Any) -> Array:
        """Decide.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
            Labels, or `reject_label`; the first of the classes where there is a tie.
        """
        posterior = self.predict_proba(X)
        risks, loss = self._risks(posterior)
        # with 0/1 losses by the probabilities themselves: rounding of risks must not undo a tie
        best = np.argmax(posterior, axis=1) if loss is None else np.argmin(risks, axis=1)
        labels = np.asarray(self.classes_[best])
        if self.reject is None:
            return labels
        refused = risks[np.arange(len(best)), best] > self.reject
        out = labels.astype(object)
        out[refused] = self.reject_label
        return out

    def risk(self, X: Any) -> Array:
        """Return the expected risk of every decision, under the rule.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            R(i | x).
        """
        return self._risks(self.predict_proba(X))[0]

    def _risks(self, posterior: Array) -> tuple[Array, Array | None]:
        """Return the risks, and the loss matrix unless it is 0/1."""
        loss = loss_of(self, len(self.classes_)) if self.rule == "risk" else None
        return 1.0 - posterior if loss is None else expected_risks(posterior, loss), loss

    def predict_proba(self, X: Any) -> Array:
        """Return P(h | x), with equal priors under rule="ml".

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Rows add up to one.
        """
        likelihood = self._likelihood(X)
        self._check_parameters()  # rule, loss and reject may have changed since the fit
        k = len(self.classes_)
        prior = np.full(k, 1.0 / k) if self.rule == "ml" else self.prior_
        return posteriors(likelihood, prior)

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the posteriors: -inf for what the table rules out (alpha=0).

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Log-probabilities.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def update(self, X: Any, belief: npt.ArrayLike | None = None) -> Array:
        """Update a belief by one observation after another, independent given the class.

        Parameters
        ----------
        X : array-like of shape (n_observations, n_features), or (n_observations,) for one feature
            Observations, in order.
        belief : array-like of shape (n_classes,), optional
            Where to start; the prior if not given.

        Returns
        -------
        array of shape (n_observations, n_classes)
            The posterior after each.
        """
        check_is_fitted(self, "_place")
        if np.ndim(X) == 1 and self.n_features_in_ == 1:
            X = [[x] for x in X]
        now = self.prior_ if belief is None else np.asarray(belief, dtype=np.float64)
        good = now.shape == self.prior_.shape and np.isfinite(now).all() and (now >= 0).all()
        if not good or not now.sum() > 0:
            raise ValueError(f"BayesDecision: belief must be {len(self.prior_)} probabilities")
        now = now / now.max()
        out = []
        for i, likelihood in enumerate(self._likelihood(X)):
            if not likelihood @ now > 0:
                raise ValueError(
                    f"BayesDecision: observation {i} has probability zero under every class that "
                    "is believed in; use alpha > 0"
                )
            now = likelihood * now / (likelihood @ now)
            out.append(now)
        return np.array(out).reshape(-1, len(now))

    def _likelihood(self, X: Any) -> Array:
        """Return P(x | h) of rows; those never seen are equally likely everywhere, or smoothed."""
        check_is_fitted(self, "_place")
        rows: Sequence[Any] = symbols(self, read_table(self, X, False, sparse_too=False))
        table = np.vstack([self.likelihood_, self._unseen])
        return np.asarray(table[[self._place.get(row, len(self.counts_)) for row in rows]])

    def _check_parameters(self) -> None:
        check_choice(self, "rule", ("risk", "map", "ml"))
        check_loss(self)
        check_prior(self)
        check_smoothing(self)
        if self.reject is not None and not (is_real(self.reject) and self.reject >= 0):
            refuse(self, "reject", self.reject, "be None or a cost of at least 0")
