"""Certificates of mixtures: likelihood, and the gain of one more EM step."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.lapack import one_blas_thread
from mercer.machines.mixture.gaussian_em_steps import GaussianComponents, RegularizedMixture
from mercer.machines.mixture.problem import FALL, Mixture
from mercer.solvers.certificate import Certificate, certify

# --- mixture -------------------------------------------------------------------------------------
#
# Is this mixture a stationary point? Its likelihood anew, and what one more step would add.
#
# A mixture has many stationary points, and no certificate tells which is the best one: what is
# judged is that the parts are distributions, that another step gains next to nothing, and that
# the objective never fell on the way. Passes take the exact way, whichever way the solver took.
#
# A step that moves the mean of a part of share p by t standard deviations gains p t^2/2 or more,
# so a gain of `tol` allows for moves of sqrt(2 tol / p), and for no larger ones. How far the next
# step goes is said beside the gain. Where rounding alone changes log-densities by more than
# `tol`, as with covariances that only a tiny floor keeps from being singular, no gain can be
# shown to be small.

_MIXTURE_TOL = 1e-5
# objectives on the way; and numbers of rows in blocks, which are compared where they are
_NOT_COMPARED = ("likelihoods", "kept")
_VALID = 1e-9


@dataclass(frozen=True)
class MixtureQuantities:
    """Measures of a mixture.

    Attributes
    ----------
    log_likelihood : float
        Mean over rows (over words, for topics), recomputed.
    step_gain : float
        What one more step of expectation maximisation adds to the objective, per row or word.
    movement : float
        How far that step moves a parameter, over the largest of its kind (shares, means, ...); for
        means that are less than one standard deviation from that of all samples, over one.
    largest_fall : float
        Largest relative fall of the objective between two steps on the way.
    fault : float
        How far the parts are from being distributions; infinite if they are none.
    collapsed : int
        Parts that are empty, or narrower than the floor allows and held by it.
    """

    log_likelihood: float
    step_gain: float
    movement: float
    largest_fall: float
    fault: float
    collapsed: int


@certify.register
def _(problem: Mixture, value: Any, tol: float | None = None) -> Certificate:
    tol = _MIXTURE_TOL if tol is None else tol
    fault = problem.faults(value)
    if not fault <= _VALID:
        bad = MixtureQuantities(-inf, inf, inf, inf, fault, 0)
        return Certificate(False, bad, tol, "the parts are no distributions")
    with one_blas_thread():
        here = problem.e_step(value, exact=True)
        moved = problem.m_step(value, here.sums)
        after = problem.e_step(moved, exact=True)
    gain = (after.objective - here.objective) / problem.total
    quantities = MixtureQuantities(
        here.log_likelihood / problem.total,
        gain,
        max(_movement(value, moved), problem.held_movement(moved)),
        _largest_fall(value.likelihoods),
        fault,
        int(problem.collapsed(value).sum()),
    )
    rounding = FALL * max(1.0, abs(here.objective) / problem.total)
    # a gain that rounding could make or hide says nothing, whichever sign it happens to have
    known = problem.resolves(value, tol, here.objective)
    ok = (
        known
        and -max(rounding, problem.rounding(value)) <= gain <= max(tol, rounding)
        and quantities.largest_fall <= FALL
    )
    statement = (
        f"mean log-likelihood {quantities.log_likelihood:.6g}; another step adds "
        f"{max(gain, 0.0):.1e}, and moves parameters by {quantities.movement:.1e} of the largest"
    )
    if not known:
        hidden = problem.rounding(value)
        statement += f"; rounding may change the gain by {hidden:.1e}, more than the tolerance"
    if quantities.collapsed:
        statement += f"; collapsed parts: {quantities.collapsed}"
    return Certificate(bool(ok), quantities, tol, statement)


def _movement(here: Any, after: Any) -> float:
    """Compare the parameters before and after a step, each kind with its largest."""
    names = [field.name for field in fields(here) if field.name not in _NOT_COMPARED]
    pairs = [(np.asarray(getattr(here, name)), np.asarray(getattr(after, name))) for name in names]
    sizes = [
        # means are in units in which samples have variance one, near their own mean
        max(float(np.abs(old).max(initial=0.0)), 1.0 if name == "means" else np.finfo(float).tiny)
        for name, (old, _) in zip(names, pairs, strict=True)
    ]
    moves = [float(np.abs(new - old).max(initial=0.0)) for old, new in pairs]
    return max(move / size for move, size in zip(moves, sizes, strict=True))


def _largest_fall(objectives: Array | None) -> float:
    if objectives is None or len(objectives) < 2:
        return 0.0
    falls = (objectives[:-1] - objectives[1:]) / np.maximum(np.abs(objectives[:-1]), 1.0)
    return max(0.0, float(falls.max()))


# --- regularized mixture -------------------------------------------------------------------------
#
# Does expectation maximisation end here? What another step would add, from the rows alone.

_REGULARIZED_MIXTURE_TOL = 1e-3  # scikit-learn's own
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
    tol = _REGULARIZED_MIXTURE_TOL if tol is None else tol
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
