"""Estimator `LogisticRegression`, and checks that an unregularized minimum exists."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from sklearn.base import ClassifierMixin

from mercer.approximation import Approximation
from mercer.array_types import Array, Points
from mercer.expression import bind_columns
from mercer.gram import Gram, Need, make_gram
from mercer.gram.base import RKHSFunction
from mercer.gram.build import feature_gram, refuse_extremes, refuse_overflow
from mercer.gram.evaluated import KernelExpansion
from mercer.gram.factored import FeatureExpansion
from mercer.gram.policy import LARGEST_UNASKED
from mercer.kernels import Kernel, Linear, resolve
from mercer.kernels.features import feature_map
from mercer.machines.base.approximate import approximation_of, warn_of_similarity
from mercer.machines.base.certificate import Certified, lazy_certificate
from mercer.machines.base.inputs import new_rows
from mercer.machines.base.machine import KernelMachine, all_or_nothing, kernel_of, offered_if
from mercer.machines.base.origin import (
    as_given,
    balanced,
    counting_rounding,
    far_origin,
    less_origin,
)
from mercer.machines.base.parameters import (
    check_choice,
    check_flag,
    check_limits,
    check_real,
    refuse,
)
from mercer.machines.base.sharing import SharedMatrix
from mercer.machines.base.targets import (
    batch_codes,
    check_class_weight,
    check_weights,
    class_weights,
    classes_for,
    classes_of,
    labels_of,
    refuse_mixed_labels,
    refuse_targets,
)
from mercer.machines.logistic.newton import UnpenalizedNewton, one_by_one
from mercer.machines.logistic.problem import LogLoss, Loss, SmoothRisk, SquaredLoss, TanhLoss
from mercer.machines.logistic.stochastic_gradient import (
    AnnealedGradient,
    GradientDescent,
    SGDState,
    StochasticGradient,
)
from mercer.machines.ridge.primal import ENTRY_ROUNDING, resolved
from mercer.machines.ridge.problem import Coefficients
from mercer.rows.points import is_objects, is_sparse, to_dense
from mercer.solvers.base import Callback, Solution, Solver, Status
from mercer.solvers.certificate import certify, of_stream
from mercer.solvers.dispatch import solve

# --- unpenalized ---------------------------------------------------------------------------------
#
# When a loss without a penalty has a minimum: features of full rank, classes that overlap.

_SOLVERS = (GradientDescent, StochasticGradient, UnpenalizedNewton)
_CLEAR = 1e-9  # of the rows: a plane that puts so much on the right side is no rounding


def check_unpenalized(machine: Any) -> None:
    """Refuse penalty=0 with options for which it means nothing."""
    if machine.penalty != 0:
        return
    if machine.solver is None:
        return
    known = _SOLVERS[-1:] if machine.loss == "tanh" else _SOLVERS
    if not isinstance(machine.solver, known):
        names = ", ".join(kind.__name__ for kind in known)
        given = f"penalty=0 and loss={machine.loss!r}"
        refuse(machine, "solver", machine.solver, f"be None or one of {names} with {given}")


def refuse_without_minimum(machine: Any, problem: SmoothRisk, origin: Array | None = None) -> None:
    """Refuse a problem without a penalty that has no minimum, or many.

    Weights that all rows leave alone can be anything, and where a plane has all rows of a class on
    its side, the log and the tanh loss fall for ever as weights grow. The tanh loss may do so
    elsewhere, too, which its solver looks at. `origin` was taken off all rows.
    """
    if problem.penalty != 0:
        return
    owner = type(machine).__name__
    if problem.gram.factor is None:
        raise ValueError(
            f"{owner}: penalty=0 needs a kernel with fewer features than rows (Linear, low-degree "
            "Polynomial): otherwise any labels are reached exactly, in many ways. Use penalty > 0"
        )
    logistic = isinstance(problem.loss, LogLoss)
    if logistic and problem.count > 2:
        raise ValueError(
            f"{owner}: penalty=0 with loss='log' takes two classes; of more, adding one function "
            "to all of them changes nothing, and none is the answer. Use a small penalty > 0"
        )
    F, lengths = _features(problem.gram, problem.bias, origin)
    sigma, Vt = np.linalg.svd(F, full_matrices=False)[1:]
    rank = int(resolved(sigma, Vt, lengths, F.shape).sum())
    if rank < F.shape[1]:
        raise ValueError(
            f"{owner}: penalty=0, but the {F.shape[1]} features (the constant of the bias counted) "
            f"have rank {rank}, so many weights are equally good. Leave columns out that depend on "
            "others, use bias=False where a feature is constant, more rows, or a small penalty > 0"
        )
    falling = not isinstance(problem.loss, SquaredLoss)
    if falling and any(_separable(F, each) for each in one_by_one(problem)):
        raise ValueError(
            f"{owner}: penalty=0, but a plane has all rows of a class on its side, so that the "
            "loss falls for ever as weights grow: there is no minimum. Use penalty > 0"
        )


def _features(gram: Gram, bias: bool, origin: Array | None) -> tuple[Array, Array]:
    """Return features in units of their largest entry, and the lengths they had at the origin.

    Columns that are constant but for rounding are zero.
    """
    F = np.asarray(to_dense(gram.factor), dtype=np.float64)
    far = np.zeros(F.shape[1]) if origin is None else np.abs(origin)
    size = np.abs(F).max(axis=0, initial=0.0)
    F = F * (size > ENTRY_ROUNDING * far)
    size = np.where(size > 0, size, 1.0)
    F = F / size
    lengths = np.hypot(np.linalg.norm(F, axis=0), np.sqrt(len(F)) * far / size)
    if not bias:
        return F, lengths
    return np.column_stack([F, np.ones(len(F))]), np.append(lengths, np.sqrt(len(F)))


def _separable(F: Any, problem: SmoothRisk) -> bool:
    """Return whether y_i w'x_i >= 0 for all rows and > 0 for some: a linear programme."""
    signed = np.where(problem.codes == 1, 1.0, -1.0)[:, None] * F
    found = linprog(
        -signed.sum(axis=0),
        A_ub=np.vstack([-signed, signed]),
        b_ub=np.concatenate([np.zeros(len(F)), np.ones(len(F))]),
        bounds=(None, None),
        method="highs",
    )
    return bool(found.status == 0 and float(found.fun or 0.0) < -_CLEAR)


