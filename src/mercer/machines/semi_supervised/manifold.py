"""Estimators `LaplacianRidge` and `LaplacianSVC`: manifold regularization."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin

from mercer.array_types import Array, Points
from mercer.gram import Need, make_gram
from mercer.kernels import Kernel
from mercer.machines.base.certificate import Certified, LazyDataCertificate
from mercer.machines.base.machine import KernelMachine, all_or_nothing, kernel_of
from mercer.machines.base.parameters import (
    check_choice,
    check_flag,
    check_limits,
    check_optional_count,
    check_real,
    is_real,
    refuse,
)
from mercer.machines.base.targets import check_class_weight, refuse_mixed_labels, refuse_targets
from mercer.machines.ridge.kernel_ridge import KernelRidge
from mercer.machines.semi_supervised.certificate import of_both
from mercer.machines.semi_supervised.graph import (
    check_graph,
    check_unlabelled,
    classes_and_codes,
    graph_of,
    known_targets,
    read_targets,
    rows_and_labels,
)
from mercer.machines.semi_supervised.problem import Deformation, DeformedKernel, edges_of
from mercer.machines.svm.svc import SVC
from mercer.rows.points import row_count
from mercer.solvers.base import Callback, Solution
from mercer.solvers.certificate import Certificate, certify
from mercer.solvers.dispatch import solve

# --- base of both --------------------------------------------------------------------------------
#
# Fits on labeled samples in a kernel that a graph of all samples deforms.

_COPIES = 4  # matrices that the deformation holds at once


class ManifoldMachine(Certified, KernelMachine):
    """Base of machines on labelled rows, in the kernel that a graph of all rows deforms."""

    neighbors: Any
    weights: str
    intrinsic_penalty: float
    callback: Any
    time_limit: float | None
    machine_: Any
    solution_: Solution

    def _check_parameters(self) -> None:
        check_graph(self)
        check_real(self, "intrinsic_penalty", least=0)
        check_limits(self)

    def _deform(self, X: Points, labelled: Array, ratio: float) -> tuple[Any, Deformation]:
        """Return the problem of the deformed kernel, and its answer."""
        self.kernel_ = kernel_of(
            self.kernel, None if self._is_precomputed() else X, names=self._column_names()
        )
        n = row_count(X)
        names = self._column_names()
        gram = make_gram(self.kernel_, X, Need.MATRIX, names=names, copies=_COPIES)
        edges: Any = sparse.csr_array((n, n))
        if ratio > 0:
            edges = edges_of(graph_of(self, X))
        problem = DeformedKernel(gram, edges, ratio, np.flatnonzero(labelled))
        found = solve(problem, callback=self.callback)
        self._deformed = found.status
        self._expansion = gram.expand(found.value.transfer)
        return problem, found.value

    def _keep(self, problem: Any, value: Deformation, machine: Any) -> None:
        """Keep the machine on the labelled rows, and promise the certificate of both."""
        self.machine_ = machine
        self.solution_ = machine.solution_
        deformed = self.__dict__.pop("_deformed")
        if self.solution_.status.ok and not deformed.ok:
            self.solution_ = replace(self.solution_, status=deformed)
        self.labelled_ = problem.labelled
        judge = partial(_judged, machine=machine)
        self._judgement = LazyDataCertificate(
            problem, value, judge, eager=True, rows=problem.gram.shape[0]
        )


def _judged(problem: DeformedKernel, value: Deformation, machine: Any) -> Certificate:
    """Judge the deformed kernel, and the machine on it."""
    return of_both(certify(problem, value), machine.certificate_)


# --- ridge ---------------------------------------------------------------------------------------


class LaplacianRidge(MultiOutputMixin, RegressorMixin, ManifoldMachine):
    """Laplacian regularised least squares: ridge regression that is smooth along all rows.

    Minimises sum_i (y_i - f(x_i))^2, over rows with a target, + penalty |h|^2 +
    intrinsic_penalty h'Lh, over all rows, with f = h + b. L = (D - W) / d is the Laplacian of a
    graph of all rows, d the mean degree, so that h'Lh is a mean over neighbours of squared
    differences, times the number of rows. The answer is ridge regression on the rows with a target
    in the kernel that the graph deforms. With intrinsic_penalty=0 it is `KernelRidge` on them.

    Parameters
    ----------
    penalty : float, default=1.0
        Weight of the squared norm.
    kernel : Kernel, str or callable, default="gaussian"
        What similarity is; "gaussian" takes its scale from all rows.
    intrinsic_penalty : float, default=1.0
        Weight of the differences along edges.
    neighbors : int, "auto" or None, default="auto"
        Join each row to so many nearest others; "auto" takes 10, or all others if they are fewer.
        None joins all rows to all.
    weights : {"binary", "kernel"}, default="binary"
        What an edge of the graph of neighbours weighs: one, or the kernel of its ends.
    bias : bool, default=True
        Whether f has a constant b.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which the fit is given up.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel used.
    labelled_ : int array
        The rows with a target.
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_targets)
        Coefficients of the kernel at all rows.
    intercept_ : float or array of shape (n_targets,)
        The bias b.
    machine_ : KernelRidge
        The machine on the rows with a target, in the deformed kernel.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        The residual of the ridge equations, and of those of the deformed kernel, from the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import LaplacianRidge
    >>> t = np.linspace(0, 3 * np.pi, 200)
    >>> spiral = np.column_stack([t * np.cos(t), t * np.sin(t)])
    >>> y = np.where(np.arange(200) % 40 == 0, t, np.nan)  # five targets
    >>> machine = LaplacianRidge(1e-3, intrinsic_penalty=1.0, neighbors=4).fit(spiral, y)
    >>> bool(abs(machine.predict(spiral) - t)[:161].max() < 1.0)
    True
    """

    def __init__(
        self,
        penalty: float = 1.0,
        kernel: Kernel | str | Any = "gaussian",
        *,
        intrinsic_penalty: float = 1.0,
        neighbors: int | str | None = "auto",
        weights: str = "binary",
        bias: bool = True,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.penalty = penalty
        self.kernel = kernel
        self.intrinsic_penalty = intrinsic_penalty
        self.neighbors = neighbors
        self.weights = weights
        self.bias = bias
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows, of which some have a target.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the Gram matrix itself for a precomputed kernel; strings for string kernels.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, and NaN for rows without.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        check_real(self, "penalty", above=0)
        check_flag(self, "bias")
        X, y = read_targets(self, X, y, multi_output=True)
        labelled = known_targets(self, y)
        ratio = float(self.intrinsic_penalty) / float(self.penalty)
        problem, value = self._deform(X, labelled, ratio)
        inner = KernelRidge(float(self.penalty), "precomputed", bias=bool(self.bias))
        inner.fit(value.matrix, y[labelled])
        self.dual_coef_ = np.asarray(value.transfer @ inner.dual_coef_)
        self.intercept_ = inner.intercept_
        self._keep(problem, value, inner)
        return self

    def predict(self, X: Any) -> Array:
        """Predict targets for new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel the matrix of new rows against training rows.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
            Predicted targets.
        """
        rows = self._values(X)  # which refuses a machine that is not fitted
        return np.asarray(self.machine_.predict(rows))


# --- support vector classifier -------------------------------------------------------------------


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
