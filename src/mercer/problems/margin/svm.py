"""Each support vector machine, written as a `BoxQP`.

`C` is an (n,) array: the weight of the slack of each row, sample weights included. It may be
infinite (no slack: the hard margin). A finite weight above `DEAREST` is taken as that.

The intercept of an answer is the multiplier of each equality. With one group it is the constant
of the decision function; the nu forms have two, and a function here that turns them into what a
machine needs.
"""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram, PartGram, ShiftedGram
from mercer.gram.exact_parts import exact_rows
from mercer.problems.margin.box_qp import BoxQP, Dual

_NO_MARGIN = 1e-12  # of the level of f: a margin that is rounding


def svc(gram: Gram, signs: Array, C: Array) -> BoxQP:
    """Write the classifier of largest margin with slack.

    min |w|^2/2 + sum_i C_i max(0, 1 - y_i f(x_i)), in signed variables b_i = y_i alpha_i.

    Parameters
    ----------
    gram : Gram
        K.
    signs : (n,) array
        The class of each row, -1 or 1.
    C : (n,) array
        Weight of each slack; infinite for none.

    Returns
    -------
    BoxQP
        0 <= y_i b_i <= C_i, sum b = 0, linear term y.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers import solve
    >>> signs = np.array([1.0, -1.0])
    >>> solve(svc(PrecomputedGram(np.eye(2)), signs, np.full(2, np.inf))).value.coef
    array([ 1., -1.])
    """
    return _two_sided(gram, signs, bounded(gram, C))


def svc_l2(gram: Gram, signs: Array, C: Array) -> BoxQP:
    """Write the classifier with squared slack: C_i becomes 1/(2 C_i) on the diagonal of K.

    min |w|^2/2 + sum_i C_i max(0, 1 - y_i f(x_i))^2.

    Parameters
    ----------
    gram : Gram
        K.
    signs : (n,) array
        The class of each row, -1 or 1.
    C : (n,) array
        Weight of each squared slack; infinite for none.

    Returns
    -------
    BoxQP
        y_i b_i >= 0, sum b = 0, linear term y.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers import solve
    >>> signs = np.array([1.0, -1.0])
    >>> solve(svc_l2(PrecomputedGram(np.eye(2)), signs, np.full(2, 0.5))).value.coef
    array([ 0.5, -0.5])
    """
    return _two_sided(slackened(gram, C), signs, np.full(len(signs), np.inf))


def nu_svc(gram: Gram, signs: Array, weights: Array, nu: float) -> BoxQP:
    """Write the classifier whose margin errors are at most a share nu of the rows.

    Minimises b'Kb/2 with 0 <= y_i b_i <= w_i and the variables of each class summing to nu W/2,
    where W is the total weight. `nu_svc_margin` makes the answer a decision function.

    Parameters
    ----------
    gram : Gram
        K.
    signs : (n,) array
        The class of each row, -1 or 1.
    weights : (n,) array
        How often each row counts.
    nu : float
        Upper bound on the share of margin errors, lower bound on that of support vectors; in
        (0, 2 min(W+, W-)/W].

    Returns
    -------
    BoxQP
        Two groups: the positive class, the negative.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers import solve
    >>> signs = np.array([1.0, -1.0])
    >>> problem = nu_svc(PrecomputedGram(np.eye(2)), signs, np.ones(2), nu=0.5)
    >>> machine, rho = nu_svc_margin(solve(problem).value)
    >>> machine.coef, rho
    (array([ 1., -1.]), 0.5)
    """
    positive = signs > 0
    of_class = np.array([weights[positive].sum(), weights[~positive].sum()])
    total = of_class.sum()
    most = 2.0 * float(of_class.min() / total)
    if not 0 < nu <= most * (1 + 1e-12):
        raise ValueError(
            f"nu={nu} is infeasible: with classes of weight {of_class[0]:g} and {of_class[1]:g} "
            f"nu must be above 0 and at most {most:.6g}, twice the share of the smaller class"
        )
    half = min(0.5 * nu * total, float(of_class.min()))
    upper, lower = np.where(positive, weights, 0.0), np.where(positive, 0.0, -weights)
    group = np.where(positive, 0, 1)
    nothing, totals = np.zeros(len(signs)), np.array([half, -half])
    return BoxQP(gram, nothing, lower, upper, totals, 0.0, group, scale=None)