# --- logistic ------------------------------------------------------------------------------------
#
# Logistic regression: a smooth loss and a squared norm, in the space of any kernel.

_BY_FEATURES = (AnnealedGradient, GradientDescent, StochasticGradient)  # in their own space
_LOSSES: dict[str, type[Loss]] = {"log": LogLoss, "squared": SquaredLoss, "tanh": TanhLoss}


def _has_probabilities(machine: Any) -> bool:
    if machine.loss == "squared":
        raise AttributeError("the squared loss gives no probabilities; use loss='log' or 'tanh'")
    return True


def _streams(machine: Any) -> bool:
    if machine._is_precomputed() or machine.class_weight is not None:
        return False
    if isinstance(approximation_of(machine), Approximation):
        return True  # features that the first block gives
    return feature_map(resolve(machine.kernel, np.eye(2)).expression(), 2) is not None


class LogisticRegression(Certified, ClassifierMixin, KernelMachine):
    """Logistic regression, linear or with any kernel, by this or another smooth loss.

    Minimises sum_i s_i loss(f(x_i), y_i) + penalty / 2 |f|^2 over f = sum_i a_i k(x_i, .) + b; the
    bias b is not penalised. Two classes have one function f, more have one each.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="linear"
        What similarity is. With fewer features than rows the work is done in their space.
    penalty : float, default=1.0
        Weight of the squared norm; C = 1 / penalty elsewhere. 0 where there is a minimum without:
        features of full rank, fewer than rows, with loss="squared"; with loss="log" and two
        classes that no plane separates; with loss="tanh" where none separates a class from the
        rest, and the loss found is below those that growing weights tend to. Refused elsewhere.
    approximation : Approximation, str or None, default="auto"
        Features in place of the kernel, such as `Nystrom(1000)` or "random_features:2000"; None for
        the kernel itself. "auto" takes the kernel itself as long as that is not refused, and past
        the limit landmarks, with a warning that says so.
    loss : {"log", "tanh", "squared"}, default="log"
        "log": -log of the probability of the right class, log(1 + exp(-y f)) or of a softmax.
        "tanh": 1 - y tanh(f), bounded, so that outliers hardly matter; not convex, so several
        starts are tried, and another minimum may be better.
        "squared": (y - f)^2 / 2, the Adaline. With more than two classes, "tanh" and "squared" add
        up the losses of each class against the rest.
    bias : bool, default=True
        Whether f has a constant b.
    class_weight : dict, "balanced" or None, default=None
        Weight of the rows of each class, beside the sample weights.
    solver : Solver or None, default=None
        `NewtonRisk` or `AnnealedGradient`; None takes Newton's method. With steps of
        a chosen length, as taught: `GradientDescent` or `StochasticGradient`.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which a fit stops with what it has.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    kernel_ : Kernel
        The kernel used.
    approximation_error_ : StatedError
        With features in place of the kernel: how far they are from it.
    dual_coef_ : array of shape (n_samples, 1) or (n_samples, n_classes)
        The coefficients a, after `fit`.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Weights of the columns, for the linear kernel.
    intercept_ : array of shape (1,) or (n_classes,)
        The bias b.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        The duality gap ("log", "squared") or the gradient ("tanh"), from the data in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import LogisticRegression
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> machine = LogisticRegression().fit(X, ["no", "no", "yes", "yes"])
    >>> machine.predict_proba([[1.5]]).round(3).tolist()
    [[0.5, 0.5]]
    >>> machine.certificate_.ok
    True
    """

    _met: float
    _seen: float
    _streamed: float
    _weights: Array | None

    shares = (SharedMatrix(),)

    exact_rows = LARGEST_UNASKED

    def __init__(
        self,
        kernel: Kernel | str | Any = "linear",
        penalty: float = 1.0,
        *,
        approximation: Approximation | str | None = "auto",
        loss: str = "log",
        bias: bool = True,
        class_weight: Any = None,
        solver: Solver | None = None,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.approximation = approximation
        self.penalty = penalty
        self.loss = loss
        self.bias = bias
        self.class_weight = class_weight
        self.solver: Any = solver
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the Gram matrix itself for a precomputed kernel; strings for string kernels.
        y : array-like of shape (n_samples,)
            Labels.
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
        count, rows = len(self.classes_), np.flatnonzero(weights)
        totals = np.bincount(codes, weights, count)
        by_class = class_weights(self, self.class_weight, self.classes_, totals)
        counted = weights if by_class is None else weights * by_class[codes]
        names = self._column_names()
        self._use_kernel(kernel_of(self.kernel, X, weights, names), X, weights, names)
        origin = far_origin(self.kernel_, X, rows) if self.bias else None
        moved = less_origin(X, origin)
        gram = self._gram(moved, rows)
        question = partial(
            SmoothRisk,
            codes=codes[rows],
            count=count,
            weights=counted[rows],
            penalty=float(self.penalty),
            loss=_LOSSES[self.loss](),
            bias=bool(self.bias),
        )
        options: dict[str, Any] = {"callback": self.callback, "time_limit": self.time_limit}
        problem = question(gram)
        refuse_without_minimum(self, problem, origin)
        solution: Solution = solve(problem, self.solver, **options)
        if self.loss == "log":
            solution = _without_common_bias(solution)
        if origin is not None:
            value = replace(solution.value, coef=balanced(solution.value.coef))
            solution = replace(solution, value=value)
        self.solution_ = solution
        self._judgement = lazy_certificate(
            gram, question, solution.value, certify, counted[rows], float(self.penalty)
        )
        self._keep(moved, rows, gram, solution.value, origin)
        self._seen = float(counted.sum())
        warn_of_similarity(self, gram, X)
        return self

    @offered_if(_streams)
    @all_or_nothing
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from a block of a stream by annealed gradient steps, in the order given.

        For kernels with an explicit feature map. The step is that of `solver` if it is an
        `AnnealedGradient`. The penalty is shared by the rows seen so far.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), optional
            All labels there will be; needed at the first call.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts.

        Returns
        -------
        self
            The machine.
        """
        self._check_parameters()
        first = "classes_" not in self.__dict__
        rows = self._rows_alone(X) if first else new_rows(self, X, False)
        labels = labels_of(self, y, rows.shape[0])
        weights = check_weights(self, sample_weight, len(labels))
        self.classes_ = classes_for(self, classes, first)
        codes = batch_codes(self, labels, weights)
        if first:
            names = self._column_names()
            self._use_kernel(kernel_of(self.kernel, rows, weights, names), rows, weights, names)
        sgd, features = self._resumed(rows.shape[1])
        loss, size = _LOSSES[self.loss](), sgd.solver.batch
        with np.errstate(over="ignore", invalid="ignore"):
            gram = feature_gram(features, rows.astype(np.float64, copy=False))
            refuse_overflow(gram, self.kernel_)
        F = gram.factor
        for start in range(0, len(codes), size):
            part = slice(start, start + size)
            scores = np.asarray(F[part] @ sgd.w + sgd.b)
            self._met += float(weights[part] @ loss.values(scores, codes[part]))
            self._streamed += float(weights[part].sum())
            self._seen += float(weights[part].sum())
            share = float(self.penalty) / max(self._seen, 1.0)
            sgd.move(F[part], codes[part], weights[part], loss, share)
        w, b = sgd.place
        self._expansion = FeatureExpansion(features, w.copy(), b.copy())
        self._walk, self._weights, self.intercept_ = sgd, w.copy(), b.copy()
        self._judgement = of_stream(self._streamed, self._met / max(self._streamed, 1e-300))
        nothing = Coefficients(np.empty((0, len(b))), self.intercept_, self._weights)
        seen, name = "a stream, passed once", "AnnealedGradient"
        self.solution_ = Solution(nothing, Status.STREAMED, sgd.steps, np.nan, name, (), seen)
        self.__dict__.pop("dual_coef_", None)
        return self

    def decision_function(self, X: Any) -> Array:
        """Score new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel the matrix of new rows against training rows.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            For two classes f(x), positive for the second; for more, the score of each class.
        """
        scores = self._values(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """Label new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            Labels; of equal scores the first class.
        """
        scores = self._values(X)
        chosen = (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(1)
        return np.asarray(self.classes_[chosen])

    @offered_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Rows add up to one. With loss="tanh", those for which the loss is twice the chance of a
            mistake: 1 / (1 + exp(-2 f)).
        """
        return _LOSSES[self.loss]().probabilities(self._values(X))

    @offered_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Log-probabilities: finite, also where a probability is too small for a number.
        """
        return _LOSSES[self.loss]().log_probabilities(self._values(X))

    @property
    def coef_(self) -> Array:
        """Weights of the columns, for the linear kernel."""
        weights = self.__dict__.get("_weights")
        if weights is None or not isinstance(self.kernel_, Linear):
            raise AttributeError("coef_ exists after a fit with the linear kernel")
        return np.asarray(weights.T)

    def _gram(self, X: Points, rows: Array) -> Gram:
        names = self._column_names()
        by_features = isinstance(self.solver, _BY_FEATURES) or self.penalty == 0
        if by_features and not self._is_precomputed() and not is_objects(X):
            features = feature_map(bind_columns(self.kernel_.expression(), names), X.shape[1])
            if features is not None:
                gram = feature_gram(features, X[rows])
                refuse_overflow(gram, self.kernel_, rows)
                return refuse_extremes(type(self).__name__, gram, self.kernel_, rows)
        need = Need.PASSES if is_sparse(X) else Need.PRODUCTS
        make = partial(make_gram, self.kernel_, X, need, names=names, copies=3)
        if len(rows) == X.shape[0] and not self._is_precomputed():
            made = make()
            if made.placed is not None:  # only looked at in `fit`, so the rows as they are
                return refuse_extremes(type(self).__name__, made, self.kernel_)
        return refuse_extremes(type(self).__name__, make(rows=rows), self.kernel_, rows)

    def _keep(
        self, X: Points, rows: Array, gram: Gram, value: Coefficients, origin: Array | None
    ) -> None:
        self.__dict__.pop("_walk", None)
        self._weights = value.weights
        f = RKHSFunction(gram, value.coef, value.weights)
        self._expansion, self.intercept_ = as_given(f.expand(), value.intercept, origin)
        self._judgement = counting_rounding(self._judgement, self._expansion, origin)
        if not f.is_primal and isinstance(self.kernel_, Linear):
            self._weights = np.asarray(X[rows].T @ value.coef, dtype=np.float64)
        self.dual_coef_ = np.zeros((X.shape[0], value.coef.shape[1]))
        self.dual_coef_[rows] = value.coef

    def _resumed(self, d: int) -> tuple[SGDState, Any]:
        """Return a walk that goes on from the weights so far, and the features it walks on."""
        expression = bind_columns(self.kernel_.expression(), self._column_names())
        features = feature_map(expression, d)
        assert features is not None  # else there is no `partial_fit`
        held = self.__dict__.get("_walk")
        if held is not None:
            return held.copy(), features
        solver = self.solver if isinstance(self.solver, AnnealedGradient) else AnnealedGradient()
        k = 1 if len(self.classes_) == 2 else len(self.classes_)
        sgd = SGDState(solver, features.dimension, k, bool(self.bias))
        held_weights = self._fitted_weights(features)
        if held_weights is not None:
            sgd.w, sgd.b = held_weights.copy(), np.array(self.intercept_)
            sgd.mean_w, sgd.mean_b = sgd.w.copy(), sgd.b.copy()
            sgd.steps = int(self._seen) // solver.batch
        else:
            self._seen = 0.0
        self._met = self._streamed = 0.0
        return sgd, features

    def _fitted_weights(self, features: Any) -> Array | None:
        """Return the weights of the features that a fit found, in whichever space it worked."""
        held = self.__dict__.get("_weights")
        fitted = self.__dict__.get("_expansion")
        if held is not None or not isinstance(fitted, KernelExpansion):
            return held
        return np.asarray(features(fitted.points).T @ fitted.coef, dtype=np.float64)

    def _check_parameters(self) -> None:
        check_real(self, "penalty", least=0.0)
        check_unpenalized(self)
        check_choice(self, "loss", tuple(_LOSSES))
        check_flag(self, "bias")
        check_class_weight(self)
        check_limits(self)
        if self.solver is not None and not isinstance(self.solver, Solver):
            refuse(self, "solver", self.solver, "be None or a solver such as NewtonRisk()")


def _without_common_bias(solution: Solution) -> Solution:
    """Take off what is common to the biases of all classes, which the logistic loss never sees."""
    value: Coefficients = solution.value
    if len(value.intercept) < 2:
        return solution
    centred = value.intercept - value.intercept.mean()
    return replace(solution, value=replace(value, intercept=centred))
