"""What can be said of a variational autoencoder: its bound, on draws and rows it has not seen.

The bound on the draws of the fit is a function, whose derivatives are computed anew by hand. It is
too good, as everything that was fitted is: draws that are new give an honest mean, and rows held
out one with an error. How far the bound is below the likelihood nobody knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np

from mercer.certificates.base import Certificate, certify
from mercer.problems.neural.autoencoding import NetworkParameters
from mercer.problems.neural.variational import VariationalAutoencoding, row_bounds

_TOL = 2e-4
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
        Mean bound of rows that were not learnt from, on new draws; NaN without such.
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
        return Certificate(False, nothing, tol, "no finite weights of the shapes asked for")
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
    return Certificate(ok, quantities, tol, _statement(quantities, ok))


def _held_out(problem: VariationalAutoencoding, value: NetworkParameters) -> tuple[float, float]:
    rows, s = problem.held_out, problem.held_out_weights
    if not len(rows):
        return nan, nan
    bounds = row_bounds(problem, value.parameters, rows, problem.noise(len(rows), _NEW + 1))
    mean = float(np.average(bounds, weights=s))
    spread = float(np.average((bounds - mean) ** 2, weights=s))
    return mean, sqrt(spread / max(float(s.sum()) - 1.0, 1.0))


def _statement(found: VariationalQuantities, at_rest: bool) -> str:
    rest = "at rest, not proven the best" if at_rest else "not at rest"
    text = (
        f"no derivative of the bound above {found.gradient:.1e}: {rest}; "
        f"mean bound {found.fresh_bound:.5g} on new draws"
    )
    if np.isnan(found.held_out_bound):
        return text
    return f"{text}; of rows held out {found.held_out_bound:.5g} +- {found.held_out_error:.2g}"
