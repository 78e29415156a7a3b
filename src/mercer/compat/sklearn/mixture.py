"""Drop-in for `sklearn.mixture.GaussianMixture`: scikit-learn's steps, with a certificate."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import mixture

from mercer.array_types import Array
from mercer.compat.sklearn.base import in_words
from mercer.machines.mixture.gaussian_em_steps import GaussianComponents, RegularizedMixture
from mercer.solvers.base import Solution, Status
from mercer.solvers.certificate import Certificate, certify


class GaussianMixture(mixture.GaussianMixture):
    """`sklearn.mixture.GaussianMixture` with a certificate.

    Parameters, attributes, methods and steps are scikit-learn's: `reg_covar` is added to variances
    in every step, which makes its answers another model's than those of `mercer.GaussianMixture`,
    where variances have a floor. `solution_` and `certificate_` come on top; the certificate is
    made from the rows, so `fit` keeps them until it is read.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.compat.sklearn import GaussianMixture
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]], dtype=float)
    >>> machine = GaussianMixture(n_components=2, random_state=0).fit(X)
    >>> machine.certificate_.ok
    True
    """

    def fit_predict(self, X: Any, y: Any = None) -> Array:
        """Fit as scikit-learn does, and give the component of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored
            Not used.

        Returns
        -------
        int array of shape (n_samples,)
            The most probable components.
        """
        with in_words(type(self).__name__):
            labels: Array = super().fit_predict(X, y)
        if self.max_iter > 0 and not np.isfinite(np.asarray(self.lower_bound_)):
            raise ValueError(
                f"{type(self).__name__}: squares of X, or its log-likelihood, overflow; scale the "
                "columns first"
            )
        plain = type(self.means_) is np.ndarray  # rows of other array libraries are not looked at
        self._judgement: Any = np.array(X, dtype=np.float64) if plain else None
        return labels

    @property
    def solution_(self) -> Solution:
        """How the fit ended."""
        self._check_fitted("solution_")
        status = Status.SOLVED if self.converged_ else Status.ITERATION_LIMIT
        return Solution(self._value(), status, int(self.n_iter_), 0.0, "scikit-learn's EM")

    @property
    def certificate_(self) -> Certificate:
        """The judgement of the fit, from the rows; computed when first read."""
        self._check_fitted("certificate_")
        if not isinstance(self._judgement, Certificate):
            asked = RegularizedMixture(self._judgement, self.covariance_type, self.reg_covar)
            self._judgement = certify(asked, self._value(), max(float(self.tol), 1e-9))
        return self._judgement

    def _check_fitted(self, name: str) -> None:
        if self.__dict__.get("_judgement") is None:
            raise AttributeError(f"{type(self).__name__} has no {name} before it is fitted")

    def _value(self) -> GaussianComponents:
        shape = (*self.means_.shape, self.means_.shape[1])
        forms = (_written_out(form, shape) for form in (self.covariances_, self.precisions_))
        return GaussianComponents(self.weights_, self.means_, *forms)

    def __getstate__(self) -> Any:
        if isinstance(self.__dict__.get("_judgement"), np.ndarray):
            _ = self.certificate_  # a copy carries the verdict, not the rows
        return super().__getstate__()


def _written_out(form: Array, shape: tuple[int, ...]) -> Array:
    """Write matrices out that are stored as one, as diagonals, or as numbers."""
    k, d, _ = shape
    if form.shape == shape:
        return form
    if form.shape == (d, d):
        return np.broadcast_to(form, shape)
    diagonals = form[:, None] if form.shape == (k,) else form
    return np.asarray(diagonals[:, :, None] * np.eye(d))
