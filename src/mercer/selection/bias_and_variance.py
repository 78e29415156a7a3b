"""Function `bias_variance`: the parts of an expected error, by refitting to resampled rows.

For squared error, mean over fits of (f - y)^2 = (mean f - y)^2 + variance of f: exactly, at each
row. For labels the same role is played by the most frequent prediction: bias counts rows where that
is wrong, variance how often a fit differs from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from mercer.array_types import Array
from mercer.selection.folds import take_rows


@dataclass(frozen=True)
class BiasVariance:
    """Bias-variance decomposition of an expected error.

    Attributes
    ----------
    error : float
        Mean error of the fits on the test rows.
    bias : float
        Squared bias, or the fraction of samples whose most frequent label is wrong. It includes
        the noise of the targets.
    variance : float
        Variance of the predictions; for labels, how often a fit differs from the most frequent one.
    variance_that_helps : float
        For labels: the part of the variance that turned wrong into right, which lowers the error;
        error = bias + variance - 2 variance_that_helps for two labels. Zero for squared error.
    """

    error: float
    bias: float
    variance: float
    variance_that_helps: float = 0.0


def bias_variance(
    machine: Any,
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    resamples: int = 50,
    size: float = 1.0,
    random_state: int = 0,
) -> BiasVariance:
    """Estimate bias and variance of the expected error by fits to bootstrap samples.

    Parameters
    ----------
    machine : estimator
        A classifier (error: share of wrong labels) or regressor (error: squared).
    X, y : array-like
        Rows to resample, with replacement.
    X_test, y_test : array-like
        Test samples and their labels or targets.
    resamples : int
        Number of fits.
    size : float
        Size of each bootstrap sample as a fraction of all samples.
    random_state : int
        Seed.

    Returns
    -------
    BiasVariance
        For squared error, and for two labels, its parts add up to the error.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.kernels import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(300, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=300)
    >>> half = slice(0, 150), slice(150, 300)
    >>> parts = [
    ...     bias_variance(
    ...         KernelRidge(kernel=Gaussian(s)), X[half[0]], y[half[0]], X[half[1]], y[half[1]]
    ...     )
    ...     for s in (0.05, 3.0)
    ... ]
    >>> parts[0].variance > parts[1].variance, parts[0].bias < parts[1].bias
    (True, True)
    """
    if isinstance(resamples, bool) or resamples != int(resamples) or resamples < 2:
        raise ValueError(f"resamples={resamples} must be an integer of at least 2")
    if not size > 0:
        raise ValueError(f"size={size} must be positive")
    rng, y, y_test = np.random.default_rng(random_state), np.asarray(y), np.asarray(y_test)
    count = max(1, round(size * len(y)))
    labels = is_classifier(machine)
    chosen = [_resample(rng, y, count, labels) for _ in range(int(resamples))]
    predictions = np.array([_prediction(machine, X, y, rows, X_test) for rows in chosen])
    return (_of_labels if labels else _of_numbers)(predictions, y_test)


def _resample(rng: np.random.Generator, y: Array, count: int, labels: bool) -> Array:
    """Draw rows; those of one class alone teach a classifier nothing, and are drawn again."""
    several = labels and count > 1 and len(np.unique(y)) > 1
    rows = rng.integers(0, len(y), count)
    while several and len(np.unique(y[rows])) < 2:
        rows = rng.integers(0, len(y), count)
    return rows


def _prediction(machine: Any, X: Any, y: Array, chosen: Array, X_test: Any) -> Array:
    return np.asarray(clone(machine).fit(take_rows(X, chosen), y[chosen]).predict(X_test))


def _of_numbers(predictions: Array, y: Array) -> BiasVariance:
    mean = predictions.mean(axis=0)
    return BiasVariance(
        float(np.mean((predictions - y) ** 2)),
        float(np.mean((mean - y) ** 2)),
        float(np.mean((predictions - mean) ** 2)),
    )


def _of_labels(predictions: Array, y: Array) -> BiasVariance:
    classes, codes = np.unique(predictions, return_inverse=True)
    codes = codes.reshape(predictions.shape)
    votes = np.stack([(codes == c).sum(axis=0) for c in range(len(classes))])
    main = classes[votes.argmax(axis=0)]
    differs = predictions != main
    helps = differs & (main != y) & (predictions == y)
    return BiasVariance(
        float(np.mean(predictions != y)),
        float(np.mean(main != y)),
        float(np.mean(differs)),
        float(np.mean(helps)),
    )
