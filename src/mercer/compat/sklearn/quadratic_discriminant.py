"""Drop-in for `sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis as ScikitQuadratic
from sklearn.utils.multiclass import check_classification_targets

from mercer import machines
from mercer.compat.sklearn.base.parameters import check_priors
from mercer.compat.sklearn.base.wrapped import WrappedMachine
from mercer.machines.base.inputs import read_rows, refuse_nonfinite
from mercer.machines.base.machine import all_or_nothing

_LARGEST = 1e150  # entries beyond, squared and added up, leave the range of float64


class QuadraticDiscriminantAnalysis(WrappedMachine, ScikitQuadratic):
    """`sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis` with Mercer's certificate.

    Runs on `mercer.GaussianClassifier` where the covariances of the classes are the most likely
    ones and not singular. Shrunk, regularised and otherwise estimated ones, and what is refused,
    are left to scikit-learn, and then there is neither `solution_` nor `certificate_`.

    Parameters
    ----------
    solver : {"svd", "eigen"}, default="svd"
        Which of scikit-learn's ways, where one of them runs.
    shrinkage : float, "auto" or None, default=None
        Share of a multiple of the identity in the covariances; for "eigen".
    priors : array-like of shape (n_classes,) or None, default=None
        Probabilities of the classes; None takes their shares of the rows.
    reg_param : float, default=0.0
        Share of the identity in the covariances; for "svd".
    store_covariance : bool, default=False
        Whether `covariance_` is kept.
    tol : float, default=1e-4
        Variances up to this count as none, and the covariance as singular.
    covariance_estimator : estimator or None, default=None
        Estimates the covariances; for "eigen".

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    priors_ : array of shape (n_classes,)
        Probabilities of the classes.
    means_ : array of shape (n_classes, n_features)
        Class means.
    rotations_ : list of arrays of shape (n_features, n_features)
        Principal axes of each class.
    scalings_ : list of arrays of shape (n_features,)
        Variances along them, largest first.
    covariance_ : list of arrays of shape (n_features, n_features)
        The covariances, if `store_covariance`.
    machine_ : mercer.GaussianClassifier
        The Mercer machine inside, if that ran.
    solution_ : Solution
        How the fit ended.
    certificate_ : Certificate
        Whether means and covariances are the most likely ones.

    Examples
    --------
    >>> from mercer.compat.sklearn import QuadraticDiscriminantAnalysis
    >>> X = [[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]]
    >>> machine = QuadraticDiscriminantAnalysis().fit(X, [1, 1, 1, 2, 2, 2])
    >>> machine.predict([[-0.8, -1]]).tolist(), machine.certificate_.ok
    ([1], True)
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows and labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self
            The fitted machine.
        """
        self._validate_params()
        check_priors(self, "priors")
        for name in ("machine_", "covariance_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        shrunk = self.shrinkage is not None or self.covariance_estimator is not None
        if shrunk or self.reg_param:
            return self._by_scikit_learn(X, y)
        rows, labels = read_rows(self, X, y)
        refuse_nonfinite(self, rows)
        check_classification_targets(labels)
        classes, counts = np.unique(labels, return_counts=True)
        if len(classes) < 2 or counts.min() <= rows.shape[1]:
            return self._by_scikit_learn(X, y)  # which says what is wrong
        machine = machines.GaussianClassifier().fit(rows, labels)
        spread = [np.linalg.eigh(covariance) for covariance in machine.covariance_]
        if machine.floored_.any() or min(values[0] for values, _ in spread) <= self.tol:
            return self._by_scikit_learn(X, y)
        self.machine_, self.classes_ = machine, machine.classes_
        self.priors_ = counts / len(labels) if self.priors is None else np.array(self.priors)
        self._check_priors()
        self.means_ = machine.means_
        # in the order of memory: a pickled copy then adds up in the same order
        self.scalings_ = [values[::-1].copy() for values, _ in spread]
        self.rotations_ = [vectors[:, ::-1].copy() for _, vectors in spread]
        if self.store_covariance:
            self.covariance_ = list(machine.covariance_)
        return self

    def _by_scikit_learn(self, X: Any, y: Any) -> Self:
        rows = read_rows(self, X, y)[0]
        refuse_nonfinite(self, rows)
        largest = float(np.abs(rows).max(initial=0.0))
        if largest > _LARGEST:
            raise ValueError(
                f"QuadraticDiscriminantAnalysis: X has entries of {largest:.1e}, whose squares "
                "overflow; scale the features, e.g. with sklearn.preprocessing.StandardScaler"
            )
        ScikitQuadratic.fit(self, X, y)
        self._check_priors()
        return self

    def _check_priors(self) -> None:
        if len(self.priors_) != len(self.classes_):
            raise ValueError(
                f"QuadraticDiscriminantAnalysis: priors has {len(self.priors_)} entries, but y has "
                f"{len(self.classes_)} classes; pass one probability for each class"
            )
