"""Drop-in for `sklearn.svm.NuSVC`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from mercer import machines
from mercer.array_types import Array
from mercer.compat.sklearn.base.classifier import PairClassifier
from mercer.kernels import Kernel
from mercer.machines.base.parameters import check_share
from mercer.machines.base.sharing import Sharing
from mercer.machines.base.targets import class_weights, classes_of


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
