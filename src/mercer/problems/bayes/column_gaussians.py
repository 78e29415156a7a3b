"""A Gaussian for each column and class, its variance raised by a constant."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.array_types import Array


@dataclass(frozen=True, eq=False)
class ColumnGaussians:
    """Means and variances of columns in classes, as scikit-learn's `GaussianNB` asks for them.

    Attributes
    ----------
    X : (n, d) array
        Rows.
    codes : (n,) int array
        Their classes, 0, ..., k - 1.
    weights : (n,) array
        How often each counts.
    classes : int
        k.
    added : float
        What is added to each variance.
    """

    X: Array
    codes: Array
    weights: Array
    classes: int
    added: float


@dataclass(frozen=True, eq=False)
class MeansAndVariances:
    """An answer to `ColumnGaussians`: two arrays of shape (k, d)."""

    mean: Array
    variance: Array
