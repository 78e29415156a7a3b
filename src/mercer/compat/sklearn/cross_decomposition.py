"""Drop-in for `sklearn.cross_decomposition.CCA`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn import cross_decomposition
from sklearn.utils.validation import check_consistent_length

from mercer import machines
from mercer.array_types import Array
from mercer.compat.sklearn.base import WrappedMachine, refusing
from mercer.machines.base.inputs import (
    read_array,
    read_rows,
    refuse_large_squares,
    refuse_nonfinite,
)
from mercer.machines.base.machine import all_or_nothing

# Correlations that differ by less are equal. Rounding e turns variates by e / |r_i - r_j|, so that
# those which are told apart are turned by less than e / sqrt(eps), about sqrt(eps), and scores are
# the same to eight digits in any order of the sums.
_EQUAL = float(np.sqrt(np.finfo(np.float64).eps))
_PERFECT = r"CCA: (the views have|n_components=)"  # how warnings begin that scikit-learn has not


class CCA(WrappedMachine, cross_decomposition.CCA):
    """`sklearn.cross_decomposition.CCA` by QR and SVD instead of iterations.

    Parameters, attributes and methods are scikit-learn's; `machine_`, fitted to the scaled views,
    `solution_` and `certificate_` come on top. Correlations, scores, weights, loadings, rotations,
    predictions and signs are those that scikit-learn's power iterations tend to. `max_iter` and
    `tol` are accepted: the answer is exact to rounding. `fit` never writes to the caller's arrays,
    `copy` or not. Penalties and kernels are `mercer.CCA`'s.

    Examples
    --------
    >>> from mercer.compat.sklearn import CCA
    >>> X = [[0., 0., 1.], [1., 0., 0.], [2., 2., 2.], [3., 5., 4.]]
    >>> y = [[0.1, -0.2], [0.9, 1.1], [6.2, 5.9], [11.9, 12.3]]
    >>> machine = CCA(n_components=1).fit(X, y)
    >>> machine.transform(X).shape
    (4, 1)
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Fit to two views of the same rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The first view.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The second view.

        Returns
        -------
        self
            The fitted machine.
        """
        self._validate_params()
        X = read_rows(self, X, dtype=np.float64, ensure_min_samples=2)
        refuse_nonfinite(self, X)
        refuse_large_squares(self, X)
        y = _second(y)
        check_consistent_length(X, y)
        self._predict_1d = y.ndim == 1
        y = y.reshape(len(y), -1)
        refuse_large_squares(self, y, "y")
        most = min(*X.shape, y.shape[1])
        if self.n_components > most:
            raise ValueError(
                f"`n_components` upper bound is {most}. Got {self.n_components} instead. Reduce "
                "`n_components`."
            )
        self._x_mean, self._x_std = _moments(X, self.scale)
        self._y_mean, self._y_std = _moments(y, self.scale)
        A, B = (X - self._x_mean) / self._x_std, (y - self._y_mean) / self._y_std
        self._deflate(A, B, *self._variates(A, B))
        coef = self.x_rotations_ @ self.y_loadings_.T
        self.coef_ = (coef * self._y_std).T / self._x_std
        self.intercept_ = self._y_mean
        self._n_features_out = self.n_components
        return self

    @refusing
    def transform(self, X: Any, y: Any = None, copy: bool = True) -> Any:
        """Return the scores of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows of the first view.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
            New rows of the second view.
        copy : bool, default=True
            Accepted; nothing is written to.

        Returns
        -------
        array of shape (n_samples, n_components), or a pair of them
            The scores.
        """
        return super().transform(X, y)

    @refusing
    def predict(self, X: Any, copy: bool = True) -> Array:
        """Predict the second view.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows of the first view.
        copy : bool, default=True
            Accepted; nothing is written to.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
            Predicted rows.
        """
        values: Array = super().predict(X)
        return values

    def _variates(self, A: Array, B: Array) -> tuple[Array, Array]:
        """Return unit canonical variates; zero beyond the ranks, with scikit-learn's warning."""
        self.machine_, u, v = _fitted(A, B, int(self.n_components))
        most = min(*A.shape, B.shape[1])
        if self.n_components < most and self.machine_.correlations_[-1:] >= 1.0 - _EQUAL:
            # others may be perfect, too
            machine, u, v = _fitted(A, B, most)
            u, v = _like_power_iterations(machine.correlations_, u, v, B)
            u, v = u[:, : self.n_components], v[:, : self.n_components]
        else:
            u, v = _like_power_iterations(self.machine_.correlations_, u, v, B)
        missing = np.flatnonzero(~u.any(axis=0) | ~v.any(axis=0))
        if len(missing):
            warnings.warn(f"y residual is constant at iteration {missing[0]}", stacklevel=4)
        return u, v

    def _deflate(self, A: Array, B: Array, u: Array, v: Array) -> None:
        """Write the variates as scikit-learn does: directions of views less what came before."""
        x, y = _Deflation(A, self.n_components), _Deflation(B, self.n_components)
        self.n_iter_ = []
        for k in range(self.n_components):
            if not (u[:, k].any() and v[:, k].any()):
                break
            w = x.direction(u[:, k])
            sign = np.sign(w[np.abs(w).argmax()])
            x.take(k, sign * w)
            y.take(k, sign * y.direction(v[:, k]))
            self.n_iter_.append(1)
        self.x_weights_, self.x_loadings_, self.x_rotations_ = x.parts()
        self.y_weights_, self.y_loadings_, self.y_rotations_ = y.parts()


