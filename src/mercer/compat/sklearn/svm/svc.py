"""Drop-ins for `sklearn.svm`: SVC and NuSVC."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from inspect import signature
from itertools import combinations
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn import svm
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer import machines
from mercer.array_types import Array, Points
from mercer.compat.sklearn.base import DropIn, masked_weights, refuse_one_class_left
from mercer.kernels import Kernel, Precomputed
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.sharing import Fold, FoldPath, KnownClassifier, Sharing
from mercer.machines.base.targets import (
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
_DEFAULT = signature(svm.SVC).parameters["probability"].default


class PairClassifier(DropIn):
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
    _probA = _probB = np.zeros(0)  # noqa: N815  (the map is another than Platt's)

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
        self._validate_params()
        if self.probability != _DEFAULT:
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

    @available_if(svm.SVC._check_proba)  # type: ignore[untyped-decorator]
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

    @available_if(svm.SVC._check_proba)  # type: ignore[untyped-decorator]
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


class SVC(PairClassifier, svm.SVC):
    """`sklearn.svm.SVC` on Mercer's solver: C-support vector classification.

    Parameters, attributes and methods are scikit-learn's; `machine_`, `solution_` and
    `certificate_` come on top. `kernel` takes a kernel of `mercer.kernels` as well. `shrinking`,
    `cache_size` and `verbose` are accepted: the solver decides by itself, and
    `mercer.config(memory=...)` sets what may be used.
    `random_state` is accepted: nothing is random. Probabilities keep the order of the decision;
    they are not Platt's, so `probA_` and `probB_` are empty.

    What differs is listed in the user guide.

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

    def sharing(self) -> Sharing | None:
        """Return how fits for several C are solved together."""
        return self._sharing(("C",))

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


class NuSVC(PairClassifier, svm.NuSVC):
    """`sklearn.svm.NuSVC` on Mercer's solver: classification with a share nu of errors.

    Parameters, attributes and methods are scikit-learn's; `machine_`, `solution_` and
    `certificate_` come on top. `kernel` takes a kernel of `mercer.kernels` as well. `shrinking`,
    `cache_size` and `verbose` are accepted: the solver decides by itself, and
    `mercer.config(memory=...)` sets what may be used.
    `random_state` is accepted: nothing is random. Probabilities keep the order of the decision;
    they are not Platt's, so `probA_` and `probB_` are empty.

    What differs is listed in the user guide.

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

    def sharing(self) -> Sharing | None:
        """Return how fits for several nu are solved together."""
        return self._sharing(("nu",))

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
