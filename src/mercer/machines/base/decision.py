"""From posterior probabilities to decisions: priors, loss matrices, thresholds."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.machines.base.parameters import is_real, refuse

_SUM = 1e-6  # how far given probabilities may be from adding up to one: they were typed by hand


def check_prior(machine: Any) -> None:
    """Require None, "uniform", or nonnegative numbers that add up to one."""
    given = machine.prior
    if given is None or (isinstance(given, str) and given == "uniform"):
        return
    must = "be None, 'uniform', or nonnegative numbers that add up to one, one per class"
    values = _numbers(given)
    if values is None or values.ndim != 1 or not np.isfinite(values).all():
        refuse(machine, "prior", given, must)
    elif (values < 0).any() or abs(values.sum() - 1.0) > _SUM:
        refuse(machine, "prior", given, must)


def prior_of(machine: Any, totals: Array) -> Array:
    """Return the probability of each class: as asked for, else its share of the weight."""
    k = len(totals)
    if machine.prior is None:
        return np.asarray(totals / totals.sum())
    if isinstance(machine.prior, str):
        return np.full(k, 1.0 / k)
    given = np.asarray(machine.prior, dtype=np.float64)
    if len(given) != k:
        refuse(machine, "prior", machine.prior, f"hold {k} numbers, one per class")
    return np.asarray(given / given.sum())


def check_loss(machine: Any) -> None:
    """Require None or a matrix of finite numbers."""
    given = machine.loss
    if given is None:
        return
    values = _numbers(given)
    if values is None or values.ndim != 2 or not np.isfinite(values).all():
        refuse(machine, "loss", given, "be None or a matrix of finite numbers")


def loss_of(machine: Any, k: int) -> Array | None:
    """Return the loss matrix for k classes, entry (i, j) the cost of deciding i when j is true."""
    if machine.loss is None:
        return None
    loss = np.asarray(machine.loss, dtype=np.float64)
    if loss.shape != (k, k):
        must = f"have shape ({k}, {k}): the cost of deciding i (row) when j (column) is true"
        refuse(machine, "loss", loss, must)
    return loss


def check_threshold(machine: Any) -> None:
    """Require a number, possibly infinite, and none beside a loss."""
    value = machine.threshold
    if not is_real(value) or math.isnan(value):
        refuse(machine, "threshold", value, "be a number (infinity is one)")
    if value and machine.loss is not None:
        must = "be 0 beside a loss matrix, which means a threshold of its own"
        refuse(machine, "threshold", value, must)


def rule_of(machine: Any, k: int) -> tuple[Array | None, float]:
    """Return the loss matrix and the threshold for k classes, as the parameters say now."""
    check_loss(machine)
    loss = loss_of(machine, k)
    if not hasattr(machine, "threshold"):
        return loss, 0.0
    check_threshold(machine)
    if k > 2 and machine.threshold:
        must = f"be 0 for {k} classes; a loss matrix serves"
        refuse(machine, "threshold", machine.threshold, must)
    return loss, float(machine.threshold)


def normalised(scores: Array) -> Array:
    """Return log-probabilities from log-scores (n, k), all of them finite."""
    highest = scores.max(axis=1, keepdims=True)
    total = np.exp(scores - highest).sum(axis=1, keepdims=True)
    return np.asarray(scores - (highest + np.log(total)))


def probabilities(scores: Array) -> Array:
    """Return probabilities from log-scores; rows add up to one to rounding."""
    found = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def margins(scores: Array, loss: Array | None, threshold: float = 0.0) -> Array:
    """Return what decisions compare: (n,) for two classes, positive for the second; else (n, k).

    Without a loss these are log-odds less the threshold, or log-probabilities. With one they are
    how much less the second decision risks, or the risks with their sign turned.
    """
    k = scores.shape[1]
    if k == 2 and loss is None:
        odds = scores[:, 1] - scores[:, 0]
        return np.asarray(odds - threshold if math.isfinite(threshold) else 0 * odds - threshold)
    if loss is None:
        return normalised(scores)
    if k == 2:
        return _two_class_margins(scores[:, 1] - scores[:, 0], loss)
    return np.asarray(-expected_risks(probabilities(scores), loss))


def _two_class_margins(odds: Array, loss: Array) -> Array:
    """Return log-odds less the threshold that a loss means, where it means one."""
    cost_of_second, cost_of_first = loss[1, 0] - loss[0, 0], loss[0, 1] - loss[1, 1]
    if cost_of_second > 0 and cost_of_first > 0:
        return np.asarray(odds - math.log(cost_of_second) + math.log(cost_of_first))
    share = np.exp(-np.logaddexp(0.0, -odds))  # a right decision that costs more than a wrong one
    return np.asarray(share * cost_of_first - (1.0 - share) * cost_of_second)


def expected_risks(posterior: Array, loss: Array) -> Array:
    """Return R(i | x) = sum_j loss(i, j) P(j | x): (n, decisions)."""
    return np.asarray(posterior @ loss.T)


def decisions(scores: Array, loss: Array | None, threshold: float = 0.0) -> Array:
    """Return the number of the class decided for; the first one where there is a tie."""
    if loss is None and scores.shape[1] > 2:  # what margins take off is common to all classes
        return np.asarray(np.argmax(scores, axis=1))
    margin = margins(scores, loss, threshold)
    chosen = (margin > 0).astype(np.intp) if margin.ndim == 1 else np.argmax(margin, axis=1)
    return np.asarray(chosen)


class PosteriorDecisions:
    """Predictions of a classifier from the logarithms of p(x, class) that `_scores` returns."""

    classes_: Array

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """Return the logarithm of p(x, class), up to a constant of each row."""

    def predict(self, X: Any) -> Array:
        """Label new rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, of any kind that `fit` takes.

        Returns
        -------
        array of shape (n_samples,)
            Labels; the first of the classes where there is a tie.
        """
        found = self._scores(X)
        chosen = decisions(found, *rule_of(self, len(self.classes_)))
        return np.asarray(self.classes_[chosen])

    def decision_function(self, X: Any) -> Array:
        """Return what the decision compares.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, of any kind that `fit` takes.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            For two classes log-odds of the second, less the threshold if there is one; for more,
            log-probabilities. With a loss matrix, less the threshold it means, or expected costs
            with their sign turned.
        """
        found = self._scores(X)
        return margins(found, *rule_of(self, len(self.classes_)))

    def predict_proba(self, X: Any) -> Array:
        """Return the posterior probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, of any kind that `fit` takes.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Rows add up to one.
        """
        return probabilities(self._scores(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the posterior probabilities, all finite.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, of any kind that `fit` takes.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Log-probabilities.
        """
        return normalised(self._scores(X))


def _numbers(given: Any) -> Array | None:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return None
