"""Bounds for large margins: VC dimension, mistakes of a perceptron, and error.

A hyperplane that keeps points of length at most R at a distance gamma from itself has few ways to
label them, however many coordinates there are: this is why kernels with many features can learn.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.array_types import Array
from mercer.kernels import Precomputed
from mercer.machines.svm.svc import SVC
from mercer.theory.bounds import (
    INDEPENDENT,
    TWO_LABELS,
    Bound,
    check_nonnegative,
    check_positive,
    check_probability,
    error_bound,
)

_ROUNDING = 1e-12  # relative: 1 / 0.1^2 is meant to be 100


def margin_dimension(radius: float, margin: float, dimension: float = math.inf) -> Bound:
    """Bound the VC dimension of hyperplanes with a margin: min(R^2/gamma^2, n) + 1.

    R^2/gamma^2 is rounded up to an integer: three points on a circle of radius R at equal
    distances are given all labels with the margin 3R/4, and (4/3)^2 is less than 2.

    Parameters
    ----------
    radius : float
        R: the largest distance of a point from the origin of the hyperplanes' offset.
    margin : float
        gamma: no point is nearer to the hyperplane.
    dimension : float
        n: how many features there are; infinite for kernels like the Gaussian.

    Returns
    -------
    Bound
        Its value is the dimension; vacuous when it is no less than n + 1 or infinite.

    Examples
    --------
    >>> margin_dimension(radius=1.0, margin=0.1, dimension=10_000).value
    101
    """
    ratio = _squared_ratio(radius, margin)
    if dimension != math.inf and check_positive("dimension", dimension) < 1:
        raise ValueError(f"dimension={dimension!r} must be at least 1")
    ratio = math.inf if math.isinf(ratio) else math.ceil(ratio * (1 - _ROUNDING))
    value = min(ratio, math.inf if math.isinf(dimension) else math.floor(dimension)) + 1
    vacuous = not ratio < dimension
    statement = (
        f"hyperplanes with margin {margin:.4g} on points within {radius:.4g} shatter at most "
    )
    statement += "any number of points" if math.isinf(value) else f"{value} points"
    return Bound(value, vacuous, ("radius and margin were fixed before the sample",), statement)


def novikoff(radius: float, margin: float) -> Bound:
    """Bound the mistakes of a perceptron on any stream: (R/gamma)^2.

    Parameters
    ----------
    radius : float
        R: all points, with the constant feature of the bias if there is one, are at most so long.
    margin : float
        gamma: some hyperplane through the origin keeps all points at least so far on their side.

    Returns
    -------
    Bound
        Its value is the number of mistakes; vacuous without a margin.

    Examples
    --------
    >>> novikoff(radius=1.0, margin=0.1).value
    100
    """
    ratio = _squared_ratio(radius, margin)
    mistakes = math.inf if math.isinf(ratio) else math.floor(ratio * (1 + _ROUNDING))
    shown = "any number of" if math.isinf(mistakes) else f"at most {mistakes}"
    assumptions = ("one hyperplane has this margin on all examples, in whatever order they come",)
    statement = f"a perceptron makes {shown} mistakes"
    return Bound(mistakes, math.isinf(mistakes), assumptions, statement)


def margin_error(
    slack: npt.ArrayLike, squared_norm: float, squared_lengths: npt.ArrayLike, delta: float
) -> Bound:
    """Bound the error of a large-margin hyperplane from its slacks and its norm.

    With probability 1 - delta, for every f(x) = w'phi(x) at once,

        error <= mean min(1, slack_i) + 2 L sqrt(sum_i |phi(x_i)|^2) / n
                 + 3 sqrt(ln(2 j (j + 1) / delta) / (2 n)),

    where slack_i = max(0, 1 - y_i f(x_i)) and L = 2^(j - 1) >= |w|, j = 1, 2, ... is the smallest
    power of two that bounds the norm: the cost of not knowing the norm in advance.

    Parameters
    ----------
    slack : (n,) array-like
        The slacks of the examples the hyperplane was chosen by.
    squared_norm : float
        |w|^2.
    squared_lengths : (n,) array-like
        k(x_i, x_i); add the square of the constant feature if there is a bias.
    delta : float
        The probability of failure allowed.

    Returns
    -------
    Bound
        An upper bound of the true error.

    Examples
    --------
    >>> import numpy as np
    >>> round(margin_error(np.zeros(10_000), 4.0, np.ones(10_000), delta=0.05).value, 3)
    0.09
    """
    delta = check_probability("delta", delta)
    xi, lengths = _numbers("slack", slack), _numbers("squared_lengths", squared_lengths)
    if len(xi) != len(lengths) or not len(xi):
        raise ValueError(
            f"{len(xi)} slacks and {len(lengths)} squared_lengths must be equally long, not empty"
        )
    if (xi < 0).any() or (lengths < 0).any():
        raise ValueError("slack and squared_lengths must not be negative")
    squared_norm = check_nonnegative("squared_norm", squared_norm)
    n = len(xi)
    j = 1 + max(0, math.ceil(math.log2(max(squared_norm, 1e-300)) / 2))
    complexity = 2.0 * 2.0 ** (j - 1) * math.sqrt(float(lengths.sum())) / n
    chance = 3.0 * math.sqrt(math.log(2 * j * (j + 1) / delta) / (2 * n))
    value = float(np.minimum(xi, 1.0).mean()) + complexity + chance
    statement = (
        f"with probability {1 - delta:g} the true error is at most {min(value, 1.0):.4g}: slack "
        f"{np.minimum(xi, 1.0).mean():.4g}, capacity {complexity:.4g}, confidence {chance:.4g}"
    )
    return error_bound(
        value,
        (INDEPENDENT, TWO_LABELS, "the kernel was fixed before the data were seen"),
        statement,
    )


def machine_bound(
    machine: Any, X: Any, y: Any, delta: float = 0.05, constant: float = 1.0
) -> Bound:
    """Bound the error of a fitted two-class `SVC` from the rows it was fitted to.

    Radius, margin and slacks are computed in feature space. The bias is the weight of one
    more, constant, feature.

    Parameters
    ----------
    machine : SVC
        Fitted, two classes.
    X : array-like of shape (n_samples, n_features)
        The rows of the fit.
    y : array-like of shape (n_samples,)
        Their labels.
    delta : float
        The probability of failure allowed.
    constant : float
        Size of the constant feature, to be chosen before the sample.

    Returns
    -------
    Bound
        An upper bound of the true error.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.kernels import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 2))
    >>> y = X[:, 0] > 0
    >>> machine = SVC(Gaussian(3.0), C=0.1).fit(X, y)
    >>> machine_bound(machine, X, y).vacuous
    False
    """
    constant = check_positive("constant", constant)
    if not isinstance(machine, SVC) or isinstance(machine.kernel_, Precomputed):
        raise TypeError(
            "machine_bound: needs a fitted mercer.SVC with a kernel of rows (a precomputed "
            "one has no norms of new rows); margin_error takes numbers. Got "
            f"{type(machine).__name__}"
        )
    labels, classes = np.asarray(y), machine.classes_
    if len(classes) != 2 or not np.isin(labels, classes).all():
        raise ValueError(
            "machine_bound: the SVC must have two classes and y their labels; the "
            f"{len(classes)} classes are {classes.tolist()[:5]}"
        )
    values = np.asarray(machine.decision_function(X))
    slack = np.maximum(0.0, 1.0 - np.where(labels == classes[1], 1.0, -1.0) * values)
    bias = float(np.ravel(machine.intercept_)[0])
    norm = float(machine.certificate_.quantities.squared_norm) + (bias / constant) ** 2
    lengths = np.asarray(machine.kernel_.diag(X), dtype=np.float64) + constant**2
    return margin_error(slack, norm, lengths, delta)


def _squared_ratio(radius: float, margin: float) -> float:
    """Return (R/gamma)^2; infinite without a margin, or when it is too large for a float."""
    if radius != math.inf:
        radius = check_positive("radius", radius)
    margin = check_nonnegative("margin", margin)
    ratio = radius / margin if margin > 0 else math.inf
    return ratio**2 if ratio < 1e150 else math.inf


def _numbers(name: str, values: npt.ArrayLike) -> Array:
    array = np.asarray(values, dtype=np.float64).ravel()
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must hold finite numbers")
    return array
