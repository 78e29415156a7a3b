"""The support vector classifier with a penalty along a graph of all rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from mercer.array_types import Array
from mercer.kernels import Kernel
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.parameters import (
    check_choice,
    check_optional_count,
    check_real,
    is_real,
    refuse,
)
from mercer.machines.base.targets import (
    check_class_weight,
    refuse_mixed_labels,
    refuse_targets,
)
from mercer.machines.margin.svc import SVC
from mercer.machines.semi_supervised.graph import rows_and_labels
from mercer.machines.semi_supervised.labels import check_unlabelled, classes_and_codes
from mercer.machines.semi_supervised.manifold import ManifoldMachine
from mercer.solvers import Callback


class LaplacianSVC(ClassifierMixin, ManifoldMachine):
    """Laplacian support vector machine: the largest margin that does not cut through groups.

    Minimises (|h|^2 + intrinsic_penalty h'Lh) / 2 + C sum_i max(0, 1 - y_i f(x_i)), the slack over
    rows with a label, h'Lh over all rows, with f = h + b. L = (D - W) / d is the Laplacian of a
    graph of all rows, d the mean degree. The answer is a support vector machine on the labelled
    rows in the kernel that the graph deforms; with intrinsic_penalty=0 it is `SVC` on them.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        What similarity is; "gaussian" takes its scale from all rows.
    C : float, default=1.0
        Weight of the slack.
    intrinsic_penalty : float, default=1.0
        Weight of the differences along edges.
    neighbors : int, "auto" or None, default="auto"
        Join each row to so many nearest others; "auto" takes 10, or all others if they are fewer.
        None joins all rows to all.
    weights : {"binary", "kernel"}, default="binary"
        What an edge of the graph of neighbours weighs: one, or the kernel of its ends.
    unlabelled : int or str, default=-1
        What stands in y for rows without a label. Where all other rows have one label, it is a
        label itself, so that y of -1 and 1 means two classes.
    multiclass : {"ovo", "ovr"}, default="ovo"
        More than two classes: each against each, or each against the rest.
    class_weight : dict, "balanced" or None, default=None
        Factors of C for each class, as for `SVC`.
    tol : float, default=1e-3
        Largest violation of the optimality conditions.
    max_iter : int or None, default=None
        Largest number of steps of one problem.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which the fit stops with what it has.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    kernel_ : Kernel
        The kernel used.
    labelled_ : int array
        The rows with a label.
    transduction_ : array of shape (n_samples,)
        The label of each training row.
    machine_ : SVC
        The machine on the labelled rows, in the deformed kernel.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        The duality gap on the labelled rows, and what is left of the equations of the deformed
        kernel, from the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from mercer import LaplacianSVC
    >>> X, moon = make_moons(200, noise=0.05, random_state=0)
    >>> y = np.full(200, -1)
    >>> for label in (0, 1):
    ...     y[np.flatnonzero(moon == label)[0]] = label  # one label each
    >>> machine = LaplacianSVC("gaussian(0.3)", C=100.0, intrinsic_penalty=10.0).fit(X, y)
    >>> bool((machine.predict(X) == moon).mean() > 0.95)
    True
    >>> machine.certificate_.ok
    True
    """

    def __init__(
        self,
        kernel: Kernel | str | Any = "gaussian",
        C: float = 1.0,
        *,
        intrinsic_penalty: float = 1.0,
        neighbors: int | str | None = "auto",
        weights: str = "binary",
        unlabelled: int | str = -1,
        multiclass: str = "ovo",
        class_weight: Mapping[Any, float] | str | None = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.intrinsic_penalty = intrinsic_penalty
        self.neighbors = neighbors
        self.weights = weights
        self.unlabelled = unlabelled
        self.multiclass = multiclass
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows, of which some have a label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the Gram matrix itself for a precomputed kernel; strings for string kernels.
        y : array-like of shape (n_samples,)
            Labels, and `unlabelled` for rows without.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        refuse_mixed_labels(self, y)
        X, y = rows_and_labels(self, X, y)
        refuse_targets(y)
        self.classes_, _, labelled = classes_and_codes(self, y)
        problem, value = self._deform(X, labelled, float(self.intrinsic_penalty))
        inner = SVC(
            "precomputed",
            self.C,
            multiclass=self.multiclass,
            class_weight=self.class_weight,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=self.callback,
        ).fit(value.matrix, y[labelled])
        inner.set_params(callback=None)  # who sets ours to None can save all of it
        self._keep(problem, value, inner)
        K = np.asarray(problem.gram @ value.transfer)
        self.transduction_ = inner.predict(K)
        self.n_iter_ = inner.n_iter_
        return self

    def decision_function(self, X: Any) -> Array:
        """Evaluate the decision at new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel the matrix of new rows against training rows.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            As that of `SVC`.
        """
        rows = self._values(X)  # which refuses a machine that is not fitted
        return np.asarray(self.machine_.decision_function(rows))

    def predict(self, X: Any) -> Array:
        """Predict labels of new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            Labels; ties go to the class that comes first in `classes_`.
        """
        rows = self._values(X)
        return np.asarray(self.machine_.predict(rows))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_unlabelled(self)
        if not (is_real(self.C) and self.C > 0):
            refuse(self, "C", self.C, "be a positive number (infinity allows no slack)")
        check_choice(self, "multiclass", ("ovo", "ovr"))
        check_class_weight(self)
        check_real(self, "tol", above=0)
        check_optional_count(self, "max_iter")