def nu_svc_margin(dual: Dual) -> tuple[Dual, float]:
    """Scale the answer to `nu_svc` so that the margin is at f = +-1.

    Parameters
    ----------
    dual : Dual
        With one multiplier for each class.

    Returns
    -------
    machine : Dual
        Coefficients and constant of the decision function: those of `svc` with C_i = w_i / rho.
    rho : float
        f at the margin before scaling.
    """
    positive, negative = np.asarray(dual.intercept, dtype=np.float64)
    rho = float(negative - positive) / 2
    if not nu_svc_parts(dual):
        raise ValueError(
            "no margin at this nu: the convex hulls of the classes, reduced by it, still meet. "
            "Raise nu"
        )
    return Dual(dual.coef / rho, float(positive + negative) / (2 * rho)), rho


def nu_svc_parts(dual: Dual) -> bool:
    """Return whether the answer to `nu_svc` has a margin, if only one above rounding."""
    positive, negative = np.asarray(dual.intercept, dtype=np.float64)
    return bool((negative - positive) / 2 > _NO_MARGIN * max(abs(positive), abs(negative)))


def svr(gram: Gram, targets: Array, C: Array, eps: float) -> BoxQP:
    """Write regression with a tube: errors up to eps are free, beyond it they cost C_i each.

    min |w|^2/2 + sum_i C_i max(0, |t_i - f(x_i)| - eps).

    Parameters
    ----------
    gram : Gram
        K.
    targets : (n,) array
        What f should be.
    C : (n,) array
        Weight of each slack; infinite for none.
    eps : float
        Half the width of the tube.

    Returns
    -------
    BoxQP
        -C_i <= b_i <= C_i, sum b = 0, linear term t, epsilon eps.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers import solve
    >>> problem = svr(PrecomputedGram(np.eye(2)), np.array([3.0, 1.0]), np.full(2, 9.0), eps=0.5)
    >>> answer = solve(problem).value
    >>> answer.coef, answer.intercept
    (array([ 0.5, -0.5]), 2.0)
    """
    C, targets = bounded(gram, C), np.asarray(targets, dtype=np.float64)
    return BoxQP(gram, targets, -C, C, 0.0, eps, scale=spread_of(targets))


def svr_l2(gram: Gram, targets: Array, C: Array, eps: float) -> BoxQP:
    """Write regression with a tube and squared slack: 1/(2 C_i) on the diagonal of K.

    min |w|^2/2 + sum_i C_i max(0, |t_i - f(x_i)| - eps)^2.

    Parameters
    ----------
    gram : Gram
        K.
    targets : (n,) array
        What f should be.
    C : (n,) array
        Weight of each squared slack; infinite for none.
    eps : float
        Half the width of the tube; with 0 this is kernel ridge.

    Returns
    -------
    BoxQP
        No bounds, sum b = 0, linear term t, epsilon eps.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers import solve
    >>> problem = svr_l2(PrecomputedGram(np.eye(2)), np.array([3.0, 1.0]), np.full(2, 0.5), 0.5)
    >>> solve(problem).value.coef
    array([ 0.25, -0.25])
    """
    free, targets = np.full(len(targets), np.inf), np.asarray(targets, dtype=np.float64)
    held = slackened(gram, C)
    return BoxQP(held, targets, -free, free, 0.0, eps, scale=spread_of(targets))


