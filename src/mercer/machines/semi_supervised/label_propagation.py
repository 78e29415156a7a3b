"""Estimators `LabelPropagation`, `LabelSpreading` and `HarmonicRegressor`."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array, Points
from mercer.kernels import Kernel, Precomputed
from mercer.machines.base.certificate import Certified, lazy_certificate
from mercer.machines.base.inputs import new_rows, refuse_overflown
from mercer.machines.base.machine import KernelMachine, all_or_nothing, kernel_of
from mercer.machines.base.parameters import check_limits, check_real, refuse
from mercer.machines.base.targets import refuse_mixed_labels, refuse_targets
from mercer.machines.clustering.graph_cut_relaxation import (
    refuse_negative_rows,
    sparse_matrix,
    warn_of_strangers,
)
from mercer.machines.semi_supervised.graph import (
    check_graph,
    check_unlabelled,
    classes_and_codes,
    graph_of,
    indicators,
    known_targets,
    read_targets,
    rows_and_labels,
)
from mercer.machines.semi_supervised.problem import GraphLabels
from mercer.rows.points import is_sparse, to_dense
from mercer.solvers.base import Callback, Solution
from mercer.solvers.certificate import certify
from mercer.solvers.dispatch import solve

# --- base of all three ---------------------------------------------------------------------------
#
# Fit, predictions for new samples, and samples that no label reaches.


class GraphDiffusion(Certified, KernelMachine):
    """Base of machines that spread labels over a graph of the rows."""

    neighbors: Any
    weights: str
    callback: Any
    time_limit: float | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # precomputed affinities, too
        tags.input_tags.positive_only = self._is_precomputed()
        return tags

    def _check_parameters(self) -> None:
        check_graph(self)
        check_limits(self)

    def _diffuse(self, X: Points, targets: Array, labelled: Array, alpha: float) -> Array:
        """Solve for the values of all rows, and keep what new ones need: (n, t)."""
        self.kernel_ = kernel_of(
            self.kernel, None if self._is_precomputed() else X, names=self._column_names()
        )
        graph = graph_of(self, X)
        self._sparse_graph = self._is_precomputed() and is_sparse(X)
        question = partial(GraphLabels, targets=targets, labelled=labelled, alpha=alpha)
        problem = question(graph)
        limits = {"callback": self.callback, "time_limit": self.time_limit}
        solution: Solution = solve(problem, **limits)
        self.solution_ = solution
        values: Array = solution.value.values
        self.steps_ = solution.value.steps
        self.unreached_ = np.flatnonzero(~problem.reached)
        self._judgement = lazy_certificate(graph, question, solution.value, certify, eager=True)
        self._unknown = problem.unknown
        shown = self._shown(values)
        self._expansion = graph.expand(np.hstack([shown, np.ones((len(shown), 1))]))
        self._warn_of_unreached(len(values))
        return shown

    def _shown(self, values: Array) -> Array:
        """Return what values of the equations mean: (n, t) to (n, t)."""
        return values

    def _new_values(self, X: Any) -> Array:
        """Return the weighted means of the values of rows that new rows are joined to."""
        check_is_fitted(self)
        precomputed = isinstance(self.kernel_, Precomputed)
        if precomputed and is_sparse(X):
            points = sparse_matrix(self, X, reset=False)
            points = points if self._sparse_graph else to_dense(points)
        else:
            points = new_rows(self, X, precomputed)
        if precomputed:
            refuse_negative_rows(self, points)
        sums = refuse_overflown(self, partial(self._expansion, points))
        warn_of_strangers(self, sums[:, -1:])
        joined = sums[:, -1:] > 0
        means = sums[:, :-1] / np.where(joined, sums[:, -1:], 1.0)
        return np.where(joined, means, self._unknown)

    def _warn_of_unreached(self, n: int) -> None:
        count = len(self.unreached_)
        if not count:
            return
        shown = ", ".join(map(str, self.unreached_[:5])) + (", ..." if count > 5 else "")
        warnings.warn(
            f"{type(self).__name__}: {count} of {n} rows ({shown}) hang together with no label: "
            "nothing on the graph tells theirs, and they get what labels are on average. Label one "
            "of them, or take more neighbors or a wider kernel",
            UserWarning,
            stacklevel=6,
        )


# --- label propagation and spreading -------------------------------------------------------------


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


# --- harmonic regression -------------------------------------------------------------------------


class HarmonicRegressor(RegressorMixin, GraphDiffusion):
    """The harmonic function of a graph: each unknown value is the mean of its neighbours'.

    Of all functions on the graph with the known values it has the least sum of
    w_ij (f_i - f_j)^2; no value is below the smallest or above the largest known one.

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
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which an iterative fit stops with what it has.

    Attributes
    ----------
    values_ : array of shape (n_samples,)
        The value of each training row.
    steps_ : array of shape (n_samples,)
        How many steps a walk along the edges is expected to take until it meets a known value.
    unreached_ : int array
        Rows that hang together with no known value; they get the mean of those.
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
    >>> from mercer import HarmonicRegressor
    >>> X = np.arange(5.0)[:, None]
    >>> path = np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1)
    >>> y = [0.0, np.nan, np.nan, np.nan, 8.0]
    >>> HarmonicRegressor("precomputed", neighbors=None).fit(path, y).values_.round(9)
    array([0., 2., 4., 6., 8.])
    """

    def __init__(
        self,
        kernel: Kernel | str | Any = "gaussian",
        *,
        neighbors: int | str | None = "auto",
        weights: str = "binary",
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.neighbors = neighbors
        self.weights = weights
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows, of which some have a target.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; for a precomputed kernel the affinity matrix itself; strings for string kernels.
        y : array-like of shape (n_samples,)
            Targets, and NaN for rows without.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        X, y = read_targets(self, X, y)
        labelled = known_targets(self, y)
        targets = np.where(labelled, y, 0.0)[:, None]
        self.values_ = self._diffuse(X, targets, labelled, 1.0)[:, 0]
        return self

    def predict(self, X: Any) -> Array:
        """Predict targets of new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel their affinities to the training rows.

        Returns
        -------
        array of shape (n_samples,)
            The weighted mean of the values of the training rows that a row is joined to.
        """
        return self._new_values(X)[:, 0]
