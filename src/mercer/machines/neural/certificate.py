"""Certificates of autoencoders: stationarity in float64, and bounds of variational ones."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np

from mercer.array_types import Array
from mercer.machines.neural.problem import (
    Autoencoding,
    NetworkParameters,
    VariationalAutoencoding,
    row_bounds,
)
from mercer.solvers.certificate import Certificate, certify

# --- autoencoding --------------------------------------------------------------------------------
#
# Is this autoencoder stationary? Its loss and derivatives in NumPy, in float64, without torch.
#
# Affine encoders and decoders can do no better than principal components (Baldi and Hornik,
# 1989), so for them the optimum is known. For others a vanishing gradient is all there is to
# prove.

_TOL = 2e-4
_SMALL = 1500  # rows or columns: up to here all variances are found in a moment


@dataclass(frozen=True)
class AutoencodingQuantities:
    """Measures of an autoencoder, in units of the variance of the rows.

    Attributes
    ----------
    loss : float
        Unexplained fraction of the variance, with the penalty.
    gradient : float
        Largest derivative of the loss by a weight or a bias.
    linear_loss : float
        What principal components of the same number lose; NaN where rows and columns are both
        many.
    shortfall : float
        Of affine maps without a penalty: how far the loss is above the least possible. NaN for
        others, of which the least is not known.
    held_out_loss : float
        The share that is lost of rows that were not learned from; NaN without such.
    """

    loss: float
    gradient: float
    linear_loss: float
    shortfall: float
    held_out_loss: float


@certify.register
def _(problem: Autoencoding, value: NetworkParameters, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    if value.parameters.shape != (problem.size,) or not np.isfinite(value.parameters).all():
        nothing = AutoencodingQuantities(inf, inf, nan, nan, nan)
        return Certificate(
            False, nothing, tol, "the weights are not finite, or their shapes are wrong"
        )
    loss, slope = problem.objective(value.parameters)
    best = least_linear_loss(problem.X, problem.weights, problem.layout.narrowest)
    known = problem.layout.is_linear and problem.penalty == 0
    quantities = AutoencodingQuantities(
        loss,
        float(np.abs(slope).max()),
        best,
        loss - best if known else nan,
        problem.held_out_loss(value.parameters),
    )
    # saddles of affine maps have no slope either: the loss tells them from the optimum
    ok = quantities.gradient <= tol and not quantities.shortfall > tol
    return Certificate(bool(ok), quantities, tol, _autoencoding_statement(quantities, bool(ok)))


def _autoencoding_statement(found: AutoencodingQuantities, ok: bool) -> str:
    seen = f"the derivatives of the loss are at most {found.gradient:.1e}"
    if np.isnan(found.shortfall) and ok:
        seen += "; a vanishing gradient shows a stationary point, not a minimum"
    elif np.isnan(found.shortfall):
        seen += "; the weights are not stationary"
    else:
        seen += f"; the loss is {max(found.shortfall, 0.0):.1e} above that of principal components"
    if not np.isnan(found.held_out_loss):
        seen += f"; held-out rows lose {100 * found.held_out_loss:.3g} % of the variance"
    return seen


def least_linear_loss(X: Array, weights: Array, count: int) -> float:
    """Return the mean square of an entry that the best affine maps through `count` numbers lose.

    Examples
    --------
    >>> import numpy as np
    >>> cross = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> least_linear_loss(cross, np.ones(4), 1)
    0.25
    """
    if min(X.shape) > _SMALL:
        return nan
    share = weights / weights.sum()
    rows = np.sqrt(share)[:, None] * (X - share @ X)
    small = rows @ rows.T if len(rows) < rows.shape[1] else rows.T @ rows
    variances = np.linalg.eigvalsh(small)[::-1]
    return float(np.maximum(variances[count:], 0.0).sum() / X.shape[1])


# --- variational ---------------------------------------------------------------------------------
#
# What can be said of a variational autoencoder: its bound, on draws and rows it has not seen.
#
# The bound on the draws of the fit is a function, whose derivatives are computed again by hand. It
# is optimistic, since it was fitted: new draws give an unbiased mean, and held-out rows one with
# an error. The distance of the bound from the likelihood is unknown.

_NEW = 3  # the stream of draws that no fit has seen


@dataclass(frozen=True)
class VariationalQuantities:
    """Measures of a variational autoencoder, in nats for each row, in the units of the fit.

    Attributes
    ----------
    bound : float
        Mean evidence lower bound of the training rows, on the draws of the fit.
    fresh_bound : float
        The same on new draws.
    gradient : float
        Largest derivative of the objective, the bound on the draws of the fit for each column.
    held_out_bound : float
        Mean bound of rows that were not learned from, on new draws; NaN without such.
    held_out_error : float
        Standard error of that mean, over rows.
    """

    bound: float
    fresh_bound: float
    gradient: float
    held_out_bound: float
    held_out_error: float


@certify.register
def _(
    problem: VariationalAutoencoding, value: NetworkParameters, tol: float | None = None
) -> Certificate:
    tol = _TOL if tol is None else tol
    if value.parameters.shape != (problem.size,) or not np.isfinite(value.parameters).all():
        nothing = VariationalQuantities(-inf, -inf, inf, nan, nan)
        return Certificate(
            False, nothing, tol, "the weights are not finite, or their shapes are wrong"
        )
    at, s = value.parameters, problem.weights
    seen = row_bounds(problem, at, problem.X, problem.noise(len(problem.X)))
    fresh = row_bounds(problem, at, problem.X, problem.noise(len(problem.X), _NEW))
    held, error = _held_out(problem, value)
    quantities = VariationalQuantities(
        float(np.average(seen, weights=s)),
        float(np.average(fresh, weights=s)),
        float(np.abs(problem.objective(at)[1]).max()),
        held,
        error,
    )
    ok = quantities.gradient <= tol
    return Certificate(ok, quantities, tol, _variational_statement(quantities, ok))


def _held_out(problem: VariationalAutoencoding, value: NetworkParameters) -> tuple[float, float]:
    rows, s = problem.held_out, problem.held_out_weights
    if not len(rows):
        return nan, nan
    bounds = row_bounds(problem, value.parameters, rows, problem.noise(len(rows), _NEW + 1))
    mean = float(np.average(bounds, weights=s))
    spread = float(np.average((bounds - mean) ** 2, weights=s))
    return mean, sqrt(spread / max(float(s.sum()) - 1.0, 1.0))


def _variational_statement(found: VariationalQuantities, at_rest: bool) -> str:
    rest = "stationary, not proven optimal" if at_rest else "not stationary"
    text = (
        f"the derivatives of the bound are at most {found.gradient:.1e}: {rest}; "
        f"mean bound {found.fresh_bound:.5g} on new draws"
    )
    if np.isnan(found.held_out_bound):
        return text
    return f"{text}; held-out rows {found.held_out_bound:.5g} +- {found.held_out_error:.2g}"