@dataclass
class _Deflation:
    """One view, less its regressions on the scores found so far."""

    left: Array
    count: int

    def __post_init__(self) -> None:
        self.weights = np.zeros((self.left.shape[1], self.count))
        self.loadings = np.zeros_like(self.weights)

    def direction(self, variate: Array) -> Array:
        """Return the shortest direction of what is left whose score is the variate, as a unit."""
        w = np.linalg.lstsq(self.left, variate, rcond=1e-10)[0]
        return np.asarray(w / np.linalg.norm(w))

    def take(self, k: int, w: Array) -> None:
        """Keep a direction, and take its score off."""
        score = self.left @ w
        loading = score @ self.left / (score @ score)
        self.left = self.left - np.outer(score, loading)
        self.weights[:, k], self.loadings[:, k] = w, loading

    def parts(self) -> tuple[Array, Array, Array]:
        """Return weights, loadings and rotations."""
        rotations = self.weights @ np.linalg.pinv(self.loadings.T @ self.weights)
        return self.weights, self.loadings, rotations


def _fitted(A: Array, B: Array, count: int) -> tuple[machines.CCA, Array, Array]:
    """Return a machine of so many components, and its variates."""
    machine = machines.CCA(n_components=count, penalty=0.0)
    with warnings.catch_warnings():  # scikit-learn says nothing of correlations of 1
        warnings.filterwarnings("ignore", _PERFECT, UserWarning)
        u, v = machine.fit_transform(A, B)
    return machine, u, v


def _like_power_iterations(
    correlations: Array, u: Array, v: Array, B: Array
) -> tuple[Array, Array]:
    """Return the variates with those of equal correlations turned as power iterations leave them.

    Any rotation within such a group is as good. An iteration ends at the projection of its start on
    the group, and scikit-learn starts from the first column of y that is not zero after deflation:
    so the variates are projections of the columns, one after another, scale or no scale.
    """
    cosines = (
        v.T
        @ B
        / np.maximum(
            np.linalg.norm(v, axis=0)[:, None] * np.linalg.norm(B, axis=0), np.finfo(float).tiny
        )
    )
    u, v, first = u.copy(), v.copy(), 0
    for last in range(1, len(correlations) + 1):
        if last < len(correlations) and correlations[last - 1] - correlations[last] <= _EQUAL:
            continue
        group = slice(first, last)
        if last - first > 1 and correlations[first] > _EQUAL:  # of zero, variates are arbitrary
            turn = _spanning(cosines[group])
            u[:, group], v[:, group] = u[:, group] @ turn, v[:, group] @ turn
        first = last
    return u, v


def _spanning(cosines: Array) -> Array:
    """Return an orthogonal matrix, by Gram-Schmidt on columns as far as they are independent.

    A column counts if more than sqrt(eps) of it is left, as with correlations.
    """
    d = len(cosines)
    Q = np.zeros((d, 0))
    for column in np.hstack([cosines, np.eye(d)]).T:
        left = column - Q @ (Q.T @ column)
        left = left - Q @ (Q.T @ left)
        length = float(np.linalg.norm(left))
        if length > _EQUAL and Q.shape[1] < d:
            Q = np.column_stack([Q, left / length])
    return Q


def _second(y: Any) -> Array:
    if y is None:
        raise ValueError("CCA requires y to be passed, but the target y is None")
    read = np.asarray(read_array("CCA", y, "y", dtype=np.float64, ensure_2d=False))
    refuse_nonfinite("CCA", read.reshape(len(read), -1), "y")
    return read


def _moments(Z: Array, scale: bool) -> tuple[Array, Array]:
    """Return mean and standard deviation of the columns; 1 for constant ones."""
    std = Z.std(axis=0, ddof=1) if scale else np.ones(Z.shape[1])
    return Z.mean(axis=0), np.where(std == 0.0, 1.0, std)
