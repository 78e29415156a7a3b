"""The support vector classifier: hard and soft margin, L1 and L2 slack, nu form, many classes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from mercer.approximation import Approximation
from mercer.array_types import Array, Points
from mercer.backends.box_programs import Form
from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.machines.base.approximate import warn_of_similarity
from mercer.machines.base.machine import all_or_nothing, offered_if, with_callbacks
from mercer.machines.base.parameters import check_choice, check_flag, check_optional_share
from mercer.machines.base.sharing import Fold, FoldPath, KnownClassifier, SharedMatrix, Sharing
from mercer.machines.base.targets import (
    DistinctRows,
    check_class_weight,
    check_weights,
    class_weights,
    classes_of,
    codes_of,
    refuse_mixed_labels,
    refuse_targets,
)
from mercer.machines.svm.machine import (
    HingeBox,
    MarginMachine,
    NuBox,
    SquaredHingeBox,
    TwoClassBox,
    amounts_of,
    bounded_costs,
    check_cost,
    costs_of,
    refuse_squared_beside_nu,
    warn_unused_beside_nu,
)
from mercer.machines.svm.multiclass import (
    ClassQPs,
    Scheme,
    Zones,
    ends_of,
    expand,
    parts_of,
    scheme_of,
    squared_norms,
    zones,
)
from mercer.machines.svm.probabilities import Calibration, calibrate, fold_order
from mercer.machines.svm.problem import Dual, MarginPath, PathSetting
from mercer.solvers.base import Callback, Status, Watch

_FOLD_TOL = 1e-2  # values that a slope is fitted to need no more
_SURE = 100.0  # tolerances: a margin of nu by which f may be divided
_ZONES = ("beyond", "on", "inside")


class SVC(ClassifierMixin, MarginMachine):
    """Support vector classifier: f(x) = sum_i b_i k(x_i, x) + intercept, of largest margin.

    For two classes it minimises |w|^2 / 2 + C sum_i s_i max(0, 1 - y_i f(x_i)) over functions with
    any kernel, s_i being the sample weights. More classes are taken two by two, or each against
    the rest, over one Gram matrix.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        What similarity is; "gaussian" takes its scale from the data as scikit-learn's
        gamma="scale" does.
    C : float or array of shape (n_samples,), default=1.0
        Weight of the slack, of all rows or of each. Infinity allows none: the hard margin. Above
        10^10 a finite weight is taken as that: float64 has no digits left for more.
    approximation : Approximation, str or None, default="auto"
        Features in place of the kernel, such as `Nystrom(1000)` or "random_features:2000"; None for
        the kernel itself. "auto" takes the kernel itself as long as that is not refused, and past
        the limit landmarks, with a warning that says so.
    slack : {"l1", "l2"}, default="l1"
        Whether the slack counts as it is or squared; with nu, as it is.
    nu : float or None, default=None
        In place of C, which has no effect beside it: upper bound on the share of margin errors
        and lower bound on that of support vectors.
    multiclass : {"ovo", "ovr"}, default="ovo"
        With more than two classes: each against each, or each against the rest.
    class_weight : dict, "balanced" or None, default=None
        Factor on C for each label; "balanced" gives every class the same total.
    probability : bool, default=False
        Whether to calibrate `predict_proba`, which solves five more problems on the same Gram.
    tol : float, default=1e-3
        How good the answer must be.
    criterion : {"violation", "gap"}, default="violation"
        Whether `tol` is the largest violation of the optimality conditions, in units of the
        decision function, which has its margin at 1 (LIBSVM's criterion, in the nu form relative
        to the margin), or the duality gap relative to the objective.
    max_iter : int or None, default=None
        Largest number of steps of one problem, in the unit of the solver that runs
        (`solution_.solver`): pair steps, interior point steps, or passes over the rows. None takes
        max(10^7, 100 n) pair steps, in the nu form max(3 10^5, 100 n).
    time_limit : float or None, default=None
        Seconds after which the fit stops with what it has.
    warm_start : bool, default=False
        Whether `fit` starts from the last answer, if that had as many rows: to resume after a
        limit, or to change C a little.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    kernel_ : Kernel
        The kernel used.
    approximation_error_ : StatedError
        With features in place of the kernel: how far they are from it.
    support_ : int array of shape (n_support,)
        Rows with a nonzero coefficient.
    support_vectors_ : array of shape (n_support, n_features)
        These rows; empty for a precomputed kernel.
    n_support_ : int array of shape (n_classes,)
        How many of them each class has.
    dual_coef_ : array of shape (n_support,), (n_support, n_classes - 1) or (n_support, n_classes)
        Their coefficients b: for two classes; for pairs, against each other class in order; for
        each class against the rest.
    intercept_ : float or array of shape (n_parts,)
        The constant of each decision function.
    margin_ : float or array of shape (n_parts,)
        Distance from f = 0 to f = 1 in feature space, the inverse of the norm of w, for each.
    coef_ : array of shape (n_features,) or (n_parts, n_features)
        Weights of the columns; only for the linear kernel.
    n_iter_ : int
        Pair steps.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Duality gap, optimality conditions and feasibility, computed from the data in float64 when
        first read.

    Notes
    -----
    `predict` is `classes_[argmax(decision_function)]`; ties go to the class that comes first in
    `classes_`. For two classes `decision_function` is f itself: the second class where f > 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.kernels import Gaussian
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> machine = SVC(Gaussian(1.0), C=10.0).fit(X, ["in", "out", "out", "in"])
    >>> machine.predict([[0.1], [1.5]]).tolist()
    ['in', 'out']
    >>> machine.certificate_.ok
    True
    """

    shares = (SharedMatrix(),)

    def __init__(
        self,
        kernel: Kernel | str | Any = "gaussian",
        C: float | npt.ArrayLike = 1.0,
        *,
        approximation: Approximation | str | None = "auto",
        slack: str = "l1",
        nu: float | None = None,
        multiclass: str = "ovo",
        class_weight: Mapping[Any, float] | str | None = None,
        probability: bool = False,
        tol: float = 1e-3,
        criterion: str = "violation",
        max_iter: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
    ) -> None:
        self.kernel = kernel
        self.approximation = approximation
        self.C = C
        self.slack = slack
        self.nu = nu
        self.multiclass = multiclass
        self.class_weight = class_weight
        self.probability = probability
        self.tol = tol
        self.criterion = criterion
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.callback = callback

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the Gram matrix itself for a precomputed kernel; strings for string kernels.
        y : array-like of shape (n_samples,)
            Labels of two classes or more.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        refuse_mixed_labels(self, y)
        X, y = self._training_points(X, y)
        refuse_targets(y)
        weights = check_weights(self, sample_weight, len(y))
        self.classes_, codes = classes_of(self, y, weights)
        rows = self._merged(X, codes, weights)
        if self.probability:  # rows of a fold side by side within their class
            rows = rows.reordered(fold_order(codes[rows.first]))
        self._use_kernel(self._resolved(X, rows), X, weights, self._column_names())
        self._scheme = scheme_of(self.multiclass, ends_of(codes[rows.first]))
        amount = rows.weight if self.nu is not None else costs_of(self, rows, weights)
        box = self._box(self._scheme, self.classes_, rows.weight, amount)
        origin = self._origin(X, rows)
        gram = self._gram(X, rows, origin)
        question = ClassQPs(self._scheme.parts(), box)
        bounded = "" if self.nu is not None else bounded_costs(self, gram, box.amount)
        solution = self._answer(gram, question, bounded)
        if solution.status is Status.NO_MARGIN:
            raise ValueError(f"SVC: {solution.status.value}")
        duals = [box.decision(dual) for dual in parts_of(solution.value)]
        shares = weights if self.nu is not None else amounts_of(self, weights)
        self._keep(X, codes, rows.spread(self._table(gram, duals, origin), shares))
        self._calibration = self._calibrated(gram, rows, question, duals)
        support = len(self.support_) / len(y) if self.nu is None else 0.0
        warn_of_similarity(self, gram, X, support)
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
            For two classes f, positive for the second. For more, one value per class, the largest
            of which decides: the value against the rest, or the number of votes of the pairs plus
            less than a third for how clear they were.
        """
        values = self._values(X)
        return np.asarray(values[:, 0] if self._binary() else self._scheme.decide(values))

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
        decision = self.decision_function(X)  # which refuses a machine that is not fitted
        return labels_of(self.classes_, decision)

    @offered_if(lambda self: self._has_probabilities())
    def predict_proba(self, X: Any) -> Array:
        """Estimate the probability of each class at new rows; needs `probability=True`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Rows sum to 1. They never contradict the decision: a class with a larger decision value
            has a larger probability.
        """
        values = self._values(X)
        if self._calibration is None:
            raise NotFittedError("SVC: probability was set after fit; call fit again")
        return self._calibration(values)

    @offered_if(lambda self: self._has_probabilities())
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Logarithms of probabilities.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    @property
    def margin_(self) -> float | Array:
        """Distance from f = 0 to f = 1 in feature space, `1 / |w|`, for each decision function."""
        squared = squared_norms(self._expansion) if "_expansion" in self.__dict__ else None
        if squared is None:
            raise AttributeError(
                "margin_ exists after a fit to rows; for a precomputed kernel see "
                "certificate_.quantities.margin"
            )
        with np.errstate(divide="ignore"):
            margins = 1.0 / np.sqrt(np.maximum(squared, 0.0))
        return float(margins[0]) if self._binary() else margins

    def zones(self, X: Any, y: Any) -> Zones:
        """Return which rows are beyond, on or inside the margin.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, such as those of the fit.
        y : array-like of shape (n_samples,)
            Their labels.

        Returns
        -------
        Zones
            `zone` and `slack`, of shape (n_samples,) for two classes, else (n_samples, n_parts).
        """
        values = self._values(X)
        signs = self._scheme.signs(codes_of(self, np.asarray(y), len(values)))
        found = zones(signs * values - 1.0, self.tol, _ZONES)
        return Zones(found.zone[:, 0], found.slack[:, 0]) if self._binary() else found

    def sharing(self) -> Sharing | None:
        """Return how fits for several C, or nu, are solved together."""
        if self.nu is None:
            return self._sharing(self._path, ("C",), self.C)
        return self._sharing(self._path, ("C", "nu"), nu=self.nu)

    def _path(self, fold: Fold, machines: Sequence[SVC]) -> FoldPath:
        """Write all pairs of classes of a fold; its predictor lets their decisions vote."""
        path = self._class_path(fold, machines)

        def predictor(values: Array, offsets: Array) -> KnownClassifier:
            found = path.decisions(values, offsets)
            binary = len(path.classes) == 2
            decision = found[:, 0] if binary else path.scheme.decide(found)
            return KnownClassifier(path.classes, decision, labels_of(path.classes, decision))

        return FoldPath(path.problem, predictor)

    def _class_path(self, fold: Fold, machines: Sequence[SVC]) -> ClassPath:
        """Write the programmes with C = 1, or the least nu, and the factors of each machine."""
        ends = np.flatnonzero(fold.targets[1:] != fold.targets[:-1]) + 1  # rows are sorted
        ends = np.concatenate([[0], ends, [len(fold.targets)]])
        classes = fold.targets[ends[:-1]]
        if len(classes) < 2:
            raise ValueError("there is only one class to learn from")
        scheme = scheme_of(self.multiclass, ends)
        least = min(machines, key=lambda one: one.nu or 0.0)
        box = least._box(scheme, classes, fold.weights, fold.weights)
        problems = ClassQPs(scheme.parts(), box).problems(fold.part)
        settings = tuple(one._path_setting(least) for one in machines)
        problem = MarginPath(problems, settings, fold.evaluation_rows)
        return ClassPath(problem, classes, scheme, box, _SURE * self.tol)

    def _path_setting(self, least: SVC) -> PathSetting:
        """Scale the bounds, the diagonal, or the sums of both classes."""
        if self.nu is not None and least.nu is not None:
            return PathSetting(total=float(self.nu) / float(least.nu))
        C = float(self.C)  # type: ignore[arg-type]
        return PathSetting(bound=C) if self.slack == "l1" else PathSetting(shift=1 / C)

    def _box(self, scheme: Scheme, classes: Array, weight: Array, amount: Array) -> TwoClassBox:
        """Return what the slack of each row may cost: C, or its share in nu."""
        totals = np.add.reduceat(weight, scheme.ends[:-1])
        factors = class_weights(self, self.class_weight, classes, totals)
        if factors is not None:
            amount = amount * np.repeat(factors, np.diff(scheme.ends))
        if self.nu is not None:
            return NuBox(amount, float(self.nu))
        return {"l1": HingeBox, "l2": SquaredHingeBox}[self.slack](amount)

    def _form(self, n: int) -> Form:
        """Return what pairs of classes, or one class and the rest, are like."""
        sums = 1 if self.nu is None else 2
        return Form(self._scheme.largest(), sums=sums, shifted=self.slack == "l2")

    def _table(self, gram: Gram, duals: list[Dual], origin: Array | None) -> Array:
        """Keep the decision functions; return the coefficients of merged rows side by side."""
        coefs = [dual.coef for dual in duals]
        offsets = np.array([float(dual.intercept) for dual in duals])
        table = self._scheme.collect(coefs)
        bare = expand(gram, self._scheme, coefs, table)
        offsets = self._keep_function(bare, offsets, origin)
        self.intercept_ = float(offsets[0]) if self._binary() else offsets
        return table

    def _keep(self, X: Points, codes: Array, table: Array) -> None:
        """Keep what belongs to single rows."""
        self._keep_support(X, table[:, 0] if self._binary() else table)
        self._support_codes = codes[self.support_]
        self.n_support_ = np.bincount(self._support_codes, minlength=len(self.classes_))

    def _calibrated(
        self, gram: Gram, rows: DistinctRows, question: ClassQPs, duals: list[Dual]
    ) -> Calibration | None:
        if not self.probability:
            return None
        left = None if self.time_limit is None else self.time_limit - self.solution_.seconds
        choose = partial(self._solver, least=_FOLD_TOL)
        # who stopped the fit does not want five more
        stop = self.solution_.status in (Status.STOPPED, Status.TIME_LIMIT)
        watch = Watch((lambda _: True) if stop else self.callback, left)
        found = calibrate(gram, question, self._scheme, duals, rows.weight, choose, watch)
        if watch.stopped:
            warnings.warn(
                "SVC: stopped before probabilities were calibrated out of sample; they rest on the "
                "training rows and are too sure. Raise time_limit, or let the callback go on",
                ConvergenceWarning,
                stacklevel=5,
            )
        return found

    def _binary(self) -> bool:
        return len(self.classes_) == 2

    def _has_probabilities(self) -> bool:
        if not self.probability:
            raise AttributeError(
                f"{type(self).__name__}: set probability=True before fit to have probabilities"
            )
        return True

    def _check_parameters(self) -> None:
        check_cost(self)
        check_choice(self, "slack", ("l1", "l2"))
        check_optional_share(self, "nu")
        check_choice(self, "multiclass", ("ovo", "ovr"))
        check_class_weight(self)
        check_flag(self, "probability")
        self._check_solving()
        refuse_squared_beside_nu(self, "slack")
        warn_unused_beside_nu(self, "C")