def nu_svr(gram: Gram, targets: Array, C: Array, nu: float) -> BoxQP:
    """Write regression whose tube leaves out at most a share nu of the rows.

    Each row appears twice, above and below the tube: 0 <= b_i <= C_i in the first group and
    -C_i <= b_(n+i) <= 0 in the second, which sum to nu sum(C)/2 and its negative.
    `nu_svr_tube` turns the answer into a decision function.

    Parameters
    ----------
    gram : Gram
        K of n points; the problem holds each twice.
    targets : (n,) array
        What f should be.
    C : (n,) array
        Weight of each slack, finite.
    nu : float
        Upper bound on the share of errors outside the tube, lower bound on that of support
        vectors; in (0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers import solve
    >>> problem = nu_svr(PrecomputedGram(np.eye(2)), np.array([3.0, 1.0]), np.ones(2), nu=0.5)
    >>> machine, eps = nu_svr_tube(solve(problem).value)
    >>> machine.coef, eps
    (array([ 0.5, -0.5]), 0.5)
    """
    if not 0 < nu <= 1:
        raise ValueError(f"nu={nu} is infeasible: it must be above 0 and at most 1")
    if not np.isfinite(C).all():
        raise ValueError("C must be finite in the nu form: its sum is what nu is a share of")
    n, C = len(targets), np.asarray(C, dtype=np.float64)
    half, nothing = 0.5 * nu * float(C.sum()), np.zeros(n)
    twice = PartGram(gram, np.tile(np.arange(n), 2))
    linear = np.tile(np.asarray(targets, dtype=np.float64), 2)
    lower, upper = np.concatenate([nothing, -C]), np.concatenate([C, nothing])
    totals, group = np.array([half, -half]), np.repeat([0, 1], n)
    return BoxQP(twice, linear, lower, upper, totals, 0.0, group, scale=spread_of(linear))


def nu_svr_tube(dual: Dual) -> tuple[Dual, float]:
    """Fold the answer to `nu_svr` to one coefficient for each row.

    Parameters
    ----------
    dual : Dual
        2n variables, two multipliers.

    Returns
    -------
    machine : Dual
        n coefficients and the constant of the decision function.
    eps : float
        Half the width of the tube that nu stands for.
    """
    above, below = np.asarray(dual.intercept, dtype=np.float64)
    n = len(dual.coef) // 2
    eps = max(0.0, float(above - below) / 2)
    return Dual(dual.coef[:n] + dual.coef[n:], float(above + below) / 2), eps


def one_class(gram: Gram, weights: Array, nu: float) -> BoxQP:
    """Write the half-space that holds all but a share nu of the rows, farthest from the origin.

    Minimises b'Kb/2 with 0 <= b_i <= w_i and sum b = nu W. The decision is f(x) + intercept:
    negative for novel rows; rho = -intercept.

    Parameters
    ----------
    gram : Gram
        K.
    weights : (n,) array
        How often each row counts.
    nu : float
        Upper bound on the share of rows outside, lower bound on that of support vectors; in (0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers import solve
    >>> answer = solve(one_class(PrecomputedGram(np.eye(2)), np.ones(2), nu=0.5)).value
    >>> answer.coef, answer.intercept
    (array([0.5, 0.5]), -0.5)
    """
    if not 0 < nu <= 1:
        raise ValueError(f"nu={nu} is infeasible: it must be above 0 and at most 1")
    weights = np.asarray(weights, dtype=np.float64)
    nothing = np.zeros(len(weights))
    total = min(nu, 1.0) * float(weights.sum())
    return BoxQP(gram, nothing, nothing, weights, total, scale=None)


def ball(gram: Gram, C: Array) -> BoxQP:
    """Write the smallest ball in feature space around the rows; rows left out cost C_i.

    min R^2 + sum_i C_i max(0, |phi(x_i) - c|^2 - R^2), half of whose dual is
    min b'Kb/2 - (diag K)'b/2 with 0 <= b_i <= C_i and sum b = 1. The centre is
    c = sum_i b_i phi(x_i); `ball_radius` gives the rest.

    Parameters
    ----------
    gram : Gram
        K.
    C : (n,) array
        Weight of each row outside; infinite for none. They must sum to at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers import solve
    >>> problem = ball(PrecomputedGram(np.diag([1.0, 1.0])), np.full(2, np.inf))
    >>> radius, centre = ball_radius(problem, solve(problem).value)
    >>> round(radius, 6), round(centre, 6)
    (0.707107, 0.707107)
    """
    upper = np.minimum(C, 1.0)
    room = float(upper.sum())
    if room < 1 - 1e-12:
        raise ValueError(
            f"C is infeasible: the weights of the rows must sum to at least 1, not "
            f"{float(np.sum(C)):.6g}; below it a ball of no radius is the cheapest"
        )
    nothing = np.zeros(len(upper))
    return BoxQP(gram, 0.5 * gram.diag(), nothing, upper, min(room, 1.0), scale=None)


