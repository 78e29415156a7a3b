"""Functions `combine` and `alignment`, and the estimator `MultipleKernel`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
from mercer.backends.lapack import blas_threads_for
from mercer.gram import Gram, Need, make_gram
from mercer.kernels import Kernel, Precomputed, resolve
from mercer.kernels.algebra import Product, Sum
from mercer.machines.base.certificate import confirmed
from mercer.machines.base.inner_machine import InnerMachineMixin, inner_has
from mercer.machines.base.inputs import training_rows
from mercer.machines.base.machine import Machine, all_or_nothing, is_precomputed
from mercer.machines.base.parameters import is_real
from mercer.machines.base.targets import (
    DistinctRows,
    distinct_rows,
    refuse_mixed_labels,
    refuse_targets,
    rows_as_they_are,
)
from mercer.machines.kernel_learning.kernel_set import (
    Hinge,
    KernelLoss,
    KernelSet,
    Labelled,
    Squares,
    check_flag,
    check_limits,
    given_matrices,
    kernel_set,
    labelled,
    one_of,
)
from mercer.machines.kernel_learning.problem import KernelAlignment, KernelCombination
from mercer.machines.kernel_learning.solvers import Nonnegative, SimplexNewton
from mercer.machines.ridge.kernel_ridge import KernelRidge
from mercer.machines.svm.svc import SVC
from mercer.rows.points import take
from mercer.solvers.base import Callback, Solution
from mercer.solvers.certificate import Certificate, certify
from mercer.solvers.dispatch import solve

# --- combine -------------------------------------------------------------------------------------
#
# Weights of a sum of kernels, by alignment or by the loss of an estimator.

_METHODS = ("alignment", "margin", "ridge")


@dataclass(frozen=True, eq=False)
class _CombineOptions:
    """What all methods are told."""

    kernels: KernelSet
    data: Labelled
    rows: DistinctRows
    normalize: bool
    tol: float
    max_iter: int
    options: dict[str, Any]


def combine(
    kernels: Sequence[Any] | Kernel,
    X: Any,
    y: Any,
    *,
    method: str = "alignment",
    C: float = 1.0,
    slack: str = "l1",
    multiclass: str = "ovo",
    class_weight: Any = None,
    penalty: float = 1.0,
    bias: bool = True,
    normalize: bool = True,
    target: str = "auto",
    sample_weight: npt.ArrayLike | None = None,
    tol: float = 1e-4,
    max_iter: int = 200,
    callback: Callback | None = None,
    time_limit: float | None = None,
) -> Combined:
    """Learn the weights of a sum of kernels: nonnegative, of sum 1, many of them zero.

    Parameters
    ----------
    kernels : sequence of Kernel, str or callable; or Precomputed()
        What may be part of the sum. With `Precomputed()`, X is a sequence of square matrices.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows, the same for all kernels; `kernel.on(columns)` looks at some columns.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Labels, or numbers.
    method : {"alignment", "margin", "ridge"}
        What the weights are best for: the centred alignment with y (quick, and no matrix has to
        fit); the objective of `SVC` with this C; that of `KernelRidge` with this penalty.
    C : float
        For "margin": weight of the slack, finite, and not so large that it forbids all slack.
    slack : {"l1", "l2"}
        For "margin": whether the slack counts as it is or squared.
    multiclass : {"ovo", "ovr"}
        For "margin" with more than two classes: the weights are shared by all pairs, or by each
        class against the rest, and minimise the sum of their objectives.
    class_weight : dict, "balanced" or None
        For "margin": factor on C for each label.
    penalty : float
        For "ridge": weight of the squared norm, positive.
    bias : bool
        For "ridge": whether the function has a constant.
    normalize : bool
        Whether kernels are put on one scale first: each is divided by its variance in feature
        space, the mean squared distance of the rows from their mean. Without it, a kernel is
        preferred for being large.
    target : {"auto", "labels", "numbers"}
        What y holds; only asked for "alignment". See `alignment`.
    sample_weight : array-like of shape (n_samples,), optional
        How often each row counts.
    tol : float
        For "margin" and "ridge": what the duality gap may be, relative to the objective.
    max_iter : int
        Largest number of steps over the simplex.
    callback : callable or None
        Called with `mercer.solvers.Progress`; a true return value stops the search.
    time_limit : float or None
        Seconds after which to stop with the weights so far. "alignment" has no weights before it is
        done: it asks for both only before it begins, and then gives equal ones.

    Returns
    -------
    Combined
        `weights`, `kernel` (the weighted sum, for any machine), `solution`, `certificate`.

    Notes
    -----
    For "margin" and "ridge" the matrices of all kernels are stored if they fit the memory budget;
    if not, they are evaluated anew at each of about ten steps. Weights are learnt from y: to judge
    them, leave rows out of `combine`, too (`MultipleKernel` does so in any cross-validation).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(150, 3))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> parts = [Gaussian(1.0).on([0, 1]), Gaussian(1.0).on([1, 2]), Gaussian(1.0).on([2])]
    >>> found = combine(parts, X, y, method="margin", C=10.0)
    >>> found.weights.round(2)
    array([0.95, 0.03, 0.02])
    >>> SVC(found.kernel, C=10.0).fit(X, y).score(X, y) > 0.95
    True
    """
    one_of("combine", "method", method, _METHODS)
    check_limits("combine", tol, max_iter, callback, time_limit)
    check_flag("combine", "normalize", normalize)
    if method == "alignment":
        loss: KernelLoss | None = None
    elif method == "margin":
        target, loss = "labels", Hinge.of(C, slack, multiclass, class_weight)
    else:
        target, loss = "numbers", Squares.of(penalty, bias)
    chosen, data, rows = _read(kernels, X, y, sample_weight, target, is_precomputed(kernels))
    options = {"callback": callback, "time_limit": time_limit}
    asked = _CombineOptions(chosen, data, rows, bool(normalize), tol, int(max_iter), options)
    with blas_threads_for(X, y):
        return _aligned(asked) if loss is None else _learnt(asked, loss)


def _read(
    kernels: Any, X: Any, y: Any, sample_weight: Any, target: str, given: bool
) -> tuple[KernelSet, Labelled, DistinctRows]:
    matrices = given_matrices(X) if given else []
    data = labelled(
        "combine", matrices[0] if given else X, y, sample_weight, target, given, kernels
    )
    order = np.zeros(len(data.weights), np.intp) if data.codes is None else data.codes
    if given or data.targets is not None:
        rows = rows_as_they_are(order, data.weights)
    else:
        rows = distinct_rows(data.points, order, data.weights)
    if given:
        return KernelSet.given(matrices, len(data.weights), rows.first), data, rows
    seen = take(data.points, rows.first)
    return kernel_set(kernels, seen, data.names, rows.weight), data, rows


def _aligned(asked: _CombineOptions) -> Combined:
    """Maximise the centred alignment."""
    grams = asked.kernels.grams(copies=2)
    weights = asked.rows.weight
    ideal = asked.data.ideal()[asked.rows.first]
    factors = asked.kernels.factors(grams, weights, asked.normalize)
    problem = KernelAlignment(grams, factors, ideal, weights)
    if not problem.aim.any():
        raise ValueError("combine: y is constant, so that no kernel agrees with it; pass targets")
    return _result(asked, "alignment", problem, solve(problem, Nonnegative(), **asked.options))


def _learnt(asked: _CombineOptions, loss: KernelLoss) -> Combined:
    """Minimise the objective of a machine."""
    question: Callable[[Gram], Any] = loss.question(asked.data, asked.rows)
    asked.kernels.refuse_large(loss.method, loss.copies)
    grams = asked.kernels.grams(copies=loss.copies)
    factors = asked.kernels.factors(grams, asked.rows.weight, asked.normalize)
    largest = (f * np.abs(gram.diag()).max() for f, gram in zip(factors, grams, strict=True))
    refusal = loss.refusal(float(max(largest)), asked.rows.weight)
    if refusal is not None:
        raise ValueError(f"combine: {refusal}")
    problem = KernelCombination(grams, factors, question)
    solver = SimplexNewton(tol=asked.tol, max_iter=asked.max_iter)
    return _result(asked, loss.method, problem, solve(problem, solver, **asked.options))


def _result(asked: _CombineOptions, method: str, problem: Any, solution: Solution) -> Combined:
    weights: Array = solution.value.weights
    tol = None if method == "alignment" else asked.tol
    certificate = certify(problem, solution.value, tol)
    solution = confirmed("combine", solution, certificate, stacklevel=5)
    factors = weights * problem.factors
    return Combined(asked.kernels.kernels, method, weights, factors, solution, certificate)


# --- result --------------------------------------------------------------------------------------

_SHOWN = 12


@dataclass(frozen=True, eq=False)
class Combined:
    """What `combine` found.

    Attributes
    ----------
    kernels : tuple of Kernel
        What could be part of the sum.
    method : str
        What the weights are best for.
    weights : (m,) array
        Nonnegative, of sum 1: shares of the kernels on one scale.
    factors : (m,) array
        What each kernel, as it was given, is multiplied by: weights over variances.
    solution : Solution
        How the search ended.
    certificate : Certificate
        Optimality of the weights, recomputed from the data in float64.
    """

    kernels: tuple[Kernel, ...]
    method: str
    weights: Array
    factors: Array
    solution: Solution
    certificate: Certificate

    @property
    def used(self) -> Array:
        """Numbers of the kernels with a weight above zero, largest first."""
        order = np.argsort(-self.weights, kind="stable")
        return order[self.weights[order] > 0]

    @property
    def kernel(self) -> Kernel:
        """The weighted sum, a kernel as any other; kernels of weight zero are left out.

        For given matrices `Precomputed()`: `matrix` adds them up.
        """
        if isinstance(self.kernels[0], Precomputed):
            return Precomputed()
        parts = [Product((self.kernels[k],), float(self.factors[k])) for k in sorted(self.used)]
        return parts[0] if len(parts) == 1 else Sum(tuple(parts))

    def matrix(self, matrices: Sequence[npt.ArrayLike]) -> Array:
        """Add up given matrices: of training rows, or of new rows against them.

        Parameters
        ----------
        matrices : sequence of arrays
            One for each kernel, all of one shape.

        Returns
        -------
        array
            Their weighted sum.
        """
        if len(matrices) != len(self.weights):
            raise ValueError(
                f"matrix: {len(matrices)} matrices for {len(self.weights)} kernels; pass one each"
            )
        parts = (f * np.asarray(K) for f, K in zip(self.factors, matrices, strict=True) if f > 0)
        return np.asarray(sum(parts))

    def __str__(self) -> str:
        used = self.used
        lines = [f"{len(used)} of {len(self.weights)} kernels, best for {self.method}"]
        for k in used[:_SHOWN]:
            name = repr(self.kernels[k])
            shown = f"matrix {k}" if isinstance(self.kernels[k], Precomputed) else name
            lines.append(f"  {self.weights[k]:7.4f}  {shown}")
        if len(used) > _SHOWN:
            rest = float(self.weights[used[_SHOWN:]].sum())
            lines.append(f"  {rest:7.4f}  {len(used) - _SHOWN} others")
        lines.append(str(self.certificate).splitlines()[0])
        return "\n".join(lines)


# --- estimator -----------------------------------------------------------------------------------

_METHOD_PARAMETERS: dict[str, tuple[str, ...]] = {  # what a method takes from the machine
    "margin": ("C", "slack", "multiclass", "class_weight"),
    "ridge": ("penalty", "bias"),
}


class MultipleKernel(InnerMachineMixin, Machine, BaseEstimator):
    """A machine whose kernel is a sum of given kernels, with weights learnt from the rows it fits.

    `fit` calls `combine`, sets the machine's kernel and fits it. In a cross-validation the weights
    are thus learnt anew from the rows of each fold, and scores are honest.

    Parameters
    ----------
    machine : classifier or regressor with a parameter `kernel`
        What is fitted with the sum.
    kernels : sequence of Kernel, str or callable
        What may be part of the sum.
    method : {"alignment", "margin", "ridge"} or None, default=None
        As in `combine`; "margin" is for classifiers, "ridge" for regressors. None takes "margin"
        for `SVC` with a finite C, "ridge" for `KernelRidge` with a penalty that is a positive
        number, and "alignment" for all other machines. C, slack, class weights, penalty and bias
        are those of the machine.
    normalize : bool, default=True
        Whether kernels are put on one scale first.
    tol : float, default=1e-4
        Duality gap of the weights, relative to the objective.
    max_iter : int, default=200
        Largest number of steps over the simplex.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress` while weights are learnt; a true value stops that.
    time_limit : float or None, default=None
        Seconds after which the search for weights stops.

    Attributes
    ----------
    combined_ : Combined
        The weights, with solution and certificate.
    weights_ : (m,) array
        Shares of the kernels.
    kernel_ : Kernel
        Their weighted sum.
    n_iter_ : int
        Steps over the simplex; a look around counts as a step.
    machine_ : estimator
        The fitted machine.
    solution_, certificate_ : Solution, Certificate
        Those of the fitted machine; `combined_` has those of the weights.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.kernels import Gaussian
    >>> from mercer.selection import MultipleKernel, Tuned
    >>> X = np.random.default_rng(0).normal(size=(120, 3))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> parts = [Gaussian(1.0).on([0, 1]), Gaussian(1.0).on([1, 2]), Gaussian(1.0).on([2])]
    >>> machine = MultipleKernel(SVC(C=10.0), parts).fit(X, y)
    >>> machine.weights_.round(2)
    array([0.91, 0.09, 0.  ])
    >>> Tuned(machine, {"machine__C": [1.0, 10.0]}, cv=3).fit(X, y).best_score_ > 0.85
    True
    """

    _fitted_name = "machine_"

    def __init__(
        self,
        machine: Any,
        kernels: Sequence[Any],
        *,
        method: str | None = None,
        normalize: bool = True,
        tol: float = 1e-4,
        max_iter: int = 200,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.machine = machine
        self.kernels = kernels
        self.method = method
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Learn the weights of the kernels, then fit the machine.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Labels, or numbers.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The fitted machine.
        """
        labels = self._refuse_others()
        if labels:
            refuse_mixed_labels(self, y)
            refuse_targets(training_rows(self, X, y, False)[1])
        else:
            training_rows(self, X, y, False, multi_output=True, y_numeric=True)
        self.combined_ = combine(
            self.kernels,
            X,
            y,
            normalize=self.normalize,
            target="labels" if labels else "numbers",
            sample_weight=sample_weight,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=self.callback,
            time_limit=self.time_limit,
            **self._loss(),
        )
        machine = clone(self.machine).set_params(kernel=self.combined_.kernel)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.machine_ = machine.fit(X, y, **weights)
        return self

    def _refuse_others(self) -> bool:
        """Refuse machines without a kernel or a target; tell whether the machine classifies."""
        if isinstance(self.machine, type) or not hasattr(self.machine, "get_params"):
            raise TypeError(
                f"MultipleKernel: machine={self.machine!r} must be a machine, such as SVC(C=10.0)"
            )
        if is_precomputed(self.kernels):
            raise ValueError(
                "MultipleKernel: kernels=Precomputed() cannot be fitted, since X is one table; use "
                "combine(Precomputed(), matrices, y), and fit the machine to its `matrix`"
            )
        if "kernel" not in self.machine.get_params(deep=False):
            raise TypeError(
                f"MultipleKernel: machine={self.machine!r} has no parameter kernel; use SVC, "
                "KernelRidge or another machine of a kernel"
            )
        if not is_classifier(self.machine) and not is_regressor(self.machine):
            raise TypeError(
                f"MultipleKernel: machine={self.machine!r} learns without a target, from which "
                "weights of kernels could be learnt; use a classifier or a regressor"
            )
        return bool(is_classifier(self.machine))

    def _loss(self) -> dict[str, Any]:
        """Return what the weights are best for, as the machine has it."""
        machine, method = self.machine, self.method
        if method is None:
            method = _own_method(machine)
        unfit = {"margin": is_regressor, "ridge": is_classifier}
        if isinstance(method, str) and method in unfit and unfit[method](machine):
            raise ValueError(
                f"MultipleKernel: method={method!r} does not suit machine={machine!r}: 'margin' is "
                "for classifiers and 'ridge' for regressors; use None or 'alignment'"
            )
        names = _METHOD_PARAMETERS.get(method, ()) if isinstance(method, str) else ()
        params = machine.get_params(deep=False)
        return {"method": method, **{name: params[name] for name in names if name in params}}

    @available_if(inner_has("score"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Score predictions, as the fitted machine does."""
        return float(self._fitted("score").score(X, y, sample_weight))

    @property
    def weights_(self) -> Array:
        """Shares of the kernels."""
        return self._learnt("combined_").weights  # type: ignore[no-any-return]

    @property
    def kernel_(self) -> Any:
        """The weighted sum."""
        return self._learnt("combined_").kernel

    @property
    def n_iter_(self) -> int:
        """Steps over the simplex."""
        return max(1, int(self._learnt("combined_").solution.iterations))

    def _learnt(self, name: str) -> Any:
        if name not in self.__dict__:
            raise AttributeError("MultipleKernel is not fitted yet; call fit first")
        return self.__dict__[name]

    def _inner(self, name: str) -> Any:
        return getattr(self._learnt("machine_"), name)

    def _fitted(self, what: str) -> Any:
        check_is_fitted(self)
        return self.machine_

    def __sklearn_is_fitted__(self) -> bool:
        return "machine_" in self.__dict__


def _own_method(machine: Any) -> str:
    """Return the method that suits a machine."""
    params = machine.get_params(deep=False)
    cost, penalty = params.get("C"), params.get("penalty")
    if isinstance(machine, SVC) and machine.nu is None and is_real(cost) and cost < math.inf:
        return "margin"
    if isinstance(machine, KernelRidge) and is_real(penalty) and penalty > 0:
        return "ridge"
    return "alignment"


# --- alignment -----------------------------------------------------------------------------------
#
# Kernel-target alignment without a fit.


def alignment(
    kernel: Any,
    X: Any,
    y: Any,
    *,
    centered: bool = True,
    target: str = "auto",
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Measure how well a kernel agrees with labels or targets: the cosine of two matrices.

    <K, Y Y'> / sqrt(<K, K> <Y Y', Y Y'>), where Y Y' is the kernel that knows the answer: y y' for
    numbers, 1 for rows of one class and -1/(k - 1) for rows of two among k. Both matrices are
    centred first, as if their features had mean zero.

    Parameters
    ----------
    kernel : Kernel, str or callable
        What similarity is; `Precomputed()` for a matrix in place of X.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows; strings for string kernels.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Labels, or numbers.
    centered : bool
        Whether to centre. Without it a kernel of large mean is aligned with unequal classes.
    target : {"auto", "labels", "numbers"}
        What y holds. "auto" takes text, truth values and whole numbers for labels, as scikit-learn
        does: say "numbers" for counts.
    sample_weight : array-like of shape (n_samples,), optional
        How often each row counts.

    Returns
    -------
    float
        Between -1 and 1, not negative for a valid kernel; 1 if the kernel is the ideal one, 0 if it
        tells nothing (a constant kernel).

    Notes
    -----
    Where the matrix does not fit the memory budget, its rows are evaluated block by block.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian, Linear
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = (X**2).sum(axis=1) > 1.4
    >>> round(alignment(Gaussian(0.7), X, y), 2), round(alignment(Linear(), X, y), 2)
    (0.32, 0.01)
    """
    check_flag("alignment", "centered", centered)
    given = is_precomputed(kernel)
    data = labelled("alignment", X, y, sample_weight, target, given, [kernel])
    rows = np.flatnonzero(data.weights > 0)
    chosen = (
        Precomputed() if given else resolve(kernel, take(data.points, rows), data.weights[rows])
    )
    gram = make_gram(chosen, data.points, Need.PRODUCTS, rows=rows, names=data.names)
    problem = KernelAlignment(
        (gram,), np.ones(1), data.ideal()[rows], data.weights[rows], bool(centered)
    )
    if not problem.aim.any():
        raise ValueError("alignment: y is constant, so that no kernel agrees with it; pass targets")
    return problem.moments.alignment(np.ones(1))
