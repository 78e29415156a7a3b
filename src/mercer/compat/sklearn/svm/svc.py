"""Drop-ins for `sklearn.svm`: SVC and NuSVC."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer import machines
from mercer.array_types import Array, Points
from mercer.compat.sklearn.base import (
    DropIn,
    check_random_state,
    check_weight_of_slack,
    masked_weights,
    refuse_one_class_left,
)
from mercer.kernels import Kernel, Precomputed
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.parameters import check_choice, check_flag, check_share
from mercer.machines.base.sharing import Fold, FoldPath, KnownClassifier, Sharing
from mercer.machines.base.targets import (
    check_class_weight,
    class_weights,
    classes_of,
    refuse_mixed_labels,
)
from mercer.machines.svm.multiclass import OneVsOne, Scheme
from mercer.machines.svm.svc import ClassPath
from mercer.rows.points import to_dense

# --- altered -------------------------------------------------------------------------------------
#
# Decision values of coefficients that a program wrote into a fitted classifier itself.


def altered_values(machine: Any, X: Points) -> Array:
    """Evaluate `_dual_coef_` and `_intercept_`, in LIBSVM's layout, with the sign of Mercer's.

    Coefficients of rows of class i against class j > i stand in row j - 1, those of j in row i.
    """
    inner = machine.machine_
    given = isinstance(inner.kernel_, Precomputed)
    K = to_dense(X[:, machine.support_] if given else inner.kernel_(X, machine.support_vectors_))
    coef, ends = to_dense(machine._dual_coef_), np.append(0, np.cumsum(machine._n_support))
    rows = [slice(ends[c], ends[c + 1]) for c in range(len(machine.classes_))]
    values = [
        K[:, rows[i]] @ coef[j - 1, rows[i]] + K[:, rows[j]] @ coef[i, rows[j]]
        for i, j in combinations(range(len(rows)), 2)
    ]
    return np.asarray(-(np.column_stack(values) + machine._intercept_))


# --- classifier ----------------------------------------------------------------------------------
#
# What the two kernel classifiers share: pairs of classes, votes, shapes of the decision.

_DEPRECATED = (
    "The `probability` parameter was deprecated in scikit-learn 1.9 and goes in 1.11, and with it "
    "here. mercer.SVC(probability=True) stays; CalibratedClassifierCV is the other way."
)
_OTHER_MAP = (
    "Attribute `%s` was deprecated in scikit-learn 1.9 and goes in 1.11. It is empty here: "
    "probabilities are made by another map than Platt's."
)


class PairClassifier(ClassifierMixin, DropIn):
    """Base of the classifiers.

    With two classes a positive value speaks for the second. With more, scikit-learn's values of
    pairs are positive for the first class of the pair, the negatives of Mercer's.
    """

    machine_: machines.SVC
    _n_support: Array
    _one_class_left = "Invalid input - all samples with positive weights belong to the same class"
    class_weight: Any
    decision_function_shape: str
    break_ties: bool
    probability: Any

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the kernel matrix itself for kernel="precomputed"; anything for a function.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts: a factor on its C; rows of negative weight are left out.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        if self.probability != "deprecated":
            warnings.warn(_DEPRECATED, FutureWarning, stacklevel=3)
        refuse_mixed_labels(self, y)
        labels = self._solve(X, y, sample_weight)
        machine = self.machine_
        self.classes_ = machine.classes_
        codes = np.searchsorted(self.classes_, labels[machine.support_])
        self._keep_support(np.argsort(codes, kind="stable"))
        self.n_support_ = self._n_support = machine.n_support_.astype(np.int32)
        turn = -1.0 if len(self.classes_) == 2 else 1.0  # LIBSVM's own sign
        self._dual_coef_ = self._found_coef = turn * self.dual_coef_
        self._intercept_ = turn * self.intercept_
        self.class_weight_ = self._weights_of_classes(labels, sample_weight)
        pairs = len(self.classes_) * (len(self.classes_) - 1) // 2
        self.n_iter_ = np.full(pairs, machine.n_iter_, dtype=np.int32)
        return self

    def decision_function(self, X: Any) -> Array:
        """Evaluate the decision at new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            For two classes one value, positive for `classes_[1]`. For more, by
            `decision_function_shape`: "ovr" one column per class, votes plus less than a third for
            how clear they were; "ovo" one column per pair, positive for the first of the two.
        """
        values = self._pair_values(X)
        return self._decision(self.machine_._scheme, values)

    def predict(self, X: Any) -> Array:
        """Predict labels of new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            The class with most votes of pairs; of several, the first in `classes_`, or with
            `break_ties` the one with the largest decision.
        """
        self._refuse_ties_of_pairs()
        values = self._pair_values(X)
        return self._labels(self.machine_._scheme, self.classes_, values)

    @available_if(lambda self: self._has_probabilities())  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Estimate the probability of each class at new rows; needs `probability=True`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Rows sum to 1; a class with a larger decision has a larger probability.
        """
        check_is_fitted(self)
        if not self.machine_.probability:
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False; call fit again"
            )
        return np.asarray(self.machine_.predict_proba(self._new(X)))

    @available_if(lambda self: self._has_probabilities())  # type: ignore[untyped-decorator]
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
    def probA_(self) -> Array:
        """Empty, and deprecated: probabilities are not Platt's here."""
        return _no_parameters("probA_")

    @property
    def probB_(self) -> Array:
        """Empty, and deprecated: probabilities are not Platt's here."""
        return _no_parameters("probB_")

    def _pair_values(self, X: Any) -> Array:
        check_is_fitted(self)
        if self._n_support.sum() != len(self.support_):
            raise ValueError(f"The internal representation of {type(self).__name__} was altered")
        if self._dual_coef_ is not self.__dict__.get("_found_coef"):
            return altered_values(self, self._new(X))
        return self._values(X)

    def _check_weights(self, labels: Array, weights: Array) -> None:
        refuse_one_class_left(self, labels, weights, self._one_class_left)

    def _path(self, fold: Fold, machines: Sequence[DropIn]) -> FoldPath:
        """Write the pairs of classes of a fold; labels and shapes are scikit-learn's."""
        inner = self._machines_inside(fold, machines)
        path: ClassPath = inner[0]._class_path(fold, inner)
        self._refuse_ties_of_pairs()

        def predictor(values: Array, offsets: Array) -> KnownClassifier:
            found = path.decisions(values, offsets)
            labels = self._labels(path.scheme, path.classes, found)
            return KnownClassifier(path.classes, self._decision(path.scheme, found), labels)

        return FoldPath(path.problem, predictor)

    def _decision(self, scheme: Scheme, values: Array) -> Array:
        """Return values of pairs in the shape that was asked for."""
        if scheme.count == 2:
            return np.asarray(values[:, 0])
        return -values if self.decision_function_shape == "ovo" else scheme.decide(values)

    def _labels(self, scheme: Scheme, classes: Array, values: Array) -> Array:
        """Return the labels that values of pairs are for."""
        if not isinstance(scheme, OneVsOne):
            return np.asarray(classes[(values[:, 0] >= 0).astype(np.intp)])
        decision = scheme.decide(values) if self.break_ties else _votes(scheme, values)
        return np.asarray(classes[np.argmax(decision, axis=1)])

    def _refuse_ties_of_pairs(self) -> None:
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError(
                f"{type(self).__name__}: break_ties must be False when decision_function_shape is "
                "'ovo', which has no value per class; use decision_function_shape='ovr'"
            )

    def _wants_probabilities(self) -> bool:
        return not isinstance(self.probability, str) and bool(self.probability)

    def _has_probabilities(self) -> bool:
        if not self._wants_probabilities():
            raise AttributeError("predict_proba is not available when probability=False")
        return True

    def _sign(self) -> float:
        return 1.0 if len(self.machine_.classes_) == 2 else -1.0

    def _weights_of_classes(self, labels: Array, sample_weight: Any) -> Array:
        """Return what C is multiplied with in each class."""
        weights = masked_weights(self, sample_weight, len(labels))
        kept = weights > 0
        codes = np.searchsorted(self.classes_, labels[kept])
        totals = np.bincount(codes, weights[kept], minlength=len(self.classes_))
        factors = class_weights(self, self.class_weight, self.classes_, totals)
        return np.ones(len(self.classes_)) if factors is None else factors

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_class_weight(self)
        check_choice(self, "decision_function_shape", ("ovo", "ovr"))
        check_flag(self, "break_ties")
        if self.probability != "deprecated":
            check_flag(self, "probability")
        check_random_state(self)


