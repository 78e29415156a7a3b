"""Drop-in for `sklearn.decomposition.KernelPCA`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import linalg
from sklearn import decomposition
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
from mercer.compat.sklearn.base import WrappedMachine
from mercer.compat.sklearn.kernels import kernel_matrix, known_kernel
from mercer.gram.policy import LAPACK_ROWS
from mercer.kernels import Kernel, Precomputed
from mercer.machines.base.inputs import new_rows, read_array, refuse_nonfinite, rows_with_gaps
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.parameters import refuse
from mercer.machines.decomposition.pca import PCA
from mercer.resources import require_memory
from mercer.rows.points import to_dense
from mercer.solvers.base import Solver
from mercer.solvers.eigen.dense import Eigh
from mercer.solvers.eigen.lanczos_solver import Lanczos

_NEGATIVE = 1e-5  # share of the largest eigenvalue beyond which a negative one is no rounding
_ROUNDED = 1e-10  # of the largest entry: differences that are rounding
_EXACT = 1e-10  # what tol=0 means here: residual of an eigenpair over its eigenvalue


class KernelPCA(WrappedMachine, decomposition.KernelPCA):
    """`sklearn.decomposition.KernelPCA` on Mercer's solver.

    Parameters, attributes and methods are scikit-learn's; `machine_`, `solution_` and
    `certificate_` come on top. `kernel` takes a kernel of `mercer.kernels` as well.
    `eigen_solver="dense"` is LAPACK; "arpack" and "randomized" are block Lanczos here, which has no
    sampling error. `tol=0` is 1e-10 of each eigenvalue. `iterated_power` and `n_jobs` are accepted.

    What differs is listed in the user guide.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.compat.sklearn import KernelPCA
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> KernelPCA(n_components=2, kernel="rbf").fit_transform(X).shape
    (50, 2)
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the kernel matrix itself for kernel="precomputed".
        y : ignored
            Not used.

        Returns
        -------
        self
            The fitted machine.
        """
        self._validate_params()
        if self.fit_inverse_transform and self.kernel == "precomputed":
            raise ValueError("Cannot fit_inverse_transform with a precomputed kernel.")
        X = rows_with_gaps(self, X, gaps=False, fitting=True, sparse=self.kernel != "precomputed")
        self.gamma_ = 1.0 / X.shape[1] if self.gamma is None else self.gamma
        known = self._known_kernel()
        rows = X if known is not None else self._symmetric(self._matrix(X, None))
        count = None if self.n_components is None else min(int(self.n_components), X.shape[0])
        options: dict[str, Any] = {"tol": float(self.tol) or _EXACT, "solver": self._solver(X)}
        options |= {"approximation": None, "random_state": self.random_state}
        machine = PCA(count, known or Precomputed(), **options)
        machine.fit(rows)
        self.machine_, self._known = machine, known is not None
        self.X_fit_ = X.copy() if self.copy_X else X
        values = machine.eigenvalues_
        kept = values > 0 if self.remove_zero_eig or count is None else values >= 0
        if known is None:
            self._refuse_negative(rows, int((values > 0).sum()))
        self.eigenvalues_ = values[kept]
        self.eigenvectors_ = (machine.dual_coef_ * np.sqrt(values))[:, kept]
        for name in ("dual_coef_", "X_transformed_fit_"):
            self.__dict__.pop(name, None)
        if self.fit_inverse_transform:
            self._learn_inverse(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Array:
        """Fit to rows and give their scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : ignored
            Not used.
        **params : dict
            Passed to `fit`.

        Returns
        -------
        array of shape (n_samples, n_components)
            Scores.
        """
        self.fit(X, **params)
        return np.asarray(self.eigenvectors_ * np.sqrt(self.eigenvalues_))

    def transform(self, X: Any) -> Array:
        """Project rows on the components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_components)
            Scores.
        """
        check_is_fitted(self)
        rows = new_rows(self, X, self.kernel == "precomputed")
        rows = rows if self._known else self._matrix(rows, self.X_fit_) - self._moved
        return np.asarray(self.machine_._subspace.scores(rows)[:, : len(self.eigenvalues_)])

    def inverse_transform(self, X: Any) -> Array:
        """Return rows for scores, by the regression that `fit_inverse_transform=True` learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Scores.

        Returns
        -------
        array of shape (n_samples, n_features)
            Rows.
        """
        if not self.fit_inverse_transform:
            raise NotFittedError(
                "The fit_inverse_transform parameter was not set to True when instantiating and "
                "hence the inverse transform is not available."
            )
        check_is_fitted(self)
        name = type(self).__name__
        scores = np.asarray(read_array(name, X, "X"))
        refuse_nonfinite(name, scores)
        with np.errstate(over="ignore", invalid="ignore"):
            rows = np.asarray(self._compared(scores, self.X_transformed_fit_) @ self.dual_coef_)
        refuse_nonfinite(name, rows, "X")
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    def _known_kernel(self) -> Kernel | None:
        """Return the kernel, if it is one that is evaluated here."""
        return known_kernel(self, float(self.gamma_))

    def _matrix(self, X: Any, Y: Any) -> Array:
        return kernel_matrix(self, X, Y, self.gamma_)

    def _symmetric(self, K: Array) -> Array:
        """Centre a small matrix that is symmetric then only, and new rows by the same means."""
        self._moved: Array | float = 0.0
        if len(K) > LAPACK_ROWS or K.shape[0] != K.shape[1] or np.array_equal(K, K.T):
            return K
        moved = K.mean(axis=0)
        centred = K - moved
        centred -= centred.mean(axis=1, keepdims=True)
        if not np.abs(centred - centred.T).max() <= _ROUNDED * np.abs(K).max():
            return K  # refused where it is used
        self._moved = moved
        return np.asarray((centred + centred.T) / 2)

    def _refuse_negative(self, K: Array, positive: int) -> None:
        """Raise as scikit-learn where what was asked for has negative eigenvalues; of few rows."""
        n = len(K)
        if self.n_components is None or n > LAPACK_ROWS:
            return
        asked = min(int(self.n_components), n)
        if positive >= asked and self.eigen_solver != "randomized":
            return
        centred = K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
        values = np.linalg.eigvalsh(centred)[::-1]
        order = np.argsort(-np.abs(values)) if self.eigen_solver == "randomized" else slice(None)
        least = float(values[order][:asked].min())
        if least < -_NEGATIVE * float(values[0]):
            raise ValueError(
                f"There are significant negative eigenvalues ({least:.3g} beside "
                f"{values[0]:.3g}): the kernel is not positive semidefinite. Ask for fewer "
                "components, or take a kernel that is"
            )

    def _compared(self, A: Array, B: Array) -> Array:
        """Return the kernel between rows of scores."""
        known = self._known_kernel()
        return self._matrix(A, B) if known is None else known(A, B)

    def _learn_inverse(self, X: Any) -> None:
        n = X.shape[0]
        what, cure = f"the inverse transform of {n} rows", "Use mercer.PCA(preimage='fixed_point')."
        require_memory(3 * 8 * n * n, what, cure)
        scores = self.eigenvectors_ * np.sqrt(self.eigenvalues_)
        K = np.array(self._compared(scores, scores), dtype=np.float64)
        K.flat[:: n + 1] += self.alpha
        try:
            self.dual_coef_ = linalg.solve(K, to_dense(X), assume_a="pos", overwrite_a=True)
        except np.linalg.LinAlgError as error:
            must = "be larger: the regression of the inverse transform is singular to rounding"
            refuse(self, "alpha", self.alpha, must)
            raise AssertionError from error
        self.X_transformed_fit_ = scores

    def _solver(self, X: Any) -> Solver | None:
        if self.eigen_solver == "dense":
            return Eigh()
        few = self.n_components is not None and 6 * self.n_components <= X.shape[0] - 96
        if self.eigen_solver == "auto" or not few or X.shape[0] <= LAPACK_ROWS:
            return None
        limits = {} if self.max_iter is None else {"max_iter": int(self.max_iter)}
        return Lanczos(tol=float(self.tol) or _EXACT, **limits)