def ball_radius(problem: BoxQP, dual: Dual) -> tuple[float, float]:
    """Return the radius of the ball and the norm of its centre.

    A point z is inside when k(z, z) - 2 f(z) + centre^2 <= radius^2, where
    f(z) = sum_i b_i k(x_i, z). Where centre^2, by `ball_centre`, is negative, its norm is NaN.

    Parameters
    ----------
    problem : BoxQP
        As `ball` wrote it.
    dual : Dual
        Its answer.

    Returns
    -------
    radius : float
        R.
    centre : float
        |c|.
    """
    return ball_lengths(ball_centre(problem, dual), dual)


def ball_lengths(squared: float, dual: Dual) -> tuple[float, float]:
    """Return the radius of a ball and the norm of its centre from the square of the latter."""
    radius = float(np.sqrt(max(0.0, squared + 2 * float(dual.intercept))))
    return radius, float(np.sqrt(squared)) if squared >= 0 else np.nan


def ball_centre(problem: BoxQP, dual: Dual) -> float:
    """Return b'Kb, the squared norm of the centre, and zero where that is but rounding.

    It is negative where K is positive semidefinite on differences only, as cos(x - y) - 1/2 is:
    radii and distances, in which it cancels, need it as it is.
    """
    used = np.flatnonzero(dual.coef)
    squared = float(dual.coef[used] @ exact_rows(problem.gram, used, dual.coef))
    return squared if abs(squared) > problem.rounding(dual.coef) else 0.0


def _two_sided(gram: Gram, signs: Array, C: Array) -> BoxQP:
    upper, lower = np.where(signs > 0, C, 0.0), np.where(signs < 0, -C, 0.0)
    return BoxQP(gram, np.asarray(signs, dtype=np.float64), lower, upper)


# --- what slack may cost at most, and what targets are measured in -------------------------------
#
# A coefficient of the size of `HARDEST`, where max k(x, x) is not small, belongs to a margin so
# thin, below 10^-6 of the longest feature vector, that rounding of the kernel hides it. With an
# infinite weight solvers stop there, and say that the data cannot be separated.
#
# A finite weight above `DEAREST` is taken as it. A coefficient next to a weight of C is a multiple
# of u C, u = 2^-53, so f is a multiple of u C k(x, x): at C = 10^12 that is 10^-4 k(x, x), and
# rounding decides whether a violation is below the tolerance of 10^-3; at 10^10 two more digits are
# left. The answer is another one only where a margin is thinner than 10^-5 of the longest feature
# vector; where slack is paid, its sum is within |w|^2 / (2 C) of the least.

HARDEST = 1e12
DEAREST = 1e10


def bounded(gram: Gram, C: Array) -> Array:
    """Return the weights, the finite ones at most `DEAREST`."""
    C = np.asarray(C, dtype=np.float64)
    if not C.max(initial=0.0) >= DEAREST:
        return C
    # in units of the kernel: with data on a small scale a large C may be meant as it is
    with np.errstate(over="ignore", divide="ignore"):
        most = DEAREST * np.maximum(1.0, 1.0 / np.abs(gram.diag().max(initial=0.0)))
    return np.where(np.isinf(C), np.inf, np.minimum(C, most))


def slackened(gram: Gram, C: Array) -> Gram:
    """Return the Gram with what squared slack of these weights adds to its diagonal."""
    with np.errstate(over="ignore", divide="ignore"):
        shift = 0.5 / bounded(gram, C)
    return ShiftedGram(gram, np.minimum(shift, np.finfo(float).max))


def spread_of(targets: Array) -> float:
    """Return what a tolerance in units of y is relative to where y spreads by less than a unit."""
    spread = float(np.ptp(targets)) if len(targets) else 0.0
    return min(1.0, spread) or 1.0
