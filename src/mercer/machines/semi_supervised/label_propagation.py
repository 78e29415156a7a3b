"""Labels that spread over a graph of similar rows: propagation (harmonic) and spreading."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from mercer.array_types import Array
from mercer.kernels import Kernel
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.parameters import check_real, refuse
from mercer.machines.base.targets import refuse_mixed_labels, refuse_targets
from mercer.machines.semi_supervised.diffusion import GraphDiffusion
from mercer.machines.semi_supervised.graph import rows_and_labels
from mercer.machines.semi_supervised.labels import (
    check_unlabelled,
    classes_and_codes,
    indicators,
)
from mercer.solvers import Callback


class LabelPropagation(ClassifierMixin, GraphDiffusion):
    """Label propagation: each row's probabilities are the mean of those of its neighbours.

    Rows are joined to similar ones. Labelled rows keep their label; the others get the harmonic
    function of the graph, f = D^-1 W f, which is the chance that a walk from the row, along edges
    by their weights, meets a label of each class first. It is found by solving the equations, where
    propagating over and over would end, too.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        What similarity is; "gaussian" takes its scale from the data. `Precomputed()` takes a
        symmetric affinity matrix, dense or sparse.
    neighbors : int, "auto" or None, default="auto"
        Join each row to so many nearest others; "auto" takes 10, or all others if they are fewer.
        None joins all rows to all.
    weights : {"binary", "kernel"}, default="binary"
        What an edge of the graph of neighbours weighs: one, or the kernel of its ends.
    unlabelled : int or str, default=-1
        What stands in y for rows without a label. Where all other rows have one label, it is a
        label itself, so that y of -1 and 1 means two classes.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which an iterative fit stops with what it has.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    label_distributions_ : array of shape (n_samples, n_classes)
        Probabilities of the classes for each training row.
    transduction_ : array of shape (n_samples,)
        The most probable label of each training row.
    steps_ : array of shape (n_samples,)
        How many steps a walk along the edges is expected to take until it meets a label; zero for
        labelled rows, and those that no label reaches.
    unreached_ : int array
        Rows that hang together with no label; they get the shares of the labels.
    kernel_ : Kernel
        The kernel used.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        The equations, a bound of the error of every value, and the maximum principle; from the
        graph.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import LabelPropagation
    >>> X = np.concatenate([np.arange(10.0), np.arange(20.0, 30.0)])[:, None]
    >>> y = np.full(20, -1)
    >>> y[0], y[-1] = 0, 1
    >>> machine = LabelPropagation(neighbors=2).fit(X, y)
    >>> machine.transduction_.tolist() == [0] * 10 + [1] * 10
    True
    >>> machine.certificate_.ok
    True
    """

    def __init__(
        self,
        kernel: Kernel | str | Any = "gaussian",
        *,
        neighbors: int | str | None = "auto",
        weights: str = "binary",
        unlabelled: int | str = -1,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.neighbors = neighbors
        self.weights = weights
        self.unlabelled = unlabelled
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows, of which some have a label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; for a precomputed kernel the affinity matrix itself; strings for string kernels.
        y : array-like of shape (n_samples,)
            Labels, and `unlabelled` for rows without.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        check_unlabelled(self)
        refuse_mixed_labels(self, y)
        X, y = rows_and_labels(self, X, y)
        refuse_targets(y)
        self.classes_, codes, labelled = classes_and_codes(self, y)
        targets = indicators(codes, len(self.classes_))
        self.label_distributions_ = self._diffuse(X, targets, labelled, self._alpha())
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        return self

    def predict_proba(self, X: Any) -> Array:
        """Estimate the probability of each class at new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel their affinities to the training rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            The mean of the probabilities of the training rows that a row is joined to.
        """
        return self._shown(self._new_values(X))

    def predict(self, X: Any) -> Array:
        """Predict labels of new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            The most probable labels; ties go to the class that comes first in `classes_`.
        """
        shares = self.predict_proba(X)  # which refuses a machine that is not fitted
        return np.asarray(self.classes_[shares.argmax(axis=1)])

    def _alpha(self) -> float:
        return 1.0

    def _shown(self, values: Array) -> Array:
        """Make rows of values sum to one; those of zeros become the shares of the labels."""
        values = np.maximum(values, 0.0)  # rounding
        totals = values.sum(axis=1, keepdims=True)
        known = totals > 0
        return np.where(known, values / np.where(known, totals, 1.0), self._unknown)


class LabelSpreading(LabelPropagation):
    """Label spreading: as propagation, but labels may be doubted, and fade with the distance.

    F = (1 - alpha) (I - alpha S)^-1 Y with S = D^-1/2 W D^-1/2: the limit of
    F <- alpha S F + (1 - alpha) Y, found by solving the equations. Values of a row are divided by
    their sum.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        What similarity is, as for `LabelPropagation`.
    alpha : float, default=0.9
        Above 0 and below 1: the share of its value that a row takes from its neighbours at every
        step. Labelled rows keep 1 - alpha of their own label, so that a wrong one may be outvoted.
    neighbors : int, "auto" or None, default="auto"
        Join each row to so many nearest others; "auto" takes 10, or all others if they are fewer.
        None joins all rows to all.
    weights : {"binary", "kernel"}, default="binary"
        What an edge of the graph of neighbours weighs: one, or the kernel of its ends.
    unlabelled : int or str, default=-1
        What stands in y for rows without a label; see `LabelPropagation`.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which an iterative fit stops with what it has.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    label_distributions_ : array of shape (n_samples, n_classes)
        Values of the classes for each training row, divided by their sum.
    transduction_ : array of shape (n_samples,)
        The label of the largest value of each training row; labelled rows may get another one.
    steps_ : array of shape (n_samples,)
        How many steps a walk takes until it is restarted, at the least.
    unreached_ : int array
        Rows that hang together with no label; they get the shares of the labels.
    kernel_ : Kernel
        The kernel used.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        The equations, and a bound of the error of every value; from the graph.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import LabelSpreading
    >>> X = np.concatenate([np.arange(10.0), np.arange(20.0, 30.0)])[:, None]
    >>> y = np.full(20, -1)
    >>> y[[0, 1, 2]], y[-1] = (0, 1, 0), 1  # the second of the first three is wrong
    >>> LabelSpreading(alpha=0.99, neighbors=2).fit(X, y).transduction_[:3].tolist()
    [0, 0, 0]
    """

    def __init__(
        self,
        kernel: Kernel | str | Any = "gaussian",
        *,
        alpha: float = 0.9,
        neighbors: int | str | None = "auto",
        weights: str = "binary",
        unlabelled: int | str = -1,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        super().__init__(
            kernel,
            neighbors=neighbors,
            weights=weights,
            unlabelled=unlabelled,
            callback=callback,
            time_limit=time_limit,
        )
        self.alpha = alpha

    def _alpha(self) -> float:
        return float(self.alpha)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real(self, "alpha", above=0)
        if not self.alpha < 1:
            must = "be above 0 and below 1; LabelPropagation keeps labels as they are"
            refuse(self, "alpha", self.alpha, must)
