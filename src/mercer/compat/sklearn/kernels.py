"""Kernel parameters of scikit-learn (kernel, gamma, degree, coef0), and pairwise kernels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt, tanh
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels

from mercer import expression as ex
from mercer.array_types import Array, Points
from mercer.expression import Expression
from mercer.kernels import (
    Constant,
    Cosine,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from mercer.kernels.default_kernels import spread_of_entries
from mercer.machines.base.targets import distinct_rows
from mercer.rows.points import take

# --- kernels -------------------------------------------------------------------------------------
#
# kernel, gamma, degree and coef0 become a Mercer kernel here, and only here.


@dataclass(frozen=True, repr=False)
class ShiftedPower(Kernel):
    """k(x, y) = (gamma x'y + coef0)^degree with any coef0; not valid where that is negative.

    Parameters
    ----------
    gamma, coef0 : float
    degree : int
    """

    gamma: float
    coef0: float
    degree: int

    @property
    def psd(self) -> bool:
        """Whether the shift is not negative."""
        return self.coef0 >= 0

    def expression(self) -> Expression:
        """Write the power of the shifted dot product."""
        return (self.gamma * ex.Dot() + self.coef0) ** self.degree


def translate(machine: Any, X: Points, weights: Array) -> tuple[Kernel, float]:
    """Return the kernel that the parameters mean on these rows, and its gamma.

    Rows count as often as their weights say.
    """
    kernel = machine.kernel
    if isinstance(kernel, Kernel):
        return kernel, 0.0
    if callable(kernel) or kernel == "precomputed":
        return Precomputed(), 0.0
    gamma = gamma_of(machine, X, weights)
    return _WRITE[kernel](gamma, float(machine.coef0), int(machine.degree)), gamma


def written(name: str, gamma: float, coef0: float, degree: float) -> Kernel | None:
    """Return the kernel of a name; None where it is not one of Mercer's."""
    if name == "cosine":
        return Cosine()
    if name == "laplacian":
        return Laplacian(1.0 / gamma) if gamma > 0 else Constant(1.0)
    name = "poly" if name == "polynomial" else name
    if name not in _WRITE or (name == "poly" and degree != int(degree)):
        return None
    return _WRITE[name](gamma, coef0, int(degree))  # the others do not ask for the degree


def gamma_of(machine: Any, X: Points, weights: Array) -> float:
    """Return gamma: "scale" is 1 / (n_features * variance), "auto" is 1 / n_features."""
    if not isinstance(machine.gamma, str):
        return float(machine.gamma)
    if machine.gamma == "auto":
        return 1.0 / float(X.shape[1])
    # of distinct rows, so that neither their order nor their copies move the last bit
    rows = distinct_rows(X, np.zeros(X.shape[0]), weights)
    owner = f"{type(machine).__name__}: gamma='scale'"
    try:
        variance = spread_of_entries(take(X, rows.first), rows.weight, owner, "a number as gamma")
    except ValueError as error:
        if machine.kernel != "linear":
            message = "The dual coefficients or intercepts are not finite"
            raise ValueError(f"{error} {message} with this gamma.") from error
        return 1.0  # the linear kernel does not ask for it
    if variance > 0.0:
        return 1.0 / (float(X.shape[1]) * variance)
    if machine.kernel != "linear":
        warnings.warn(
            f"{type(machine).__name__}: all entries of X are equal, so gamma='scale' has nothing "
            "to go by; gamma=1.0 is taken. Pass a number to choose another.",
            UserWarning,
            stacklevel=6,
        )
    return 1.0


def _gaussian(gamma: float, coef0: float, degree: int) -> Kernel:
    return Gaussian(sqrt(0.5 / gamma)) if gamma > 0 else Constant(1.0)


def _polynomial(gamma: float, coef0: float, degree: int) -> Kernel:
    """Write gamma^degree (x'y + coef0 / gamma)^degree where that exists."""
    if gamma > 0 and coef0 >= 0 and degree > 0:
        try:
            factor, offset = gamma**degree, coef0 / gamma
        except OverflowError:
            return ShiftedPower(gamma, coef0, degree)
        if factor > 0 and offset < np.inf:
            return factor * Polynomial(degree, offset)
    return ShiftedPower(gamma, coef0, degree)


def _sigmoid(gamma: float, coef0: float, degree: int) -> Kernel:
    if gamma == 0 and coef0 >= 0:
        return Constant(tanh(coef0))
    return Sigmoid(slope=gamma, offset=coef0)


_WRITE: dict[str, Callable[[float, float, int], Kernel]] = {
    "linear": lambda gamma, coef0, degree: Linear(),
    "rbf": _gaussian,
    "poly": _polynomial,
    "sigmoid": _sigmoid,
}


# --- pairwise ------------------------------------------------------------------------------------
#
# Kernels of `sklearn.metrics.pairwise`: evaluated by Mercer where it has them.


def known_kernel(machine: Any, gamma: float) -> Kernel | None:
    """Return the kernel of the parameters, if it is one that is evaluated here."""
    if isinstance(machine.kernel, Kernel):
        return machine.kernel
    if not isinstance(machine.kernel, str):
        return None
    return written(machine.kernel, gamma, float(machine.coef0), machine.degree)


def kernel_matrix(machine: Any, X: Any, Y: Any, gamma: float | None) -> Array:
    """Return the matrix of scikit-learn's function; X itself, if that is the matrix.

    Y is None for the matrix of the rows of a fit. NumPy rounds a product of a matrix with itself
    otherwise than one of two equal matrices, so new rows are never those of the fit themselves:
    what a machine answers, and what a copy of it does, are the same bits.
    """
    if isinstance(machine.kernel, str) and machine.kernel == "precomputed":
        return np.asarray(X)
    if callable(machine.kernel):
        params = machine.kernel_params or {}
    else:
        params = {"degree": machine.degree, "coef0": machine.coef0}
        params |= {} if gamma is None else {"gamma": gamma}
    if isinstance(Y, np.ndarray) and np.may_share_memory(X, Y):
        X = X.copy()
    options: dict[str, Any] = {"metric": machine.kernel, "filter_params": True, **params}
    jobs = getattr(machine, "n_jobs", None)
    with np.errstate(over="ignore", invalid="ignore"):  # judged by what comes of it
        return np.asarray(pairwise_kernels(X, Y, n_jobs=jobs, **options))