@dataclass(frozen=True, eq=False)
class ClassPath:
    """A path of all two-class programmes of a fold.

    Attributes
    ----------
    problem : MarginPath
        What is asked.
    classes : (k,) array
        Labels, sorted.
    scheme : Scheme
        How parts make one decision.
    box : TwoClassBox
        What slack costs.
    least : float
        Margins of the nu form below it are left to fits: f is divided by them, and where there is
        none a fit says so.
    """

    problem: MarginPath
    classes: Array
    scheme: Scheme
    box: TwoClassBox
    least: float

    def decisions(self, values: Array, offsets: Array) -> Array:
        """Return f of all parts (rows, parts), which have their margins at 1."""
        if offsets.shape[1] == 1:
            return (values + offsets).T
        if not (np.abs(np.diff(offsets)) / 2 > self.least).all():
            raise ValueError("the margin is of the size of its error")
        duals = [self.box.decision(Dual(*part)) for part in zip(values, offsets, strict=True)]
        return np.stack([dual.coef + dual.intercept for dual in duals], axis=1)


def labels_of(classes: Array, decision: Array) -> Array:
    """Return the label that a decision is for; ties go to the class that comes first."""
    chosen = decision > 0 if decision.ndim == 1 else np.argmax(decision, axis=1)
    return np.asarray(classes[chosen.astype(np.intp)])
