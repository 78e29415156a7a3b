"""Does expectation maximisation end here? What another step would add, from the rows alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.certificates.base import Certificate, certify
from mercer.problems.mixture.regularized_mixture import GaussianComponents, RegularizedMixture

_TOL = 1e-3  # scikit-learn's own
_FORMS = 1e-6  # how far a covariance times its stored inverse may be from the identity


@dataclass(frozen=True)
class RegularizedMixtureQuantities:
    """Measures of a mixture against its rows.

    Attributes
    ----------
    mean_log_likelihood : float
        The mean of log P(x) over the rows.
    gain : float
        What a step of expectation maximisation adds to it.
    normalisation : float
        Distance of the sum of the weights from one.
    forms : float
        Largest entry of |C P - I| for a covariance C and the inverse P stored beside it.
    """

    mean_log_likelihood: float
    gain: float
    normalisation: float
    forms: float


@certify.register
def _(
    problem: RegularizedMixture, value: GaussianComponents, tol: float | None = None
) -> Certificate:
    tol = _TOL if tol is None else tol
    found = problem.mean_log_likelihood(value)
    gain = problem.mean_log_likelihood(problem.step(value)) - found
    identity = np.eye(problem.X.shape[1])
    forms = float(np.abs(value.covariances @ value.precisions - identity).max())
    normalisation = abs(float(value.weights.sum()) - 1.0)
    quantities = RegularizedMixtureQuantities(found, gain, normalisation, forms)
    ok = bool(np.isfinite(found) and abs(gain) <= tol and max(normalisation, forms) <= _FORMS)
    statement = (
        f"another step of expectation maximisation adds {gain:.1e} to the mean log-likelihood of "
        f"{found:.6g}; likelihoods of mixtures have many maxima, and this may not be the largest"
    )
    return Certificate(ok, quantities, tol, statement)