def _no_parameters(name: str) -> Array:
    warnings.warn(_OTHER_MAP % name, FutureWarning, stacklevel=3)
    return np.zeros(0)


def _votes(scheme: OneVsOne, values: Array) -> Array:
    """Count the pairs that each class wins, as LIBSVM does: a value of zero is for the later."""
    votes = np.empty((len(values), scheme.count), dtype=np.intp)
    for c in range(scheme.count):
        mine = values[:, scheme.columns(c)]
        votes[:, c] = (mine[:, :c] >= 0).sum(axis=1) + (mine[:, c:] < 0).sum(axis=1)
    return votes


# --- svc -----------------------------------------------------------------------------------------
#
# Drop-in for `sklearn.svm.SVC`.


class SVC(PairClassifier):
    """`sklearn.svm.SVC` on Mercer's solver: C-support vector classification.

    What differs is listed in the user guide.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the slack; infinity allows none.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"}, callable or Kernel, default="rbf"
        What similarity is. A function is called with two collections of rows, as they came, and
        gives their matrix; a kernel of `mercer.kernels` is taken as it is.
    degree : int, default=3
        Of kernel="poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Factor of "rbf", "poly" and "sigmoid"; "scale" is 1 / (n_features * X.var()), "auto" is
        1 / n_features.
    coef0 : float, default=0.0
        Constant of "poly" and "sigmoid".
    shrinking : bool, default=True
        Accepted; the solver decides by itself.
    probability : bool, default=False
        Whether to calibrate `predict_proba`. It stays: there is no warning.
    tol : float, default=1e-3
        Largest violation of the optimality conditions.
    cache_size : float, default=200
        Accepted; `mercer.config(memory=...)` sets what may be used.
    class_weight : dict, "balanced" or None, default=None
        Factor on C for each label; "balanced" gives every class the same total.
    verbose : bool, default=False
        Accepted; nothing is printed.
    max_iter : int, default=-1
        Largest number of pair steps; -1 for max(10^7, 100 n).
    decision_function_shape : {"ovo", "ovr"}, default="ovr"
        With more than two classes: one value per pair of classes, or one per class.
    break_ties : bool, default=False
        Whether `predict` takes the largest decision where several classes have most votes; else
        the first of them.
    random_state : int, RandomState or None, default=None
        Accepted; nothing is random.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    class_weight_ : array of shape (n_classes,)
        Factor on C for each class.
    support_ : int32 array of shape (n_SV,)
        Rows with a nonzero coefficient, those of the first class first.
    support_vectors_ : array or sparse matrix of shape (n_SV, n_features)
        These rows; empty for a precomputed kernel and for functions.
    n_support_ : int32 array of shape (n_classes,)
        How many of them each class has.
    dual_coef_ : array or sparse matrix of shape (n_classes - 1, n_SV)
        Their coefficients, in LIBSVM's layout.
    coef_ : array or sparse matrix of shape (n_pairs, n_features)
        Weights of the columns; only for kernel="linear".
    intercept_ : array of shape (n_pairs,)
        The constants of the decision functions.
    fit_status_ : int
        0 if the tolerance was reached, else 1.
    n_iter_ : int32 array of shape (n_pairs,)
        Steps of all pairs together, which are solved as one.
    shape_fit_ : tuple of int
        The shape of X.
    n_features_in_ : int
        The number of columns of X.
    machine_ : mercer.SVC
        The Mercer machine inside.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Duality gap, optimality conditions and feasibility, computed from the data in float64 when
        first read.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.compat.sklearn import SVC
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> machine = SVC(gamma="auto").fit(X, [1, 1, 2, 2])
    >>> machine.predict([[-0.8, -1.0]]).tolist()
    [1]
    >>> machine.certificate_.ok
    True
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool | str = "deprecated",
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Mapping[Any, float] | str | None = None,
        verbose: bool | int = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state

    def sharing(self) -> Sharing | None:
        """Return how fits for several C are solved together."""
        return self._sharing(("C",))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_weight_of_slack(self)

    def _machine(self, kernel: Kernel, targets: Array, weights: Array) -> machines.SVC:
        return machines.SVC(
            kernel,
            float(self.C),
            class_weight=self.class_weight,
            probability=self._wants_probabilities(),
            **self._solving(),
        )


# --- nu svc --------------------------------------------------------------------------------------
#
# Drop-in for `sklearn.svm.NuSVC`.


class NuSVC(PairClassifier):
    """`sklearn.svm.NuSVC` on Mercer's solver: classification with a share nu of errors.

    What differs is listed in the user guide.

    Parameters
    ----------
    nu : float, default=0.5
        Upper bound on the share of margin errors and lower bound on that of support vectors.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"}, callable or Kernel, default="rbf"
        What similarity is. A function is called with two collections of rows, as they came, and
        gives their matrix; a kernel of `mercer.kernels` is taken as it is.
    degree : int, default=3
        Of kernel="poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Factor of "rbf", "poly" and "sigmoid"; "scale" is 1 / (n_features * X.var()), "auto" is
        1 / n_features.
    coef0 : float, default=0.0
        Constant of "poly" and "sigmoid".
    shrinking : bool, default=True
        Accepted; the solver decides by itself.
    probability : bool, default=False
        Whether to calibrate `predict_proba`. It stays: there is no warning.
    tol : float, default=1e-3
        Largest violation of the optimality conditions.
    cache_size : float, default=200
        Accepted; `mercer.config(memory=...)` sets what may be used.
    class_weight : dict, "balanced" or None, default=None
        How much rows of each label count; "balanced" gives every class the same total.
    verbose : bool, default=False
        Accepted; nothing is printed.
    max_iter : int, default=-1
        Largest number of pair steps; -1 for max(10^7, 100 n).
    decision_function_shape : {"ovo", "ovr"}, default="ovr"
        With more than two classes: one value per pair of classes, or one per class.
    break_ties : bool, default=False
        Whether `predict` takes the largest decision where several classes have most votes; else
        the first of them.
    random_state : int, RandomState or None, default=None
        Accepted; nothing is random.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    class_weight_ : array of shape (n_classes,)
        Factor on C for each class.
    support_ : int32 array of shape (n_SV,)
        Rows with a nonzero coefficient, those of the first class first.
    support_vectors_ : array or sparse matrix of shape (n_SV, n_features)
        These rows; empty for a precomputed kernel and for functions.
    n_support_ : int32 array of shape (n_classes,)
        How many of them each class has.
    dual_coef_ : array or sparse matrix of shape (n_classes - 1, n_SV)
        Their coefficients, in LIBSVM's layout.
    coef_ : array or sparse matrix of shape (n_pairs, n_features)
        Weights of the columns; only for kernel="linear".
    intercept_ : array of shape (n_pairs,)
        The constants of the decision functions.
    fit_status_ : int
        0 if the tolerance was reached, else 1.
    n_iter_ : int32 array of shape (n_pairs,)
        Steps of all pairs together, which are solved as one.
    shape_fit_ : tuple of int
        The shape of X.
    n_features_in_ : int
        The number of columns of X.
    machine_ : mercer.SVC
        The Mercer machine inside.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Duality gap, optimality conditions and feasibility, computed from the data in float64 when
        first read.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.compat.sklearn import NuSVC
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> NuSVC().fit(X, [1, 1, 2, 2]).predict([[-0.8, -1.0]]).tolist()
    [1]
    """

    _one_class_left = (
        "specified nu is infeasible: all samples with positive weights belong to the same class"
    )

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool | str = "deprecated",
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Mapping[Any, float] | str | None = None,
        verbose: bool | int = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state

    def sharing(self) -> Sharing | None:
        """Return how fits for several nu are solved together."""
        return self._sharing(("nu",))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share(self, "nu")

    def _machine(self, kernel: Kernel, targets: Array, weights: Array) -> machines.SVC:
        return machines.SVC(
            kernel,
            nu=self._feasible_nu(targets, weights),
            class_weight=self.class_weight,
            probability=self._wants_probabilities(),
            **self._solving(),
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # a check weighs classes 10^7 to 1, and no share nu can be met then; scikit-learn's own
        # class is excused from it because it does not look at class weights at all
        tags.classifier_tags.poor_score = True
        return tags

    def _feasible_nu(self, labels: Array, weights: Array) -> float:
        """Lower nu where class weights leave so little to one class that it could not be met."""
        classes, codes = classes_of(self, labels, weights)
        totals = np.bincount(codes, weights, minlength=len(classes))
        factors = class_weights(self, self.class_weight, classes, totals)
        if factors is None or self.nu > _most(totals) or self.nu <= _most(factors * totals):
            return float(self.nu)
        most = _most(factors * totals)
        warnings.warn(
            f"NuSVC: nu={self.nu} cannot be met with this class_weight, nu={most:.3g} is taken: a "
            "class that weighs little cannot hold half of the errors. Use weights that are closer",
            UserWarning,
            stacklevel=6,
        )
        return most


def _most(totals: Array) -> float:
    """Return the largest nu for the pair of classes that differ most in weight."""
    least, largest = float(totals.min()), float(totals.max())
    return 2.0 * least / (least + largest)
