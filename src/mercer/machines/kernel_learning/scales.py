"""Function `learn_scales`: one scale per feature, and the relevance of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.array_types import Array, FrozenArray, Points
from mercer.backends.lapack import blas_threads_for
from mercer.expression import AbsDist, Expression, SqDist, Statistic, Stretch, bind_columns, walk
from mercer.gram import Source
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.derivatives import NoSlopeError, columns_of_distance, slope
from mercer.machines.base.certificate import confirmed
from mercer.machines.gaussian_process.marginal_likelihood import inverted
from mercer.machines.kernel_learning.kernel_set import (
    check_flag,
    check_limits,
    checked,
    counted,
    labelled,
    one_of,
)
from mercer.machines.kernel_learning.problem import (
    LeaveOneOut,
    Likelihood,
    Relevance,
    RidgeMeasure,
    Scaled,
)
from mercer.machines.kernel_learning.solvers import ScaleDescent, slopes_by_distance
from mercer.resources import require_memory
from mercer.rows.points import is_sequence_data, row_count, take
from mercer.solvers.base import Callback, Solution
from mercer.solvers.certificate import Certificate, certify
from mercer.solvers.dispatch import solve

# --- scales --------------------------------------------------------------------------------------

_MEASURES: dict[str, RidgeMeasure] = {"loo": LeaveOneOut(), "likelihood": Likelihood()}
_COPIES = 6  # K, its inverse, the slope, and what products need
_PENALTY = 0.1  # to start from: k(x, x) is 1 for kernels of a distance
_SPREAD = 1.0  # standard deviation of the logarithms of further starts


@dataclass(frozen=True, eq=False)
class LearntScales:
    """What `learn_scales` found.

    Attributes
    ----------
    kernel : Kernel
        With the learnt scales.
    penalty : float
        For `KernelRidge(penalty, kernel=kernel)`.
    scales : (d,) array
        One for each feature. Where a feature does nothing its scale is very large; where it acts in
        a straight line, large.
    relevance : (d,) array
        Share of each feature in the mean squared slope of the fitted function, each in units of the
        spread of its column; of sum 1.
    objective : str
        What was minimised or maximised.
    value : float
        The mean squared leave-one-out error, or the logarithm of the marginal likelihood.
    solution : Solution
        How the search ended, and its way.
    certificate : Certificate
        Slopes at the end, and the value computed another way.
    """

    kernel: Kernel
    penalty: float
    scales: Array
    relevance: Array
    objective: str
    value: float
    solution: Solution
    certificate: Certificate

    def __str__(self) -> str:
        name = {"loo": "mean squared leave-one-out error", "likelihood": "log-likelihood"}
        lines = [f"{name[self.objective]} {self.value:.6g}, penalty {self.penalty:.3g}"]
        for j in np.argsort(-self.relevance, kind="stable")[:12]:
            lines.append(
                f"  feature {j:<4d} scale {self.scales[j]:<10.4g} {self.relevance[j]:7.1%}"
            )
        lines.append(str(self.certificate).splitlines()[0])
        return "\n".join(lines)


def learn_scales(
    X: Any,
    y: Any,
    *,
    kernel: Any = Gaussian,
    penalty: float | None = None,
    objective: str = "loo",
    bias: bool = True,
    bounds: tuple[float, float] = (1e-2, 1e3),
    penalty_bounds: tuple[float, float] = (1e-8, 1e3),
    starts: int = 3,
    random_state: int = 0,
    sample_weight: npt.ArrayLike | None = None,
    tol: float = 1e-4,
    max_iter: int = 200,
    callback: Callback | None = None,
    time_limit: float | None = None,
) -> LearntScales:
    """Learn one scale per feature, and the penalty, of kernel ridge regression by gradients.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Targets.
    kernel : Kernel, or one of their classes
        With one parameter `scale`: Gaussian, Laplacian, Matern (nu 0.5 or above 1),
        RationalQuadratic, and sums and products of one of them with kernels that have none. The
        first start is at its scales; for a class, at the spread of each column times the root of
        their number.
    penalty : float or None
        Weight of the squared norm; None learns it, too.
    objective : {"loo", "likelihood"}
        The exact mean squared leave-one-out error, or the marginal likelihood of the Gaussian
        process with this kernel and noise, their common variance at its best.
    bias : bool
        Whether the function has a constant.
    bounds : pair of float
        Bounds on scales, in units of the first start for a class: spread times root of the number.
    penalty_bounds : pair of float
        Bounds on the penalty.
    starts : int
        How many starts; those after the first are drawn around it.
    random_state : int
        Seed of the draws.
    sample_weight : array-like of shape (n_samples,), optional
        How often each row counts.
    tol : float
        What slopes may be at the end; see `mercer.solvers.ScaleDescent`.
    max_iter : int
        Largest number of steps of a start.
    callback : callable or None
        Called with `mercer.solvers.Progress`; a true return value stops the search.
    time_limit : float or None
        Seconds after which to stop with the best scales so far.

    Returns
    -------
    LearntScales
        `kernel` and `penalty` for `KernelRidge`, `relevance`, `solution`, `certificate`.

    Notes
    -----
    One evaluation costs a few n^3 operations, and n^2 for each feature; no matrix per feature is
    stored. The objectives have several minima in general: the answer is the best of all starts, and
    the certificate says that it is one of the minima, not that it is the lowest. Learning many
    scales from few rows fits noise: the leave-one-out error reached is then too good.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> X = np.random.default_rng(0).normal(size=(80, 4))
    >>> y = np.sin(2 * X[:, 1])
    >>> found = learn_scales(X, y, objective="likelihood", starts=1)
    >>> found.relevance.round(2)
    array([0., 1., 0., 0.])
    >>> machine = KernelRidge(found.penalty, kernel=found.kernel).fit(X, y)
    """
    one_of("learn_scales", "objective", objective, tuple(_MEASURES))
    check_limits("learn_scales", tol, max_iter, callback, time_limit)
    check_flag("learn_scales", "bias", bias)
    count, rng = counted("learn_scales", "starts", starts), _generator(random_state)
    if penalty is None:
        penalty_bounds = _pair("penalty_bounds", penalty_bounds)
    else:
        penalty_bounds = (checked("learn_scales", "penalty", penalty),) * 2
    between = (_pair("bounds", bounds), penalty_bounds)
    with blas_threads_for(X, y):
        points, targets, weights, names = _read(X, y, sample_weight)
        if bias:  # which takes up any constant; rounding should not see it either
            targets = targets - np.average(targets, axis=0, weights=weights)
        family = scale_family(kernel, points, names, weights)
        lower, upper, begin = _starts(family, between, count, rng)
        problem = Relevance(
            points,
            family.formula,
            targets,
            weights,
            _MEASURES[objective],
            bool(bias),
            lower,
            upper,
            begin,
        )
        solver = ScaleDescent(tol=tol, max_iter=int(max_iter))
        solution = solve(problem, solver, callback=callback, time_limit=time_limit)
        certificate = certify(problem, solution.value, 2 * tol)
        solution = confirmed("learn_scales", solution, certificate, stacklevel=3)
        found = solution.value
        return LearntScales(
            family.kernel(found.scales),
            found.penalty,
            found.scales,
            effects(problem, found, family.spread),
            objective,
            certificate.quantities.value,
            solution,
            certificate,
        )


def _read(X: Any, y: Any, sample_weight: Any) -> tuple[Points, Array, Array, list[str] | None]:
    """Check rows and targets, and that the work fits; give rows that count, in float64."""
    if is_sequence_data(X):
        raise TypeError(
            "learn_scales: X holds strings or lists; scales belong to columns of numbers"
        )
    data = labelled("learn_scales", X, y, sample_weight, "numbers")
    assert data.targets is not None
    rows = np.flatnonzero(data.weights > 0)
    targets, n = data.targets[rows], len(rows)
    if n < 2 or not np.ptp(targets, axis=0).all():
        raise ValueError("learn_scales: y is constant; there is nothing to learn scales from")
    require_memory(
        _COPIES * 8 * n * n,
        f"learn_scales on {n} rows",
        "Alternatives: fewer rows (scales learnt from some hundred are good starts); or a larger "
        "budget with mercer.config(memory=...).",
    )
    return take(data.points, rows).astype(np.float64), targets, data.weights[rows], data.names


def _starts(
    family: ScaleFamily,
    between: tuple[tuple[float, float], tuple[float, float]],
    count: int,
    rng: np.random.Generator,
) -> tuple[Array, Array, Array]:
    """Return the bounds of the logarithms, and where to start."""
    (least, most), (low, high) = between
    lower = np.log(np.append(least * family.units, low))
    upper = np.log(np.append(most * family.units, high))
    first = np.log(np.append(family.start, np.clip(_PENALTY, low, high)))
    drawn = _SPREAD * rng.standard_normal((count - 1, len(first)))
    draws = np.vstack([np.zeros(len(first)), drawn])
    return lower, upper, np.clip(first + draws, lower, upper)


def _pair(name: str, value: Any) -> tuple[float, float]:
    try:
        low, high = (float(v) for v in value)
    except (TypeError, ValueError):
        low, high = 1.0, 0.0
    if not 0 < low < high < np.inf:
        raise ValueError(
            f"learn_scales: {name}={value!r} must be two positive numbers, the smaller first"
        )
    return low, high


def _generator(seed: Any) -> np.random.Generator:
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ValueError(
            f"learn_scales: random_state={seed!r} must be a whole number, not negative"
        ) from None


# --- relevance -----------------------------------------------------------------------------------
#
# The mean squared slope of the function by each feature.


def effects(problem: Relevance, value: Scaled, spread: Array) -> Array:
    """Return the share of each feature in the mean squared slope, in units of its spread.

    A long scale alone does not say that a feature is idle: a straight line is learnt with a long
    one. The slope of f = sum_k a_k k(x_k, .) in a feature, times how much that varies, does.

    Parameters
    ----------
    problem : Relevance
        Rows, targets and the kernel as a function of its scales.
    value : Scaled
        Scales and penalty.
    spread : (d,) array
        Standard deviation of each column.

    Returns
    -------
    (d,) array
        Of sum 1; zeros where the function is constant.
    """
    expression, leaf = problem.family(value.scales)
    found = inverted(problem, Source(expression, problem.X).pairs().dense(), value.penalty)
    squares = np.zeros(len(value.scales))
    if found is None:
        return squares
    bent, raw = slopes_by_distance(problem, expression, leaf), columns_of_distance(leaf, problem.X)
    share = problem.row_weights / problem.row_weights.sum()
    for a in found.coef.T:
        pull = bent * a  # what each row does to f near each other row
        if isinstance(leaf, AbsDist):
            signs = (np.sign(x[:, None] - x) for x in raw.T)
            slopes = np.column_stack([np.sum(pull * s, axis=1) for s in signs]) / value.scales
        else:
            slopes = 2.0 * (raw * pull.sum(axis=1)[:, None] - pull @ raw) / value.scales**2
        squares += share @ (slopes * spread) ** 2
    total = float(squares.sum())
    return squares / total if total > 0 else squares


# --- family of kernels ---------------------------------------------------------------------------
#
# A kernel as a function of its scales, and the distance that they stretch.


@dataclass(frozen=True, eq=False)
class ScaleFamily:
    """Kernels that differ in their scales.

    Attributes
    ----------
    template : Kernel
        One of them.
    parameter : str
        The name of the scale in it.
    names : list of str or None
        Names of the columns of the rows.
    start : (d,) array
        Scales to start from.
    units : (d,) array
        What scales are compared with: the spread of each column, times the root of their number (or
        times that number where distances are sums of absolute differences).
    spread : (d,) array
        Standard deviation of each column.
    """

    template: Kernel
    parameter: str
    names: list[str] | None
    start: Array
    units: Array
    spread: Array

    def kernel(self, scales: Array) -> Kernel:
        """Return the kernel with these scales."""
        return self.template.with_params(**{self.parameter: FrozenArray(scales)})

    def formula(self, scales: Array) -> tuple[Expression, Statistic]:
        """Return its formula, and the distance in it that the scales stretch."""
        expression = bind_columns(self.kernel(scales).expression(), self.names)
        return expression, _stretched(expression, self.template)


def scale_family(
    kernel: Any, points: Points, names: list[str] | None, weights: Array
) -> ScaleFamily:
    """Read a kernel, or one of their classes; refuse those without scales or without a gradient."""
    given = isinstance(kernel, Kernel)
    template = kernel if given else _instance(kernel)
    parameters = template.get_params()
    scales = [name for name in parameters if name == "scale" or name.endswith("__scale")]
    if len(scales) != 1:
        raise ValueError(
            f"learn_scales: kernel={template!r} has {len(scales)} parameters called scale; use a "
            "kernel with one, such as Gaussian, Laplacian, Matern or RationalQuadratic"
        )
    # how many columns the distance looks at shows once it has a stretch
    bare = template.with_params(**{scales[0]: FrozenArray([1.0])})
    leaf = _stretched(bind_columns(bare.expression(), names), template)
    raw = columns_of_distance(leaf, points)
    spread = _spread(raw, weights)
    units = spread * (raw.shape[1] if isinstance(leaf, AbsDist) else np.sqrt(raw.shape[1]))
    own = np.asarray(parameters[scales[0]], dtype=np.float64)
    if own.ndim and own.shape != units.shape:
        raise ValueError(
            f"learn_scales: kernel={template!r} has {len(own)} scales, but it looks at "
            f"{len(units)} columns of X; give one scale, or one for each"
        )
    start = np.broadcast_to(own, units.shape)
    family = ScaleFamily(
        template, scales[0], names, start.copy() if given else units, units, spread
    )
    _refuse_without_slope(family)
    return family


def _instance(kernel: Any) -> Kernel:
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        return kernel()
    raise TypeError(
        f"learn_scales: kernel={kernel!r} must be a kernel with a scale, such as Gaussian(1.0), or "
        "the class of one, such as Gaussian"
    )


def _stretched(expression: Expression, kernel: Kernel) -> Statistic:
    """Find the distance whose last step is a stretch."""
    found = {
        leaf
        for leaf in walk(expression)
        if isinstance(leaf, SqDist | AbsDist) and leaf.steps and isinstance(leaf.steps[-1], Stretch)
    }
    if len(found) != 1:
        raise ValueError(
            f"learn_scales: kernel={kernel!r} has no distance with one scale per feature; use "
            "Gaussian, Laplacian, Matern or RationalQuadratic, alone or in sums and products"
        )
    leaf: Statistic = found.pop()
    return leaf


def _refuse_without_slope(family: ScaleFamily) -> None:
    expression, leaf = family.formula(family.start)
    try:
        slope(expression, leaf)
    except NoSlopeError as error:
        raise ValueError(
            f"learn_scales: kernel={family.template!r} has no gradient in its scales: {error}"
        ) from error


def _spread(rows: Array, weights: Array) -> Array:
    """Return the standard deviation of each column; 1 where all entries are equal."""
    if not row_count(rows):
        return np.ones(rows.shape[1])
    share = weights / weights.sum()
    deviation = np.sqrt(share @ (rows - share @ rows) ** 2)
    size = np.abs(rows).max(axis=0)
    return np.where(deviation > 1e-12 * size, deviation, 1.0)
